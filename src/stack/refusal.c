/* SPDX-License-Identifier: MIT
 *
 * Why the memory of a process may not be read. The kernel says EPERM whatever the reason
 * (ptrace_may_access(), kernel/ptrace.c); what it looked at stands in /proc, in the same order:
 * ids, dumpable, then the security module.
 *
 *	$ grep -E '^(Uid|CapEff)' /proc/self/status
 *	Uid:	1000	1000	1000	1000
 *	CapEff:	0000000000000000
 */
#include "base/err.h"
#include "base/io.h"
#include "base/scan.h"
#include "stack/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define CAP_SYS_PTRACE_BIT 19

struct who {
	bool known;
	uint64_t uid[3], gid[3]; /* real, effective, saved */
	uint64_t capabilities;
};

static void who_read(const char *path, struct who *ret)
{
	char text[4096];
	ssize_t n = io_read(AT_FDCWD, path, text, sizeof(text));
	struct scan all, at;

	*ret = (struct who){ 0 };
	if (n <= 0)
		return;
	all = scan_of(text, (size_t)n);
	ret->known = scan_key(all, "Uid", &at);
	for (int i = 0; i < 3 && ret->known; i++)
		ret->known = scan_u64(&at, &ret->uid[i]);
	ret->known = ret->known && scan_key(all, "Gid", &at);
	for (int i = 0; i < 3 && ret->known; i++)
		ret->known = scan_u64(&at, &ret->gid[i]);
	if (scan_key(all, "CapEff", &at)) {
		scan_blank(&at);
		(void)scan_hex(&at, &ret->capabilities);
	}
}

static bool same_ids(const struct who *we, const struct who *they)
{
	for (int i = 0; i < 3; i++)
		if (they->uid[i] != we->uid[1] || they->gid[i] != we->gid[1])
			return false;
	return true;
}

/* The files in /proc of a process that is not dumpable belong to root, whoever runs it (its folder does
 * not change hands). */
static bool dumpable(pid_t pid, const struct who *they)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	if (stat(path, &st) < 0)
		return true;
	return st.st_uid == they->uid[1] || they->uid[1] == 0;
}

static enum mem_refusal refused_by_yama(pid_t pid, uint64_t scope, struct err *e)
{
	err_set(e, -EPERM, "may not read process %d: kernel.yama.ptrace_scope is %llu", (int)pid,
		(unsigned long long)scope);
	if (scope == 1)
		err_hint(e, "start the program with `spotter run -- ...`, or run: sudo sysctl "
			    "kernel.yama.ptrace_scope=0");
	else if (scope == 2)
		err_hint(e, "run spotter as root, or: sudo sysctl kernel.yama.ptrace_scope=0");
	else
		err_hint(e, "scope 3 holds until the next boot: set it in /etc/sysctl.d and boot");
	return MEM_YAMA;
}

static enum mem_refusal refused_process(const struct mem *m, const struct who *they, struct err *e)
{
	struct who we;
	uint64_t scope = 0;
	bool capable;

	who_read("/proc/self/status", &we);
	capable = (we.capabilities >> CAP_SYS_PTRACE_BIT) & 1;
	if (!capable && !same_ids(&we, they)) {
		err_set(
		    e, -EPERM, "may not read process %d: it belongs to user %llu, we are user %llu",
		    (int)m->pid, (unsigned long long)they->uid[0], (unsigned long long)we.uid[1]);
		err_hint(e, "run spotter as that user, as root, or with CAP_SYS_PTRACE");
		return MEM_OTHER_USER;
	}
	if (!capable && !dumpable(m->pid, they)) {
		err_set(e, -EPERM,
			"may not read process %d: it is not dumpable (set-id program, "
			"capabilities on its file, or prctl(PR_SET_DUMPABLE))",
			(int)m->pid);
		err_hint(e, "run spotter as root or with CAP_SYS_PTRACE");
		return MEM_NOT_DUMPABLE;
	}
	if (io_read_u64(AT_FDCWD, "/proc/sys/kernel/yama/ptrace_scope", &scope) == 0 && scope &&
	    (!capable || scope == 3))
		return refused_by_yama(m->pid, scope, e);
	err_set(e, -EPERM,
		"may not read process %d: a seccomp filter or security module refuses "
		"process_vm_readv and /proc/PID/mem",
		(int)m->pid);
	err_hint(e,
		 "in a container add --cap-add SYS_PTRACE, or run spotter in the same container");
	return MEM_SECCOMP;
}

/* The last page of user space but one, with 47 bits of addresses. */
#define TRIAL_ADDRESS 0x7fffffffd000ull

enum mem_refusal mem_refusal(const struct mem *m, struct err *e)
{
	struct mem trial;
	struct who they;
	char path[64], byte;
	int r;

	if (m->source)
		return MEM_OK;
	snprintf(path, sizeof(path), "/proc/%d/status", (int)m->pid);
	who_read(path, &they);
	if (!they.known) {
		err_set(e, -ESRCH, "process %d is gone", (int)m->pid);
		return MEM_GONE;
	}
	mem_open(&trial, m->pid);
	/* Hardly ever mapped, and no matter: the right to read is asked before that is found out. High,
	 * since a filter may look at the offset. */
	r = mem_read(&trial, TRIAL_ADDRESS, &byte, 1);
	mem_close(&trial);
	if (r == -EFAULT || r == 0)
		return MEM_OK;
	if (r == -ESRCH) {
		err_set(e, -ESRCH, "process %d has ended", (int)m->pid);
		return MEM_GONE;
	}
	return refused_process(m, &they, e);
}

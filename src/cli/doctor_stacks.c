/* SPDX-License-Identifier: MIT
 *
 * Whether stacks may be read here, and by which way: tried for real on a child of ours, as `run` would
 * read what it starts, and by a child that is no ancestor of it, as `attach` would read a stranger.
 */
#include "cli/doctor.h"

#include "base/auto.h"
#include "base/err.h"
#include "base/io.h"
#include "base/scan.h"
#include "base/text.h"
#include "stack/mem.h"
#include "stack/native/native.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define CAP_SYS_PTRACE_BIT 19

/* In the child, a fork of us, it stands at the same place. */
static const char marker[] = "spotter";

/* "Seccomp:\t2" of /proc/self/status; false when there is no such line. */
static bool status_number(const char *key, bool hex, uint64_t *ret)
{
	char text[4096];
	ssize_t n = io_read(AT_FDCWD, "/proc/self/status", text, sizeof(text));
	struct scan at;

	if (n <= 0 || !scan_key(scan_of(text, (size_t)n), key, &at))
		return false;
	scan_blank(&at);
	return hex ? scan_hex(&at, ret) : scan_u64(&at, ret);
}

static bool may_trace_all(const struct doctor *d)
{
	uint64_t capabilities;

	return d->host->live && status_number("CapEff", true, &capabilities) &&
	       (capabilities >> CAP_SYS_PTRACE_BIT) & 1;
}

/* "run: sudo sysctl ..." -> "sudo sysctl ...": it stands behind "to raise it:". */
static const char *command_of(const char *hint)
{
	return strncmp(hint, "run: ", 5) == 0 ? hint + 5 : hint;
}

/* ---- the two ways */

static int try_call(pid_t pid)
{
	char got[sizeof(marker)] = "";
	struct iovec local = { .iov_base = got, .iov_len = sizeof(got) };
	struct iovec remote = { .iov_base = (void *)marker, .iov_len = sizeof(marker) };
	ssize_t n = process_vm_readv(pid, &local, 1, &remote, 1, 0);

	if (n < 0)
		return -errno;
	return n == (ssize_t)sizeof(got) && !memcmp(got, marker, sizeof(got)) ? 0 : -EIO;
}

static int try_file(pid_t pid)
{
	char path[64], got[sizeof(marker)] = "";
	auto_close int fd = -1;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = pread(fd, got, sizeof(got), (off_t)(uintptr_t)marker);
	if (n < 0)
		return -errno;
	return n == (ssize_t)sizeof(got) && !memcmp(got, marker, sizeof(got)) ? 0 : -EIO;
}

/* Both, as the sampler does: code is 0, or it says why not. */
static struct err try_subject(pid_t subject)
{
	struct err e = { 0 };
	struct mem m;

	mem_open(&m, subject);
	if (mem_refusal(&m, &e) != MEM_OK && !e.code)
		e.code = -EPERM;
	mem_close(&m);
	return e;
}

static const char *refusal_name(int error)
{
	switch (error) {
	case -ENOSYS:
		return "not in this kernel, or a filter says so";
	case -ENOENT:
		return "no such file";
	case -EPERM:
	case -EACCES:
		return "no permission";
	default:
		return "it fails";
	}
}

static bool has_subject(const struct doctor *d, struct doctor_row *r)
{
	if (!d->subject)
		doctor_set(r, DOCTOR_UNKNOWN, "could not be tried: no process could be started");
	return d->subject != 0;
}

static void look_readv(const struct doctor *d, struct doctor_row *r)
{
	uint64_t mode;
	bool filtered;
	int error;

	if (!has_subject(d, r))
		return;
	error = try_call(d->subject);
	filtered = status_number("Seccomp", false, &mode) && mode;
	if (error == 0) {
		doctor_set(r, DOCTOR_OK, "process_vm_readv works on a child");
		return;
	}
	doctor_set(r, DOCTOR_LIMITED, "process_vm_readv is refused (%s)", refusal_name(error));
	if (try_file(d->subject) == 0)
		doctor_effect(r, "stacks are read through /proc/PID/mem instead, which takes a "
				 "call for each piece");
	else
		doctor_effect(r, "no stacks: which line is slow, and what threads wait for, stays "
				 "unknown");
	if (filtered)
		doctor_unlock(r, "in a container: docker run --cap-add SYS_PTRACE, or a seccomp "
				 "profile that allows process_vm_readv");
	else
		doctor_unlock(r, "%s", command_of(try_subject(d->subject).hint));
}

static void look_mem(const struct doctor *d, struct doctor_row *r)
{
	int error;

	if (!has_subject(d, r))
		return;
	error = try_file(d->subject);
	if (error == 0) {
		doctor_set(r, DOCTOR_OK, "/proc/PID/mem of a child can be read");
	} else if (try_call(d->subject) == 0) {
		doctor_set(r, DOCTOR_OK, "/proc/PID/mem is refused (%s), and not needed",
			   refusal_name(error));
	} else {
		doctor_set(r, DOCTOR_LIMITED, "/proc/PID/mem is refused too (%s)",
			   refusal_name(error));
		doctor_effect(r, "no other way is left to read stacks");
	}
}

static void look_waits(const struct doctor *d, struct doctor_row *r)
{
	char path[64], text[256];
	ssize_t n;

	if (!has_subject(d, r))
		return;
	snprintf(path, sizeof(path), "proc/%d/syscall", (int)d->subject);
	n = io_read(d->host->root, path, text, sizeof(text));
	if (n > 0) {
		doctor_set(r, DOCTOR_OK, "what a thread waits for can be read");
		return;
	}
	doctor_set(r, DOCTOR_LIMITED, "/proc/PID/syscall cannot be read (%s)",
		   n == -ENOENT ? "not in this kernel" : "no permission");
	doctor_effect(r, "what threads wait for is known roughly or not at all");
}

/* ---- what stands in the way */

/* /proc/sys/kernel/yama/ptrace_scope: 0 anybody of the same user, 1 ancestors, 2 root, 3 nobody. */
static void look_yama(const struct doctor *d, struct doctor_row *r)
{
	static const char *const who[] = { "any process of the same user", "its ancestors only",
					   "root only", "nobody" };
	uint64_t scope;
	int n = io_read_u64(d->host->root, "proc/sys/kernel/yama/ptrace_scope", &scope);

	if (n < 0 || scope > 3) {
		doctor_set(r, n == -ENOENT ? DOCTOR_OK : DOCTOR_UNKNOWN,
			   n == -ENOENT ? "no Yama: processes of the same user may be read"
					: "ptrace_scope cannot be read");
		return;
	}
	doctor_set(r, DOCTOR_OK, "ptrace_scope %d: a process may be read by %s", (int)scope,
		   who[scope]);
	if (scope == 0)
		return;
	if (scope < 3 && may_trace_all(d)) {
		doctor_effect(r, "it does not bind us: we have CAP_SYS_PTRACE");
		return;
	}
	r->status = DOCTOR_LIMITED;
	if (scope == 1) {
		doctor_effect(r, "'run' reads the stacks of all it starts, 'attach' those of none");
		doctor_unlock(r, "sudo sysctl kernel.yama.ptrace_scope=0 (or start the program "
				 "with 'spotter run')");
	} else if (scope == 2) {
		doctor_effect(r, "no stacks, but for root");
		doctor_unlock(r, "sudo sysctl kernel.yama.ptrace_scope=1 (for 'run'; 0 for "
				 "'attach' too)");
	} else {
		doctor_effect(r, "no stacks, for root neither, until the next boot");
		doctor_unlock(r, "set kernel.yama.ptrace_scope=1 in /etc/sysctl.d, then boot");
	}
}

static void look_seccomp(const struct doctor *d, struct doctor_row *r)
{
	uint64_t mode, filters;
	bool refused = d->subject && try_call(d->subject) < 0;

	if (!status_number("Seccomp", false, &mode)) {
		doctor_set(r, DOCTOR_UNKNOWN, "not told by this kernel");
		return;
	}
	if (mode == 0) {
		doctor_set(r, DOCTOR_OK, "no filter on this process");
		return;
	}
	if (!status_number("Seccomp_filters", false, &filters)) /* since Linux 5.9 */
		filters = 1;
	doctor_set(r, refused ? DOCTOR_LIMITED : DOCTOR_OK,
		   "%llu filter%s on this process and what it starts%s",
		   (unsigned long long)filters, filters == 1 ? "" : "s",
		   refused ? "" : "; process_vm_readv passes");
	if (refused)
		doctor_effect(r, "it is what refuses process_vm_readv, most likely");
}

/* 0 no, 1 yes, 2 by root only: man 2 prctl, PR_SET_DUMPABLE. A program that is set-id, has capabilities
 * on its file or whose file cannot be read is not, unless it is started by root. */
static void look_dumpable(const struct doctor *d, struct doctor_row *r)
{
	(void)d;
	doctor_set(r, DOCTOR_OK, "%s",
		   prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 1
		       ? "programs may be looked into, but for set-id ones"
		       : "this process is not, its program's file being special; what it starts "
			 "is");
}

static void look_perf(const struct doctor *d, struct doctor_row *r)
{
	struct err e = { 0 };
	char text[32] = "";
	ssize_t n =
	    io_read(d->host->root, "proc/sys/kernel/perf_event_paranoid", text, sizeof(text));
	int64_t paranoid = 0;
	struct scan s = scan_of(text, n > 0 ? (size_t)n : 0);
	bool known = n > 0 && scan_i64(&s, &paranoid);

	if (d->host->live && native_perf_try(&e) < 0) {
		doctor_set(r, DOCTOR_LIMITED, "%s", e.text);
		doctor_unlock(r, "%s", command_of(e.hint));
	} else if (!known) {
		doctor_set(r, d->host->live ? DOCTOR_OK : DOCTOR_LIMITED, "%s",
			   d->host->live ? "perf_event_open works" : "none in this kernel");
	} else {
		doctor_set(r, d->host->live || paranoid <= 2 ? DOCTOR_OK : DOCTOR_LIMITED,
			   "perf_event_paranoid %lld", (long long)paranoid);
		/* 2 and below let a user sample his own programs; Debian has 3, Ubuntu 4. */
		if (r->status == DOCTOR_LIMITED)
			doctor_unlock(r, "sudo sysctl kernel.perf_event_paranoid=2");
	}
	if (r->status == DOCTOR_LIMITED)
		doctor_effect(r, "native code of threads that run is not sampled (L2 instead of "
				 "L3)");
}

const struct doctor_check doctor_stacks_checks[] = {
	{ "process_vm_readv", "Memory of others", true, look_readv },
	{ "proc_mem", "The same by file", true, look_mem },
	{ "waits", "Waits", true, look_waits },
	{ "yama", "Yama", false, look_yama },
	{ "seccomp", "Seccomp", true, look_seccomp },
	{ "dumpable", "Dumpable", true, look_dumpable },
	{ "perf", "Perf events", false, look_perf },
	{ 0 },
};

/* ---- the level that follows */

/* By a process that is no ancestor of the subject, as `attach` is none of what it reads. */
static struct err try_as_stranger(pid_t subject)
{
	struct err e = { .code = -EAGAIN };
	int ends[2];
	pid_t pid;
	ssize_t n;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return e;
	pid = fork();
	if (pid == 0) {
		e = try_subject(subject);
		_exit(write(ends[1], &e, sizeof(e)) == (ssize_t)sizeof(e) ? 0 : 1);
	}
	close(ends[1]);
	do
		n = pid > 0 ? read(ends[0], &e, sizeof(e)) : 0;
	while (n < 0 && errno == EINTR);
	close(ends[0]);
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return n == (ssize_t)sizeof(e) ? e : (struct err){ .code = -EAGAIN };
}

/* "may not read process 4711: kernel.yama..." -> "kernel.yama...": that process was ours and is gone. */
static const char *reason_of(const struct err *e)
{
	const char *colon = strstr(e->text, ": ");

	return colon ? colon + 2 : e->text[0] ? e->text : "it could not be tried";
}

void doctor_reach_set(struct doctor_reach *ret, const struct err *memory, const struct err *perf)
{
	*ret = (struct doctor_reach){ 0 };
	if (memory->code < 0) {
		ret->level = 1;
		snprintf(ret->why, sizeof(ret->why), "processes and threads, but no stacks: %s",
			 reason_of(memory));
		text_copy(ret->unlock, sizeof(ret->unlock), command_of(memory->hint));
	} else if (perf->code < 0) {
		ret->level = 2;
		snprintf(ret->why, sizeof(ret->why), "stacks and waits; %s", perf->text);
		text_copy(ret->unlock, sizeof(ret->unlock), command_of(perf->hint));
	} else {
		ret->level = 3;
		text_copy(ret->why, sizeof(ret->why), "stacks, waits and sampled native code");
	}
}

void doctor_reach(const struct doctor *d, struct doctor_reach *ret_run,
		  struct doctor_reach *ret_attach)
{
	struct err perf = { 0 };
	struct err child, stranger;

	if (!d->subject) {
		ret_run->level = 1;
		snprintf(ret_run->why, sizeof(ret_run->why),
			 "processes and threads; whether stacks may be read %s",
			 d->host->live ? "could not be tried"
				       : "cannot be tried on a captured machine");
		*ret_attach = *ret_run;
		return;
	}
	if (native_perf_try(&perf) < 0 && !perf.code)
		perf.code = -EPERM;
	child = try_subject(d->subject);
	stranger = try_as_stranger(d->subject);
	doctor_reach_set(ret_run, &child, &perf);
	doctor_reach_set(ret_attach, &stranger, &perf);
}

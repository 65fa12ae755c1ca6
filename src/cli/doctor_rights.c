/* SPDX-License-Identifier: MIT
 *
 * What we may look at and how much of it.
 */
#include "cli/doctor.h"

#include "base/auto.h"
#include "base/io.h"
#include "collect/mountinfo.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <unistd.h>

/* /proc/sys/kernel/yama/ptrace_scope: 0 anybody of the same user, 1 descendants, 2 root, 3 nobody. */
static void look_yama(const struct doctor *d, struct doctor_row *r)
{
	uint64_t scope;
	int n = io_read_u64(d->host->root, "proc/sys/kernel/yama/ptrace_scope", &scope);

	if (n == -ENOENT) {
		doctor_set(r, DOCTOR_OK, "no Yama: processes of the same user may be read");
		return;
	}
	if (n < 0) {
		doctor_set(r, DOCTOR_UNKNOWN, "ptrace_scope cannot be read");
		return;
	}
	switch (scope) {
	case 0:
		doctor_set(r, DOCTOR_OK, "ptrace_scope 0: processes of the same user may be read");
		break;
	case 1:
		doctor_set(r, DOCTOR_OK, "ptrace_scope 1: what 'spotter run' starts may be read");
		doctor_effect(r, "memory of processes started elsewhere may not ('attach'); this "
				 "version does not need it");
		break;
	default:
		doctor_set(r, DOCTOR_LIMITED,
			   "ptrace_scope %llu: memory of no other process may be "
			   "read",
			   (unsigned long long)scope);
		doctor_effect(r, "nothing is lost: this version reads /proc only");
		if (scope == 2)
			doctor_unlock(r, "sudo sysctl kernel.yama.ptrace_scope=1");
		break;
	}
}

static void look_perf(const struct doctor *d, struct doctor_row *r)
{
	char text[32];
	ssize_t n =
	    io_read(d->host->root, "proc/sys/kernel/perf_event_paranoid", text, sizeof(text));

	if (n <= 0) {
		doctor_set(r, DOCTOR_OK, "none in this kernel (this version does not use perf)");
		return;
	}
	text[strcspn(text, "\n")] = '\0';
	doctor_set(r, DOCTOR_OK, "perf_event_paranoid %s (this version does not use perf)", text);
}

/* Reads a word of the child's memory, where it has the same value at the same place. */
static void look_readv(const struct doctor *d, struct doctor_row *r)
{
	static const char marker[] = "spotter";
	char got[sizeof(marker)] = "";
	struct iovec local = { .iov_base = got, .iov_len = sizeof(got) };
	struct iovec remote = { .iov_base = (void *)marker, .iov_len = sizeof(marker) };

	if (!d->subject) {
		doctor_set(r, DOCTOR_UNKNOWN, "could not be tried: no process could be started");
		return;
	}
	if (process_vm_readv(d->subject, &local, 1, &remote, 1, 0) == (ssize_t)sizeof(got) &&
	    memcmp(got, marker, sizeof(got)) == 0) {
		doctor_set(r, DOCTOR_OK, "process_vm_readv works on a child");
		return;
	}
	doctor_set(r, DOCTOR_LIMITED, "process_vm_readv is refused (%s)",
		   errno == ENOSYS ? "not in this kernel, or a filter says so" : "no permission");
	doctor_effect(r, "nothing is lost: this version reads /proc only");
	doctor_unlock(r,
		      "in a container: docker run --cap-add SYS_PTRACE, or a seccomp profile that "
		      "allows process_vm_readv");
}

/* "hidepid=2" or "hidepid=invisible" among the options of the proc file system. */
static void look_hidepid(const struct doctor *d, struct doctor_row *r)
{
	size_t n = 0;
	int error;
	auto_free char *text = io_slurp(d->host->root, "proc/self/mountinfo", 4 << 20, &n, &error);
	struct scan s = scan_of(text ? text : "", n);
	struct mountinfo m;
	bool seen = false, hidden = false;

	while (text && mountinfo_next(&s, &m)) {
		static const char *const words[] = { "hidepid=1",        "hidepid=2",
						     "hidepid=noaccess", "hidepid=invisible",
						     "hidepid=4",        "hidepid=ptraceable" };

		if (!mountinfo_is(m.type, "proc") || !mountinfo_is(m.point, "/proc"))
			continue;
		seen = true;
		for (size_t i = 0; i < ARRAY_LEN(words); i++)
			hidden |= mountinfo_has(m.options, words[i]);
	}
	if (!seen) {
		doctor_set(r, DOCTOR_UNKNOWN, "the mount of /proc cannot be seen");
	} else if (!hidden) {
		doctor_set(r, DOCTOR_OK, "processes of all users can be seen");
	} else {
		doctor_set(r, DOCTOR_LIMITED, "hidepid: only your own processes can be seen");
		doctor_effect(r, "what other users' jobs take is known only as a sum");
		doctor_unlock(r, "sudo mount -o remount,hidepid=0 /proc");
	}
}

static void look_descriptors(const struct doctor *d, struct doctor_row *r)
{
	struct rlimit limit;

	(void)d;
	if (getrlimit(RLIMIT_NOFILE, &limit) < 0) {
		doctor_set(r, DOCTOR_UNKNOWN, "unknown");
		return;
	}
	doctor_set(r, DOCTOR_OK, "%llu, may be raised to %llu", (unsigned long long)limit.rlim_cur,
		   (unsigned long long)limit.rlim_max);
	if (limit.rlim_max >= 4096)
		return;
	r->status = DOCTOR_LIMITED;
	doctor_effect(r, "beyond some hundred processes and threads, each reading opens files anew "
			 "and costs twice as much");
	doctor_unlock(r, "raise the hard limit: LimitNOFILE=65536 (systemd), docker run --ulimit "
			 "nofile=65536, /etc/security/limits.conf");
}

static void look_io(const struct doctor *d, struct doctor_row *r)
{
	char path[64], text[256];
	ssize_t n;

	snprintf(path, sizeof(path), "proc/%d/io", d->subject);
	n = io_read(d->host->root, path, text, sizeof(text));
	if (n > 0) {
		doctor_set(r, DOCTOR_OK, "disk reads and writes of a child are readable");
		return;
	}
	doctor_set(r, DOCTOR_MISSING,
		   n == -ENOENT ? "not in this kernel (CONFIG_TASK_IO_ACCOUNTING)"
				: "not readable");
	doctor_effect(r, "what each process reads and writes is not known");
}

const struct doctor_check doctor_rights_checks[] = {
	{ "proc_io", "Process IO", true, look_io },
	{ "hidepid", "Other users", false, look_hidepid },
	{ "yama", "Yama", false, look_yama },
	{ "process_vm_readv", "Memory of others", true, look_readv },
	{ "perf", "Perf events", false, look_perf },
	{ "descriptors", "Open files", true, look_descriptors },
	{ 0 },
};

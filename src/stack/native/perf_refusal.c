/* SPDX-License-Identifier: MIT
 *
 * perf_event_open(2) says EACCES when kernel.perf_event_paranoid forbids it (Debian's and Ubuntu's
 * kernels know levels 3 and 4: nothing at all without CAP_PERFMON) and when the thread is another
 * user's; seccomp filters (docker's and podman's own) say EPERM, sandboxes like gVisor ENOSYS. At
 * levels up to 2 everybody may sample the user side of their own processes.
 */
#include "stack/native/perf_refusal.h"

#include "base/err.h"
#include "base/io.h"
#include "base/scan.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>

void perf_refusal_words(int code, long long paranoid, struct err *e)
{
	char name[64];

	if (code == PERF_OTHER_USER) {
		err_set(e, -EACCES, "may not sample a running thread of another user");
		err_hint(e, "run spotter as that user, as root, or with CAP_PERFMON");
	} else if (code == -ENOSPC || code == -EMFILE || code == -ENFILE) {
		err_set(e, -ENOSPC,
			"no memory or descriptors left for sampling running threads "
			"(kernel.perf_event_mlock_kb, ulimit -l, ulimit -n)");
		err_hint(e, "run: ulimit -n 4096 -l unlimited");
	} else if ((code == -EACCES || code == -EPERM) && paranoid >= 3) {
		err_set(e, -EACCES,
			"may not sample running threads: kernel.perf_event_paranoid is %lld",
			paranoid);
		err_hint(e, "run: sudo sysctl kernel.perf_event_paranoid=2");
	} else if (code == -ENOENT || code == -EOPNOTSUPP ||
		   (code == -ENOSYS && paranoid == INT64_MIN)) {
		err_set(e, code, "this kernel cannot sample running threads (no perf events)");
		err_hint(e,
			 "use a kernel with CONFIG_PERF_EVENTS; threads that wait are seen anyway");
	} else if (code == -EINVAL || code == -E2BIG) {
		err_set(e, code, "this kernel is too old to sample running threads for us");
		err_hint(e, "Linux 4.8 or newer is needed; threads that wait are seen anyway");
	} else if (code == -EPERM || code == -EACCES || code == -ENOSYS) {
		err_set(e, -EPERM,
			"may not sample running threads: a seccomp filter (container) or security "
			"module refuses perf_event_open");
		err_hint(
		    e,
		    "start the container with --cap-add PERFMON (older Docker, Podman: SYS_ADMIN), "
		    "or with --security-opt seccomp=PROFILE where PROFILE allows perf_event_open");
	} else {
		err_set(e, code, "cannot sample running threads: %s",
			err_name(code, name, sizeof(name)));
	}
}

void perf_refusal(int code, struct err *e)
{
	char text[32];
	ssize_t n = io_read(AT_FDCWD, "/proc/sys/kernel/perf_event_paranoid", text, sizeof(text));
	struct scan s = scan_of(text, n > 0 ? (size_t)n : 0);
	int64_t paranoid;

	if (!scan_i64(&s, &paranoid))
		paranoid = INT64_MIN;
	perf_refusal_words(code, paranoid, e);
}

void perf_no_callers(int code, struct err *e)
{
	char name[64];

	if (code == -ENOSPC || code == -EMFILE || code == -ENFILE || code == -ENOMEM) {
		err_set(e, -ENOSPC,
			"no memory may be locked for the stacks of running threads "
			"(kernel.perf_event_mlock_kb, ulimit -l): only the function they are in is "
			"known");
		err_hint(e, "run: ulimit -l unlimited, or: sudo sysctl "
			    "kernel.perf_event_mlock_kb=2048");
	} else {
		err_set(e, code,
			"this kernel gives no stacks of running threads (%s): only the function "
			"they are in is known",
			err_name(code, name, sizeof(name)));
		err_hint(e, "a kernel of x86-64 or arm64 with CONFIG_PERF_EVENTS has them");
	}
}

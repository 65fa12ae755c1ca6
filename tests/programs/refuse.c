/* SPDX-License-Identifier: MIT
 *
 * refuse [--memory] CMD ARG...: runs CMD where perf_event_open, process_vm_readv and ptrace are refused
 * with EPERM, as under the seccomp profile of a container. No privilege needed (no_new_privs).
 *
 * --memory: also pread() from offsets above 4 MiB. A filter does not see paths; no file of a short test
 * is that long, and nothing of a program lies below, so what is refused is /proc/PID/mem.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define REFUSED     BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM)
#define ALLOWED     BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define REFUSE(nr)  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (nr), 0, 1), REFUSED

#define FIRST_REFUSED (4u << 20)

static int refuse(struct sock_filter *filter, size_t n)
{
	struct sock_fprog program = { (unsigned short)n, filter };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0)
		return 0;
	perror("seccomp");
	return -1;
}

int main(int argc, char **argv)
{
	struct sock_filter calls[] = {
		LOAD(nr),
		REFUSE(SYS_perf_event_open),
		REFUSE(SYS_process_vm_readv),
		REFUSE(SYS_ptrace),
		ALLOWED,
	};
	struct sock_filter memory[] = {
		LOAD(nr),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pread64, 0, 5),
		/* the offset, little end first */
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[3]) + 4),
		BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, 0, 2, 0),
		LOAD(args[3]),
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, FIRST_REFUSED, 0, 1),
		REFUSED,
		ALLOWED,
	};

	if (argc > 1 && strcmp(argv[1], "--memory") == 0) {
		if (refuse(memory, sizeof(memory) / sizeof(memory[0])) < 0)
			return 125;
		argc--;
		argv++;
	}
	if (argc < 2)
		return 2;
	if (refuse(calls, sizeof(calls) / sizeof(calls[0])) < 0)
		return 125;
	execvp(argv[1], argv + 1);
	perror(argv[1]);
	return 127;
}

/* SPDX-License-Identifier: MIT */
#include "launch/launch.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* The program has dumped its own core if it may; ours would say nothing. The limit alone does not
 * hold a core_pattern that is a pipe to a program (core(5)): "not dumpable" does. */
static void forbid_core(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_CORE, &limit) == 0) {
		limit.rlim_cur = 0;
		(void)setrlimit(RLIMIT_CORE, &limit);
	}
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

void launch_exit(int status)
{
	struct sigaction plain = { .sa_handler = SIG_DFL };
	sigset_t set;
	int sig;

	fflush(NULL);
	/* Without atexit(): signals are blocked, and what waits there for one would wait for ever. */
	if (!WIFSIGNALED(status))
		_exit(WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILURE);
	sig = WTERMSIG(status);
	forbid_core();
	(void)sigaction(sig, &plain, NULL);
	/* Queued while it is blocked and unblocked then: only this signal can end us. */
	(void)kill(getpid(), sig);
	sigemptyset(&set);
	sigaddset(&set, sig);
	(void)sigprocmask(SIG_UNBLOCK, &set, NULL);
	/* Still here: process 1 of a pid namespace, which signals of its own do not end. */
	_exit(128 + sig);
}

/* SPDX-License-Identifier: MIT */
#include "../unit.h"

#include "launch/launch.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* How a process ends that ends as this status says; under hostile conditions of its own. */
static int ends(int status, bool hostile)
{
	int seen = -1;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		struct rlimit core = { RLIM_INFINITY, RLIM_INFINITY };
		sigset_t all;

		(void)setrlimit(RLIMIT_CORE, &core);
		if (chdir("/") < 0)
			_exit(98);
		if (hostile) {
			for (int sig = 1; sig < 32; sig++)
				(void)signal(sig, SIG_IGN);
			sigfillset(&all);
			sigprocmask(SIG_BLOCK, &all, NULL);
			kill(getpid(), SIGTERM); /* pending: must not win */
		}
		launch_exit(status);
	}
	assert_int_equal(waitpid(pid, &seen, 0), pid);
	return seen;
}

static void test_codes(void **state)
{
	(void)state;
	for (int code = 0; code < 256; code += 51) {
		assert_int_equal(ends(code << 8, false), code << 8);
		assert_int_equal(ends(code << 8, true), code << 8);
	}
}

static void test_signals(void **state)
{
	static const int sigs[] = { SIGHUP,  SIGINT,  SIGQUIT, SIGILL,  SIGABRT, SIGBUS,  SIGFPE,
				    SIGKILL, SIGUSR1, SIGSEGV, SIGPIPE, SIGALRM, SIGTERM, SIGXCPU };

	(void)state;
	for (size_t i = 0; i < sizeof(sigs) / sizeof(sigs[0]); i++) {
		/* Equal means without the flag of a core: there is none of ours. */
		assert_int_equal(ends(sigs[i], false), sigs[i]);
		assert_int_equal(ends(sigs[i], true), sigs[i]);
		assert_int_equal(ends(sigs[i] | 0x80, true), sigs[i]);
	}
	assert_int_equal(ends(SIGRTMIN, true), SIGRTMIN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_codes),
		cmocka_unit_test(test_signals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

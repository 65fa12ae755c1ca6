/* SPDX-License-Identifier: MIT */
#include "../unit.h"

#include "base/clock.h"
#include "launch/witness.h"

#include <poll.h>
#include <unistd.h>

static struct witness w;

static int setup(void **state)
{
	sigset_t all;

	(void)state;
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	return witness_open(&w);
}

static int teardown(void **state)
{
	(void)state;
	return close(w.fd);
}

static bool is_pending(int sig)
{
	sigset_t there;

	sigpending(&there);
	return sigismember(&there, sig);
}

static bool readable(void)
{
	struct pollfd p = { .fd = w.fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

static void test_kept_until_cleared(void **state)
{
	(void)state;
	assert_true(witness_look(&w, 0) < 0);
	assert_false(readable());
	kill(getpid(), SIGTERM);
	kill(getpid(), SIGRTMIN);
	assert_true(readable());
	assert_true(witness_look(&w, 10) > 0);
	assert_true(w.pending && is_pending(SIGTERM) && is_pending(SIGRTMIN));
	witness_clear(&w, SIGTERM);
	witness_clear(&w, SIGTERM); /* nothing there: nothing happens */
	witness_clear(&w, 0);
	witness_clear(&w, 65);
	assert_true(!is_pending(SIGTERM) && is_pending(SIGRTMIN));
	witness_clear(&w, SIGRTMIN);
	assert_true(witness_look(&w, 20) < 0);
	assert_false(readable());
}

static void test_each_has_its_own_age(void **state)
{
	int64_t ms = NS_PER_MS;

	(void)state;
	kill(getpid(), SIGINT);
	assert_true(witness_look(&w, 1000 * ms) > 0);
	kill(getpid(), SIGTERM);
	assert_true(witness_look(&w, 1400 * ms) > 0);
	assert_true(witness_look(&w, 1600 * ms) > 0);
	assert_true(!is_pending(SIGINT) && is_pending(SIGTERM));
	/* Cleared and come again it is young again. */
	witness_clear(&w, SIGTERM);
	kill(getpid(), SIGTERM);
	assert_true(witness_look(&w, 1950 * ms) > 0);
	assert_true(is_pending(SIGTERM));
	assert_true(witness_look(&w, 2500 * ms) < 0);
	assert_false(is_pending(SIGTERM));
}

static void test_nothing_gets_old_in_a_rest(void **state)
{
	int64_t ms = NS_PER_MS;

	(void)state;
	kill(getpid(), SIGUSR1);
	assert_true(witness_look(&w, 1000 * ms) > 0);
	witness_rest(&w);
	assert_true(witness_look(&w, 9000 * ms) > 0);
	assert_true(is_pending(SIGUSR1));
	assert_true(witness_look(&w, 9600 * ms) < 0);
	assert_false(is_pending(SIGUSR1));
}

static void test_children_and_faults_are_not_its_business(void **state)
{
	(void)state;
	kill(getpid(), SIGCHLD);
	assert_false(readable());
	assert_true(witness_look(&w, 1) < 0);
	witness_clear(&w, SIGCHLD);
	assert_true(is_pending(SIGCHLD));
	assert_false(sigismember(&w.signals, SIGSEGV));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kept_until_cleared),
		cmocka_unit_test(test_each_has_its_own_age),
		cmocka_unit_test(test_nothing_gets_old_in_a_rest),
		cmocka_unit_test(test_children_and_faults_are_not_its_business),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}

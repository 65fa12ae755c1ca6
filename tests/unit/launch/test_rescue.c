/* SPDX-License-Identifier: MIT */
#include "../unit.h"

#include "launch/rescue.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static const char sample[] =
    "71 (a) b) Z 70 69 69 0 -1 4227084 90 0 0 0 0 0 0 0 20 0 1 0 1159 0 0 18446744073709551615 "
    "0 0 0 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0 0 0 0 0 0 0 0 1792\n";

static void test_parse(void **state)
{
	int status = -1;

	(void)state;
	assert_true(rescue_parse(sample, sizeof(sample) - 1, &status));
	assert_int_equal(status, 7 << 8);
	status = -1;
	/* Not a zombie, cut short, or not a number: no answer, rather than a wrong one. */
	assert_false(rescue_parse("71 (x) S 1 2 3", 14, &status));
	assert_false(rescue_parse("71 x Z 1 2 3", 12, &status));
	assert_false(rescue_parse("", 0, &status));
	for (size_t n = 0; n + 6 < sizeof(sample); n++)
		assert_false(rescue_parse(sample, n, &status));
	assert_int_equal(status, -1);
}

static int status_of_zombie(void (*end)(void))
{
	siginfo_t si;
	int seen = -1, waited = -2;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		(void)prctl(PR_SET_NAME, "x) Z 0 (y", 0, 0, 0);
		end();
		_exit(99);
	}
	assert_false(rescue_status(getpid(), &seen)); /* alive */
	assert_int_equal(waitid(P_PID, (id_t)pid, &si, WEXITED | WNOWAIT), 0);
	assert_true(rescue_status(pid, &seen));
	assert_int_equal(rescue_state(pid), 'Z');
	assert_int_equal(waitpid(pid, &waited, 0), pid);
	assert_int_equal(seen & ~0x80, waited & ~0x80); /* but for the flag of a core */
	assert_false(rescue_status(pid, &seen));
	assert_int_equal(rescue_state(pid), 0);
	assert_int_equal(rescue_state(getpid()), 'R');
	return waited;
}

static void end_well(void)
{
	_exit(0);
}

static void end_with_7(void)
{
	_exit(7);
}

static void end_by_signal(void)
{
	kill(getpid(), SIGTERM);
	pause();
}

static void test_real_zombies(void **state)
{
	(void)state;
	assert_int_equal(status_of_zombie(end_well), 0);
	assert_int_equal(status_of_zombie(end_with_7), 7 << 8);
	assert_int_equal(status_of_zombie(end_by_signal), SIGTERM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse),
		cmocka_unit_test(test_real_zombies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

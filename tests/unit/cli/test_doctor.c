/* SPDX-License-Identifier: MIT */
#include "base/err.h"
#include "cli/doctor.h"

#include "../unit.h"

#include <errno.h>

static const struct err fine;

static void nothing_in_the_way(void **state)
{
	struct doctor_reach r;

	(void)state;
	doctor_reach_set(&r, &fine, &fine);
	assert_int_equal(r.level, 3);
	assert_string_equal(r.why, "stacks, waits and sampled native code");
	assert_string_equal(r.unlock, "");
}

static void no_perf_is_one_less(void **state)
{
	struct err perf = { 0 };
	struct doctor_reach r;

	(void)state;
	err_set(&perf, -EACCES, "may not sample running threads: paranoid is 3");
	err_hint(&perf, "run: sudo sysctl kernel.perf_event_paranoid=2");
	doctor_reach_set(&r, &fine, &perf);
	assert_int_equal(r.level, 2);
	assert_string_equal(r.why,
			    "stacks and waits; may not sample running threads: paranoid is 3");
	assert_string_equal(r.unlock, "sudo sysctl kernel.perf_event_paranoid=2");
}

/* The words of memory stand first: perf alone is worth nothing. */
static void no_memory_is_two_less(void **state)
{
	struct err memory = { 0 }, perf = { 0 };
	struct doctor_reach r;

	(void)state;
	err_set(&memory, -EPERM, "may not read process 4711: kernel.yama.ptrace_scope is 1");
	err_hint(&memory, "start the program with `spotter run`");
	err_set(&perf, -EACCES, "not this");
	for (int i = 0; i < 2; i++) {
		doctor_reach_set(&r, &memory, i ? &perf : &fine);
		assert_int_equal(r.level, 1);
		assert_string_equal(
		    r.why, "processes and threads, but no stacks: kernel.yama.ptrace_scope is 1");
		assert_string_equal(r.unlock, "start the program with `spotter run`");
	}
}

static void a_trial_that_could_not_be_made(void **state)
{
	struct err memory = { .code = -EAGAIN };
	struct doctor_reach r;

	(void)state;
	doctor_reach_set(&r, &memory, &fine);
	assert_int_equal(r.level, 1);
	assert_string_equal(r.why, "processes and threads, but no stacks: it could not be tried");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_in_the_way),
		cmocka_unit_test(no_perf_is_one_less),
		cmocka_unit_test(no_memory_is_two_less),
		cmocka_unit_test(a_trial_that_could_not_be_made),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

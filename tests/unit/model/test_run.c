/* SPDX-License-Identifier: MIT */
#include "../unit.h"

#include "model/run.h"

static void copies(void **state)
{
	char *argv[] = { (char *)"python3", (char *)"train.py", NULL };
	struct run_info a = { .id = "1", .name = "n", .pid = 4, .cwd = strdup("/data") };
	struct run_info b;

	(void)state;
	assert_int_equal(run_info_set_argv(&a, argv), 0);
	assert_int_equal(run_info_set_argv(&a, argv), 0); /* again: the old one goes */
	assert_int_equal(run_info_copy(&b, &a), 0);
	run_info_done(&a);
	assert_null(a.argv);
	assert_string_equal(b.argv[1], "train.py");
	assert_null(b.argv[2]);
	assert_string_equal(b.cwd, "/data");
	assert_int_equal(b.pid, 4);
	run_info_done(&b);
	run_info_done(&b);
}

static void nothing(void **state)
{
	struct run_info a = { 0 }, b;

	(void)state;
	assert_int_equal(run_info_copy(&b, &a), 0);
	assert_non_null(b.argv);
	assert_null(b.argv[0]);
	assert_null(b.cwd);
	run_info_done(&b);
	run_info_done(&a);
}

static void states(void **state)
{
	(void)state;
	for (int i = RUN_GOING; i <= RUN_INTERRUPTED; i++)
		assert_int_equal(run_state_by_name(run_state_name((enum run_state)i)), i);
	/* What a newer version wrote is at least not going on. */
	assert_int_equal(run_state_by_name("unheard of"), RUN_INTERRUPTED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(copies),
		cmocka_unit_test(nothing),
		cmocka_unit_test(states),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

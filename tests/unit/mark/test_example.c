/* SPDX-License-Identifier: MIT
 *
 * The example of the documentation, as it is: what it marks arrives, all of it and in order.
 */
#include "../unit.h"
#include "mark/ring.h"
#include "place.h"

#include <spawn.h>

static int run(char *const *environment)
{
	char *argv[] = { (char[]){ EXAMPLE }, NULL };
	posix_spawn_file_actions_t actions;
	int status = -1;
	pid_t pid;

	assert_int_equal(posix_spawn_file_actions_init(&actions), 0);
	posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
	assert_int_equal(posix_spawn(&pid, argv[0], &actions, NULL, argv, environment), 0);
	posix_spawn_file_actions_destroy(&actions);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	return (int)pid;
}

static void marks_of_the_example(void **state)
{
	char marks[300];
	struct place p;
	struct ring_reader *r;
	uint64_t lost = 0, count[MARK_KINDS] = { 0 };
	double first = 0, last = 0;
	int64_t before = 0;
	struct mark m;

	(void)state;
	place_make(&p);
	snprintf(marks, sizeof(marks), "SPOTTER_MARKS=%s", p.path);
	r = place_open(&p, run((char *[]){ marks, NULL }));
	assert_non_null(r);
	while (ring_next(r, &m, &lost)) {
		count[m.kind]++;
		assert_true(m.t_ns >= before);
		before = m.t_ns;
		if (m.kind != MARK_STEP)
			continue;
		assert_int_equal(m.number, count[MARK_STEP]);
		if (m.number == 1)
			first = m.value;
		last = m.value;
	}
	assert_int_equal(lost, 0);
	assert_int_equal(count[MARK_STEP], 400);
	assert_int_equal(count[MARK_DATA_WAIT], 400);
	assert_int_equal(count[MARK_SCALAR], 4);
	assert_int_equal(count[MARK_PHASE_BEGIN], 5);
	assert_int_equal(count[MARK_PHASE_END], 5);
	assert_int_equal(count[MARK_SOURCE], 1);
	assert_true(first > 1 && last > 0 && last < 0.01);
	assert_int_equal(ring_head(r)->ended, 1);
	ring_reader_close(r);
	place_done(&p);
}

static void runs_alone(void **state)
{
	(void)state;
	run((char *[]){ NULL });
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(marks_of_the_example),
		cmocka_unit_test(runs_alone),
	};

	return cmocka_run_group_tests_name("example", tests, NULL, NULL);
}

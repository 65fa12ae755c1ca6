/* SPDX-License-Identifier: MIT */
#include "../unit.h"

#include "engine/glance.h"
#include "model/frame.h"

#include <math.h>

static void say_step(struct frame *f, uint32_t who, int rank, uint64_t number, double loss)
{
	struct frame_mark m = { .t_ns = f->mono_ns - 5,
				.type = SAID_STEP,
				.entity = who,
				.rank = rank,
				.number = number,
				.value = loss };

	frame_mark(f, &m, "");
}

static void keeps_the_last(void **state)
{
	struct frame f = { 0 };
	struct glance g = { 0 };

	(void)state;
	frame_begin(&f, 1000, 0);
	glance_frame(&g, &f);
	assert_false(g.has_cpu);
	assert_int_equal(g.steps, 0);
	frame_put(&f, M_JOB_CPU, ID_JOB, 77);
	say_step(&f, 20, -1, 1, 0.5);
	say_step(&f, 20, -1, 2, NAN);
	glance_frame(&g, &f);
	assert_true(g.has_cpu);
	assert_int_equal(g.cpu_ns, 77);
	assert_int_equal(g.steps, 2);
	assert_int_equal(g.number, 2);
	assert_int_equal(g.step_ns, 995);
	assert_true(g.loss == 0.5);
	frame_done(&f);
}

static void the_lowest_rank_is_the_clock(void **state)
{
	struct frame f = { 0 };
	struct glance g = { 0 };

	(void)state;
	frame_begin(&f, 1000, 0);
	say_step(&f, 21, 1, 10, 0.1);
	say_step(&f, 20, 0, 9, 0.2);
	say_step(&f, 21, 1, 11, 0.3);
	say_step(&f, 30, -1, 500, 0.4);
	glance_frame(&g, &f);
	assert_int_equal(g.who, 20);
	assert_int_equal(g.number, 9);
	assert_int_equal(g.steps, 1);
	assert_true(g.loss == 0.2);
	frame_done(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keeps_the_last),
		cmocka_unit_test(the_lowest_rank_is_the_clock),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

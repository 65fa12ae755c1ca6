/* SPDX-License-Identifier: MIT
 *
 * Marks put together into steps, phases and scalars, as the live history gives them out.
 */
#include "../unit.h"

#include "base/clock.h"
#include "model/history.h"
#include "model/history_marks.h"

#include <math.h>

#define T0 (1000 * NS_PER_S)
#define MS NS_PER_MS

static struct history_marks h;
static struct frame f;

static void begin(void)
{
	h = (struct history_marks){ 0 };
	frame_begin(&f, T0 + NS_PER_S, 0);
}

static void end(void)
{
	history_marks_done(&h);
	frame_done(&f);
}

static void say(enum mark_type type, int64_t ms, uint64_t number, double value, const char *name)
{
	frame_mark(&f,
		   &(struct frame_mark){ .t_ns = T0 + ms * MS,
					 .type = type,
					 .entity = 20,
					 .rank = 3,
					 .number = number,
					 .value = value },
		   name);
}

static const struct window_step *steps(size_t expected)
{
	const struct window_step *s;
	size_t n;

	assert_int_equal(history_marks_frame(&h, &f), 0);
	frame_begin(&f, f.mono_ns + NS_PER_S, 0);
	s = history_steps(&h, &n);
	assert_int_equal(n, expected);
	return s;
}

static const struct window_phase *phases(size_t expected)
{
	static const struct entity_table nobody;
	static const struct run_info run = { .state = RUN_GOING };
	const struct window_phase *p;
	size_t n;

	p = history_phases(&h, &nobody, &run, &n);
	assert_int_equal(n, expected);
	return p;
}

static void test_steps(void **state)
{
	const struct window_step *s;

	(void)state;
	begin();
	say(SAID_STEP, 10, 7, 0.5, NULL);
	say(SAID_DATA_WAIT, 12, 0, 0.001, NULL);
	say(SAID_MICRO_STEP, 14, 0, 0, NULL);
	say(SAID_DATA_WAIT, 15, 0, 0.0005, NULL);
	say(SAID_STEP, 20, 8, NAN, NULL);
	say(SAID_STEP, 35, 9, 0.25, NULL);
	s = steps(3);
	/* Nothing was seen before the first. */
	assert_int_equal(s[0].begin_ns, s[0].end_ns);
	assert_int_equal(s[0].number, 7);
	assert_int_equal(s[0].rank, 3);
	assert_true(s[0].loss == 0.5 && isnan(s[0].data_wait) && s[0].micro == 0);
	assert_int_equal(s[1].begin_ns, T0 + 10 * MS);
	assert_int_equal(s[1].end_ns, T0 + 20 * MS);
	assert_true(isnan(s[1].loss) && s[1].data_wait == 0.0015 && s[1].micro == 2);
	assert_int_equal(s[2].begin_ns, T0 + 20 * MS);
	assert_true(isnan(s[2].data_wait) && s[2].micro == 0);
	end();
}

static void test_first_step_begins_with_work(void **state)
{
	const struct window_step *s;

	(void)state;
	begin();
	say(SAID_SOURCE, 0, 0, 0, "torch");
	say(SAID_SETTING, 1, 0, 4, "dataloader.num_workers");
	say(SAID_DATA_WAIT, 50, 0, 0.02, NULL);
	say(SAID_STEP, 60, 1, 1, NULL);
	s = steps(1);
	assert_int_equal(s[0].begin_ns, T0 + 30 * MS);
	assert_string_equal(h.source, "torch");
	assert_int_equal(h.settings.n, 1);
	end();
}

/* An evaluation is part of no step, and waits for its own data; what is within a step is. */
static void test_between(void **state)
{
	const struct window_step *s;

	(void)state;
	begin();
	say(SAID_STEP, 10, 1, 1, NULL);
	say(SAID_PHASE_BEGIN, 11, 0, 0, "Evaluate");
	say(SAID_DATA_WAIT, 20, 0, 0.005, NULL);
	say(SAID_PHASE_BEGIN, 30, 0, 0, "checkpoint");
	say(SAID_PHASE_END, 40, 0, 0, "checkpoint");
	say(SAID_PHASE_END, 50, 0, 0, "Evaluate");
	say(SAID_PHASE_BEGIN, 52, 0, 0, "forward");
	say(SAID_PHASE_END, 55, 0, 0, "forward");
	say(SAID_STEP, 60, 2, 1, NULL);
	s = steps(2);
	assert_int_equal(s[1].begin_ns, T0 + 50 * MS);
	assert_true(isnan(s[1].data_wait));
	assert_int_equal(phases(3)[0].end_ns, T0 + 50 * MS);
	assert_string_equal(phases(3)[1].name, "checkpoint");
	end();
}

static void test_phases(void **state)
{
	const struct window_phase *p;

	(void)state;
	begin();
	say(SAID_PHASE_END, 1, 0, 0, "never begun");
	say(SAID_PHASE_BEGIN, 2, 0, 0, "a");
	say(SAID_PHASE_BEGIN, 3, 0, 0, "a");
	say(SAID_PHASE_END, 4, 0, 0, "a");
	say(SAID_PHASE_BEGIN, 5, 0, 0, "b");
	steps(0);
	p = phases(3);
	assert_int_equal(p[0].end_ns, 0); /* the inner one ended */
	assert_int_equal(p[1].end_ns, T0 + 4 * MS);
	say(SAID_PHASE_END, 1100, 0, 0, "a");
	steps(0);
	p = phases(3);
	assert_int_equal(p[0].end_ns, T0 + 1100 * MS);
	assert_int_equal(p[2].end_ns, 0);
	end();
}

static void test_deep(void **state)
{
	(void)state;
	begin();
	for (int i = 0; i < 1000; i++)
		say(SAID_PHASE_BEGIN, i, 0, 0, "deep");
	steps(0);
	phases(TRAINING_DEPTH);
	end();
}

/* After a loss nobody knows when the step began, and an end may be missing. */
static void test_lost(void **state)
{
	const struct window_step *s;
	const struct window_phase *p;

	(void)state;
	begin();
	say(SAID_STEP, 10, 1, 1, NULL);
	say(SAID_DATA_WAIT, 11, 0, 0.001, NULL);
	say(SAID_PHASE_BEGIN, 12, 0, 0, "a");
	say(SAID_PHASE_BEGIN, 13, 0, 0, "b");
	say(SAID_LOST, 20, 17, 0, NULL);
	say(SAID_PHASE_BEGIN, 30, 0, 0, "a");
	say(SAID_PHASE_END, 31, 0, 0, "a");
	say(SAID_PHASE_END, 32, 0, 0, "b");
	say(SAID_LOST, 35, 1, 0, NULL);
	say(SAID_STEP, 40, 20, 1, NULL);
	say(SAID_STEP, 50, 21, 1, NULL);
	s = steps(3);
	assert_int_equal(s[1].begin_ns, s[1].end_ns);
	assert_true(isnan(s[1].data_wait));
	assert_int_equal(s[2].begin_ns, T0 + 40 * MS);
	p = phases(3);
	assert_int_equal(p[0].end_ns, T0 + 20 * MS);
	assert_int_equal(p[1].end_ns, T0 + 32 * MS);
	assert_int_equal(p[2].end_ns, T0 + 31 * MS);
	end();
}

static void test_scalars(void **state)
{
	const struct window_scalar *s;
	size_t n;

	(void)state;
	begin();
	say(SAID_SCALAR, 1, 0, 0.1, "lr");
	say(SAID_STEP, 10, 5, 1, NULL);
	say(SAID_SCALAR, 10, 0, 0.9, "accuracy");
	say(SAID_EPOCH, 20, 2, 0, NULL);
	steps(1);
	s = history_scalars(&h, &n);
	assert_int_equal(n, 3);
	assert_int_equal(s[0].step, 0);
	assert_string_equal(s[1].name, "accuracy");
	assert_int_equal(s[1].step, 5);
	assert_string_equal(s[2].name, "epoch");
	assert_true(s[2].value == 2);
	end();
}

/* Foreign numbers: whatever they are, nothing breaks and nothing is invented. */
static void test_nonsense(void **state)
{
	const struct window_step *s;

	(void)state;
	begin();
	say(SAID_DATA_WAIT, 1, 0, 1e30, NULL);
	say(SAID_DATA_WAIT, 1, 0, -5, NULL);
	say(SAID_DATA_WAIT, 1, 0, NAN, NULL);
	say((enum mark_type)99, 1, 0, NAN, NULL);
	say(SAID_STEP, 2, UINT64_MAX, INFINITY, NULL);
	s = steps(1);
	assert_true(isnan(s[0].data_wait) && isinf(s[0].loss));
	assert_int_equal(s[0].begin_ns, s[0].end_ns);
	end();
}

static void test_bounded(void **state)
{
	struct run_info run = { .started_mono_ns = T0 };
	struct history *history = history_new(&run, 10);
	struct window w;
	uint64_t number = 0;
	size_t n;

	(void)state;
	begin();
	for (int tick = 0; tick < 200; tick++) {
		frame_begin(&f, T0 + (tick + 1) * 100 * MS, 0);
		for (int i = 0; i < 1000; i++) {
			frame_mark(&f,
				   &(struct frame_mark){ .t_ns = f.mono_ns - 1000 + i,
							 .type = SAID_STEP,
							 .entity = 20 + (uint32_t)(i % 2),
							 .rank = -1,
							 .number = ++number,
							 .value = 1 },
				   NULL);
			frame_mark(&f,
				   &(struct frame_mark){ .t_ns = f.mono_ns - 1000 + i,
							 .type = SAID_SCALAR,
							 .entity = 20,
							 .rank = -1 },
				   "x");
		}
		assert_int_equal(history_frame(history, &f), 0);
	}
	w = history_window(history, 0);
	/* The ticks it keeps, and at most as much again. */
	assert_non_null(w.ops->steps(w.src, &n));
	assert_in_range(n, 9000, 21000);
	assert_int_equal(w.ops->steps(w.src, &n)[n - 1].number, number);
	assert_non_null(w.ops->scalars(w.src, &n));
	assert_in_range(n, 9000, 21000);
	history_free(history);
	end();
}

static void test_many_processes(void **state)
{
	(void)state;
	begin();
	for (uint32_t id = 100; id < 100 + 3 * TRAINING_PROCESSES; id++) {
		frame_begin(&f, T0 + id * MS, 0);
		frame_mark(&f,
			   &(struct frame_mark){
			       .t_ns = f.mono_ns, .type = SAID_STEP, .entity = id, .number = 1 },
			   NULL);
		frame_life(&f, &(struct life){ .change = LIFE_GONE, .id = id, .kind = ENTITY_PROC },
			   "python3", NULL);
		assert_int_equal(history_marks_frame(&h, &f), 0);
	}
	assert_true(h.training.trainers.n <= TRAINING_PROCESSES);
	assert_int_equal(h.steps.n, 3 * TRAINING_PROCESSES);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_steps),   cmocka_unit_test(test_first_step_begins_with_work),
		cmocka_unit_test(test_between), cmocka_unit_test(test_phases),
		cmocka_unit_test(test_deep),    cmocka_unit_test(test_lost),
		cmocka_unit_test(test_scalars), cmocka_unit_test(test_nonsense),
		cmocka_unit_test(test_bounded), cmocka_unit_test(test_many_processes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

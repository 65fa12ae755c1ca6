/* SPDX-License-Identifier: MIT
 *
 * From where the function is called that a finding points at.
 */
#include "../unit.h"

#include "scenario.h"

#include "base/buf.h"

struct told {
	struct scenario s;
	struct verdict v;
};

static const struct finding *tell(struct told *t, const char *name, const char *cause)
{
	scenario_judge(&t->s, SCENARIOS, name, &t->v);
	for (size_t i = 0; i < t->v.findings.n; i++)
		if (strcmp(t->v.findings.v[i].cause, cause) == 0)
			return &t->v.findings.v[i];
	fail_msg("no finding %s", cause);
	return NULL;
}

static void told_done(struct told *t)
{
	verdict_done(&t->v);
	scenario_done(&t->s);
}

/* The helper's hottest line is in a list comprehension, which is no function of its own to the user. */
static void up_to_the_loop(void **state)
{
	struct render_style style = { .width = 200 };
	struct buf out = { 0 };
	struct told t;
	const struct finding *x = tell(&t, "loop-yes-helper", "loop_overhead");

	(void)state;
	assert_int_equal(x->where.line, 41);
	assert_string_equal(x->where.function, "best");
	assert_int_equal(x->where.n_callers, 2);
	assert_string_equal(x->where.callers[0].file, "/home/u/hooks.py");
	assert_string_equal(x->where.callers[0].function, "Recall.after_step");
	assert_int_equal(x->where.callers[0].line, 57);
	assert_int_equal(x->where.callers[1].line, 58);
	buf_init(&out, 1 << 20);
	render_text(&t.v, &style, &out);
	assert_non_null(strstr(buf_text(&out), "Called  at hooks.py:57 from train.py:58\n"));
	buf_done(&out);
	told_done(&t);
}

/* A line of the loop itself has nobody above it that would be worth a word. */
static void none_above_the_loop(void **state)
{
	struct told t;
	const struct finding *x = tell(&t, "loop-yes", "loop_overhead");

	(void)state;
	assert_true(x->where.line > 0);
	assert_int_equal(x->where.n_callers, 0);
	told_done(&t);
}

/* In a loader's worker the library calls the dataset, and above that is nothing but where the process was forked. */
static void not_beyond_a_library(void **state)
{
	struct told t;
	const struct finding *x = tell(&t, "python-loop-yes-workers", "python_loop_preprocessing");

	(void)state;
	assert_string_equal(x->where.function, "decode");
	assert_int_equal(x->where.n_callers, 1);
	assert_string_equal(x->where.callers[0].function, "Shapes.__getitem__");
	told_done(&t);
}

/* Two lines of one function have half of it each: it is that function, and the line that has more. */
static void lines_of_one_function(void **state)
{
	struct told t;
	const struct finding *x = tell(&t, "log-yes-reply", "logging_stall");

	(void)state;
	assert_string_equal(x->where.function, "Client._post");
	assert_int_equal(x->where.n_callers, 3);
	assert_int_equal(x->where.callers[0].line, 21);
	assert_string_equal(x->where.callers[1].function, "Board.after_step");
	assert_int_equal(x->where.callers[1].line, 55);
	told_done(&t);
}

/* The line of an exception was in no stack: nobody can say who called it. */
static void none_of_an_exception(void **state)
{
	struct told t;
	const struct finding *x = tell(&t, "gpu-oom-yes-helper", "gpu_oom");

	(void)state;
	assert_int_equal(x->where.line, 71);
	assert_int_equal(x->where.n_callers, 0);
	told_done(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(up_to_the_loop),       cmocka_unit_test(none_above_the_loop),
		cmocka_unit_test(not_beyond_a_library), cmocka_unit_test(lines_of_one_function),
		cmocka_unit_test(none_of_an_exception),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT
 *
 * The line a finding points at: the one to be changed.
 */
#include "../unit.h"

#include "scenario.h"

static const struct finding *found(const struct verdict *v, const char *cause)
{
	for (size_t i = 0; i < v->findings.n; i++)
		if (strcmp(v->findings.v[i].cause, cause) == 0)
			return &v->findings.v[i];
	fail_msg("no finding %s", cause);
	return NULL;
}

/* Workers are started where the loop over the loader begins; what keeps them is said where it is made. */
static void restart_where_the_loader_is_made(void **state)
{
	struct scenario s = { 0 };
	struct verdict v;
	const struct finding *x;

	(void)state;
	scenario_judge(&s, SCENARIOS, "restart-yes", &v);
	x = found(&v, "worker_restart");
	assert_string_equal(x->where.file, "/home/u/train.py");
	assert_int_equal(x->where.line, 31);
	assert_non_null(strstr(x->edit, "persistent_workers=True"));
	verdict_done(&v);
	scenario_done(&s);
}

/* The model runs for the training as well; the line of the evaluation is where it is asked for that. */
static void evaluation_where_it_evaluates(void **state)
{
	struct scenario s = { 0 };
	struct verdict v;
	const struct finding *x;

	(void)state;
	scenario_judge(&s, SCENARIOS, "evaluate-yes-shared", &v);
	x = found(&v, "evaluation_share");
	assert_string_equal(x->where.function, "Net.accuracy");
	assert_int_equal(x->where.line, 41);
	assert_int_equal(x->where.n_callers, 1);
	assert_int_equal(x->where.callers[0].line, 51);
	verdict_done(&v);
	scenario_done(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(restart_where_the_loader_is_made),
		cmocka_unit_test(evaluation_where_it_evaluates),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

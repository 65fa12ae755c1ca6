/* SPDX-License-Identifier: MIT
 *
 * The ledger balances: roles and the unaccounted rest are what the kernel charged.
 */
#include "../unit.h"

#include "scenario.h"

#include <math.h>

static void judge(const char *text, struct verdict *v)
{
	struct scenario s = { 0 };
	struct history *h;
	struct window w;

	scenario_parse(&s, text);
	h = scenario_play(&s, M_NONE, 0);
	w = history_window(h, 0);
	assert_int_equal(explain(&w, v), 0);
	history_free(h);
	scenario_done(&s);
	v->run = NULL;
}

static double cores_of(const struct verdict *v, const char *role)
{
	for (size_t i = 0; i < v->cpu.n; i++)
		if (strcmp(v->cpu.v[i].role, role) == 0)
			return v->cpu.v[i].cores;
	return NAN;
}

static void balances(const struct verdict *v)
{
	double shares = v->cpu_unaccounted;

	for (size_t i = 0; i < v->cpu.n; i++)
		shares += v->cpu.v[i].share;
	assert_true(near(shares, 1, 1e-9));
}

static void roles(void **state)
{
	struct verdict v = { 0 };

	(void)state;
	/* the kernel charged 1 s more than was seen */
	judge("run 10\nexit 0\nrusage 51\nprocess 20 100 main\nprocess 21 101 child\n"
	      "process 22 102 child from 2 to 6\nproc.cpu@20 0 20\nproc.cpu@21 0 15\n"
	      "proc.cpu@22 0 10\nproc.threads@20 4\nproc.threads@21 2\njob.cpu 0 50\n"
	      "job.cpu_ended 0 6.25\n",
	      &v);
	assert_true(near(cores_of(&v, "main"), 2.0, 1e-9));
	/* the last half second of the one that ended went unseen by its own series */
	assert_true(near(cores_of(&v, "child"), 1.5 + 0.875, 1e-9));
	assert_true(near(cores_of(&v, "other"), 0.625, 1e-9));
	assert_true(near(v.cpu_seconds, 51, 1e-9));
	assert_true(near(v.cpu_unaccounted, 1.0 / 51, 1e-6));
	balances(&v);
	assert_int_equal(v.cpu.v[0].threads, 4);
	assert_int_equal(v.cpu.v[1].processes, 2);
	assert_int_equal(v.cpu.v[1].threads, 3);
	assert_int_equal(v.cpu.v[2].processes, -1);
	assert_true(near(v.usage.cores_used, 5.1, 1e-9));
	verdict_done(&v);
}

/* Processes nobody waited for are not in the kernel's account of the tree: what was seen stands. */
static void rusage_is_less(void **state)
{
	struct verdict v = { 0 };

	(void)state;
	judge("run 10\nexit 0\nrusage 3\nprocess 20 100 main\nproc.cpu@20 0 3\nprocess 21 101 "
	      "daemon\n"
	      "proc.cpu@21 0 20\njob.cpu 0 23\n",
	      &v);
	assert_true(near(v.cpu_seconds, 23, 1e-9));
	assert_true(fabs(v.cpu_unaccounted) < 1e-9);
	balances(&v);
	verdict_done(&v);
}

/* A process that could not be read is unaccounted, not forgotten. */
static void unreadable(void **state)
{
	struct verdict v = { 0 };

	(void)state;
	judge("run 10\nprocess 20 100 main\nproc.cpu@20 0 3\nprocess 21 101 suid\njob.cpu 0 10\n",
	      &v);
	assert_true(near(v.cpu_unaccounted, 0.7, 1e-9));
	balances(&v);
	verdict_done(&v);
}

/* What was attached to had used CPU before: only what it used since counts. */
static void attached(void **state)
{
	struct verdict v = { 0 };

	(void)state;
	judge("run 10 attached\nprocess 20 100 main\nproc.cpu@20 5000 5020\njob.cpu 5000 5020\n",
	      &v);
	assert_true(near(v.cpu_cores, 2, 1e-9));
	assert_true(near(v.usage.cores_used, 2, 1e-9));
	balances(&v);
	verdict_done(&v);
}

/* Over the steady window of a long run, with what rusage knows more spread over it. */
static void steady(void **state)
{
	struct verdict v = { 0 };

	(void)state;
	judge("run 200\nexit 0\nrusage 404\nprocess 20 100 main\nproc.cpu@20 0:0 10:0 200:400\n"
	      "job.cpu 0:0 10:0 200:400\n",
	      &v);
	assert_int_equal(v.to_ns - v.from_ns, 190000000000);
	assert_true(near(v.cpu_seconds, 404, 1e-9));
	assert_true(near(v.cpu_unaccounted, 4.0 / 404, 1e-9));
	assert_true(near(v.usage.cores_used, 2.02, 1e-9));
	balances(&v);
	verdict_done(&v);
}

static void nobody_knows(void **state)
{
	struct verdict v = { 0 };

	(void)state;
	judge("run 10\n", &v);
	assert_true(isnan(v.cpu_seconds));
	assert_int_equal(v.cpu.n, 0);
	verdict_done(&v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(roles),      cmocka_unit_test(rusage_is_less),
		cmocka_unit_test(unreadable), cmocka_unit_test(attached),
		cmocka_unit_test(steady),     cmocka_unit_test(nobody_knows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

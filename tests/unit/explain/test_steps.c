/* SPDX-License-Identifier: MIT
 *
 * The census of steps, the window they choose, the slowest of them and what they differ in, scalars.
 */
#include "../unit.h"

#include "base/auto.h"
#include "base/buf.h"
#include "scenario.h"

#include <math.h>

static const char base[] = "run 60 hz 10\nexit 0\nmachine 4 1\nprocess 20 100 python3\n"
			   "thread 30 20 100 python3\njob.cpu 0 60\njob.cores_allowed 4\n"
			   "job.rss 1e9\nproc.cpu@20 0 60\nthread.cpu@30 0 60\n"
			   "thread.run_delay@30 0 0.1\n";

static void is_near(double a, double b, double most)
{
	if (!(fabs(a - b) <= most))
		fail_msg("%.9g is not %.9g", a, b);
}

struct world {
	struct scenario s;
	struct history *h;
	struct window w;
	struct verdict v;
};

static void open_world(struct world *x, const char *more)
{
	char text[8192];

	*x = (struct world){ 0 };
	assert_true(snprintf(text, sizeof(text), "%s%s", base, more) < (int)sizeof(text));
	scenario_parse(&x->s, text);
	x->h = scenario_play(&x->s, M_NONE, 0);
	x->w = history_window(x->h, 0);
	assert_int_equal(explain(&x->w, &x->v), 0);
}

static void close_world(struct world *x)
{
	verdict_done(&x->v);
	history_free(x->h);
	scenario_done(&x->s);
}

static double after(const struct world *x, int64_t t_ns)
{
	return (double)(t_ns - x->s.run.started_mono_ns) / 1e9;
}

static bool says(const struct world *x, unsigned lines, const char *text)
{
	auto_done(buf) struct buf out = { 0 };

	render_text(&x->v, &(struct render_style){ .max_lines = lines, .width = 200 }, &out);
	if (strstr(buf_text(&out), text))
		return true;
	print_error("%s", buf_text(&out));
	return false;
}

static bool json_says(const struct world *x, const char *text)
{
	auto_done(buf) struct buf out = { 0 };

	render_json(&x->v, &out);
	return strstr(buf_text(&out), text) != NULL;
}

static void counted(void **state)
{
	const struct step_group *g;
	struct world x;

	(void)state;
	open_world(&x, "steps 200 every 0.25 from 5 loss 2.3 to 0.3 wait 0.05 source torch\n");
	g = steps_lead(&x.v.steps);
	assert_non_null(g);
	assert_int_equal(g->count, 200);
	assert_int_equal(g->pid, 100);
	assert_int_equal(g->steady, 199); /* the first holds what is done once */
	is_near(g->rate_hz, 4, 1e-6);
	is_near(g->median_s, 0.25, 1e-6);
	is_near(g->p95_s, 0.25, 1e-6);
	is_near(g->data_wait, 0.2, 1e-6);
	is_near(g->first_loss, 2.3, 1e-9);
	is_near(g->last_loss, 0.3, 1e-9);
	assert_string_equal(x.v.steps.marker, "torch");
	is_near(after(&x, x.v.from_ns), 5.25, 1e-6);
	is_near(after(&x, x.v.to_ns), 55, 1e-6);
	is_near(x.v.step_wall_s, 0.25, 1e-6);
	assert_true(says(&x, 12,
			 "Steps   200 steps, 4.0 a second (median 250 ms, 95 % under 250 ms), "
			 "by torch\n"));
	assert_true(says(&x, 0, "steps 2 to 200, without start-up"));
	assert_true(json_says(&x, "\"count\": 200"));
	assert_true(json_says(&x, "\"source\": \"hook\""));
	assert_true(json_says(&x, "\"marker\": \"torch\""));
	close_world(&x);
}

/* Nobody said anything: nothing is said, and the window is as ever. */
static void silent(void **state)
{
	struct world x;

	(void)state;
	open_world(&x, "");
	assert_null(steps_lead(&x.v.steps));
	assert_false(json_says(&x, "\"steps\""));
	assert_false(json_says(&x, "\"ranks\""));
	assert_false(json_says(&x, "seconds_per_step"));
	close_world(&x);
}

/* Slow steps in the beginning are left out until they have settled; a slow one later is not. */
static void warmed_up(void **state)
{
	struct world x;

	(void)state;
	open_world(&x, "steps 8 every 1.5 from 1 wait 0.01\n"
		       "steps 180 every 0.25 from 13 first 9 wait 0.01 but 100 takes 2\n");
	assert_int_equal(steps_lead(&x.v.steps)->count, 188);
	/* the rolling median of five has settled where three of them have */
	assert_in_range(x.v.steps.first, 7, 9);
	is_near(steps_lead(&x.v.steps)->median_s, 0.25, 1e-6);
	assert_int_equal(x.v.steps.last, 188);
	close_world(&x);
}

/* A few quick steps in a long run are not what it is about. */
static void too_few(void **state)
{
	struct world x;

	(void)state;
	open_world(&x, "steps 30 every 0.02 from 50 wait 0.001\n");
	assert_int_equal(steps_lead(&x.v.steps)->count, 30);
	is_near(after(&x, x.v.to_ns), 60, 1e-6);
	assert_false(json_says(&x, "seconds_per_step"));
	close_world(&x);
	open_world(&x, "steps 5 every 10 from 1 wait 0.001\n");
	assert_int_equal(steps_lead(&x.v.steps)->count, 5);
	assert_true(isnan(steps_lead(&x.v.steps)->p95_s));
	assert_true(says(&x, 12, "5 steps, one every 10.0 s (median 10.0 s)"));
	is_near(after(&x, x.v.from_ns), 0, 1e-6);
	close_world(&x);
	open_world(&x, "steps 1 every 10 from 1 wait 0.001\n");
	assert_true(says(&x, 12, "Steps   1 step (median 10.0 s)\n"));
	assert_false(json_says(&x, "rate_hz"));
	close_world(&x);
}

/* Evaluation between steps is no part of them, but of the clock. */
static void aside(void **state)
{
	const struct step_group *g;
	struct world x;

	(void)state;
	open_world(&x, "steps 80 every 0.25 from 5 wait 0.01\nphase evaluate 25 35\n"
		       "steps 80 every 0.25 from 35 first 81 wait 0.01\nscalar accuracy 34 0.8\n");
	g = steps_lead(&x.v.steps);
	assert_int_equal(g->count, 160);
	is_near(g->median_s, 0.25, 1e-6);
	is_near(g->p95_s, 0.25, 1e-6);
	is_near(g->rate_hz, 159 / 49.75, 1e-6);
	is_near(g->aside, 10 / 49.75, 1e-6);
	assert_true(says(&x, 0, "evaluation and checkpoints took 20 %"));
	close_world(&x);
}

static void ranked(void **state)
{
	struct world x;

	(void)state;
	open_world(&x, "process 21 101 python3\nsteps 100 every 0.5 from 2 rank 1 of 21 wait 0.1\n"
		       "steps 100 every 0.5 from 2 rank 0 of 20 wait 0.3 source torch\n");
	assert_int_equal(x.v.steps.ranks, 2);
	assert_int_equal(x.v.steps.groups.n, 2);
	assert_int_equal(steps_lead(&x.v.steps)->rank, 0);
	assert_int_equal(x.v.steps.groups.v[1].pid, 101);
	is_near(x.v.steps.groups.v[1].data_wait, 0.2, 1e-6);
	assert_true(says(&x, 12,
			 "100 steps, 2.0 a second (median 500 ms, 95 % under 500 ms), by "
			 "torch; 2 ranks\n"));
	assert_true(json_says(&x, "\"ranks\": 2"));
	assert_true(json_says(&x, "\"rank\": 1"));
	close_world(&x);
}

static void slowest(void **state)
{
	struct slow_step slow[STEPS_SLOWEST];
	struct world x;
	size_t n;

	(void)state;
	open_world(&x, "steps 80 every 0.25 from 5 wait 0.01 but 40 takes 3 with 2.5\n"
		       "event oom_kill 20 29 a worker was killed\n"
		       "steps 60 every 0.25 from 28 first 82 wait 0.01\nphase log 30.05 30.15\n"
		       "phase train 4 60\n");
	n = steps_slowest(&x.w, &x.v.steps, slow, STEPS_SLOWEST);
	assert_int_equal(n, 2); /* 40, and 82 with the pause before it */
	assert_int_equal(slow[0].step->number, 40);
	assert_int_equal(slow[1].step->number, 82);
	is_near(slow[0].times, 12, 1e-6);
	assert_string_equal(slow[0].what, "waited 2.5 s for data (usually 10 ms)");
	assert_int_equal(steps_slowest(&x.w, &x.v.steps, slow, 1), 1);
	assert_int_equal(slow[0].step->number, 40);
	close_world(&x);
	open_world(&x, "steps 200 every 0.25 from 5 wait 0.01\n");
	assert_int_equal(steps_slowest(&x.w, &x.v.steps, slow, STEPS_SLOWEST), 0);
	close_world(&x);
}

/* What differed: a phase inside the step, waiting for a CPU, events; not what spans it. */
static void differences(void **state)
{
	struct slow_step slow[STEPS_SLOWEST];
	struct world x;

	(void)state;
	open_world(&x, "steps 100 every 0.25 from 5 wait 0.01 but 61 takes 4\nphase train 4 60\n"
		       "phase gc 21 23\nevent oom_kill 20 22 a worker was killed\n"
		       "thread 31 20 131 other\nthread.run_delay@31 0:0 20:0 24:3 60:3\n");
	assert_int_equal(steps_slowest(&x.w, &x.v.steps, slow, STEPS_SLOWEST), 1);
	assert_string_equal(slow[0].what, "2.0 s of it in phase gc; oom_kill: a worker was killed");
	close_world(&x);
}

static void summed(void **state)
{
	struct scalar_sum sums[SCALARS_SHOWN];
	struct world x;

	(void)state;
	open_world(&x, "steps 100 every 0.25 from 5 wait 0.01 loss 4 to 1\nscalar acc 10 0.5\n"
		       "scalar acc 20 0.9\nscalar acc 25 0.8\nscalar lr 10 0.001\n");
	assert_int_equal(scalars_sum(&x.w, &x.v.steps, sums, SCALARS_SHOWN), 3);
	assert_string_equal(sums[0].name, "loss");
	assert_int_equal(sums[0].n, 100);
	is_near(sums[0].first, 4, 1e-9);
	is_near(sums[0].last, 1, 1e-9);
	assert_string_equal(sums[1].name, "acc");
	assert_int_equal(sums[1].n, 3);
	is_near(sums[1].most, 0.9, 1e-9);
	is_near(sums[1].last, 0.8, 1e-9);
	assert_string_equal(sums[2].name, "lr");
	assert_int_equal(scalars_sum(&x.w, &x.v.steps, sums, 1), 1);
	close_world(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counted),   cmocka_unit_test(silent),
		cmocka_unit_test(warmed_up), cmocka_unit_test(too_few),
		cmocka_unit_test(aside),     cmocka_unit_test(ranked),
		cmocka_unit_test(slowest),   cmocka_unit_test(differences),
		cmocka_unit_test(summed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT
 *
 * Ranks side by side: who is late by how much, and what of that is won.
 */
#include "../unit.h"

#include "scenario.h"

#include "explain/fact.h"
#include "explain/scene.h"

struct told {
	struct scenario s;
	struct verdict v;
};

static void tell(struct told *t, const char *name)
{
	scenario_judge(&t->s, SCENARIOS, name, &t->v);
}

static void told_done(struct told *t)
{
	verdict_done(&t->v);
	scenario_done(&t->s);
}

static const struct finding *found(const struct told *t, const char *cause)
{
	for (size_t i = 0; i < t->v.findings.n; i++)
		if (strcmp(t->v.findings.v[i].cause, cause) == 0)
			return &t->v.findings.v[i];
	fail_msg("no finding %s", cause);
	return NULL;
}

static const struct evidence *evidence(const struct finding *x, const char *metric)
{
	for (size_t i = 0; i < x->n_evidence; i++)
		if (strcmp(x->evidence[i].metric, metric) == 0)
			return &x->evidence[i];
	fail_msg("%s has no evidence %s", x->cause, metric);
	return NULL;
}

/* Of facts, as rules see them. */
static void facts_of(const char *name, struct facts *f)
{
	char path[512];
	struct scenario s = { 0 };
	struct history *h;
	struct window w;
	struct scene scene = { 0 };

	snprintf(path, sizeof(path), "%s/%s.scn", SCENARIOS, name);
	scenario_load(&s, path);
	h = scenario_play(&s, M_NONE, 0);
	w = history_window(h, 0);
	assert_int_equal(scene_open(&scene, &w, w.from_ns, w.to_ns), 0);
	facts_compute(&scene, f);
	f->book = NULL; /* it goes with the history */
	scene_done(&scene);
	history_free(h);
	scenario_done(&s);
}

/* 35 % of the time for data against 5 %: without the difference a step takes 70 % of the time. */
static void late_data(void **state)
{
	static const struct {
		const char *scenario, *rank;
		double late;
	} rows[] = {
		{ "ranks-input-yes-2", "rank 1 (pid 1001)", 0.30 },
		{ "ranks-input-yes-8", "rank 5 (pid 1005)", 0.28 },
		{ "large-64-ranks", "rank 41 (pid 1041)", 0.28 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct told t;
		const struct finding *x;

		tell(&t, rows[i].scenario);
		x = found(&t, "input_straggler");
		assert_non_null(strstr(x->title, rows[i].rank));
		assert_non_null(strstr(x->fix, rows[i].rank));
		assert_non_null(strstr(x->edit, "DistributedSampler"));
		assert_string_equal(x->where.file, "/home/u/train.py");
		assert_int_equal(x->where.line, 48);
		assert_string_equal(x->family, "ranks");
		assert_true(near(x->speedup, 1 / (1 - rows[i].late), 0.03));
		assert_true(x->low > 1.1 && x->low < x->speedup && x->speedup <= x->high);
		assert_true(near(evidence(x, "ranks.data_awaited")->value, rows[i].late, 0.05));
		told_done(&t);
	}
}

/* The step by step difference is told of ranks that are late in turn: 0.08 of 0.4 s, a part of which is won. */
static void in_turn(void **state)
{
	struct told t;
	const struct finding *x;

	(void)state;
	tell(&t, "ranks-input-yes-turns");
	x = found(&t, "input_straggler");
	assert_non_null(strstr(x->title, "some rank"));
	assert_true(near(evidence(x, "ranks.data_uneven")->value, 0.2, 0.02));
	assert_true(near(evidence(x, "ranks.data_same")->value, 0.55, 0.05));
	assert_true(near(x->high, 1 / 0.8, 0.02));
	assert_true(near(x->speedup, 1 / (1 - 0.12), 0.02));
	assert_non_null(strstr(x->edit, "prefetch_factor"));
	told_done(&t);
}

/* 35 % against 5 % as the ranks tell it themselves, without a stack. */
static void late_by_marks(void **state)
{
	static struct facts f;
	struct told t;
	const struct finding *x;

	(void)state;
	tell(&t, "ranks-input-yes-marks");
	x = found(&t, "input_straggler");
	assert_non_null(strstr(x->title, "rank 1 (pid 1001)"));
	assert_true(near(x->speedup, 1 / (1 - 0.30), 0.03));
	assert_true(evidence(x, "ranks.apart")->value < 0.01);
	told_done(&t);
	facts_of("ranks-no-marks-apart", &f);
	assert_true(f.v[FACT_RANKS_DATA_LATE].known && f.v[FACT_RANKS_APART].value > 0.1);
	assert_false(f.v[FACT_RANKS_DATA_AWAITED].known);
}

/* Few samples: what is far beyond their interval is told, the rest is not. */
static void few_samples(void **state)
{
	static struct facts few;

	(void)state;
	facts_of("ranks-input-yes-few", &few);
	assert_true(few.v[FACT_RANKS_DATA_LATE].low > 0.05);
	facts_of("ranks-blind-few", &few);
	assert_false(few.v[FACT_RANKS_DATA_LATE].known);
}

/* One of four has 96 % work of its own, the others 65 %: evenly 72.75 % each, or as the others 65 % at best. */
static void late_work(void **state)
{
	struct told t;
	const struct finding *x;

	(void)state;
	tell(&t, "ranks-compute-yes-4");
	x = found(&t, "compute_straggler");
	assert_non_null(strstr(x->title, "rank 2 (pid 1002)"));
	/* the line that takes longer there, not the one that is hottest everywhere */
	assert_int_equal(x->where.line, 51);
	assert_true(near(x->high, 1 / (1 - 0.31), 0.03));
	assert_true(near(x->speedup, 1 / (1 - 0.2325), 0.03));
	assert_true(x->low > 1.1 && x->low < x->speedup);
	told_done(&t);
}

static void exchange(void **state)
{
	struct told t, blind;
	const struct finding *x;

	(void)state;
	tell(&t, "ranks-exchange-yes-2");
	x = found(&t, "exposed_communication");
	assert_int_equal(x->where.line, 53);
	assert_non_null(strstr(x->edit, "DistributedDataParallel"));
	assert_true(near(x->speedup, 1 / (1 - 0.28), 0.02));
	assert_true(x->low > 1.05);
	/* without steps all of it may be ranks that are late in turn */
	tell(&blind, "ranks-exchange-blind-turns");
	x = found(&blind, "exposed_communication");
	assert_true(x->low == 1);
	told_done(&blind);
	told_done(&t);
}

/* What each rank does adds up, and 64 of them are told apart. */
static void side_by_side(void **state)
{
	static struct facts f;

	(void)state;
	facts_of("large-64-ranks", &f);
	assert_true(f.v[FACT_RANKS].value == 64);
	assert_string_equal(f.v[FACT_RANKS_DATA].text, "rank 41 (pid 1041)");
	assert_true(near(f.v[FACT_RANKS_LATE].value, 0.28, 0.05));
	assert_true(f.v[FACT_RANKS_LATE].low < f.v[FACT_RANKS_LATE].value);
	assert_true(f.v[FACT_RANKS_LATE_WORK].value < 0.02);
	assert_true(near(f.v[FACT_RANKS_TRANSFER].value, 0.02, 0.5));
	assert_string_equal(f.v[FACT_RANKS_LIBRARY].text, "torch");
	facts_of("ranks-no-single", &f);
	assert_true(f.v[FACT_RANKS].value == 1);
	assert_false(f.v[FACT_RANKS_LATE].known);
	facts_of("sync-blind", &f);
	assert_false(f.v[FACT_RANKS].known);
	assert_true(f.v[FACT_RANKS].why[0] != '\0');
}

/* A rank of which hardly anything was seen may be the late one: nothing is said of any. */
static void unseen_rank(void **state)
{
	struct told t = { 0 };
	struct history *h;
	struct window w;
	char text[2048];

	(void)state;
	snprintf(
	    text, sizeof(text),
	    "run 40\nexit 0\nmachine 4 1\nprocess 19 100 torchrun\nthread 10 19 100 torchrun\n"
	    "process 20 110 python3 of 19\nprocess 21 111 python3 of 19\n"
	    "process 22 112 python3 of 19\nthread 30 20 110 python3\nthread 31 21 111 python3\n"
	    "thread 32 22 112 python3\njob.cpu 0 60\nproc.cpu@20 0 30\nproc.cpu@21 0 30\n"
	    "proc.cpu@22 0 30\nproc.cpu@19 0 0\n"
	    "place 1 /home/u/train.py 9 train\n"
	    "place 2 /usr/lib/python3/dist-packages/torch/distributed/distributed_c10d.py 2000 "
	    "all_reduce\n"
	    "place 3 /usr/lib/python3/dist-packages/torch/nn/modules/module.py 1500 "
	    "Module._call_impl\n"
	    "stack 1 = 1 3\nstack 2 = 1 2\ndoes 10 0 child 1\ndoes 30,31 1 running 0.6\n"
	    "does 30,31 2 socket 0.4\ndoes 32 1 running 0.01\n");
	scenario_parse(&t.s, text);
	h = scenario_play(&t.s, M_NONE, 0);
	w = history_window(h, 0);
	assert_int_equal(explain(&w, &t.v), 0);
	assert_string_equal(scenario_answer(&t.v, "exposed_communication"), "blind");
	assert_string_equal(scenario_answer(&t.v, "compute_straggler"), "blind");
	assert_string_equal(scenario_answer(&t.v, "input_straggler"), "blind");
	t.v.run = &t.s.run;
	history_free(h);
	told_done(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(late_data),     cmocka_unit_test(in_turn),
		cmocka_unit_test(late_work),     cmocka_unit_test(exchange),
		cmocka_unit_test(side_by_side),  cmocka_unit_test(unseen_rank),
		cmocka_unit_test(late_by_marks), cmocka_unit_test(few_samples),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

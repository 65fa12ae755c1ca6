/* SPDX-License-Identifier: MIT
 *
 * Figures of a file against those of the live history over the same frames, which keeps every sample
 * in memory: a rule must say the same live and later, from samples and from roll-ups.
 */
#include "../unit.h"

#include "base/clock.h"
#include "base/err.h"
#include "model/history.h"
#include "record/reader.h"
#include "record/rollup.h"
#include "record/writer.h"
#include "world.h"

#include <errno.h>
#include <math.h>
#include <sqlite3.h>
#include <stdlib.h>

struct twin {
	char path[256];
	struct world w;
	struct record_writer *writer;
	struct history *history;
	struct record *r;
};

static void twin_begin(struct twin *t, uint64_t seed, unsigned tasks, unsigned points,
		       bool attached, const struct record_options *o)
{
	struct run_info run;
	struct err e = { 0 };
	struct record_options options = o ? *o : (struct record_options){ 0 };

	/* fsync is real, and a busy disk takes its time: once is enough here */
	options.sync_every_ns = 24 * 3600 * NS_PER_S;
	test_path(t->path, sizeof(t->path));
	world_init(&t->w, seed, tasks);
	t->w.quiet = true;
	world_run(&t->w, &run);
	run.attached = attached;
	assert_int_equal(record_create(t->path, &run, &options, &t->writer, &e), 0);
	t->history = history_new(&run, points);
	assert_non_null(t->history);
	run_info_done(&run);
}

static void twin_tick(struct twin *t, int64_t step)
{
	struct frame *f = world_tick(&t->w, step);

	assert_int_equal(record_frame(t->writer, f), 0);
	assert_int_equal(history_frame(t->history, f), 0);
}

static void twin_finish_later(struct twin *t, int64_t later_ns)
{
	struct run_info run;
	struct err e = { 0 };

	world_run(&t->w, &run);
	run.state = RUN_ENDED;
	run.ended_mono_ns = t->w.t_ns + later_ns;
	run.attached = history_run(t->history)->attached;
	assert_int_equal(record_finish(t->writer, &run), 0);
	assert_int_equal(record_open(t->path, &t->r, &e), 0);
	run_info_done(&run);
}

static void twin_finish(struct twin *t)
{
	twin_finish_later(t, 0);
}

static void twin_done(struct twin *t)
{
	record_close(t->r);
	history_free(t->history);
	world_done(&t->w);
	test_path_rm(t->path);
}

static bool close_to(double a, double b, double slack)
{
	return fabs(a - b) <= slack + 1e-12 * (fabs(a) + fabs(b));
}

/* rollups: means lie within a step of (max - min). Everything else is the same in all cases. */
static size_t compare(struct twin *t, int64_t from, int64_t to, bool rollups)
{
	struct window live = history_window(t->history, 0), file = record_window(t->r, from, to);
	size_t n = 0;

	live.from_ns = file.from_ns;
	live.to_ns = file.to_ns;
	for (size_t i = 0; i < t->w.series.n; i++) {
		const struct world_series *s = &t->w.series.v[i];
		struct series_stat a = { 0 }, b = { 0 };
		int ra = window_stat(&live, s->metric, s->entity, &a);
		int rb = window_stat(&file, s->metric, s->entity, &b);
		bool counter = metrics[s->metric].kind == KIND_COUNTER;
		/* the height of a counter, as opposed to its growth, is nobody's business */
		double mean_slack = rollups ? (a.max - a.min) / (counter ? 1 : 8000) : 0;

		if (ra != rb || !close_to(a.delta, b.delta, 0) || !close_to(a.last, b.last, 0) ||
		    (ra == 0 && !close_to(a.mean, b.mean, mean_slack)) || a.to_ns != b.to_ns ||
		    (!counter && (!close_to(a.min, b.min, 0) || !close_to(a.max, b.max, 0))) ||
		    a.from_ns != b.from_ns || !close_to(a.first, b.first, 0))
			fail_msg(
			    "%s of %u in [%.3f, %.3f] s: live %d n %llu first %.9g last %.9g min"
			    " %.9g max %.9g mean %.9g delta %.9g [%.3f %.3f]; file %d n %llu first"
			    " %.9g last %.9g min %.9g max %.9g mean %.9g delta %.9g [%.3f %.3f]",
			    metrics[s->metric].name, s->entity,
			    (double)(file.from_ns - t->w.start_ns) / 1e9,
			    (double)(file.to_ns - t->w.start_ns) / 1e9, ra, (unsigned long long)a.n,
			    a.first, a.last, a.min, a.max, a.mean, a.delta,
			    (double)(a.from_ns - t->w.start_ns) / 1e9,
			    (double)(a.to_ns - t->w.start_ns) / 1e9, rb, (unsigned long long)b.n,
			    b.first, b.last, b.min, b.max, b.mean, b.delta,
			    (double)(b.from_ns - t->w.start_ns) / 1e9,
			    (double)(b.to_ns - t->w.start_ns) / 1e9);
		n += ra == 0;
	}
	return n;
}

static void test_samples(void **state)
{
	struct twin t = { 0 };
	struct random r = { 100 };

	(void)state;
	twin_begin(&t, 20, 16, 4000, false, NULL);
	for (int i = 0; i < 3000; i++)
		twin_tick(&t, 100 * NS_PER_MS + (int64_t)random_below(&r, NS_PER_MS));
	twin_finish(&t);
	assert_true(compare(&t, 0, 0, false) > 50);
	for (int i = 0; i < 60; i++) {
		int64_t from = t.w.start_ns + (int64_t)random_below(&r, 290 * NS_PER_S);
		int64_t to = from + (int64_t)random_below(&r, 100 * NS_PER_S);

		compare(&t, from, to, false);
	}
	/* Windows that begin and end on ticks count each sample once. */
	for (int i = 0; i < 20; i++) {
		const struct world_series *s = world_find(&t.w, M_CPU_USER, ID_HOST);
		size_t a = random_below(&r, 1400), b = a + 1 + random_below(&r, 1400);

		compare(&t, s->v.v[a].t_ns, s->v.v[b].t_ns, false);
	}
	twin_done(&t);
}

static void test_attached(void **state)
{
	struct twin t = { 0 };

	(void)state;
	twin_begin(&t, 21, 8, 1000, true, NULL);
	for (int i = 0; i < 600; i++)
		twin_tick(&t, 100 * NS_PER_MS);
	twin_finish(&t);
	compare(&t, 0, 0, false);
	twin_done(&t);
}

/* Two hours at one tick a second: thinning drops nothing, so edges are exact; the middle comes from
 * roll-ups. */
static void test_rollups(void **state)
{
	struct record_options o = { .keep_raw_ns = 5 * 60 * NS_PER_S };
	struct twin t = { 0 };
	struct random r = { 101 };

	(void)state;
	twin_begin(&t, 22, 16, 8000, false, &o);
	for (int i = 0; i < 7200; i++)
		twin_tick(&t, NS_PER_S);
	twin_finish(&t);
	assert_true(compare(&t, 0, 0, true) > 50);
	for (int i = 0; i < 30; i++) {
		int64_t from = t.w.start_ns + (int64_t)random_below(&r, 7000 * NS_PER_S);
		int64_t to = from + (int64_t)random_below(&r, 7200 * NS_PER_S);

		compare(&t, from, to, true);
	}
	/* where raw is still whole: exact */
	compare(&t, t.w.t_ns - 200 * NS_PER_S, t.w.t_ns, false);
	twin_done(&t);
}

/* A quarter of an hour at 4 Hz, of which old samples are thinned: growth is exact at whole buckets. */
static void test_thinned(void **state)
{
	struct record_options o = { .keep_raw_ns = NS_PER_S };
	struct twin t = { 0 };
	struct random r = { 102 };

	(void)state;
	twin_begin(&t, 23, 16, 5000, false, &o);
	for (int i = 0; i < 3600; i++)
		twin_tick(&t, 250 * NS_PER_MS - (int64_t)random_below(&r, 1000));
	twin_finish(&t);
	compare(&t, 0, 0, true);
	for (int i = 0; i < 20; i++) {
		int64_t from = t.w.start_ns + (int64_t)random_below(&r, 80) * 10 * NS_PER_S;
		int64_t to = from + (1 + (int64_t)random_below(&r, 60)) * 10 * NS_PER_S - 1;

		compare(&t, from, to, true);
	}
	twin_done(&t);
}

/* A program that ended some time after the last look at it: values hold to the end. */
static void test_end_after_the_last_tick(void **state)
{
	struct twin t = { 0 };

	(void)state;
	twin_begin(&t, 27, 8, 4000, false, NULL);
	for (int i = 0; i < 2000; i++)
		twin_tick(&t, NS_PER_S);
	twin_finish_later(&t, 25 * NS_PER_S);
	compare(&t, 0, 0, true);
	assert_int_equal(record_window(t.r, 0, 0).to_ns, t.w.t_ns + 25 * NS_PER_S);
	twin_done(&t);
}

static int64_t to_grid(const struct twin *t, int64_t at, bool up)
{
	int64_t since = at - t->w.start_ns, rest = since % ROLLUP_COARSE_NS;

	return t->w.start_ns + since - rest + (up && rest ? ROLLUP_COARSE_NS : 0);
}

/* Where samples were deleted a ragged edge is a share of its bucket: not exact, but never outside
 * of what the whole buckets around it say. */
static void check_proportion(struct twin *t, int64_t from, int64_t to)
{
	struct window file = record_window(t->r, from, to), outer = history_window(t->history, 0);
	struct window inner = outer;

	outer.from_ns = to_grid(t, from, false);
	outer.to_ns = to_grid(t, to, true) - 1;
	inner.from_ns = to_grid(t, from, true);
	inner.to_ns = to_grid(t, to, false) - 1;
	for (size_t i = 0; i < t->w.series.n; i++) {
		const struct world_series *s = &t->w.series.v[i];
		struct series_stat a = { 0 }, b = { 0 }, x;

		if (window_stat(&file, s->metric, s->entity, &x) < 0 ||
		    window_stat(&outer, s->metric, s->entity, &b) < 0)
			continue;
		if (metrics[s->metric].kind == KIND_COUNTER) {
			(void)window_stat(&inner, s->metric, s->entity, &a);
			assert_true(x.delta >= a.delta * (1 - 1e-9));
			assert_true(x.delta <= b.delta * (1 + 1e-9));
		} else {
			double slack = 1e-9 * (fabs(x.min) + fabs(x.max));

			assert_true(x.min >= b.min - slack && x.max <= b.max + slack);
			if (x.mean < x.min - slack || x.mean > x.max + slack)
				fail_msg("%s: mean %.9g of %.9g to %.9g", metrics[s->metric].name,
					 x.mean, x.min, x.max);
		}
	}
}

static bool first_point(const struct point *p, void *arg)
{
	*(int64_t *)arg = p->t_ns;
	return false;
}

/* A file kept far smaller than what goes into it still knows what the whole run used. */
static void test_retention(void **state)
{
	struct record_options o = { .keep_raw_ns = 60 * NS_PER_S, .max_bytes = 700 << 10 };
	struct twin t = { 0 };
	struct record_health h = { 0 };
	int64_t blocks = 0, kept = 0, first = 0;
	struct random r = { 103 };
	struct window w;
	sqlite3_stmt *s;

	(void)state;
	twin_begin(&t, 24, 16, 40000, false, &o);
	for (int i = 0; i < 4 * 7200; i++) {
		twin_tick(&t, 250 * NS_PER_MS);
		record_health(t.writer, &h);
		/* some room for the minute in hand, whose seconds are written before they are packed */
		assert_true(h.bytes < o.max_bytes * 2 + (1 << 20));
	}
	twin_finish(&t);
	assert_true(record_bytes(t.r) <= (int64_t)o.max_bytes + (64 << 10));
	sqlite3_prepare_v2(record_db(t.r), "SELECT count(*) FROM block", -1, &s, NULL);
	sqlite3_step(s);
	blocks = sqlite3_column_int64(s, 0);
	sqlite3_finalize(s);
	sqlite3_prepare_v2(record_db(t.r), "SELECT count(*) FROM kept", -1, &s, NULL);
	sqlite3_step(s);
	kept = sqlite3_column_int64(s, 0);
	sqlite3_finalize(s);
	assert_true(blocks < 2 * 60 * 8 && kept > 0);
	compare(&t, 0, 0, true);
	for (int i = 0; i < 20; i++) {
		int64_t from = t.w.start_ns + (int64_t)random_below(&r, 3000 * NS_PER_S);

		check_proportion(
		    &t, from, from + 700 * NS_PER_S + (int64_t)random_below(&r, 3000 * NS_PER_S));
	}
	/* a chart still begins where the run did */
	w = record_window(t.r, 0, 0);
	assert_int_equal(
	    w.ops->each(w.src, M_MEM_FREE, ID_HOST, w.from_ns, w.to_ns, 0, first_point, &first), 0);
	assert_true(first <= t.w.start_ns + ROLLUP_COARSE_NS);
	twin_done(&t);
}

/* A recorder that stood still for an hour: values hold, nothing is counted twice. */
static void test_silence(void **state)
{
	struct twin t = { 0 };

	(void)state;
	twin_begin(&t, 25, 8, 4000, false, NULL);
	for (int i = 0; i < 1000; i++)
		twin_tick(&t, 100 * NS_PER_MS);
	twin_tick(&t, 3600 * NS_PER_S);
	for (int i = 0; i < 1000; i++)
		twin_tick(&t, 100 * NS_PER_MS);
	twin_finish(&t);
	compare(&t, 0, 0, true);
	twin_done(&t);
}

struct points {
	int64_t last_ns;
	size_t n;
	double last, min, max;
};

static bool take_point(const struct point *p, void *arg)
{
	struct points *v = arg;

	assert_true(p->t_ns > v->last_ns);
	assert_true(p->min <= p->value && p->value <= p->max);
	assert_true(p->min <= p->last && p->last <= p->max);
	assert_true(p->from_ns <= p->t_ns && p->from_ns >= v->last_ns);
	v->last_ns = p->t_ns;
	v->min = v->n ? fmin(v->min, p->min) : p->min;
	v->max = v->n ? fmax(v->max, p->max) : p->max;
	v->last = p->value;
	v->n++;
	return true;
}

static bool take_of(size_t key, const struct point *p, void *arg)
{
	return take_point(p, &((struct points *)arg)[key]);
}

/* Many series in one pass are what they are one by one. */
static void check_many(const struct window *w, int64_t step_ns)
{
	static const struct series_key keys[] = { { M_MEM_FREE, ID_HOST },
						  { M_MEM_FREE, 9999 },
						  { M_JOB_RSS, ID_JOB },
						  { M_CPU_USER, ID_HOST },
						  { M_MEM_TOTAL, ID_HOST } };
	enum { KEYS = sizeof(keys) / sizeof(keys[0]) };
	struct points many[KEYS] = { 0 };

	assert_int_equal(window_each_of(w, keys, KEYS, step_ns, take_of, many), 0);
	assert_true(many[0].n > 0 && many[1].n == 0);
	for (size_t i = 0; i < KEYS; i++) {
		struct points one = { 0 };

		(void)w->ops->each(w->src, keys[i].metric, keys[i].entity, w->from_ns, w->to_ns,
				   step_ns, take_point, &one);
		assert_int_equal(one.n, many[i].n);
		assert_true(one.last == many[i].last && one.min == many[i].min &&
			    one.max == many[i].max);
	}
	assert_int_equal(window_each_of(w, &keys[1], 1, step_ns, take_of, many), -ENODATA);
}

static void test_points(void **state)
{
	struct record_options o = { .keep_raw_ns = 3600 * NS_PER_S };
	struct twin t = { 0 };
	struct points raw = { 0 }, fine = { 0 }, coarse = { 0 };
	struct window w;
	struct series_stat stat;

	(void)state;
	twin_begin(&t, 26, 4, 12000, false, &o);
	for (int i = 0; i < 10000; i++)
		twin_tick(&t, 100 * NS_PER_MS);
	twin_finish(&t);
	w = record_window(t.r, 0, 0);
	assert_int_equal(window_stat(&w, M_MEM_FREE, ID_HOST, &stat), 0);
	assert_int_equal(
	    w.ops->each(w.src, M_MEM_FREE, ID_HOST, w.from_ns, w.to_ns, 0, take_point, &raw), 0);
	assert_int_equal(raw.n, 10000);
	assert_true(raw.last == stat.last && raw.min == stat.min && raw.max == stat.max);
	assert_int_equal(w.ops->each(w.src, M_MEM_FREE, ID_HOST, w.from_ns, w.to_ns, 10 * NS_PER_S,
				     take_point, &fine),
			 0);
	assert_in_range(fine.n, 100, 100 + 10);
	assert_true(fine.min == stat.min && fine.max == stat.max);
	assert_int_equal(w.ops->each(w.src, M_MEM_FREE, ID_HOST, w.from_ns, w.to_ns, 300 * NS_PER_S,
				     take_point, &coarse),
			 0);
	assert_in_range(coarse.n, 4, 40);
	assert_true(coarse.min == stat.min && coarse.max == stat.max);
	assert_int_equal(
	    w.ops->each(w.src, M_MEM_FREE, 9999, w.from_ns, w.to_ns, 0, take_point, &raw),
	    -ENODATA);
	check_many(&w, 0);
	check_many(&w, 10 * NS_PER_S);
	check_many(&w, 300 * NS_PER_S);
	twin_done(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_samples),   cmocka_unit_test(test_attached),
		cmocka_unit_test(test_rollups),   cmocka_unit_test(test_thinned),
		cmocka_unit_test(test_retention), cmocka_unit_test(test_end_after_the_last_tick),
		cmocka_unit_test(test_silence),   cmocka_unit_test(test_points),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
#include "../unit.h"

#include "model/history.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

static uint64_t seed = 88172645463325252ull;

static uint32_t below(uint32_t n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (uint32_t)(seed >> 33) % n;
}

/* --- everything that happened, kept forever, to compare with --- */

enum { SERIES = 60, TICKS = 400, ENTITIES = 20 };

struct truth {
	struct {
		enum metric_id m;
		uint32_t entity;
		struct {
			int64_t t, raw;
		} v[TICKS];
		size_t n;
	} series[SERIES];
	struct {
		enum entity_kind kind;
		int64_t born, gone; /* gone 0: lives */
	} entity[ENTITIES + 1];
	int64_t tick[TICKS];
	bool attached;
};

static const enum metric_id of_kind[3] = { M_PROC_CPU, M_PROC_RSS, M_PROC_MAJOR_FAULTS };

static bool grows_from_zero(const struct truth *w, size_t s, int64_t from)
{
	int64_t born = w->entity[w->series[s].entity - 100].born;

	if (w->entity[w->series[s].entity - 100].kind != ENTITY_PROC)
		return false;
	if (born == w->tick[0])
		return !w->attached && born >= from;
	return born > from;
}

/* The same question answered the long way: the value at every moment. */
static bool brute(const struct truth *w, size_t s, int64_t from, int64_t to,
		  struct series_stat *ret)
{
	enum metric_id m = w->series[s].m;
	bool is_counter = metrics[m].kind == KIND_COUNTER, zero = grows_from_zero(w, s, from);
	int64_t gone = w->entity[w->series[s].entity - 100].gone;
	int64_t end = gone && gone < to ? gone : to, start = 0, held_since = 0;
	double value = 0, integral = 0;
	bool any = false;

	*ret = (struct series_stat){ 0 };
	if (gone && gone <= from)
		return false;
	for (size_t i = 0; i < w->series[s].n; i++) {
		int64_t t = w->series[s].v[i].t;
		double v = metric_value(m, w->series[s].v[i].raw);
		bool inside = t > from || (t == from && zero);

		if (t > to)
			break;
		if (any && inside)
			integral += value * (double)(t - held_since);
		if (inside) {
			ret->n++;
			if (is_counter && any)
				ret->delta += v < value / 2 ? v : v - value;
			else if (is_counter && zero)
				ret->delta += v;
		}
		if (!any || !inside) {
			ret->first = ret->min = ret->max = v;
			start = inside ? t : from;
		}
		ret->min = fmin(ret->min, v);
		ret->max = fmax(ret->max, v);
		value = v;
		held_since = inside ? t : from;
		any = true;
	}
	if (!any)
		return false;
	if (end > held_since)
		integral += value * (double)(end - held_since);
	ret->last = value;
	ret->from_ns = start;
	ret->to_ns = end > held_since ? end : held_since;
	ret->mean = ret->to_ns > start ? integral / (double)(ret->to_ns - start) : value;
	if (!is_counter)
		ret->delta = ret->last - ret->first;
	return true;
}

/* One random tick of it, into the frame and into the truth. */
static void random_tick(struct truth *w, size_t *n_series, int64_t t, struct frame *f)
{
	for (uint32_t e = 0; e < ENTITIES; e++) {
		uint32_t id = 100 + e;
		bool lives = w->entity[e].born && !w->entity[e].gone;
		struct life l = { .id = id, .kind = ENTITY_PROC, .key = id };

		if (!w->entity[e].born && (e < 5 || below(60) == 0)) {
			w->entity[e].born = t;
			w->entity[e].kind = ENTITY_PROC;
			frame_life(f, &l, "p", "");
			lives = true;
		} else if (lives && e > 3 && below(80) == 0) {
			w->entity[e].gone = t;
			l.change = LIFE_GONE;
			frame_life(f, &l, "p", "");
			lives = false;
		}
		for (size_t k = 0; lives && k < 3; k++) {
			size_t s = e * 3 + k;
			size_t n = w->series[s].n;
			int64_t was = n ? w->series[s].v[n - 1].raw : 0, raw;

			if (n && below(4) == 0) /* it did not run */
				continue;
			raw = of_kind[k] == M_PROC_RSS ? (int64_t)below(1000) : was + below(1000);
			if (below(50) == 0)
				raw = below(10); /* started again */
			else if (below(50) == 0)
				raw = was - was / 8; /* slipped back */
			w->series[s].m = of_kind[k];
			w->series[s].entity = id;
			w->series[s].v[n].t = t;
			w->series[s].v[n].raw = raw;
			w->series[s].n++;
			frame_put(f, of_kind[k], id, raw);
		}
	}
	*n_series = SERIES;
}

static void compare(const struct truth *w, const struct window *win, int64_t from, int64_t to)
{
	for (size_t s = 0; s < SERIES; s++) {
		struct series_stat is = { 0 }, be;
		bool any;
		int r;

		if (!w->series[s].n)
			continue;
		any = brute(w, s, from, to, &be);
		r = win->ops->stat(win->src, w->series[s].m, w->series[s].entity, from, to, &is);
		assert_int_equal(r, any ? 0 : -ENODATA);
		if (!any)
			continue;
		assert_int_equal(is.n, be.n);
		assert_int_equal(is.from_ns, be.from_ns);
		assert_int_equal(is.to_ns, be.to_ns);
		assert_true(near(is.delta, be.delta, 1e-9) || fabs(is.delta - be.delta) < 1e-9);
		assert_true(near(is.mean, be.mean, 1e-9));
		assert_true(is.first == be.first && is.last == be.last && is.min == be.min &&
			    is.max == be.max);
	}
}

/* What history says of any window it still keeps is what the long way says. */
static void as_the_long_way(void **state)
{
	static struct truth w;

	(void)state;
	for (int round = 0; round < 8; round++) {
		unsigned points = round % 2 ? 37 : TICKS;
		struct run_info run = { .attached = round % 4 >= 2 };
		struct history *h = history_new(&run, points);
		struct frame f = { 0 };
		size_t n_series = 0;
		int64_t t = 1000;

		memset(&w, 0, sizeof(w));
		w.attached = run.attached;
		for (unsigned i = 0; i < TICKS; i++) {
			struct window win;

			t += 50 + below(100);
			w.tick[i] = t;
			frame_begin(&f, t, 0);
			random_tick(&w, &n_series, t, &f);
			assert_int_equal(history_frame(h, &f), 0);
			if (below(10) && i != TICKS - 1)
				continue;
			win = history_window(h, 0);
			assert_int_equal(win.to_ns, t);
			assert_int_equal(win.from_ns, w.tick[i + 1 > points ? i + 1 - points : 0]);
			compare(&w, &win, win.from_ns, win.to_ns);
			for (int k = 0; k < 3; k++) {
				int64_t span = win.to_ns - win.from_ns + 1;
				int64_t a = win.from_ns + below((uint32_t)span);
				int64_t b = a + below((uint32_t)(win.to_ns - a + 1));

				compare(&w, &win, a, b);
			}
		}
		frame_done(&f);
		history_free(h);
	}
}

/* Windows that meet add up. */
static void adds_up(void **state)
{
	static struct truth w;
	struct run_info run = { 0 };
	struct history *h = history_new(&run, TICKS);
	struct frame f = { 0 };
	struct window win;
	size_t n_series = 0;

	(void)state;
	memset(&w, 0, sizeof(w));
	for (unsigned i = 0; i < TICKS; i++) {
		w.tick[i] = 1000 + 100 * (int64_t)i;
		frame_begin(&f, w.tick[i], 0);
		random_tick(&w, &n_series, w.tick[i], &f);
		assert_int_equal(history_frame(h, &f), 0);
	}
	win = history_window(h, 0);
	for (int k = 0; k < 500; k++) {
		/* on ticks and off them */
		int64_t a = win.from_ns + 10 * below(1000), c = a + 10 * below(1000);
		int64_t b = a + 10 * below((uint32_t)((c - a) / 10 + 1));
		size_t s = below(SERIES);
		double parts = 0, whole = 0;
		struct series_stat st;

		/* A window of no length at the very first tick is all that was used before it. */
		if (metrics[w.series[s].m].kind != KIND_COUNTER || !w.series[s].n ||
		    b == win.from_ns)
			continue;
		if (win.ops->stat(h, w.series[s].m, w.series[s].entity, a, b, &st) == 0)
			parts += st.delta;
		if (win.ops->stat(h, w.series[s].m, w.series[s].entity, b, c, &st) == 0)
			parts += st.delta;
		if (win.ops->stat(h, w.series[s].m, w.series[s].entity, a, c, &st) == 0)
			whole = st.delta;
		assert_true(fabs(parts - whole) < 1e-9);
	}
	frame_done(&f);
	history_free(h);
}

/* Thousands of short-lived processes, gaps and events: what is kept stays small. */
static void forgets(void **state)
{
	struct run_info run = { 0 };
	struct history *h = history_new(&run, 50);
	struct frame f = { 0 };
	struct window win;
	struct series_stat st;
	size_t n;

	(void)state;
	for (uint32_t i = 0; i < 20000; i++) {
		struct life l = { .id = 100 + i, .kind = ENTITY_PROC, .key = i };

		frame_begin(&f, 1000 + 100 * (int64_t)i, 0);
		if (!i)
			frame_life(&f, &(struct life){ .id = ID_HOST, .kind = ENTITY_HOST }, "box",
				   "");
		frame_life(&f, &l, "short", "");
		frame_put(&f, M_PROC_CPU, 100 + i, 5);
		frame_put(&f, M_CPU_USER, ID_HOST, i);
		frame_gap(&f, M_PROC_PSS, 100 + i, GAP_NO_PERMISSION);
		frame_event(&f, EVENT_EXIT, 100 + i, 0, "short (%u) ended", i);
		if (i >= 3) {
			l.id -= 3;
			l.change = LIFE_GONE;
			frame_life(&f, &l, "", "");
		}
		assert_int_equal(history_frame(h, &f), 0);
	}
	win = history_window(h, 0);
	assert_true(window_entities(&win)->rows.n < 120);
	win.ops->events(h, &n);
	assert_in_range(n, 512, 1024);
	win.ops->gaps(h, &n);
	assert_in_range(n, 50, 1024);
	assert_int_equal(window_stat(&win, M_PROC_CPU, 100 + 5, &st), -ENODATA);
	assert_int_equal(window_stat(&win, M_PROC_CPU, 100 + 19990, &st), 0);
	assert_true(near(st.delta, 5e-9, 1e-9));
	assert_int_equal(window_stat(&win, M_CPU_USER, ID_HOST, &st), 0);
	assert_true(near(st.delta, 0.49, 1e-9));
	frame_done(&f);
	history_free(h);
}

static void gaps(void **state)
{
	struct run_info run = { 0 };
	struct history *h = history_new(&run, 50);
	struct frame f = { 0 };
	struct window win;
	const struct window_gap *g;
	size_t n;

	(void)state;
	frame_begin(&f, 100, 0);
	frame_gap(&f, M_PSI_MEM_SOME, ID_HOST, GAP_NO_PERMISSION);
	frame_gap(&f, (enum metric_id)9999, ID_HOST, GAP_LOST); /* from another version: dropped */
	assert_int_equal(history_frame(h, &f), 0);
	frame_begin(&f, 200, 0);
	frame_gap(&f, M_PSI_MEM_SOME, ID_HOST, GAP_OVER);
	frame_put(&f, (enum metric_id)9999, ID_HOST, 1);
	assert_int_equal(history_frame(h, &f), 0);
	/* time that does not move on is refused */
	assert_int_equal(history_frame(h, &f), -EINVAL);
	win = history_window(h, 0);
	g = win.ops->gaps(h, &n);
	assert_int_equal(n, 1);
	assert_int_equal(g[0].from_ns, 100);
	assert_int_equal(g[0].to_ns, 200);
	assert_string_equal(window_why_absent(&win, M_PSI_MEM_SOME, ID_HOST), "no permission");
	frame_done(&f);
	history_free(h);
}

static bool collect(const struct point *p, void *arg)
{
	double *sum = arg;

	*sum += p->value;
	return p->t_ns < 400;
}

static void windows_and_points(void **state)
{
	struct run_info run = { .started_mono_ns = 60, .name = "job" };
	struct history *h = history_new(&run, 10);
	struct frame f = { 0 };
	struct window win = history_window(h, 0);
	struct series_stat st;
	double sum = 0;

	(void)state;
	/* nothing yet */
	assert_int_equal(window_stat(&win, M_JOB_CPU, ID_JOB, &st), -ENODATA);
	assert_int_equal(history_last_ns(h), 0);
	for (int i = 1; i <= 6; i++) {
		frame_begin(&f, 100 * i, 0);
		frame_put(&f, M_JOB_PROCESSES, ID_JOB, i);
		frame_put(&f, M_JOB_CPU, ID_JOB, 1000000000ll * i);
		assert_int_equal(history_frame(h, &f), 0);
	}
	/* a run of ours begins at its start, and what it used before the first tick counts */
	win = history_window(h, 0);
	assert_int_equal(win.from_ns, 60);
	assert_int_equal(win.to_ns, 600);
	assert_int_equal(window_stat(&win, M_JOB_CPU, ID_JOB, &st), 0);
	assert_true(near(st.delta, 6, 1e-12));
	/* a part of it */
	win = history_window(h, 250);
	assert_int_equal(win.from_ns, 250);
	assert_int_equal(window_stat(&win, M_JOB_CPU, ID_JOB, &st), 0);
	assert_true(near(st.delta, 4, 1e-12));
	/* points in [200, 600], stopped at 400 */
	assert_int_equal(win.ops->each(h, M_JOB_PROCESSES, ID_JOB, 200, 600, 0, collect, &sum), 0);
	assert_true(sum == 2 + 3 + 4);
	assert_int_equal(win.ops->each(h, M_JOB_RSS, ID_JOB, 0, 600, 0, collect, &sum), -ENODATA);
	history_run(h)->exit_code = 3;
	assert_int_equal(window_run(&win)->exit_code, 3);
	assert_string_equal(window_run(&win)->name, "job");
	frame_done(&f);
	history_free(h);
	history_free(NULL);
}

static bool count_slice(const struct stack_slice *s, void *arg)
{
	int64_t *seen = arg; /* how many, first start, last end */

	if (!seen[0]++)
		seen[1] = s->from_ns;
	seen[2] = s->to_ns;
	return true;
}

/* Slices reach as far back as the ticks do; the book forgets nothing. */
static void test_stacks_are_forgotten(void **state)
{
	struct run_info run = { .started_mono_ns = 1 };
	struct history *h = history_new(&run, 10);
	struct place p = { .function = "f", .file = "a.py", .source = "", .line = 1 };
	struct stack_row row = { .entity = 20, .node = 1, .kind = WAIT_GIL, .count = 1 };
	struct frame f = { 0 };
	struct window w;

	(void)state;
	for (int64_t t = 1; t <= 100; t++) {
		frame_begin(&f, t * 1000, 0);
		frame_place(&f, (uint32_t)t, &p);
		frame_node(&f, (uint32_t)t, &(struct stack_node){ .place = (uint32_t)t });
		frame_node(&f, (uint32_t)t, &(struct stack_node){ .parent = 5000, .place = 1 });
		frame_stack(&f, &row);
		f.stacks_from_ns = t * 1000 - 1000;
		f.stacks_to_ns = t % 2 ? t * 1000 : f.stacks_from_ns; /* every other one */
		assert_int_equal(history_frame(h, &f), 0);
	}
	for (int64_t from = 0; from < 100000; from += 98500) {
		int64_t seen[3] = { 0 };

		w = history_window(h, from);
		assert_int_equal(window_stacks(&w, count_slice, seen), 0);
		assert_int_equal(seen[0], from ? 1 : 4);
		assert_int_equal(seen[1], from ? 98000 : 92000);
		assert_int_equal(seen[2], 99000);
	}
	assert_int_equal(window_book(&w)->places.n, 100);
	assert_int_equal(stack_book_find_node(window_book(&w), 100)->place, 100);
	frame_done(&f);
	history_free(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stacks_are_forgotten),
		cmocka_unit_test(as_the_long_way),
		cmocka_unit_test(adds_up),
		cmocka_unit_test(forgets),
		cmocka_unit_test(gaps),
		cmocka_unit_test(windows_and_points),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

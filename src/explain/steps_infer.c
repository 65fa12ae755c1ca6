/* SPDX-License-Identifier: MIT
 *
 * Steps of a training that says nothing, from what repeats in it: when the thread it waits for wants a CPU,
 * if something else of its process or of its GPUs repeats just so. Looked at twice, at the rate of the
 * samples and a second at a time, so that steps of four samples to some minutes are seen; at most
 * PERIOD_VALUES_MAX values, the latest, so that a day's record costs no more than an hour's.
 *
 * None are told where it might be something else:
 *   - a loop faster than the samples, which seems slow by beating with them: period_alias();
 *   - epochs of a faster loop: then the thread waits often in one period (waits_most);
 *   - a timer: then the thread sleeps, or waits for events, between two times (idle_most).
 */
#include "base/auto.h"
#include "base/clock.h"
#include "explain/scene.h"
#include "explain/steps.h"
#include "explain/steps_period.h"
#include "model/step_usage.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* By how much it has to swing more than a fast loop could, and how much at least, of a core. */
static const double alias_margin = 1.3, swing_least = 0.08;
/* A batch is waited for a few times: its pieces, the GIL, the device. */
static const double waits_most = 30;
/* Of the time the thread was not on a CPU: asleep or idle; that, and reading and writing files. */
static const double idle_most = 0.2, aside_most = 0.5;
/* Of the values: the rest may be missing. Of the window: then its steps are as many as it seems. */
static const double ticks_least = 0.8, covered_least = 0.9;
static const int64_t coarse_ns = NS_PER_S;

/* Values of one series, evenly spaced. */
struct grid {
	const struct window *w;
	int64_t from_ns, step_ns;
	size_t n;
	double *x;
	double most; /* a counter does not grow by more in a second; INFINITY: no such limit */
	/* of the walk */
	struct point before;
	bool counter, any;
};

/* Spreads what a counter grew by from `from` to `to`. */
static void spread(struct grid *g, int64_t from, int64_t to, double growth)
{
	int64_t end = g->from_ns + (int64_t)g->n * g->step_ns;
	int64_t at = from > g->from_ns ? from : g->from_ns;

	if (to <= from || growth <= 0)
		return;
	while (at < to && at < end) {
		size_t i = (size_t)((at - g->from_ns) / g->step_ns);
		int64_t next = g->from_ns + (int64_t)(i + 1) * g->step_ns;

		next = next < to ? next : to;
		g->x[i] +=
		    growth * (double)(next - at) / (double)(to - from) / ((double)g->step_ns / 1e9);
		at = next;
	}
}

/* A gauge keeps its last value to here. */
static void hold(struct grid *g, int64_t to)
{
	int64_t first = (g->before.t_ns - g->from_ns) / g->step_ns;
	int64_t last = (to - g->from_ns) / g->step_ns;

	for (int64_t i = first < 0 ? 0 : first; i < last && i < (int64_t)g->n; i++)
		g->x[i] = g->before.value;
}

static bool take(const struct point *p, void *arg)
{
	struct grid *g = arg;
	int64_t from = g->before.t_ns;

	if (!g->counter) {
		if (g->any)
			hold(g, p->t_ns);
	} else if (g->any && p->t_ns > from) {
		double growth = counter_growth(g->before.value, p->value);

		/* It is written when it changes: behind a pause it stood still until a moment ago, if it
		 * can have grown so quickly. */
		if (p->t_ns - from > g->step_ns * 3 / 2 &&
		    growth <= 1.2 * g->most * (double)g->step_ns / 1e9)
			from = p->t_ns - g->step_ns;
		spread(g, from, p->t_ns, growth);
	}
	g->before = *p;
	g->any = true;
	return true;
}

/* Adds a series to what is there; false: it has no value. */
static bool add(struct grid *g, enum metric_id m, uint32_t entity, double most)
{
	int64_t around = 3 * g->step_ns, end = g->from_ns + (int64_t)g->n * g->step_ns;

	g->any = false;
	g->counter = metrics[m].kind == KIND_COUNTER;
	g->most = most;
	g->w->ops->each(g->w->src, m, entity, g->from_ns - around, end, 0, take, g);
	if (g->any && !g->counter)
		hold(g, end);
	return g->any;
}

static bool fill(struct grid *g, enum metric_id m, uint32_t entity, double most)
{
	memset(g->x, 0, g->n * sizeof(*g->x));
	return add(g, m, entity, most);
}

/* Time in which a thread ran or would have, had there been a CPU: neighbours take away what they like, but not
 * the rhythm. */
static bool fill_ready(struct grid *g, uint32_t thread)
{
	return fill(g, M_THREAD_CPU, thread, 1) && (add(g, M_THREAD_RUN_DELAY, thread, 1) || true);
}

static bool count_tick(const struct point *p, void *arg)
{
	(void)p;
	++*(size_t *)arg;
	return true;
}

/* Is every value of the grid measured, or is most of it thinned, or was the rate lower? */
static bool is_dense(const struct grid *g)
{
	int64_t end = g->from_ns + (int64_t)g->n * g->step_ns;
	enum metric_id tick = step_tick_metric(g->w);
	uint32_t whose = tick == M_HOST_SWITCHES ? ID_HOST : ID_SELF;
	size_t ticks = 0;
	double last;

	g->w->ops->each(g->w->src, tick, whose, g->from_ns, end, 0, count_tick, &ticks);
	if (!ticks && !window_last(g->w, tick, whose, &last))
		return true; /* not recorded: by the rate alone */
	return (double)ticks >= ticks_least * (double)g->n;
}

/* Does anything else repeat like this? */
static bool is_confirmed(struct grid *g, const struct act_thread *t, double length)
{
	static const enum metric_id of_process[] = { M_PROC_READ_CHARS, M_PROC_WRITE_CHARS,
						     M_PROC_READS, M_PROC_WRITES,
						     M_PROC_MINOR_FAULTS };
	const struct entity_table *e = window_entities(g->w);

	if (fill(g, M_THREAD_SLICES, t->id, INFINITY) && period_agrees(g->x, g->n, length))
		return true;

	for (size_t i = 0; i < sizeof(of_process) / sizeof(of_process[0]); i++)
		if (fill(g, of_process[i], t->process, INFINITY) &&
		    period_agrees(g->x, g->n, length))
			return true;
	for (size_t i = 0; i < e->rows.n; i++)
		if (e->rows.v[i].kind == ENTITY_GPU &&
		    step_on_gpu(g->w, t->process, e->rows.v[i].id) &&
		    fill(g, M_GPU_BUSY, e->rows.v[i].id, INFINITY) &&
		    period_agrees(g->x, g->n, length))
			return true;
	return false;
}

/* How often the thread stopped for something in a second. Switches are those of its process, slices its
 * own but with those that the kernel took the CPU away in: the fewer are nearer. */
static double waits_per_second(const struct window *w, const struct act_thread *t)
{
	double own = INFINITY, all = INFINITY, v;

	if (window_delta(w, M_THREAD_SLICES, t->id, &v))
		own = v;
	if (window_delta(w, M_PROC_SWITCHES, t->process, &v))
		all = v;
	return fmin(own, all) / window_seconds(w);
}

/* Between two times it may wait, but for something that is made for it. */
static bool is_at_work(const struct act_thread *t)
{
	double off = t->alive - t->run;
	double idle = t->state[TIME_IDLE], files = t->state[TIME_IO];

	if (!(t->alive > 0) || isnan(t->run) || t->unaccounted > 0.3 * t->alive)
		return false;
	return off < 0.1 * t->alive ||
	       (idle <= idle_most * off && idle + files <= aside_most * off);
}

/* The thread's own CPU time; where it never stops, that of its process: how many cores work on it. */
static bool search(struct grid *g, const struct act_thread *t, struct steps_inferred *ret)
{
	struct window part = { g->w->ops, g->w->src, g->from_ns,
			       g->from_ns + (int64_t)g->n * g->step_ns };
	double cores = NAN, threads = NAN;
	struct period p;

	window_max(g->w, M_JOB_CORES_ALLOWED, ID_JOB, &cores);
	window_max(g->w, M_PROC_THREADS, t->process, &threads);
	for (int whole = 0; whole < 2; whole++) {
		double scale = whole ? fmin(cores, threads) : 1, seconds;

		if (whole && !(cores > 1 && threads > 1))
			break;
		if (!(whole ? fill(g, M_PROC_CPU, t->process, scale) : fill_ready(g, t->id)) ||
		    !period_find(g->x, g->n, &p) || p.swing < swing_least ||
		    p.swing < alias_margin * period_alias(p.usual, scale))
			continue;
		seconds = p.mean * (double)g->step_ns / 1e9;
		if (waits_per_second(&part, t) * seconds > waits_most ||
		    !is_confirmed(g, t, p.usual))
			continue;
		ret->rate_hz = 1 / seconds;
		ret->median_s = p.usual * (double)g->step_ns / 1e9;
		/* What was not looked at may have been otherwise. */
		if (window_seconds(&part) >= covered_least * window_seconds(g->w))
			ret->count = p.cycles;
		return true;
	}
	return false;
}

int steps_infer(const struct scene *s, struct steps_inferred *ret)
{
	const struct activity *a = &s->activity;
	const struct window *w = &s->steady;
	auto_free double *values = NULL;
	double hz = window_run(w)->hz;
	struct series_stat rate;

	*ret = (struct steps_inferred){ .count = NAN, .rate_hz = NAN, .median_s = NAN };
	if (!a->any || a->critical < 0 || !is_at_work(&a->threads.v[a->critical]))
		return 0;
	/* The governor may have lowered it. */
	if (window_stat(w, M_SELF_RATE, ID_SELF, &rate) == 0 && rate.min > 0)
		hz = rate.min;
	if (!(hz > 0) || hz > 1000)
		return 0;
	values = malloc(PERIOD_VALUES_MAX * sizeof(*values));
	if (!values)
		return -ENOMEM;
	for (int coarse = 0; coarse < 2; coarse++) {
		struct grid g = { .w = w,
				  .step_ns = coarse ? coarse_ns : llround(1e9 / hz),
				  .x = values };
		int64_t n = (w->to_ns - w->from_ns) / g.step_ns;

		g.n = (size_t)(n < PERIOD_VALUES_MAX ? n : PERIOD_VALUES_MAX);
		g.from_ns = w->to_ns - (int64_t)g.n * g.step_ns;
		if (g.n < PERIOD_SHORTEST * PERIOD_CYCLES || (coarse && hz <= 1) || !is_dense(&g))
			continue;
		if (search(&g, &a->threads.v[a->critical], ret))
			break;
	}
	return 0;
}

/* SPDX-License-Identifier: MIT */
#include "model/window.h"

#include <errno.h>
#include <string.h>

bool window_delta(const struct window *w, enum metric_id m, uint32_t entity, double *ret)
{
	struct series_stat s;

	if (window_stat(w, m, entity, &s) < 0)
		return false;
	*ret = s.delta;
	return true;
}

bool window_mean(const struct window *w, enum metric_id m, uint32_t entity, double *ret)
{
	struct series_stat s;

	if (window_stat(w, m, entity, &s) < 0)
		return false;
	*ret = s.mean;
	return true;
}

bool window_max(const struct window *w, enum metric_id m, uint32_t entity, double *ret)
{
	struct series_stat s;

	if (window_stat(w, m, entity, &s) < 0)
		return false;
	*ret = s.max;
	return true;
}

bool window_last(const struct window *w, enum metric_id m, uint32_t entity, double *ret)
{
	struct series_stat s;

	if (window_stat(w, m, entity, &s) < 0)
		return false;
	*ret = s.last;
	return true;
}

struct one_of {
	size_t key;
	window_points_fn fn;
	void *arg;
	bool stopped;
};

static bool give_one(const struct point *p, void *arg)
{
	struct one_of *one = arg;

	one->stopped = !one->fn(one->key, p, one->arg);
	return !one->stopped;
}

int window_each_of(const struct window *w, const struct series_key *keys, size_t n, int64_t step_ns,
		   window_points_fn fn, void *arg)
{
	int ret = -ENODATA;

	if (w->ops->each_of)
		return w->ops->each_of(w->src, keys, n, w->from_ns, w->to_ns, step_ns, fn, arg);
	for (size_t i = 0; i < n; i++) {
		struct one_of one = { i, fn, arg, false };
		int r = w->ops->each(w->src, keys[i].metric, keys[i].entity, w->from_ns, w->to_ns,
				     step_ns, give_one, &one);

		if (r < 0 && r != -ENODATA)
			return r;
		if (r == 0)
			ret = 0;
		if (one.stopped)
			break;
	}
	return ret;
}

/* Does a gap noted for one entity speak of another? One without an entity speaks of all; one of the
 * job speaks of its processes and threads. */
static bool gap_covers(const struct window_gap *g, enum metric_id m, uint32_t entity)
{
	enum entity_kind kind = metrics[m].entity;

	if (!g->entity || !entity || g->entity == entity)
		return true;
	return g->entity == ID_JOB && (kind == ENTITY_PROC || kind == ENTITY_THREAD);
}

/* "thread.cpu" and "thread.run_delay" come from one source. When the source itself is missing, one
 * gap without an entity stands for all of it. */
static bool same_source(enum metric_id a, enum metric_id b)
{
	const char *x = metrics[a].name, *y = metrics[b].name;
	size_t n = strcspn(x, ".");

	return metrics[a].entity == metrics[b].entity && strcspn(y, ".") == n &&
	       strncmp(x, y, n) == 0;
}

const char *window_why_absent(const struct window *w, enum metric_id m, uint32_t entity)
{
	size_t n;
	const struct window_gap *gaps = w->ops->gaps(w->src, &n);
	const char *of_source = NULL;

	for (size_t i = n; i-- > 0;) {
		if (gaps[i].why == GAP_OVER || gaps[i].metric == M_NONE ||
		    !gap_covers(&gaps[i], m, entity))
			continue;
		if (gaps[i].metric == m)
			return gap_why_name(gaps[i].why);
		if (!of_source && !gaps[i].entity && same_source(gaps[i].metric, m))
			of_source = gap_why_name(gaps[i].why);
	}
	return of_source ? of_source : "not recorded";
}

bool window_from_zero(const struct entity_table *t, const struct run_info *run, enum metric_id m,
		      uint32_t entity, int64_t from_ns)
{
	enum entity_kind kind = metrics[m].entity;
	const struct entity *e = entity_find(t, entity);
	int64_t first, born;

	if (kind != ENTITY_PROC && kind != ENTITY_THREAD && kind != ENTITY_JOB)
		return false;
	/* Rows are by birth: the first one (the machine) is as old as the first tick. The job
	 * exists always, announced or not. */
	first = t->rows.n ? t->rows.v[0].born_ns : run->started_mono_ns;
	born = e ? e->born_ns : first;
	if (born == first)
		return !run->attached && born >= from_ns;
	return born > from_ns;
}

void stat_begin(struct stat_builder *b, enum metric_id m, bool from_zero)
{
	*b = (struct stat_builder){ .counter = metrics[m].kind == KIND_COUNTER,
				    .from_zero = from_zero };
}

/* The value held since last_t goes into the integral up to t. */
static void hold_until(struct stat_builder *b, int64_t t)
{
	if (!b->any || t <= b->last_t)
		return;
	b->sum += b->stat.last * (double)(t - b->last_t);
	b->covered_ns += t - b->last_t;
	b->last_t = t;
}

static void first_value(struct stat_builder *b, int64_t t, double value)
{
	b->any = true;
	b->last_t = t;
	b->stat.from_ns = t;
	b->stat.first = b->stat.last = b->stat.min = b->stat.max = value;
}

void stat_before(struct stat_builder *b, int64_t from_ns, double value)
{
	first_value(b, from_ns, value);
}

void stat_add(struct stat_builder *b, int64_t t_ns, double value)
{
	b->stat.n++;
	if (!b->any) {
		first_value(b, t_ns, value);
		if (b->counter && b->from_zero)
			b->stat.delta = value;
		return;
	}
	hold_until(b, t_ns);
	if (b->counter)
		b->stat.delta += counter_growth(b->stat.last, value);
	b->stat.last = value;
	if (value < b->stat.min)
		b->stat.min = value;
	if (value > b->stat.max)
		b->stat.max = value;
}

void stat_add_bucket(struct stat_builder *b, int64_t t0_ns, int64_t t1_ns, double min, double max,
		     double last, double growth, double integral)
{
	b->stat.n++;
	if (!b->any) {
		first_value(b, t0_ns, last);
		b->stat.min = min;
		b->stat.max = max;
		if (b->counter && b->from_zero)
			b->stat.delta = last - growth;
	} else {
		hold_until(b, t0_ns);
	}
	b->stat.delta += b->counter ? growth : 0;
	b->sum += integral;
	b->covered_ns += t1_ns - t0_ns;
	b->last_t = t1_ns;
	b->stat.last = last;
	if (min < b->stat.min)
		b->stat.min = min;
	if (max > b->stat.max)
		b->stat.max = max;
}

int stat_finish(struct stat_builder *b, int64_t end_ns, struct series_stat *ret)
{
	if (!b->any)
		return -ENODATA;
	hold_until(b, end_ns);
	b->stat.to_ns = b->last_t;
	b->stat.mean = b->covered_ns ? b->sum / (double)b->covered_ns : b->stat.last;
	if (!b->counter)
		b->stat.delta = b->stat.last - b->stat.first;
	*ret = b->stat;
	return 0;
}

/* SPDX-License-Identifier: MIT */
#include "sink/openmetrics.h"

#include "base/clock.h"
#include "base/map.h"
#include "model/node.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
	BATCH_POINTS = 1 << 20, /* 16 MB: series are read together, as a block has many of them */
	HOLD_MS = 60000,        /* Prometheus forgets a value after five minutes */
};

#define HOLDS METRIC_KIND(ENTITY_GPU)

static const struct series_family run_family = {
	.name = "spotter_run_info",
	.type = SERIES_INFO,
	.unit = "",
	.help = "what is known of a run: its name",
};

enum { STEPS_TOTAL, STEPS_LOSS, STEPS_WAIT, STEP_FAMILIES };

static const struct series_family step_families[STEP_FAMILIES] = {
	[STEPS_TOTAL] = { .name = "spotter_steps_total",
			  .type = SERIES_COUNTER,
			  .unit = "",
			  .help = "training steps done" },
	[STEPS_LOSS] = { .name = "spotter_loss",
			 .type = SERIES_GAUGE,
			 .unit = "",
			 .help = "loss of the last step that had one" },
	[STEPS_WAIT] = { .name = "spotter_data_wait_seconds_total",
			 .type = SERIES_COUNTER,
			 .unit = "seconds",
			 .help = "time of steps spent waiting for data, as the training said" },
};

static struct om_series *begin_series(struct openmetrics *om, const struct series_family *family,
				      enum metric_id metric, uint32_t entity, int32_t rank)
{
	struct om_series *s;

	if (om->n_batch == om->batch.n && !vec_push(&om->batch))
		return NULL;
	s = &om->batch.v[om->n_batch++];
	s->family = family;
	s->metric = metric;
	s->entity = entity;
	s->rank = rank;
	s->points.n = 0;
	return s;
}

/* A series has one value a millisecond, and time only rises. */
static int put_point(struct om_series *s, int64_t ms, double value)
{
	struct om_point *last = s->points.n ? &s->points.v[s->points.n - 1] : NULL, *p;

	if (!isfinite(value) || ms <= 0 || (last && ms < last->ms))
		return 0;
	p = last && ms == last->ms ? last : vec_push(&s->points);
	if (!p)
		return -ENOMEM;
	*p = (struct om_point){ ms, value };
	return 0;
}

/* What holds until the next reading is said again now and then, up to (and without) this time. */
static int hold(struct om_series *s, int64_t until_ms)
{
	int r = 0;

	while (r == 0 && s->points.n && until_ms - s->points.v[s->points.n - 1].ms > HOLD_MS) {
		struct om_point last = s->points.v[s->points.n - 1];

		if (s->points.n >= BATCH_POINTS)
			break; /* a made-up time far away */
		r = put_point(s, last.ms + HOLD_MS, last.value);
	}
	return r;
}

static int64_t ms_of(const struct sink_source *src, int64_t t_ns)
{
	return sink_wall_ns(src->run, t_ns) / NS_PER_MS;
}

static int take_run(struct openmetrics *om, const struct sink_source *src)
{
	struct om_series *s = begin_series(om, &run_family, M_NONE, 0, -1);
	int64_t end = ms_of(src, src->run->ended_mono_ns);
	int r;

	if (!s)
		return -ENOMEM;
	r = put_point(s, ms_of(src, src->run->started_mono_ns), 1);
	if (r == 0)
		r = hold(s, end);
	return r < 0 ? r : put_point(s, end, 1);
}

struct steps_of {
	const struct window_step *v;
	size_t n;
};

static struct steps_of all_steps(const struct sink_source *src)
{
	const struct window *w = src->window;
	struct steps_of s = { 0 };

	if (w && w->ops->steps)
		s.v = w->ops->steps(w->src, &s.n);
	return s;
}

static int by_whom(const void *a, const void *b)
{
	const struct om_step *x = a, *y = b;

	if (x->node != y->node)
		return x->node < y->node ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	if (x->end_ns != y->end_ns)
		return x->end_ns < y->end_ns ? -1 : 1;
	return x->at < y->at ? -1 : x->at > y->at;
}

/* Rank of each process: some say it with a later step only. */
static int find_ranks(struct steps_of s, struct map *ranks)
{
	for (size_t i = 0; i < s.n; i++) {
		uint32_t rank;

		if (s.v[i].rank >= 0 && !map_get(ranks, s.v[i].entity, &rank) &&
		    !map_put(ranks, s.v[i].entity, (uint32_t)s.v[i].rank))
			return -ENOMEM;
	}
	return 0;
}

static int order_steps(struct openmetrics *om, const struct sink_source *src, struct steps_of s)
{
	struct map ranks = { 0 };
	int r = find_ranks(s, &ranks);

	om->order.n = 0;
	for (size_t i = 0; r == 0 && i < s.n && i < UINT32_MAX; i++) {
		const struct entity *e = entity_find(src->entities, s.v[i].entity);
		const struct entity *host = e ? node_host(src->entities, e) : NULL;
		struct om_step *slot = vec_push(&om->order);
		uint32_t rank = 0;

		if (!slot) {
			r = -ENOMEM;
			break;
		}
		*slot = (struct om_step){ .node = host ? host->id : 0,
					  .at = (uint32_t)i,
					  .rank = -1,
					  .end_ns = s.v[i].end_ns };
		if (map_get(&ranks, s.v[i].entity, &rank))
			slot->rank = (int32_t)rank;
	}
	map_done(&ranks);
	if (r == 0 && om->order.n)
		qsort(om->order.v, om->order.n, sizeof(*om->order.v), by_whom);
	return r;
}

/* The value of a family at the end of this step; NAN: none. */
static double step_value(size_t family, const struct window_step *s, uint64_t count, double *sum)
{
	switch (family) {
	case STEPS_TOTAL:
		return (double)count;
	case STEPS_LOSS:
		return s->loss;
	default:
		if (!(s->data_wait >= 0) || !isfinite(s->data_wait))
			return NAN;
		*sum += s->data_wait;
		return *sum;
	}
}

/* One family of one rank of a machine. */
static int take_steps(struct openmetrics *om, const struct sink_source *src)
{
	struct steps_of steps = all_steps(src);
	struct om_step whose;
	struct om_series *s;
	uint64_t count = 0;
	double sum = 0;
	int r = om->family == 0 && om->at == 0 ? order_steps(om, src, steps) : 0;

	if (r < 0)
		return r;
	if (om->at >= om->order.n) {
		om->at = 0;
		if (++om->family < STEP_FAMILIES && om->order.n)
			return 0;
		om->family = 0;
		om->stage = OM_METRICS;
		return 0;
	}
	whose = om->order.v[om->at];
	s = begin_series(om, &step_families[om->family], M_NONE, steps.v[whose.at].entity,
			 whose.rank);
	if (!s)
		return -ENOMEM;
	for (; r == 0 && om->at < om->order.n; om->at++) {
		const struct om_step *o = &om->order.v[om->at];
		const struct window_step *x = &steps.v[o->at];

		if (o->node != whose.node || o->rank != whose.rank)
			break;
		r = put_point(s, ms_of(src, x->end_ns), step_value(om->family, x, ++count, &sum));
	}
	return r;
}

struct reading {
	struct openmetrics *om;
	const struct sink_source *src;
	int error;
};

static bool take_point(size_t key, const struct point *p, void *arg)
{
	struct reading *r = arg;
	struct om_series *s = &r->om->batch.v[key];
	int64_t ms = ms_of(r->src, p->t_ns);

	if (METRIC_KIND(metrics[s->metric].entity) & HOLDS)
		r->error = hold(s, ms);
	if (r->error == 0)
		r->error = put_point(s, ms, p->value);
	return r->error == 0;
}

/* Until its own end, or the run's. */
static int hold_to_the_end(struct om_series *s, const struct sink_source *src)
{
	const struct entity *e = entity_find(src->entities, s->entity);
	int64_t end = src->run->ended_mono_ns;

	if (!(METRIC_KIND(metrics[s->metric].entity) & HOLDS) || !e)
		return 0;
	return hold(s, ms_of(src, e->gone_ns && e->gone_ns < end ? e->gone_ns : end));
}

/* Sums over machines are for people: a database makes its own. */
static bool is_sum(const struct sink_source *src, const struct entity *e)
{
	return (e->id == ID_HOST || e->id == ID_JOB || e->id == ID_SELF) &&
	       node_several(src->entities);
}

/* All series of a family, as far as they go into a batch; where it ended is kept in om. */
static int choose(struct openmetrics *om, const struct sink_source *src)
{
	const struct series_family *f = &om->families.v[om->family];
	uint64_t points = 0;

	for (; om->metric < METRICS; om->metric++, om->at = 0) {
		const struct metric *m = &metrics[om->metric];

		if (strcmp(m->prometheus, f->name) != 0)
			continue;
		for (; om->at < src->entities->rows.n; om->at++) {
			const struct entity *e = &src->entities->rows.v[om->at];
			struct series_stat stat;

			if (e->kind != m->entity || is_sum(src, e) ||
			    window_stat(src->window, m->id, e->id, &stat) < 0)
				continue;
			if (om->n_batch && points + stat.n > BATCH_POINTS)
				return 0;
			if (!begin_series(om, f, m->id, e->id, -1))
				return -ENOMEM;
			points += stat.n;
		}
	}
	om->family++;
	om->metric = 1;
	om->at = 0;
	return 0;
}

static int take_metrics(struct openmetrics *om, const struct sink_source *src)
{
	struct reading reading = { .om = om, .src = src };
	struct series_key *keys;
	int r;

	if (om->family >= om->families.n || !src->window) {
		om->stage = OM_OVER;
		return 0;
	}
	r = choose(om, src);
	if (r < 0 || !om->n_batch)
		return r;
	keys = calloc(om->n_batch, sizeof(*keys));
	if (!keys)
		return -ENOMEM;
	for (size_t i = 0; i < om->n_batch; i++)
		keys[i] = (struct series_key){ om->batch.v[i].metric, om->batch.v[i].entity };
	r = window_each_of(src->window, keys, om->n_batch, 0, take_point, &reading);
	free(keys);
	r = reading.error < 0 ? reading.error : r == -ENODATA ? 0 : r;
	for (size_t i = 0; r == 0 && i < om->n_batch; i++)
		r = hold_to_the_end(&om->batch.v[i], src);
	return r;
}

int om_take(struct openmetrics *om, const struct sink_source *src)
{
	int r = 0;

	om->n_batch = om->series = om->point = 0;
	while (r == 0 && !om->n_batch && om->stage != OM_OVER) {
		if (om->stage == OM_RUN) {
			r = take_run(om, src);
			om->stage = OM_STEPS;
		} else if (om->stage == OM_STEPS) {
			r = take_steps(om, src);
		} else {
			r = take_metrics(om, src);
		}
	}
	return r;
}

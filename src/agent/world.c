/* SPDX-License-Identifier: MIT */
#include "agent/world.h"

#include <errno.h>
#include <math.h>

static uint64_t key_of(enum metric_id m, uint32_t entity)
{
	return (uint64_t)entity << 16 | (uint64_t)m;
}

/* Threads and single CPUs are not for here: there may be thousands. */
static bool is_wanted(enum metric_id m)
{
	switch (metrics[m].entity) {
	case ENTITY_THREAD:
	case ENTITY_CPU:
	case ENTITY_CGROUP:
	case ENTITY_JOB:
		return false;
	default:
		return true;
	}
}

static int put(struct world *w, enum metric_id m, uint32_t entity, int64_t raw)
{
	uint64_t key = key_of(m, entity);
	uint32_t at;

	if (map_get(&w->index, key, &at)) {
		w->raw.v[at] = raw;
		return 0;
	}
	/* Room to give it back is made when it is taken. */
	if (w->unused.n)
		at = w->unused.v[--w->unused.n];
	else if (vec_reserve(&w->unused, w->raw.n + 1) && vec_push(&w->raw))
		at = (uint32_t)w->raw.n - 1;
	else
		return -ENOMEM;
	if (!map_put(&w->index, key, at)) {
		w->unused.v[w->unused.n++] = at;
		return -ENOMEM;
	}
	w->raw.v[at] = raw;
	return 0;
}

static void drop(struct world *w, enum metric_id m, uint32_t entity)
{
	uint64_t key = key_of(m, entity);
	uint32_t at;

	if (!map_get(&w->index, key, &at))
		return;
	map_del(&w->index, key);
	w->unused.v[w->unused.n++] = at;
}

static void drop_all(struct world *w, uint32_t entity, enum entity_kind kind)
{
	for (int m = 1; m < METRICS; m++)
		if (metrics[m].entity == kind)
			drop(w, (enum metric_id)m, entity);
}

int world_frame(struct world *w, const struct frame *f)
{
	int r = 0;

	for (size_t i = 0; i < f->lives.n; i++) {
		const struct life *l = &f->lives.v[i];

		if (l->kind == ENTITY_THREAD || l->kind == ENTITY_CPU)
			continue;
		if (entity_table_apply(&w->entities, f, l) < 0)
			r = -ENOMEM;
		if (l->change == LIFE_GONE)
			drop_all(w, l->id, l->kind);
	}
	for (size_t i = 0; i < f->samples.n; i++) {
		const struct sample *s = &f->samples.v[i];

		if (is_wanted((enum metric_id)s->metric) &&
		    put(w, (enum metric_id)s->metric, s->entity, s->raw) < 0)
			r = -ENOMEM;
	}
	for (size_t i = 0; i < f->gaps.n; i++) {
		const struct gap *g = &f->gaps.v[i];

		if (g->why == GAP_OVER)
			continue;
		/* A GPU whose readings are stale has no reading. */
		if (g->metric == M_GPU_AGE)
			drop_all(w, g->entity, ENTITY_GPU);
		else
			drop(w, (enum metric_id)g->metric, g->entity);
	}
	entity_table_forget(&w->entities, f->mono_ns + 1);
	return r;
}

bool world_raw(const struct world *w, enum metric_id m, uint32_t entity, int64_t *ret)
{
	uint32_t at;

	if (!map_get(&w->index, key_of(m, entity), &at))
		return false;
	*ret = w->raw.v[at];
	return true;
}

double world_value(const struct world *w, enum metric_id m, uint32_t entity)
{
	int64_t raw;

	return world_raw(w, m, entity, &raw) ? metric_value(m, raw) : NAN;
}

void world_done(struct world *w)
{
	entity_table_done(&w->entities);
	map_done(&w->index);
	vec_done(&w->raw);
	vec_done(&w->unused);
}

/* SPDX-License-Identifier: MIT */
#include "record/series.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { KIND_SHIFT = 28 };
#define INDEX_MASK ((1u << KIND_SHIFT) - 1)

void series_done(struct series_set *s)
{
	for (size_t i = 0; i < s->rows.n; i++)
		free(s->rows.v[i].tokens);
	vec_done(&s->rows);
	vec_done(&s->unused);
	map_done(&s->by_id);
	map_done(&s->entities);
	for (int g = 0; g < ENTITY_KINDS; g++) {
		vec_done(&s->groups[g].ticks);
		vec_done(&s->groups[g].touched);
		vec_done(&s->groups[g].members);
	}
	*s = (struct series_set){ 0 };
}

int series_born(struct series_set *s, uint32_t entity, enum entity_kind kind)
{
	uint32_t known = 0;

	(void)map_get(&s->entities, entity, &known);
	return map_put(&s->entities, entity, (uint32_t)kind << KIND_SHIFT | (known & INDEX_MASK))
		   ? 0
		   : -ENOMEM;
}

enum entity_kind series_kind(const struct series_set *s, uint32_t entity)
{
	uint32_t known;

	if (!map_get(&s->entities, entity, &known))
		return ENTITY_NONE;
	return (enum entity_kind)(known >> KIND_SHIFT);
}

enum entity_kind series_gone(struct series_set *s, uint32_t entity, int64_t t_ns)
{
	uint32_t known;

	if (!map_get(&s->entities, entity, &known))
		return ENTITY_NONE;
	for (uint32_t i = known & INDEX_MASK; i; i = s->rows.v[i - 1].sibling) {
		struct series *row = &s->rows.v[i - 1];

		rollup_hold(&row->fine, t_ns, row->value);
		row->gone = true;
	}
	map_del(&s->entities, entity);
	return (enum entity_kind)(known >> KIND_SHIFT);
}

static uint32_t new_row(struct series_set *s)
{
	uint32_t i;

	if (s->unused.n)
		return s->unused.v[--s->unused.n];
	/* Room to give it back is taken now, so that giving back cannot fail. */
	if (s->rows.n >= INDEX_MASK || !vec_reserve(&s->unused, s->rows.n + 1) ||
	    !vec_push(&s->rows))
		return UINT32_MAX;
	i = (uint32_t)(s->rows.n - 1);
	return i;
}

static struct series *add(struct series_set *s, uint64_t id, enum metric_id metric, uint32_t entity)
{
	struct series_group *g = &s->groups[metrics[metric].entity];
	uint32_t known = (uint32_t)metrics[metric].entity << KIND_SHIFT, i;
	uint32_t *member = vec_push(&g->members);

	(void)map_get(&s->entities, entity, &known);
	i = member ? new_row(s) : UINT32_MAX;
	if (i == UINT32_MAX || !map_put(&s->by_id, id, i) ||
	    !map_put(&s->entities, entity, (known & ~INDEX_MASK) | (i + 1))) {
		if (member)
			g->members.n--;
		if (i != UINT32_MAX) {
			map_del(&s->by_id, id);
			s->unused.v[s->unused.n++] = i;
		}
		return NULL;
	}
	*member = i;
	g->unsorted = true;
	s->rows.v[i] = (struct series){ .id = id,
					.group = (uint8_t)metrics[metric].entity,
					.counter = metrics[metric].kind == KIND_COUNTER,
					.tick = -1,
					.cut_tick = -1,
					.sibling = known & INDEX_MASK };
	return &s->rows.v[i];
}

/* Frames come in the same order tick after tick, so the series that followed last time is tried
 * before the map is. */
static struct series *find(struct series_set *s, enum metric_id metric, uint32_t entity)
{
	uint64_t id = (uint64_t)metric << 32 | entity;
	uint32_t guess = s->last ? s->rows.v[s->last - 1].after : 0, i;
	struct series *row;

	if (guess && s->rows.v[guess - 1].id == id) {
		s->last = guess;
		return &s->rows.v[guess - 1];
	}
	row = map_get(&s->by_id, id, &i) ? &s->rows.v[i] : add(s, id, metric, entity);
	if (!row)
		return NULL;
	i = (uint32_t)(row - s->rows.v) + 1;
	if (s->last)
		s->rows.v[s->last - 1].after = i;
	s->last = i;
	return row;
}

static bool reserve(struct series *row)
{
	uint32_t cap = row->cap ? row->cap + row->cap / 2 : 32;
	uint8_t *p;

	if (row->cap - row->bytes >= BLOCK_TOKEN_MAX)
		return true;
	p = realloc(row->tokens, cap);
	if (!p)
		return false;
	row->tokens = p;
	row->cap = cap;
	return true;
}

static bool tick_of(struct series_group *g, int64_t t_ns)
{
	int64_t *t;

	if (g->ticks.n && g->ticks.v[g->ticks.n - 1] == t_ns)
		return true;
	t = vec_push(&g->ticks);
	if (t)
		*t = t_ns;
	return t;
}

int series_put(struct series_set *s, int64_t t_ns, enum metric_id metric, uint32_t entity,
	       int64_t raw)
{
	struct series *row = find(s, metric, entity);
	struct series_group *g;
	bool sparse;
	int32_t tick;
	size_t n;

	if (!row)
		return -ENOMEM;
	raw = series_raw(metric, raw);
	g = &s->groups[row->group];
	sparse = row->group == ENTITY_PROC || row->group == ENTITY_THREAD ||
		 row->group == ENTITY_GPU || row->group == ENTITY_GPU_PROC;
	if (row->gone || (sparse && row->any && row->value == raw))
		return 0;
	if (!reserve(row) || !tick_of(g, t_ns))
		return -ENOMEM;
	tick = (int32_t)g->ticks.n - 1;
	if (tick == row->tick)
		return 0; /* twice in one frame: the first counts */
	if (!row->touched) {
		uint32_t *touched = vec_push(&g->touched);

		if (!touched)
			return -ENOMEM;
		*touched = (uint32_t)(row - s->rows.v);
		row->touched = true;
	}
	n = block_token(row->tokens + row->bytes, (uint32_t)(tick - row->tick),
			row->any ? row->value : 0, raw);
	row->bytes += (uint32_t)n;
	g->bytes += n;
	g->samples++;
	if (!row->any)
		rollup_first(&row->fine, t_ns, raw);
	else if (row->value != raw)
		rollup_change(&row->fine, t_ns, row->value, raw, row->counter);
	row->tick = tick;
	row->value = raw;
	row->any = true;
	return 0;
}

int series_cut(struct series_set *s, enum entity_kind kind, struct block_codec *c,
	       struct series_block *ret)
{
	struct series_group *g = &s->groups[kind];
	const int64_t *ticks;
	size_t n = g->ticks.n - g->cut;
	int r;

	*ret = (struct series_block){ .ticks = n, .samples = g->samples - g->cut_samples };
	if (!g->touched.n)
		return 0;
	ticks = g->ticks.v + g->cut;
	ret->t0_ns = ticks[0];
	ret->t1_ns = ticks[n - 1];
	block_begin(c, ticks, n);
	for (size_t i = 0; i < g->touched.n; i++) {
		const struct series *row = &s->rows.v[g->touched.v[i]];

		block_put(c,
			  &(struct block_head){ .id = row->id,
						.back = (uint32_t)((int32_t)g->cut - row->cut_tick),
						.held = row->cut_held,
						.base = row->cut_value },
			  row->tokens + row->cut, row->bytes - row->cut);
	}
	r = block_end(c, &ret->blob, &ret->n);
	for (size_t i = 0; i < g->touched.n; i++) {
		struct series *row = &s->rows.v[g->touched.v[i]];

		row->cut = row->bytes;
		row->cut_tick = row->tick;
		row->cut_value = row->value;
		row->cut_held = true;
		row->touched = false;
	}
	g->touched.n = 0;
	g->cut = g->ticks.n;
	g->cut_samples = g->samples;
	return r;
}

static int by_id(const void *a, const void *b, void *arg)
{
	const struct series *rows = arg;
	uint64_t x = rows[*(const uint32_t *)a].id, y = rows[*(const uint32_t *)b].id;

	return x < y ? -1 : x > y;
}

/* In order of metric, then entity: like beside like packs best. */
static void sort_members(struct series_set *s, struct series_group *g)
{
	if (!g->unsorted)
		return;
	qsort_r(g->members.v, g->members.n, sizeof(*g->members.v), by_id, s->rows.v);
	g->unsorted = false;
}

int series_slot(struct series_set *s, enum entity_kind kind, struct block_codec *c,
		struct series_block *ret)
{
	struct series_group *g = &s->groups[kind];

	*ret = (struct series_block){ .ticks = g->ticks.n, .samples = g->samples };
	if (!g->ticks.n)
		return 0;
	ret->t0_ns = g->ticks.v[0];
	ret->t1_ns = g->ticks.v[g->ticks.n - 1];
	sort_members(s, g);
	block_begin(c, g->ticks.v, g->ticks.n);
	for (size_t i = 0; i < g->members.n; i++) {
		const struct series *row = &s->rows.v[g->members.v[i]];

		if (!row->bytes)
			continue;
		block_put(c,
			  &(struct block_head){
			      .id = row->id, .back = 1, .held = row->held, .base = row->base },
			  row->tokens, row->bytes);
	}
	return block_end(c, &ret->blob, &ret->n);
}

bool series_full(const struct series_set *s)
{
	for (int g = 0; g < ENTITY_KINDS; g++)
		if (s->groups[g].bytes > SERIES_SLOT_BYTES ||
		    s->groups[g].ticks.n > SERIES_SLOT_TICKS)
			return true;
	return false;
}

static void release(struct series_set *s, uint32_t i)
{
	struct series *row = &s->rows.v[i];

	map_del(&s->by_id, row->id);
	free(row->tokens);
	*row = (struct series){ .id = UINT64_MAX };
	s->unused.v[s->unused.n++] = i;
}

void series_rotate(struct series_set *s)
{
	for (int k = 0; k < ENTITY_KINDS; k++) {
		struct series_group *g = &s->groups[k];
		size_t kept = 0;

		for (size_t i = 0; i < g->members.n; i++) {
			uint32_t at = g->members.v[i];
			struct series *row = &s->rows.v[at];

			if (row->settled) {
				release(s, at);
				continue;
			}
			g->members.v[kept++] = at;
			row->bytes = row->cut = 0;
			row->tick = row->cut_tick = -1;
			row->held = row->cut_held = row->any;
			row->base = row->cut_value = row->value;
			row->touched = false;
		}
		g->members.n = kept;
		g->ticks.n = g->touched.n = g->cut = g->bytes = 0;
		g->samples = g->cut_samples = 0;
	}
	s->last = 0;
}

/* Blocks of roll-ups have one tick, the end of the bucket. */
static int end_rollups(struct block_codec *c, int64_t t0_ns, int64_t end_ns, uint64_t n,
		       struct series_block *ret)
{
	*ret = (struct series_block){ .t0_ns = t0_ns, .t1_ns = end_ns, .ticks = 1, .samples = n };
	return n ? block_end(c, &ret->blob, &ret->n) : 0;
}

int series_fine(struct series_set *s, enum entity_kind kind, int64_t end_ns, struct block_codec *c,
		struct series_block *ret)
{
	struct series_group *g = &s->groups[kind];
	int64_t t0_ns = end_ns - ROLLUP_FINE_NS;
	uint64_t n = 0;

	block_begin(c, &end_ns, 1);
	for (size_t i = 0; i < g->members.n; i++) {
		struct series *row = &s->rows.v[g->members.v[i]];

		if (!row->any || row->settled)
			continue;
		if (!row->gone)
			rollup_hold(&row->fine, end_ns, row->value);
		if (row->fine.changed || row->fine.fresh) {
			rollup_put(c, row->id, &row->fine, t0_ns, row->value, row->counter);
			n++;
		}
		rollup_fold(&row->coarse, &row->fine);
		row->settled = row->gone;
		rollup_open(&row->fine, end_ns, row->value);
	}
	return end_rollups(c, t0_ns, end_ns, n, ret);
}

int series_coarse(struct series_set *s, enum entity_kind kind, int64_t end_ns, bool only_gone,
		  struct block_codec *c, struct series_block *ret)
{
	struct series_group *g = &s->groups[kind];
	int64_t t0_ns = end_ns - ROLLUP_COARSE_NS;
	uint64_t n = 0;

	block_begin(c, &end_ns, 1);
	for (size_t i = 0; i < g->members.n; i++) {
		struct series *row = &s->rows.v[g->members.v[i]];

		if (!row->coarse.any || (only_gone && !row->settled))
			continue;
		if (row->coarse.changed || row->coarse.fresh) {
			rollup_put(c, row->id, &row->coarse, t0_ns, row->value, row->counter);
			n++;
		}
		row->coarse = (struct rollup){ 0 };
	}
	return end_rollups(c, t0_ns, end_ns, n, ret);
}

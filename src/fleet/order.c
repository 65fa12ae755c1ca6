/* SPDX-License-Identifier: MIT
 *
 * A fleet put in order: whose ranks and GPUs are where, and what of it is there now.
 */
#include "fleet/fleet.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

bool fleet_rank_live(const struct fleet *f, const struct fleet_rank *r)
{
	const struct fleet_place *p = fleet_place_of(f, r->run, r->node);

	return !f->runs.v[r->run].here || (p && isfinite(p->here));
}

double fleet_ledger_of(const struct fleet *f, const struct fleet_rank *r, enum time_state s,
		       bool lately)
{
	const struct fleet_ledger *l;

	if (r->ledger_from == FLEET_NONE)
		return NAN;
	l = &f->ledgers.v[r->ledger_from + (uint32_t)s];
	return lately ? l->lately : l->seconds;
}

double fleet_seen_s(const struct fleet *f, const struct fleet_run *r)
{
	double lived = f->now_s - r->start_s;

	/* Clocks differ: one that started in the future has been there for the whole of it. */
	return isfinite(lived) && lived > 0 && lived < f->window_s ? lived : f->window_s;
}

static int by_rank(const void *a, const void *b, void *arg)
{
	const struct fleet *f = arg;
	const struct fleet_rank *x = &f->ranks.v[*(const uint32_t *)a];
	const struct fleet_rank *y = &f->ranks.v[*(const uint32_t *)b];

	if (x->run != y->run)
		return x->run < y->run ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return (x->node > y->node) - (x->node < y->node);
}

static int by_gpu(const void *a, const void *b, void *arg)
{
	const struct fleet *f = arg;
	const struct fleet_hold *x = &f->holds.v[*(const uint32_t *)a];
	const struct fleet_hold *y = &f->holds.v[*(const uint32_t *)b];
	uint32_t run_x = f->ranks.v[x->rank].run, run_y = f->ranks.v[y->rank].run;

	if (run_x != run_y)
		return run_x < run_y ? -1 : 1;
	return (x->gpu > y->gpu) - (x->gpu < y->gpu);
}

static uint32_t *numbers(size_t n)
{
	uint32_t *v = malloc((n ? n : 1) * sizeof(*v));

	for (size_t i = 0; v && i < n; i++)
		v[i] = (uint32_t)i;
	return v;
}

static void count_gpus(struct fleet *f)
{
	uint32_t last = FLEET_NONE, last_run = FLEET_NONE;

	for (size_t i = 0; i < f->places.n; i++)
		f->places.v[i].gpus = 0;
	for (size_t i = 0; i < f->holds.n; i++) {
		const struct fleet_hold *h = &f->holds.v[f->hold_order[i]];
		const struct fleet_rank *r = &f->ranks.v[h->rank];
		uint32_t at;

		f->runs.v[r->run].holds++;
		if (f->runs.v[r->run].holds == 1)
			f->runs.v[r->run].hold_from = i;
		if ((h->gpu == last && r->run == last_run) || !fleet_rank_live(f, r))
			continue;
		last = h->gpu;
		last_run = r->run;
		if (map_get(&f->place_map, (uint64_t)r->run << 32 | r->node, &at))
			f->places.v[at].gpus++;
	}
}

static void count_places(struct fleet *f)
{
	for (size_t i = 0; i < f->places.n; i++) {
		const struct fleet_place *p = &f->places.v[i];
		struct fleet_run *r = &f->runs.v[p->run];

		if (r->here && !isfinite(p->here))
			continue;
		r->nodes++;
		r->gpus += p->gpus;
		r->up = r->up || (r->here ? p->here : p->up) > 0;
	}
}

int fleet_order(struct fleet *f)
{
	free(f->rank_order);
	free(f->hold_order);
	f->rank_order = numbers(f->ranks.n);
	f->hold_order = numbers(f->holds.n);
	if (!f->rank_order || !f->hold_order)
		return -ENOMEM;
	qsort_r(f->rank_order, f->ranks.n, sizeof(uint32_t), by_rank, f);
	qsort_r(f->hold_order, f->holds.n, sizeof(uint32_t), by_gpu, f);
	for (size_t i = 0; i < f->runs.n; i++) {
		struct fleet_run *r = &f->runs.v[i];

		r->rank_from = r->ranks = r->hold_from = r->holds = 0;
		r->nodes = r->gpus = 0;
		r->here = r->up = false;
	}
	for (size_t i = 0; i < f->places.n; i++)
		if (isfinite(f->places.v[i].here))
			f->runs.v[f->places.v[i].run].here = true;
	for (size_t i = 0; i < f->ranks.n; i++) {
		struct fleet_run *r = &f->runs.v[f->ranks.v[f->rank_order[i]].run];

		if (!r->ranks++)
			r->rank_from = i;
	}
	count_gpus(f);
	count_places(f);
	return 0;
}

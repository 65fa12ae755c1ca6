/* SPDX-License-Identifier: MIT
 *
 * What nobody gets anything for: GPUs that are held and do nothing, and what verdicts say is lost.
 */
#include "base/text.h"
#include "explain/cause.h"
#include "fleet/judge.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A GPU that was never busier is idle; a context alone takes memory, and some drivers round up. */
#define IDLE_BUSY  0.01
#define IDLE_S     300.0
#define HELD_LEAST 1e6

static int judge_idle(const struct fleet *f, struct fleet_judged *j, struct fleet_judged_run *run)
{
	const struct fleet_run *r = &f->runs.v[run->run];
	uint32_t last = FLEET_NONE;

	/* Those of a hung run are lost already; one that has just begun is loading. */
	if (run->state != FLEET_RUNNING || run->seen_s < fmin(IDLE_S, f->window_s))
		return 0;
	for (size_t i = 0; i < r->holds; i++) {
		const struct fleet_hold *h = &f->holds.v[f->hold_order[r->hold_from + i]];
		const struct fleet_gpu *g = &f->gpus.v[h->gpu];
		struct fleet_idle *idle;

		if (h->gpu == last || !(h->memory >= HELD_LEAST) || !(g->busy_max < IDLE_BUSY) ||
		    !fleet_rank_live(f, &f->ranks.v[h->rank]))
			continue;
		last = h->gpu;
		idle = vec_push(&j->idle);
		if (!idle)
			return -ENOMEM;
		*idle = (struct fleet_idle){ .run = run->run,
					     .rank = h->rank,
					     .gpu = h->gpu,
					     .memory = h->memory,
					     .gpu_hours = run->seen_s / 3600 };
		run->idle_gpus++;
		run->idle_gpu_hours += idle->gpu_hours;
	}
	return 0;
}

static int by_cause(const void *a, const void *b, void *arg)
{
	const struct fleet *f = arg;
	const struct fleet_verdict *x = &f->verdicts.v[*(const uint32_t *)a];
	const struct fleet_verdict *y = &f->verdicts.v[*(const uint32_t *)b];
	int c = strcmp(x->cause, y->cause);

	return c ? c : (x->run > y->run) - (x->run < y->run);
}

static int by_hours(const void *a, const void *b)
{
	const struct fleet_waste *x = a, *y = b;
	double c = isfinite(x->gpu_hours) ? x->gpu_hours : -1;
	double d = isfinite(y->gpu_hours) ? y->gpu_hours : -1;

	if (c != d)
		return c < d ? 1 : -1;
	return strcmp(x->cause, y->cause);
}

/* A cost is the share of wall time that goes once the cause is gone: 1 - 1/gain. */
static void add_waste(const struct fleet *f, struct fleet_waste *w, const struct fleet_verdict *v,
		      bool new_run)
{
	const struct fleet_place *p = fleet_place_of(f, v->run, v->node);

	w->nodes++;
	w->runs += new_run;
	if (p && p->gpus) {
		double hours = (double)p->gpus * fleet_seen_s(f, &f->runs.v[v->run]) / 3600;

		w->gpu_hours = (isfinite(w->gpu_hours) ? w->gpu_hours : 0) + v->cost * hours;
	}
	if (!(v->cost <= w->worst_cost)) {
		w->worst_cost = v->cost;
		w->worst_run = v->run;
		w->confidence = v->confidence;
	}
}

static bool counts(const struct fleet *f, const struct fleet_verdict *v)
{
	const struct fleet_place *p = fleet_place_of(f, v->run, v->node);

	return v->cost > 0 && v->cost <= 1 && p && p->here > 0;
}

static int judge_waste(const struct fleet *f, struct fleet_judged *j)
{
	uint32_t *order = malloc((f->verdicts.n + 1) * sizeof(*order));
	struct fleet_waste *w = NULL;
	uint32_t last_run = FLEET_NONE;

	if (!order)
		return -ENOMEM;
	for (size_t i = 0; i < f->verdicts.n; i++)
		order[i] = (uint32_t)i;
	qsort_r(order, f->verdicts.n, sizeof(*order), by_cause, (void *)(uintptr_t)f);
	for (size_t i = 0; i < f->verdicts.n; i++) {
		const struct fleet_verdict *v = &f->verdicts.v[order[i]];

		if (!counts(f, v))
			continue;
		if (!w || strcmp(w->cause, v->cause) != 0) {
			w = vec_push(&j->waste);
			if (!w)
				break;
			*w = (struct fleet_waste){ .gpu_hours = NAN,
						   .worst_cost = NAN,
						   .confidence = NAN };
			text_copy(w->cause, sizeof(w->cause), v->cause);
			last_run = FLEET_NONE;
		}
		add_waste(f, w, v, v->run != last_run);
		last_run = v->run;
	}
	free(order);
	if (j->waste.n)
		qsort(j->waste.v, j->waste.n, sizeof(*j->waste.v), by_hours);
	return j->waste.n && !w ? -ENOMEM : 0;
}

int judge_losses(const struct fleet *f, struct fleet_judged *j)
{
	for (size_t i = 0; i < j->runs.n; i++)
		if (judge_idle(f, j, &j->runs.v[i]) < 0)
			return -ENOMEM;
	return judge_waste(f, j);
}

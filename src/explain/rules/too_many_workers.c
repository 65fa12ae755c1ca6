/* SPDX-License-Identifier: MIT
 *
 * too_many_workers: more loader workers than cores; they and the training stand in each other's way.
 *
 * Not to be taken for it: a quota (cpu_quota), other programs on the cores (cpu_neighbour), pools of threads
 * inside of the workers (thread_oversubscription), as many workers as there are cores to keep them busy
 * (heavy_preprocessing): fewer would not be faster there unless the training itself is put off.
 *
 * Gain: what the training waits for a CPU, less what the fewer workers then need: at most its own delay.
 */
#include "explain/loading.h"

#include "base/num.h"
#include "explain/pipeline.h"

#include <math.h>
#include <stdio.h>

static const double queued_least = 0.2; /* of the workers' time */
static const double delay_least = 0.02; /* of the training's */
static const double wait_least = 0.05;  /* the same, for data */
static const double others_most = 0.5;  /* cores */
static const double pool_most = 0.5;    /* of the ready threads are those of pools */

/* Fewest workers that still use the cores the training leaves. */
static int workers_for(const struct facts *f)
{
	double cores = fact_or(f, FACT_CORES_ALLOWED, 1), run = fact_or(f, FACT_TIME_RUNNING, 0);

	return fact_whole(fmax(1, floor(cores - run + 0.5)));
}

static void say(struct finding *x, const struct facts *f, int fewer)
{
	double now = round(f->v[FACT_LOADER_WORKERS].value);
	char a[24], b[24];

	snprintf(x->title, sizeof(x->title),
		 "%.0f loader workers for %s cores: they and the training wait for a CPU", now,
		 num_cores(f->v[FACT_CORES_ALLOWED].value, a, sizeof(a)));
	rule_because(x, f, FACT_LOADER_QUEUED,
		     "the workers are ready and without a CPU %s of their time",
		     num_percent(f->v[FACT_LOADER_QUEUED].value, a, sizeof(a)));
	rule_because(x, f, FACT_TIME_QUEUED, "%s too, %s of its time", loading_thread(f),
		     num_percent(f->v[FACT_TIME_QUEUED].value, b, sizeof(b)));
	rule_because(x, f, FACT_CORES_ALLOWED, "the job may use %s cores",
		     num_cores(f->v[FACT_CORES_ALLOWED].value, a, sizeof(a)));
	loading_where_made(x, f);
	loading_fix_workers(x, f, fewer, false);
}

static enum answer check(const struct facts *f, struct opinion *o)
{
	struct finding *x = &o->finding;
	double allowed = fact_or(f, FACT_CORES_ALLOWED, INFINITY), delay;
	enum answer a = rule_at_least(f, FACT_LOADER_WORKERS, fmax(2, allowed + 0.5), o);
	bool awaited;
	int fewer;

	if (!f->v[FACT_CORES_ALLOWED].known)
		return rule_at_least(f, FACT_CORES_ALLOWED, 0, o);
	a = answer_and(a, rule_at_least(f, FACT_LOADER_QUEUED, queued_least, o));
	a = answer_and(a, rule_at_least(f, FACT_TIME_QUEUED, delay_least, o));
	a = answer_and(a, answer_not(rule_at_least(f, FACT_CORES_OTHERS, others_most, o)));
	a = answer_and(a, answer_not(rule_at_least(f, FACT_QUOTA_LOST, 0.05, o)));
	a = answer_and(a, answer_not(rule_at_least(f, FACT_POOL_SHARE, pool_most, o)));
	if (a == ANSWER_YES)
		a = loading_is_for_training(f, o);
	if (a != ANSWER_YES)
		return a;
	fewer = workers_for(f);
	if (fewer >= f->v[FACT_LOADER_WORKERS].value)
		return ANSWER_NO;
	say(x, f, fewer);
	delay = f->v[FACT_TIME_QUEUED].value;
	/* Who never waits for what they make loses nothing by fewer of them. */
	awaited = fact_or(f, FACT_TIME_DATA_WAIT, 0) >= wait_least;
	rule_gain_of_time(
	    x, fmax(1 - delay, loading_gpu_floor(f, LOADING_BEST)),
	    fmax(1 - (awaited ? 0.5 : 0.85) * delay, loading_gpu_floor(f, LOADING_LIKELY)),
	    awaited ? 1 : 1 - 0.5 * delay);
	snprintf(x->then, sizeof(x->then), "%s", "the cores it may use");
	x->confidence = 0.6;
	return ANSWER_YES;
}

const struct rule too_many_workers_rule = { .cause = "too_many_workers",
					    .needs_s = 5,
					    .check = check };

/* SPDX-License-Identifier: MIT
 *
 * uneven_samples: the training waits for data while some of its workers wait for work: batches are taken in
 * order, and one that takes long holds up those that are ready behind it.
 *
 * Not to be taken for it: a thread that pins the batches and does not keep up (pin_bound), workers that wait
 * because nobody asks for more (no wait on the other side), workers that wait for storage.
 *
 * Gain: what the loader would give if the same work came in even portions, or were taken as it is ready: the
 * what-if of pipeline.h. How much batches differ is what makes the what-if of now as slow as it is. At best the large ones
 * are made as cheap as the others (cut, cached, left out), and there is less work as well.
 */
#include "explain/loading.h"

#include "base/num.h"
#include "explain/pipeline.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const double wait_least = 0.05, idle_least = 0.10, workers_least = 1.5;
static const double prefetch_most = 32; /* batches of each worker: they are in memory */
static const double pin_most = 0.6, storage_most = 0.5;

/* Standard deviation of a batch's cost, of its mean: no data set has more. And how near to what really happens
 * (a step of 1) the what-if then has to come. */
static const double spread_most = 3, explained_least = 0.93;
/* Where most of the waiting is in few steps, few batches are large: one in twenty or in seven, say, and the rest alike. */
static const struct {
	double share, spread_most;
} rare[] = { { 0.05, 4.5 }, { 0.15, 2.4 } };
static const double rare_wait_least = 0.5;

static bool is_own_pool(const struct facts *f)
{
	const struct fact *w = &f->v[FACT_LOADER_FRAMEWORK];

	return w->known && (w->value < 1 || strcmp(w->text, "pool") == 0);
}

static bool take(const struct facts *f, enum loading_case c, struct pipeline *p)
{
	if (!loading_pipeline(f, c, p))
		return false;
	p->cv = spread_most;
	/* a pool of the program's own may have no more ordered than it works on */
	if (!f->v[FACT_LOADER_PREFETCH].known && is_own_pool(f) &&
	    pipeline_step(p) < explained_least)
		p->prefetch = 1;
	for (size_t i = 0; i < sizeof(rare) / sizeof(rare[0]) &&
			   fact_or(f, FACT_LOADER_WAIT_RARE, 0) >= rare_wait_least &&
			   pipeline_step(p) < explained_least;
	     i++) {
		p->rare = rare[i].share;
		p->cv = rare[i].spread_most;
	}
	return true;
}

/* Could batches that differ make the training wait as it does? Workers that are idle nearly always cannot:
 * then it is the handing over, or a pause behind which all begins anew. */
static enum answer explains(const struct facts *f, struct opinion *o)
{
	struct pipeline p;
	double step = take(f, LOADING_LIKELY, &p) ? pipeline_step(&p) : (double)NAN;

	if (!isfinite(step))
		return rule_cannot_tell(o, "too little is known of the loading to play it through");
	return step >= explained_least ? ANSWER_YES : ANSWER_NO;
}

/* The spread with which the what-if takes as long as it really does: 1. */
static double spread_of_now(struct pipeline p)
{
	double low = 0, high = p.cv;

	for (int i = 0; i < 8; i++) {
		p.cv = (low + high) / 2;
		if (pipeline_step(&p) < 1)
			low = p.cv;
		else
			high = p.cv;
	}
	return (low + high) / 2;
}

/* What most batches cost, of the mean. */
static double usual(const struct pipeline *p)
{
	double odds;

	if (!(p->rare > 0 && p->rare < 1))
		return 1 / sqrt(1 + p->cv * p->cv); /* the median of a lognormal */
	odds = sqrt(p->rare / (1 - p->rare));
	return fmax(0, 1 - fmin(p->cv, 1 / odds) * odds);
}

static double played(const struct facts *f, enum loading_case c)
{
	double now, after;
	struct pipeline p;

	if (!take(f, c, &p))
		return 1;
	p.cv = spread_of_now(p);
	now = pipeline_step(&p);
	switch (c) {
	case LOADING_BEST:
		p.make_cpu *= usual(&p);
		p.make_wait *= usual(&p);
		p.cv = 0.05;
		break;
	case LOADING_LIKELY:
		p.any_order = true;
		break;
	case LOADING_WORST:
		p.prefetch *= 2;
		break;
	}
	after = pipeline_step(&p);
	return loading_played(f, c, now, after);
}

/* Which of its ways somebody takes nobody knows: nearer to the better one were four programs of five. */
static const double towards_best = 2.0 / 3;

static double then(const struct facts *f, enum loading_case c)
{
	double left = played(f, c);

	if (c != LOADING_LIKELY)
		return left;
	return pow(left, 1 - towards_best) *
	       pow(fmin(left, fmax(played(f, LOADING_BEST), loading_gpu_floor(f, c))),
		   towards_best);
}

static void say(struct finding *x, const struct facts *f)
{
	double workers = round(f->v[FACT_LOADER_WORKERS].value);
	double ahead = fact_or(f, FACT_LOADER_PREFETCH, 2);
	char a[24], b[24];

	snprintf(x->title, sizeof(x->title),
		 "some batches take much longer: %s waits %s of its time while workers are idle",
		 loading_program(f), num_percent(f->v[FACT_TIME_DATA_WAIT].value, a, sizeof(a)));
	loading_because_held_up(x, f);
	rule_because(x, f, FACT_LOADER_IDLE,
		     "its %.0f workers have no work %s of the time: what they made waits behind a "
		     "slower batch",
		     workers, num_percent(f->v[FACT_LOADER_IDLE].value, a, sizeof(a)));
	rule_because(x, f, FACT_LOADER_BUSY, "and are on a CPU %s",
		     num_percent(fact_or(f, FACT_LOADER_BUSY, 0), b, sizeof(b)));
	if (fact_or(f, FACT_LOADER_WAIT_RARE, 0) >= rare_wait_least)
		rule_because(x, f, FACT_LOADER_WAIT_RARE, "%s of the waiting is in few steps",
			     num_percent(f->v[FACT_LOADER_WAIT_RARE].value, a, sizeof(a)));
	rule_because(x, f, FACT_LOADER_PREFETCH, "prefetch_factor is %.0f", ahead);
	loading_because_place(x, f, "most of their CPU time is");
	loading_where_made(x, f);
	snprintf(x->fix, sizeof(x->fix),
		 "order more batches ahead, take them as they are ready where order does not "
		 "matter, or put samples of "
		 "like size into a batch");
	/* a pool of the program's own has no such setting: what it orders ahead is its own code */
	if (is_own_pool(f))
		snprintf(
		    x->edit, sizeof(x->edit),
		    "submit %.0f tasks ahead instead of one for each worker, or take them with "
		    "concurrent.futures.as_completed",
		    4 * fmax(1, workers));
	else if (ahead < prefetch_most)
		snprintf(x->edit, sizeof(x->edit),
			 "DataLoader(..., prefetch_factor=%.0f)  # torch 2.7 and later: "
			 "in_order=False",
			 fmin(4 * ahead, prefetch_most));
	else
		snprintf(x->edit, sizeof(x->edit),
			 "DataLoader(..., in_order=False)  # torch 2.7 and later");
}

static enum answer check(const struct facts *f, struct opinion *o)
{
	struct finding *x = &o->finding;
	enum answer a =
	    rule_at_least(f, FACT_TIME_DATA_WAIT, wait_least + fact_or(f, FACT_TIME_TAKING, 0), o);

	a = answer_and(a, answer_not(rule_at_least(f, FACT_GPU_BUSY, loading_gpu_busy, o)));
	a = answer_and(a, answer_and(rule_at_least(f, FACT_LOADER_WORKERS, workers_least, o),
				     rule_at_least(f, FACT_LOADER_IDLE, idle_least, o)));
	a = answer_and(a, answer_not(rule_at_least(f, FACT_LOADER_STORAGE, storage_most, o)));
	a = answer_and(a, answer_not(rule_at_least(f, FACT_PIN_BUSY, pin_most, o)));
	if (a == ANSWER_YES)
		a = answer_and(rule_at_least(f, FACT_LOADER_BUSY, 0, o),
			       loading_is_for_training(f, o));
	/* with new workers again and again it is their first batches that take long */
	if (a == ANSWER_YES && loading_restarts(f))
		return ANSWER_NO;
	if (a == ANSWER_YES)
		a = explains(f, o);
	if (a != ANSWER_YES)
		return a;
	say(x, f);
	rule_gain_of_time(x, then(f, LOADING_BEST), then(f, LOADING_LIKELY),
			  then(f, LOADING_WORST));
	rule_gain_drifts(x, loading_cpu_part(f));
	snprintf(x->then, sizeof(x->then), "%s", loading_then(f, 1 / x->speedup, 0, "the loading"));
	x->confidence = 0.65;
	return ANSWER_YES;
}

const struct rule uneven_samples_rule = { .cause = "uneven_samples", .needs_s = 5, .check = check };

/* SPDX-License-Identifier: MIT
 *
 * worker_restart: the loader's workers are ended and started anew with each epoch, and the training waits.
 *
 * Not to be taken for it: workers that were started once, at the beginning (before the steady window), and
 * other programs the training starts.
 *
 * Or, where the workers are processes that begin from nothing (spawn): there are always new ones, they spend
 * much of their time importing, and the training waits meanwhile.
 *
 * Gain: the share of time spent starting and ending them; the first batches of an epoch, which nobody made
 * ahead, come on top.
 */
#include "explain/stall.h"

#include "base/num.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct stall stall = {
	.share = FACT_DOING_START_WORKERS,
	.least = 0.02,
	.title = "the loader's workers are started anew each epoch",
	.what = "starting and ending workers",
	.fix = "keep the workers from one epoch to the next",
	.edit = "DataLoader(..., persistent_workers=True)",
	.little = 0.5,
	.likely = 1,
	.much = 1,
	.confidence = 0.8,
	.pauses = true,
	.repeats = true,
};

/* Times new workers came for those there are at a time: the first were needed. */
static const double generations_least = 3, brief_least = 10;
static const double plain_least = 0.3; /* shares, as below, from which on it is so in any program */
static const double idle_least = 0.3;  /* of the workers' time, without work */
static const double starting_least = 0.1,
		    wait_least = 0.05; /* of the workers' time, of the training's */

static bool is_pool(const struct facts *f)
{
	return strcmp(f->v[FACT_LOADER_FRAMEWORK].text, "pool") == 0;
}

/* A framework's loader starts its workers where the loop over it begins. */
static void where(struct finding *x, const struct facts *f)
{
	if (f->v[FACT_DOING_START_WORKERS].place)
		rule_where(x, f, FACT_DOING_START_WORKERS);
	else
		rule_where(x, f, f->v[FACT_LOADER_LINE].place ? FACT_LOADER_LINE : FACT_LOAD_PLACE);
}

static void fix_pool(struct finding *x, const struct facts *f)
{
	if (!is_pool(f))
		return;
	snprintf(x->fix, sizeof(x->fix),
		 "start the pool once, before the loop over epochs, and use it in all of them");
	snprintf(x->edit, sizeof(x->edit), "pool = multiprocessing.Pool(N)  # once");
}

static void say(struct finding *x, const struct facts *f)
{
	char a[24];

	where(x, f);
	snprintf(x->title, sizeof(x->title),
		 "workers are started anew again and again, and import for %s of their time",
		 num_percent(f->v[FACT_LOADER_STARTING].value, a, sizeof(a)));
	rule_because(x, f, FACT_LOADER_GENERATIONS, "each worker was replaced %.0f times",
		     f->v[FACT_LOADER_GENERATIONS].value - 1);
	rule_because(x, f, FACT_LOADER_STARTING, "they import modules %s of their time", a);
	loading_because_held_up(x, f);
	snprintf(x->fix, sizeof(x->fix), "%s", stall.fix);
	snprintf(x->edit, sizeof(x->edit), "%s", stall.edit);
	fix_pool(x, f);
}

/* The first batch of a worker is what takes long (it opens files, builds an index), and behind it all of them have time:
 * what the training waits is for that. */
static enum answer by_first_batches(const struct facts *f, struct opinion *o)
{
	struct finding *x = &o->finding;
	/* what it waits, and what it starts them itself: workers are started while data is got */
	double wait =
	    fact_or(f, FACT_TIME_DATA_WAIT, 0) +
	    fmin(fact_or(f, FACT_DOING_START_WORKERS, 0), fact_or(f, FACT_TIME_DATA_LOAD, 0));
	/* so many that none lived long enough to be seen at work */
	bool brief =
	    !f->v[FACT_LOADER_IDLE].known && fact_or(f, FACT_LOADER_GENERATIONS, 0) >= brief_least;
	bool few = loading_waits_for_starts(f);
	enum answer a = rule_at_least(f, FACT_LOADER_GENERATIONS, generations_least, o);
	char b[24];

	if (!brief && !few)
		a = answer_and(a, rule_at_least(f, FACT_LOADER_IDLE, idle_least, o));

	a = answer_and(a, rule_at_least(f, FACT_TIME_DATA_WAIT, wait_least, o));
	a = answer_and(a, answer_not(rule_at_least(f, FACT_GPU_BUSY, loading_gpu_busy, o)));
	if (a == ANSWER_YES)
		a = loading_is_for_training(f, o);
	if (a == ANSWER_YES && !loading_restarts(f))
		a = ANSWER_NO;
	if (a != ANSWER_YES)
		return a;
	snprintf(x->title, sizeof(x->title),
		 "workers are started anew again and again, and the first batches are waited for");
	rule_because(x, f, FACT_LOADER_GENERATIONS, "each worker was replaced %.0f times",
		     f->v[FACT_LOADER_GENERATIONS].value - 1);
	if (!brief)
		rule_because(x, f, FACT_LOADER_IDLE, "they have no work %s of the time",
			     num_percent(f->v[FACT_LOADER_IDLE].value, b, sizeof(b)));
	if (few)
		rule_because(x, f, FACT_LOADER_WAIT_RARE, "%s of the waiting is in few steps",
			     num_percent(f->v[FACT_LOADER_WAIT_RARE].value, b, sizeof(b)));
	loading_because_held_up(x, f);
	where(x, f);
	snprintf(x->fix, sizeof(x->fix), "%s", stall.fix);
	snprintf(x->edit, sizeof(x->edit), "%s", stall.edit);
	fix_pool(x, f);
	rule_gain_of_time(x, stall_then(f, LOADING_BEST, wait),
			  stall_then(f, LOADING_LIKELY, 0.8 * wait),
			  stall_then(f, LOADING_WORST, 0.3 * wait));
	rule_gain_drifts(x, 1);
	snprintf(x->then, sizeof(x->then), "%s", stall_next(f, 1 / x->speedup));
	x->confidence = 0.7;
	return ANSWER_YES;
}

/* Started by spawn it is the workers themselves that take long to begin, and the training only waits: what it
 * waits for in vain is at most what they import. */
static enum answer by_workers(const struct facts *f, struct opinion *o)
{
	struct finding *x = &o->finding;
	const struct fact *s = &f->v[FACT_LOADER_STARTING];
	double wait = fact_or(f, FACT_TIME_DATA_WAIT, 0);
	enum answer a = answer_and(rule_at_least(f, FACT_LOADER_GENERATIONS, generations_least, o),
				   rule_at_least(f, FACT_LOADER_STARTING, starting_least, o));

	a = answer_and(a, rule_at_least(f, FACT_TIME_DATA_WAIT, wait_least, o));
	a = answer_and(a, answer_not(rule_at_least(f, FACT_GPU_BUSY, loading_gpu_busy, o)));
	/* of any program it is true that its pools are not worth their start */
	if (a == ANSWER_YES && !(wait >= plain_least && s->value >= plain_least))
		a = loading_is_for_training(f, o);
	if (a != ANSWER_YES)
		return a;
	say(x, f);
	rule_gain_of_time(x, stall_then(f, LOADING_BEST, fmin(wait, s->high)),
			  stall_then(f, LOADING_LIKELY, fmin(wait, s->value)),
			  stall_then(f, LOADING_WORST, 0.5 * fmin(wait, s->low)));
	rule_gain_drifts(x, 1);
	snprintf(x->then, sizeof(x->then), "%s", stall_next(f, 1 / x->speedup));
	x->confidence = 0.75;
	return ANSWER_YES;
}

static enum answer judge(const struct facts *f, struct opinion *o)
{
	enum answer a;

	if (f->v[FACT_LOADER_PERSISTENT].known && f->v[FACT_LOADER_PERSISTENT].value > 0)
		return ANSWER_NO; /* once, and for good */
	a = by_first_batches(f, o);
	if (a == ANSWER_YES)
		return a;
	a = stall_check(&stall, f, o);
	if (a == ANSWER_YES) {
		/* that there are always new ones tells as well as steps that it is not the first time */
		if (fact_or(f, FACT_LOADER_GENERATIONS, 0) >= generations_least)
			o->finding.note = false;
		fix_pool(&o->finding, f);
		return a;
	}
	return answer_or(a, by_workers(f, o));
}

/* Where it is to be mended, if that is one line: the time is lost where the loop over it begins. */
static void point(struct finding *x, const struct facts *f)
{
	const struct fact *made = &f->v[FACT_LOADER_MADE];
	enum fact_id lost =
	    f->v[FACT_DOING_START_WORKERS].place ? FACT_DOING_START_WORKERS : FACT_LOADER_LINE;

	if (!made->known)
		return;
	if (made->value > 1 && !is_pool(f)) {
		rule_because(x, f, FACT_LOADER_MADE, "the loader is made at %s", made->text);
		return;
	}
	rule_where(x, f, FACT_LOADER_MADE);
	if (f->v[lost].place && !is_pool(f))
		rule_because(x, f, lost, "%s at %s",
			     lost == FACT_LOADER_LINE ? "the data is taken" : "they are started",
			     f->v[lost].text);
}

static enum answer check(const struct facts *f, struct opinion *o)
{
	enum answer a = judge(f, o);

	if (a == ANSWER_YES)
		point(&o->finding, f);
	return a;
}

const struct rule worker_restart_rule = { .cause = "worker_restart", .needs_s = 5, .check = check };

/* SPDX-License-Identifier: MIT
 *
 * cpu_neighbour: the job was ready to run and other programs had the cores.
 *
 * Not to be taken for it: threads that wait for each other's turn because the job itself has too
 * many (thread_oversubscription asks that), a quota (cpu_quota), and a busy machine on which the job
 * gets every CPU it wants: other programs' use alone is no evidence, the job's own waiting is.
 *
 * What is won without them: the time the first thread waited, where it is the one that works; else
 * the share of the time in which somebody was ready that they waited. From both comes the interval: a part of the
 * waiting may have held nobody up, and a core whose other thread was theirs is faster without them. Nothing is won
 * beyond the cores the others had and the job could fill, nor beyond the time its GPU is idle: who waits for a
 * CPU while the GPU has work to do holds nobody up.
 */
#include "explain/loading.h"

#include "base/num.h"

#include <math.h>
#include <stdio.h>

static const double others_least = 0.15;    /* cores of others per core the job may use */
static const double lost_least = 0.05;      /* share of wall time */
static const double throttled_least = 0.05; /* as cpu_quota */
static const double works = 0.5; /* share of wall time the first thread is ready: it is the one */

static bool lost_share(const struct facts *f, struct fact *ret)
{
	double delay = f->v[FACT_THREADS_DELAY].value, main_delay;
	/* A program that sleeps loses nothing by waiting for its moments. */
	double of_ready = delay / (1 + delay) * fmin(1, fact_or(f, FACT_THREADS_READY, 0));

	*ret = (struct fact){ .known = true, .value = of_ready, .low = of_ready, .high = of_ready };
	if (fact_value(f, FACT_MAIN_DELAY, &main_delay) &&
	    1 - fact_or(f, FACT_MAIN_BLOCKED, 0) >= works) {
		ret->value = main_delay;
		ret->low = fmin(main_delay, of_ready);
		ret->high = fmax(main_delay, of_ready);
	}
	return ret->value >= lost_least;
}

static void say(struct finding *x, const struct facts *f, const struct fact *lost, double allowed)
{
	double others = f->v[FACT_CORES_OTHERS].value;
	char a[24], b[24], c[24];

	snprintf(x->title, sizeof(x->title),
		 "other programs took %s cores; the job waited for a CPU %s of the time",
		 num_cores(others, a, sizeof(a)), num_percent(lost->value, b, sizeof(b)));
	rule_because(x, f, FACT_CORES_OTHERS, "other programs used %s of %s cores",
		     num_cores(others, a, sizeof(a)),
		     num_cores(fact_or(f, FACT_CORES_MACHINE, allowed), b, sizeof(b)));
	rule_because(x, f, FACT_THREADS_DELAY,
		     "the job's threads waited %.2f s for a CPU for each second they had one",
		     f->v[FACT_THREADS_DELAY].value);
	rule_because(x, f, FACT_MAIN_DELAY, "its first thread waited %s of the time",
		     num_percent(f->v[FACT_MAIN_DELAY].value, a, sizeof(a)));
	rule_because(x, f, FACT_THREADS_ALONE,
		     "by itself it would keep %s cores busy, of %s allowed",
		     num_cores(f->v[FACT_THREADS_ALONE].value, b, sizeof(b)),
		     num_cores(allowed, c, sizeof(c)));
	snprintf(
	    x->fix, sizeof(x->fix),
	    "see who they are with `spotter top`; move or end them, or keep them off these cores "
	    "(nice, taskset, a cpuset, an exclusive allocation)");
}

/* Of the time lost, what is won. */
static const double won[] = { [LOADING_BEST] = 1.3, [LOADING_LIKELY] = 1, [LOADING_WORST] = 0.6 };

static double then(const struct facts *f, enum loading_case c, double lost, double room)
{
	/* A GPU that may be somebody else's bounds nothing. */
	double gpu = fact_or(f, FACT_GPU_USED, 0) >= 1 ? loading_gpu_floor(f, c) : 0;

	return fmax(fmax(1 - fmin(won[c] * lost, 0.95), 1 / room), gpu);
}

static void gain(struct finding *x, const struct facts *f, const struct fact *lost)
{
	double used = fact_or(f, FACT_CORES_USED, 0), allowed = f->v[FACT_CORES_ALLOWED].value;
	double room = fmin(used + f->v[FACT_CORES_OTHERS].value, allowed), left;

	room = used > 0 ? fmax(1, fmin(room, f->v[FACT_THREADS_ALONE].value) / used) : INFINITY;
	rule_gain_of_time(x, then(f, LOADING_BEST, lost->high, room),
			  then(f, LOADING_LIKELY, lost->value, room),
			  then(f, LOADING_WORST, lost->low, room));
	left = 1 / x->speedup;
	snprintf(x->then, sizeof(x->then), "%s",
		 left > then(f, LOADING_LIKELY, 1, room) + 0.01 ? "its own work"
		 : left <= 1 / room + 0.01                      ? "the cores it may use"
								: "GPU-bound");
}

static enum answer check(const struct facts *f, struct opinion *o)
{
	struct finding *x = &o->finding;
	double allowed, others;
	struct fact lost;
	enum answer a;

	if (fact_value(f, FACT_CORES_OTHERS, &others) &&
	    fact_value(f, FACT_CORES_ALLOWED, &allowed) && others < others_least * allowed)
		return ANSWER_NO;
	a = answer_and(rule_at_least(f, FACT_CORES_OTHERS, 0, o),
		       answer_and(rule_at_least(f, FACT_CORES_ALLOWED, 0.001, o),
				  rule_at_least(f, FACT_THREADS_DELAY, 0, o)));
	if (a != ANSWER_YES)
		return a;
	allowed = f->v[FACT_CORES_ALLOWED].value;
	if (!lost_share(f, &lost))
		return ANSWER_NO;
	a = answer_and(answer_not(rule_at_least(f, FACT_QUOTA_THROTTLED, throttled_least, o)),
		       rule_at_least(f, FACT_THREADS_ALONE, 0, o));
	if (fact_or(f, FACT_GPU_USED, 0) >= 1)
		a = answer_and(a, rule_at_least(f, FACT_GPU_BUSY, 0, o));
	if (a != ANSWER_YES)
		return a;
	say(x, f, &lost, allowed);
	gain(x, f, &lost);
	x->confidence = 0.8;
	return ANSWER_YES;
}

const struct rule cpu_neighbour_rule = { .cause = "cpu_neighbour", .needs_s = 5, .check = check };

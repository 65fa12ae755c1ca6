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
 *
 * A thread that shares its work out waits at a barrier for the helper that has no CPU, and spins there: that is no work
 * either. Measured on two cores with two neighbours: torch with OpenMP 50 times, with less to share 4 times as slow.
 */
#include "explain/loading.h"

#include "base/num.h"

#include <math.h>
#include <stdio.h>

static const double others_least = 0.15; /* cores of others per core the job may use */
static const double lost_least = 0.05;   /* share of wall time */
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

/* Of the time lost, and of the time spun at barriers, what is won: some helper is always the last. */
static const double won[] = { [LOADING_BEST] = 1.3, [LOADING_LIKELY] = 1, [LOADING_WORST] = 0.6 };
static const double unspun[] = {
	[LOADING_BEST] = 1, [LOADING_LIKELY] = 0.9, [LOADING_WORST] = 0.3
};
static const double left_least = 0.02; /* of the time: no promise goes beyond fifty times */
static const double spins_delay =
    0.3; /* seconds waited per second run: then all spinning is for want of a CPU */

/* What of the time is spun for helpers that have no CPU; the less they wait for one, the more of it is for another reason. */
static double spun(const struct facts *f, enum loading_case c)
{
	const struct fact *s = &f->v[FACT_MAIN_SPINS];
	double part = fmin(1, fact_or(f, FACT_THREADS_DELAY, 0) / spins_delay);

	if (!s->known || !f->v[FACT_TIME_QUEUED].known || s->low < lost_least)
		return 0;
	part *= unspun[c] * (c == LOADING_BEST ? s->high : c == LOADING_WORST ? s->low : s->value);
	return fmin(fmax(part, 0), 1);
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
	if (spun(f, LOADING_LIKELY) >= lost_least)
		rule_because(x, f, FACT_MAIN_SPINS,
			     "%s spins at barriers %s of the time, until its helpers are there",
			     loading_thread(f),
			     num_percent(f->v[FACT_MAIN_SPINS].value, a, sizeof(a)));
	rule_because(x, f, FACT_THREADS_ALONE,
		     "by itself it would keep %s cores busy, of %s allowed",
		     num_cores(f->v[FACT_THREADS_ALONE].value, b, sizeof(b)),
		     num_cores(allowed, c, sizeof(c)));
	snprintf(
	    x->fix, sizeof(x->fix),
	    "see who they are with `spotter top`; move or end them, or keep them off these cores "
	    "(nice, taskset, a cpuset, an exclusive allocation)");
}

/* How many times as many cores it could fill with work; of those it has, what spins is none. */
static double room(const struct facts *f, enum loading_case c)
{
	double used = fact_or(f, FACT_CORES_USED, 0), allowed = f->v[FACT_CORES_ALLOWED].value;
	double most = fmin(fmin(used + f->v[FACT_CORES_OTHERS].value, allowed),
			   f->v[FACT_THREADS_ALONE].value);
	double idle = spun(f, c);

	idle += idle > 0 ? unspun[c] * loading_cores_spinning(f) : 0;
	return used > 0 ? fmax(1, most / fmax(used - idle, left_least * used)) : INFINITY;
}

static double then(const struct facts *f, enum loading_case c, double lost)
{
	/* A GPU that may be somebody else's bounds nothing. */
	double gpu = fact_or(f, FACT_GPU_USED, 0) >= 1 ? loading_gpu_floor(f, c) : 0;
	double idle = spun(f, c), left;

	/* both of one thread, so that they are parts of the same time */
	if (idle > 0)
		lost = f->v[FACT_TIME_QUEUED].value;
	left = fmax(1 - won[c] * lost - idle, idle > 0 ? left_least : 0.05);
	return fmax(fmax(left, 1 / room(f, c)), gpu);
}

static void gain(struct finding *x, const struct facts *f, const struct fact *lost)
{
	bool gpu = fact_or(f, FACT_GPU_USED, 0) >= 1;
	double left;

	rule_gain_of_time(x, then(f, LOADING_BEST, lost->high),
			  then(f, LOADING_LIKELY, lost->value), then(f, LOADING_WORST, lost->low));
	left = 1 / x->speedup;
	if (gpu && left <= loading_gpu_floor(f, LOADING_LIKELY) + 0.01)
		snprintf(x->then, sizeof(x->then), "GPU-bound");
	else
		snprintf(x->then, sizeof(x->then), "%s",
			 left <= 1 / room(f, LOADING_LIKELY) + 0.01 ? "the cores it may use"
								    : "its own work");
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
	a = answer_and(answer_not(rule_at_least(f, FACT_QUOTA_THROTTLED, rule_throttled_least, o)),
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

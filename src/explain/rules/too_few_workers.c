/* SPDX-License-Identifier: MIT
 *
 * too_few_workers: the training waits for its loader workers; they do nothing but load, and there are
 * cores for more of them.
 *
 * What the training does alone says little: only both sides together do. Not to be taken for it: a
 * GPU that is busy meanwhile (no stall); workers that wait to be asked (one slow batch holds up the
 * others behind it); workers that wait for storage or for a CPU; cores that are all in use (more
 * workers would only share them).
 *
 * Gain: W workers that are never idle make a batch every T, so one needs W*T, and the training itself
 * (1-w)*T. With W' of them a step takes the longer of (1-w)*T and W*T*k/W', where k is what workers
 * cost each other (0 to 6 % for each that is added: caches, memory), no less than GPU and cores leave.
 * Batches that differ in size, handed over in order, lose up to 13 % of that.
 */
#include "explain/loading.h"

#include "base/num.h"

#include <math.h>
#include <stdio.h>

static const double generations_most = 3, starting_most = 0.3; /* of their time, importing */
static const double wait_least = 0.05;
static const double core_least = 0.6; /* of what a worker uses */
static const double busy_least = 0.80, idle_most = 0.10, alone_idle_most = 0.20, queued_most = 0.20,
		    storage_most = 0.20;

struct cost {
	double each; /* of a worker's time, for every other that is added */
	double even; /* of the best, for batches that differ */
	enum loading_case c;
};
static const struct cost least = { 0, 1, LOADING_BEST }, likely = { 0.033, 0.97, LOADING_LIKELY },
			 most = { 0.06, 0.87, LOADING_WORST };

static double then(const struct facts *f, double wait, double now, double more, struct cost c)
{
	double side = fmax(1 - wait, now * (1 + c.each * (more - now)) / more);

	return fmax(side / c.even, loading_floor(f, c.c, more - now));
}

/* Of getting data, taking it stays with the training. */
static double blocked(const struct facts *f, double wait)
{
	return fmax(0, wait - fact_or(f, FACT_TIME_TAKING, 0));
}

/* Workers that keep up, and one more for batches that take longer; not more than there are cores. */
static int workers_for(const struct facts *f, double now)
{
	double wait = blocked(f, f->v[FACT_TIME_DATA_WAIT].value);
	double enough = ceil(now / fmax(1 - wait, 0.02) - 0.05) + 1;
	double unused = f->v[FACT_CORES_FREE].value + loading_cores_spinning(f);
	double cores = unused / fmax(f->v[FACT_LOADER_BUSY].value, 0.1);

	return fact_whole(fmin(fmin(enough, now + floor(cores + 1 - core_least)), 128));
}

static void say(struct finding *x, const struct facts *f, double now, int more)
{
	const struct fact *w = &f->v[FACT_TIME_DATA_WAIT];
	char a[24], b[24];

	snprintf(x->title, sizeof(x->title),
		 "%.0f loader worker%s too few: %s waits for data %s of its time", now,
		 now > 1.5 ? "s are" : " is", loading_program(f),
		 num_percent(w->value, a, sizeof(a)));
	rule_because(x, f, FACT_TIME_DATA_WAIT, "%s waits for the loader %s of its time",
		     loading_thread(f), num_percent(w->value, a, sizeof(a)));
	rule_because(x, f, FACT_LOADER_BUSY, "its %.0f worker%s on a CPU %s of the time", now,
		     now > 1.5 ? "s are" : " is",
		     num_percent(f->v[FACT_LOADER_BUSY].value, a, sizeof(a)));
	rule_because(x, f, FACT_LOADER_IDLE, "and without work %s",
		     num_percent(f->v[FACT_LOADER_IDLE].value, b, sizeof(b)));
	loading_because_cores(x, f);
	loading_because_place(x, f, "most of their CPU time is");
	if (fact_or(f, FACT_GPU_USED, 0) > 0)
		rule_because(x, f, FACT_GPU_BUSY, "%s is busy %s of the time",
			     f->v[FACT_GPU_BUSY].text,
			     num_percent(f->v[FACT_GPU_BUSY].value, a, sizeof(a)));
	loading_where_made(x, f);
	loading_fix_workers(x, f, more, true);
}

static enum answer both_sides(const struct facts *f, struct opinion *o)
{
	/* One worker alone holds up nobody behind it: it is idle while the training has enough for a moment. */
	double idle = f->v[FACT_LOADER_WORKERS].value < 1.5 ? alone_idle_most : idle_most;
	enum answer a = answer_and(rule_at_least(f, FACT_LOADER_BUSY, busy_least, o),
				   answer_not(rule_at_least(f, FACT_LOADER_IDLE, idle, o)));

	a = answer_and(a, answer_not(rule_at_least(f, FACT_LOADER_QUEUED, queued_most, o)));
	a = answer_and(a, answer_not(rule_at_least(f, FACT_LOADER_STORAGE, storage_most, o)));
	/* A good part of a core is worth a worker: the floor of the gain has what it gets. */
	return answer_and(
	    a, rule_at_least(f, FACT_CORES_FREE,
			     core_least * f->v[FACT_LOADER_BUSY].value - loading_cores_spinning(f),
			     o));
}

static enum answer check(const struct facts *f, struct opinion *o)
{
	struct finding *x = &o->finding;
	const struct fact *w = &f->v[FACT_TIME_DATA_WAIT];
	double now, wait;
	enum answer a;
	int more;

	a = answer_and(
	    rule_at_least(f, FACT_TIME_DATA_WAIT, wait_least + fact_or(f, FACT_TIME_TAKING, 0), o),
	    answer_not(rule_at_least(f, FACT_GPU_BUSY, loading_gpu_busy, o)));
	if (a != ANSWER_YES)
		return a;
	a = rule_at_least(f, FACT_LOADER_WORKERS, loading_workers_least, o);
	if (a == ANSWER_NO)
		return rule_cannot_tell(o, "it waits for data, and who loads it was not seen");
	/* more of those that only ever start would start more: worker_restart */
	if (fact_or(f, FACT_LOADER_GENERATIONS, 0) >= generations_most &&
	    fact_or(f, FACT_LOADER_STARTING, 0) >= starting_most)
		return ANSWER_NO;
	a = answer_and(a, both_sides(f, o));
	if (a == ANSWER_YES)
		a = loading_is_for_training(f, o);
	if (a != ANSWER_YES)
		return a;
	now = fmax(1, round(f->v[FACT_LOADER_WORKERS].value));
	more = workers_for(f, now);
	if (more <= now)
		return ANSWER_NO;
	say(x, f, now, more);
	wait = blocked(f, w->value);
	rule_gain_of_time(x, then(f, blocked(f, w->high), now, more, least),
			  then(f, wait, now, more, likely),
			  then(f, blocked(f, w->low), now, more, most));
	rule_gain_drifts(x, loading_cpu_part(f));
	snprintf(x->then, sizeof(x->then), "%s",
		 loading_then(f, 1 / x->speedup, more - now,
			      now / more > 1 - wait ? "the loading" : "its own work"));
	x->note = loading_of_one_rank(f);
	x->confidence = 0.8;
	return ANSWER_YES;
}

const struct rule too_few_workers_rule = { .cause = "too_few_workers",
					   .needs_s = 5,
					   .check = check };

/* SPDX-License-Identifier: MIT
 *
 * no_workers: the thread that trains loads and transforms the data itself, so that each does nothing
 * while the other works.
 *
 * Not to be taken for it: data that is cheap to have (in memory, prepared): below a tenth of the time
 * it is a note, since handing batches over costs something too; a GPU that is busy meanwhile with what
 * it was given before; a job that has no core left for a worker; a program that parses or reads and does
 * nothing with it that a training would (loading_is_for_training()); one that others send data to.
 *
 * Gain: of a second now, p is loading. With k workers the training takes 1-p and the workers p/k, side
 * by side: the longer of both, and no less than GPU and cores leave. Handing over costs: pickling and
 * copying make a worker's part longer (none to 30 %), taking batches stays with the training (none to
 * a tenth of p; more where no framework's loader does it).
 */
#include "explain/loading.h"

#include "base/num.h"
#include "explain/reading.h"

#include <math.h>
#include <stdio.h>

static const double share_least = 0.03; /* of the critical thread's time; below: not worth a word */
static const double share_finding = 0.10;
static const double disk_most = 0.5;  /* of the time of loading */
static const double fed_least = 0.01; /* of its time, it waits for another process */
static const double far_above = 2;    /* times: waiting against loading */
static const int workers_most = 16;   /* nobody starts with more */

struct cost {
	double worker, training; /* of p */
	enum loading_case c;
};
static const struct cost least = { 1, 0, LOADING_BEST }, likely = { 1.05, 0.02, LOADING_LIKELY },
			 most = { 1.3, 0.1, LOADING_WORST };

/* Of p, where no framework hands over: what a process of one's own pickles and copies on the cores, and what the training
 * takes apart. A framework's loader shares memory. */
static const struct {
	double cores, training;
} by_hand[] = {
	[LOADING_BEST] = { 0, 0 },
	[LOADING_LIKELY] = { 0.2, 0.15 },
	[LOADING_WORST] = { 0.4, 0.3 },
};

static double then(const struct facts *f, double p, double k, struct cost c)
{
	double hand = fact_or(f, FACT_LOADER_FRAMEWORK, 0) >= 1 ? 0 : p;
	double taking = c.training * p + by_hand[c.c].training * hand;
	double side = fmax(1 - p + taking, c.worker * p / k);
	double cores = loading_cores_floor(f, c.c, k) * (1 + by_hand[c.c].cores * hand);

	return fmin(1, fmax(fmax(side, cores), loading_gpu_floor(f, c.c)));
}

/* As many as keep up with the training, and two at least so that no batch is waited for alone; if the
 * cores are there. */
static int workers_for(const struct facts *f, double p)
{
	double enough = fmax(2, ceil(likely.worker * p / fmax(1 - p, 0.02)));
	/* What the training no longer does itself is free as well; a part of a core is worth a worker,
	 * and loading_cores_floor() sees to it that no more is promised than they can do. */
	double unused = fact_or(f, FACT_CORES_FREE, 0) + loading_cores_spinning(f);
	double cores = ceil(unused + p - 0.1);

	return fact_whole(fmax(1, fmin(fmin(enough, cores), workers_most)));
}

static void say(struct finding *x, const struct facts *f, int k)
{
	const struct fact *p = &f->v[FACT_TIME_DATA_LOAD];
	char a[24];

	snprintf(x->title, sizeof(x->title),
		 "%s loads the data itself, %s of its time; nothing loads ahead", loading_thread(f),
		 num_percent(p->value, a, sizeof(a)));
	rule_because(x, f, FACT_TIME_DATA_LOAD, "%s of its time is loading and transforming data",
		     num_percent(p->value, a, sizeof(a)));
	rule_because(x, f, FACT_LOADER_WORKERS, "no loader worker was seen");
	loading_because_place(x, f, "most of it");
	loading_because_cores(x, f);
	if (fact_or(f, FACT_GPU_USED, 0) > 0)
		rule_because(x, f, FACT_GPU_BUSY, "%s is busy %s of the time",
			     f->v[FACT_GPU_BUSY].text,
			     num_percent(f->v[FACT_GPU_BUSY].value, a, sizeof(a)));
	loading_where_made(x, f);
	loading_fix_workers(x, f, k, false);
}

/* Loading, with what of its time the thread is queued for a CPU for the sake of it. */
static double with_queue(const struct facts *f, double p)
{
	double cpu = fmin(p, fact_or(f, FACT_LOAD_CPU, 0));

	return fmin(0.98, p + cpu * (loading_wall_per_cpu(f) - 1));
}

/* No: somebody makes data for it, also if it was not known for a worker. */
static enum answer nobody_loads(const struct facts *f, struct opinion *o)
{
	double own = fact_or(f, FACT_TIME_DATA_LOAD, 0);

	/* workers that live so short that there is less than one at a time are some, too, if they are waited for; those of a
	 * short evaluation are not */
	if (loading_restarts(f) && fact_or(f, FACT_TIME_DATA_WAIT, 0) >= 0.5 * own)
		return ANSWER_NO;
	return answer_and(answer_not(rule_at_least(f, FACT_LOADER_FED, fed_least, o)),
			  answer_not(rule_at_least(f, FACT_TIME_DATA_WAIT, far_above * own, o)));
}

static enum answer check(const struct facts *f, struct opinion *o)
{
	struct finding *x = &o->finding;
	const struct fact *p = &f->v[FACT_TIME_DATA_LOAD];
	struct opinion unused = { 0 };
	double share, low, high;
	enum answer a;
	int k;

	a = answer_and(rule_at_least(f, FACT_TIME_DATA_LOAD, share_least, o),
		       answer_not(rule_at_least(f, FACT_LOADER_WORKERS, loading_workers_least, o)));
	if (a == ANSWER_YES)
		a = answer_and(nobody_loads(f, o), loading_is_for_training(f, o));
	if (a != ANSWER_YES)
		return a;
	a = answer_and(answer_not(rule_at_least(f, FACT_GPU_BUSY, loading_gpu_busy, o)),
		       rule_at_least(f, FACT_CORES_FREE, 0, o));
	if (a != ANSWER_YES)
		return a;
	share = with_queue(f, p->value);
	k = workers_for(f, share);
	say(x, f, k);
	low = with_queue(f, p->low);
	high = with_queue(f, p->high);
	/* More loading is more to win until the workers are the longer side. */
	rule_gain_of_time(x, fmin(then(f, low, k, least), then(f, high, k, least)),
			  then(f, share, k, likely),
			  fmax(then(f, p->low, k, most), then(f, high, k, most)));
	rule_gain_drifts(x, loading_cpu_part(f));
	snprintf(x->then, sizeof(x->then), "%s",
		 loading_then(f, 1 / x->speedup, k,
			      share / k > 1 - share ? "the loading" : "its own work"));
	/* where loading is waiting for storage that is what to mend, and it says so itself */
	x->note = p->value < share_finding || loading_of_one_rank(f) ||
		  (fact_or(f, FACT_LOAD_DISK, 0) >= disk_most &&
		   reading_fetches(f, &unused) == ANSWER_YES);
	x->confidence = 0.85;
	return ANSWER_YES;
}

const struct rule no_workers_rule = { .cause = "no_workers", .needs_s = 5, .check = check };

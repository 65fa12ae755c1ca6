/* SPDX-License-Identifier: MIT
 *
 * slow_storage: those who load wait for the disk, and the training for them.
 *
 * Not to be taken for it: files that are in the page cache (nothing is fetched), waiting for memory that was
 * swapped out (memory_pressure), waiting that nobody waits for, and a first epoch, whose cold reads are over
 * by the second.
 *
 * Gain: without the waiting for storage a batch takes its CPU time: the step then is what the what-if of
 * pipeline.h makes of it. A faster disk leaves a part of it; more workers wait side by side.
 */
#include "explain/loading.h"

#include "base/num.h"
#include "explain/pipeline.h"

#include <math.h>
#include <stdio.h>

static const double disk_least = 0.2;    /* of the time of loading */
static const double miss_least = 0.02;   /* of what is read */
static const double fetched_least = 1e5; /* bytes a second: less holds nobody up */

static double then(const struct facts *f, enum loading_case c, double left)
{
	double share = fact_or(f, FACT_LOAD_DISK, 0), now, after;
	struct pipeline p;

	if (!loading_pipeline(f, c, &p))
		return 1;
	now = pipeline_step(&p);
	/* what waits for storage, of all that loading waits for */
	p.make_wait = fmax(0, p.make_wait - (1 - left) * share * (p.make_cpu + p.make_wait));
	after = pipeline_step(&p);
	return isfinite(after / now) ? fmin(1, after / now) : 1;
}

static void say(struct finding *x, const struct facts *f)
{
	const struct fact *disk = &f->v[FACT_LOAD_DISK];
	char a[24], b[24];

	rule_where(x, f, FACT_LOAD_DISK);
	snprintf(x->title, sizeof(x->title),
		 "storage is too slow for the loading: it waits for the disk %s of its time%s%s",
		 num_percent(disk->value, a, sizeof(a)), disk->place ? ", at " : "", disk->text);
	rule_because(x, f, FACT_LOAD_DISK, "%s of the time of loading is waiting for storage%s%s",
		     num_percent(disk->value, a, sizeof(a)), disk->place ? ", most at " : "",
		     disk->text);
	rule_because(x, f, FACT_LOAD_FETCHED, "%s/s come from storage",
		     num_bytes(fact_or(f, FACT_LOAD_FETCHED, 0), a, sizeof(a)));
	rule_because(x, f, FACT_LOAD_MISS, "%s of what is read is not in the page cache",
		     num_percent(fact_or(f, FACT_LOAD_MISS, 0), b, sizeof(b)));
	loading_because_held_up(x, f);
	snprintf(x->fix, sizeof(x->fix),
		 "copy the data to a faster disk or to memory (/dev/shm, a page cache that holds "
		 "it) before the "
		 "training; read large files in a row (shards) instead of many small ones; more "
		 "workers wait side by "
		 "side");
}

static enum answer check(const struct facts *f, struct opinion *o)
{
	struct finding *x = &o->finding;
	enum answer a =
	    answer_and(rule_at_least(f, FACT_LOAD_DISK, disk_least, o), loading_holds_up(f, o));

	a = answer_and(a, answer_and(rule_at_least(f, FACT_LOAD_FETCHED, fetched_least, o),
				     rule_at_least(f, FACT_LOAD_MISS, miss_least, o)));
	if (a == ANSWER_YES)
		a = loading_is_for_training(f, o);
	if (a != ANSWER_YES)
		return a;
	say(x, f);
	rule_gain_of_time(x, then(f, LOADING_BEST, 0), then(f, LOADING_LIKELY, 0.1),
			  then(f, LOADING_WORST, 0.5));
	snprintf(x->then, sizeof(x->then), "%s",
		 loading_then(f, 1 / x->speedup, 0, "its own work"));
	x->confidence = 0.75;
	return ANSWER_YES;
}

const struct rule slow_storage_rule = { .cause = "slow_storage", .needs_s = 5, .check = check };

/* SPDX-License-Identifier: MIT
 *
 * slow_storage: those who load wait for the disk, and the training for them.
 *
 * Not to be taken for it: files that are in the page cache (nothing is fetched), waiting for memory that was
 * swapped out (memory_pressure), waiting that nobody waits for, and a first epoch, whose cold reads are over
 * by the second. Where the cause of the waiting has a name of its own (a page cache that is too small, a
 * network, many small files), this is a note.
 *
 * Gain: without the waiting for storage a batch takes its CPU time: the step then is what the what-if of
 * pipeline.h makes of it. A faster disk leaves a part of it; more workers wait side by side.
 */
#include "explain/loading.h"

#include "base/num.h"
#include "explain/reading.h"

#include <stdio.h>

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
	static const double left[] = { 0, 0.1, 0.5 };
	struct finding *x = &o->finding;
	enum answer a = reading_fetches(f, o);

	if (a == ANSWER_YES)
		a = loading_is_for_training(f, o);
	if (a != ANSWER_YES)
		return a;
	say(x, f);
	reading_gain(x, f, f->v[FACT_LOAD_DISK].value, left);
	/* why it is slow has a name and a fix of its own: it is not said twice */
	x->note = reading_has_a_name(f);
	x->confidence = 0.75;
	return ANSWER_YES;
}

const struct rule slow_storage_rule = { .cause = "slow_storage", .needs_s = 5, .check = check };

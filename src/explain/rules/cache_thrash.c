/* SPDX-License-Identifier: MIT
 *
 * cache_thrash: the data does not fit the page cache the job may have: what was read is dropped before it is
 * wanted again, and fetched from storage in every epoch.
 *
 * Not to be taken for it: a first epoch, in which all is read for the first time (nothing was dropped), and
 * programs elsewhere: only what the job's own control group read again counts.
 *
 * Gain: as slow_storage's, if all of it were in memory; half of the waiting may stay.
 */
#include "explain/reading.h"

#include "base/num.h"
#include "explain/loading.h"

#include <stdio.h>

static enum answer check(const struct facts *f, struct opinion *o)
{
	static const double left[] = { 0, 0.2, 0.7 };
	struct finding *x = &o->finding;
	enum answer r = reading_again(f, o);
	char a[24];

	if (r != ANSWER_YES)
		return r;
	rule_where(x, f, FACT_LOAD_DISK);
	snprintf(x->title, sizeof(x->title),
		 "the data does not fit the page cache and is read again and again");
	rule_because(x, f, FACT_DATA_REREAD,
		     "%s of what is fetched had been in the page cache and was dropped",
		     num_percent(f->v[FACT_DATA_REREAD].value, a, sizeof(a)));
	rule_because(x, f, FACT_LOAD_FETCHED, "%s/s come from storage",
		     num_bytes(fact_or(f, FACT_LOAD_FETCHED, 0), a, sizeof(a)));
	rule_because(x, f, FACT_LOAD_DISK, "%s of the time of loading is waiting for it%s%s",
		     num_percent(f->v[FACT_LOAD_DISK].value, a, sizeof(a)),
		     f->v[FACT_LOAD_DISK].place ? ", most at " : "", f->v[FACT_LOAD_DISK].text);
	rule_because(x, f, FACT_MEMORY_ALLOWED,
		     "the job may have %s of memory, page cache included",
		     num_bytes(fact_or(f, FACT_MEMORY_ALLOWED, 0), a, sizeof(a)));
	loading_because_held_up(x, f);
	snprintf(x->fix, sizeof(x->fix),
		 "make the data smaller (store it at the size and type that is used, compressed "
		 "well), give the job more memory, or keep a part that fits in memory for good and "
		 "read the rest in large shards");
	reading_gain(x, f, f->v[FACT_LOAD_DISK].value, left);
	x->confidence = 0.75;
	return ANSWER_YES;
}

const struct rule cache_thrash_rule = { .cause = "cache_thrash", .needs_s = 5, .check = check };

/* SPDX-License-Identifier: MIT
 *
 * network_storage: those who load wait for data that comes over a network: from a network file system (NFS,
 * Lustre, FUSE...), or by sockets they read themselves.
 *
 * Not to be taken for it: a local disk (slow_storage). Which file system is meant is known where the program's
 * folder or a path on its command line is on it; where not, it cannot be told.
 *
 * Gain: waiting that more requests at a time, or a local copy, would spare.
 */
#include "explain/reading.h"

#include "base/num.h"
#include "explain/loading.h"

#include <math.h>
#include <stdio.h>

static enum answer check(const struct facts *f, struct opinion *o)
{
	static const double left[] = { 0, 0.1, 0.6 };
	struct finding *x = &o->finding;
	enum answer r = reading_over_network(f, o);
	double disk, sockets;
	enum fact_id what;
	char a[24];

	if (r != ANSWER_YES)
		return r;
	sockets = fact_or(f, FACT_LOAD_NETWORK, 0);
	disk = fact_or(f, FACT_DATA_NETWORK, 0) > 0 ? fact_or(f, FACT_LOAD_DISK, 0) : 0;
	what = sockets > disk ? FACT_LOAD_NETWORK : FACT_LOAD_DISK;
	rule_where(x, f, what);
	num_percent(f->v[what].value, a, sizeof(a));
	snprintf(x->title, sizeof(x->title), "loading waits for the network %s of its time%s%s", a,
		 f->v[what].place ? ", at " : "", f->v[what].text);
	rule_because(x, f, what, "%s of the time of loading is waiting for %s", a,
		     what == FACT_LOAD_NETWORK ? "a socket" : "files");
	if (disk > 0)
		rule_because(x, f, FACT_DATA_NETWORK, "the program's data is on %s",
			     f->v[FACT_DATA_NETWORK].text);
	loading_because_held_up(x, f);
	snprintf(
	    x->fix, sizeof(x->fix),
	    "copy the data to a local disk before the training, or pack it into shards of 100 "
	    "MB and more; until then more workers: they wait side by side, so there may be more "
	    "of them than cores");
	reading_gain(x, f, fmin(1, disk + sockets), left);
	x->confidence = 0.75;
	return ANSWER_YES;
}

const struct rule network_storage_rule = { .cause = "network_storage",
					   .needs_s = 5,
					   .check = check };

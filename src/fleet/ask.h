/* SPDX-License-Identifier: MIT
 *
 * One look at a fleet: everything is asked, what is wrong is asked about, and judged.
 */
#ifndef SPOTTER_FLEET_ASK_H
#define SPOTTER_FLEET_ASK_H

#include "fleet/fleet.h"
#include "fleet/judge.h"

struct err;
struct http;

struct ask_options {
	const char *run;  /* NULL: all */
	int64_t since_ns; /* the window */
	const char *at;   /* when it ends, as the API takes it; NULL: now */
};

struct ask {
	struct fleet fleet;
	struct fleet_judged judged;
	/* What it took */
	size_t queries, series, odd;
	uint64_t bytes;
	double seconds;
	char warning[200]; /* of the engine, the first; "" */
	size_t
	    undetailed; /* runs that something is wrong with, and that were not asked about: too many */
};

/* On success to be freed with ask_done(). */
int ask_fleet(struct http *h, const struct ask_options *o, struct ask *ret, struct err *e);
void ask_done(struct ask *a);

#endif

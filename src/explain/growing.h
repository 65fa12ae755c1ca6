/* SPDX-License-Identifier: MIT
 *
 * What rules about growing memory share: it is a note unless the limit is near.
 */
#ifndef SPOTTER_EXPLAIN_GROWING_H
#define SPOTTER_EXPLAIN_GROWING_H

#include "explain/rule.h"

struct growing {
	enum fact_id rate, bytes, of;
	const char *who;     /* "the workers" */
	const char *grow;    /* "grow" */
	const char *process; /* name of whose it is, "" */
	const char *fix, *edit;
};

/* The whole rule. */
enum answer growing_check(const struct growing *g, const struct facts *f, struct opinion *o);

#endif

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
	enum fact_id kept; /* lines that may keep it */
};

/* The whole rule. */
enum answer growing_check(const struct growing *g, const struct facts *f, struct opinion *o);
/* Names the line that is likely to keep what grows, as the guess that it is; nothing where there is none. */
void growing_where(struct finding *x, const struct facts *f, enum fact_id kept);
/* And says so in the title: of a note little more is shown. */
void growing_title(struct finding *x);

#endif

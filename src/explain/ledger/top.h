/* SPDX-License-Identifier: MIT
 *
 * Adding up where time went, by function, for the lines of a ledger.
 */
#ifndef SPOTTER_EXPLAIN_LEDGER_TOP_H
#define SPOTTER_EXPLAIN_LEDGER_TOP_H

#include "explain/activity.h"
#include "explain/verdict.h"

struct top_entry {
	uint32_t place, native; /* 0: none */
	double seconds;
	double inner;                    /* seconds its native place stands for */
	const struct place *at, *inside; /* of the two, or NULL */
};

struct tops {
	VEC(struct top_entry) rows;
	struct map by_key; /* place << 32 | native -> row */
	double total;
};

/* place: innermost Python line (0: none), native: innermost native place (0: none). Time without either is
 * in the total only. sampled: it ran, so it was asked for its native place in every other look at most
 * (engine/stack_leaf.c), and one that was had stands for two. 0 or -ENOMEM. */
int tops_add(struct tops *t, const struct activity *a, uint32_t place, uint32_t native,
	     bool sampled, double seconds);
/* The functions with most of it into l->top, with their shares of the total (or of `total`, if that is
 * more). A function's line is its hottest; native code that takes most of it is named behind it. The
 * rows are in any order afterwards. */
void tops_put(struct tops *t, double total, struct ledger_line *l);
void tops_done(struct tops *t);

#endif

/* SPDX-License-Identifier: MIT
 *
 * Which line evaluates: what it calls (the model's layers) is run by the training as well.
 */
#ifndef SPOTTER_EXPLAIN_FACTS_EVALUATES_H
#define SPOTTER_EXPLAIN_FACTS_EVALUATES_H

#include "explain/activity.h"

enum { EVALUATES_MAX = 64 };

struct evaluates {
	const struct stack_book *book;
	uint8_t *asked; /* by place: 0 not yet, 1 no part of an evaluation, 2 a part */
	struct evaluates_range {
		const char *file; /* texts of a book are kept once */
		int32_t from, to;
	} ranges[EVALUATES_MAX];
	size_t n;
};

/* What the thread was seen to learn below is no evaluation. Out of memory: no line is found. */
void evaluates_open(struct evaluates *ret, const struct activity *a, const struct act_thread *t);
void evaluates_done(struct evaluates *e);
/* The outermost line of the program's own on its stack that is part of an evaluation, by its name or text; 0: none. */
uint32_t evaluates_line(const struct evaluates *e, const struct act_row *r);

#endif

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
	struct evaluates_range {
		const char *file; /* texts of a book are kept once */
		int32_t from, to;
	} ranges[EVALUATES_MAX];
	size_t n;
};

void evaluates_open(struct evaluates *ret, const struct stack_book *book);
/* The outermost line of the program's own on its stack that is part of an evaluation, by its name or text; 0: none. */
uint32_t evaluates_line(const struct evaluates *e, const struct act_row *r);

#endif

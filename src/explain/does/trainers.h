/* SPDX-License-Identifier: MIT
 *
 * Functions of a file that train by hand, and the statements that call them: the loop around such a call learns, although
 * nothing of a gradient is written in it.
 *
 *	def learn(inner, outer, ...):
 *	    ...
 *	    inner.index_add_(0, centre, grad, alpha=-lr)
 *
 *	for centre, context in pairs:
 *	    learn(inner, outer, centre, context)            <- learns
 */
#ifndef SPOTTER_EXPLAIN_DOES_TRAINERS_H
#define SPOTTER_EXPLAIN_DOES_TRAINERS_H

#include "explain/keeps/words.h"

enum { TRAINERS_MAX = 8 };

struct trainers {
	struct span names[TRAINERS_MAX];
	size_t n;
};

/* Remembers a function that trains, unless so many things are called so that a call says nothing. */
void trainers_add(struct trainers *t, const struct py_source *s, uint32_t def);
/* Does the statement call one of them? A definition is no call. */
bool trainers_called(const struct trainers *t, struct span statement);

#endif

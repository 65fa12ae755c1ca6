/* SPDX-License-Identifier: MIT
 *
 * What was seen of threads since the last hand-over, added up: one row for samples that are alike. Owns
 * the book of places and stacks, and remembers how much of it has been told.
 */
#ifndef SPOTTER_ENGINE_STACK_TALLY_H
#define SPOTTER_ENGINE_STACK_TALLY_H

#include "model/frame.h"

struct stack_tally {
	struct stack_book book;
	uint32_t told_places, told_nodes;
	VEC(struct stack_row) rows;
	struct map by_row;   /* hash of what makes a row -> place in rows + 1 of the first such */
	VEC(uint32_t) next;  /* further rows of the same hash */
	VEC(uint32_t) again; /* places to be told again: their source line is known now */
	int64_t from_ns, to_ns;
	bool failed; /* out of memory: something is missing */
};

void stack_tally_done(struct stack_tally *t);
/* Samples of one thread: count and weight are added to the row that is the same otherwise. */
void stack_tally_add(struct stack_tally *t, const struct stack_row *row);
/* Its source line became known. */
void stack_tally_source(struct stack_tally *t, uint32_t place, const char *source);
/* Puts rows, and what the book has learnt since the last time, into f, and begins anew at now_ns. */
void stack_tally_tell(struct stack_tally *t, int64_t now_ns, struct frame *f);
/* Appends the stack part and the events of src to dst. */
void stack_frame_append(struct frame *dst, const struct frame *src);

#endif

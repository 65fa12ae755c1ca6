/* SPDX-License-Identifier: MIT
 *
 * Stacks added up over slices: how long each was seen, by owner (a thread, or whatever its threads are
 * put together as). Needs memory for each different stack, however long the run was.
 */
#ifndef SPOTTER_MODEL_STACK_SUM_H
#define SPOTTER_MODEL_STACK_SUM_H

#include "base/map.h"
#include "base/vec.h"
#include "model/stack_text.h"

struct stack_line {
	uint32_t owner;
	uint32_t next; /* further line of the same hash: place in lines + 1; 0 none */
	struct stack_look look;
	int64_t weight_ns;
};

/* {0} is empty. */
struct stack_sum {
	VEC(struct stack_line) lines; /* in order of first appearance */
	struct map by_hash;           /* -> place in lines + 1 */
};

void stack_sum_done(struct stack_sum *s);
/* 0 or -ENOMEM. A weight that is no time (a damaged record) is left out; a sum that no number holds
 * stops at the largest. */
int stack_sum_add(struct stack_sum *s, uint32_t owner, const struct stack_row *row);

#endif

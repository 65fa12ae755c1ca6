/* SPDX-License-Identifier: MIT
 *
 * The native part of a stack, as nodes of the book.
 */
#ifndef SPOTTER_ENGINE_STACK_CALLERS_H
#define SPOTTER_ENGINE_STACK_CALLERS_H

#include "engine/stack_job.h"

/* Of a thread that waits: its callers, inside of what row->node has. */
void stack_callers_add(struct stack_job *j, struct stack_proc *p, struct stack_thread *t,
		       int64_t now_ns, struct stack_row *row);
/* Of one that ran: what was sampled (stack_leaf.c). */
void stack_callers_sampled(struct stack_job *j, const struct stack_proc *p,
			   const struct stack_leaf *leaf, struct stack_row *row);

#endif

/* SPDX-License-Identifier: MIT
 *
 * Where in native code a thread that runs is: asked around the reading of its process's stacks.
 */
#ifndef SPOTTER_ENGINE_STACK_LEAF_H
#define SPOTTER_ENGINE_STACK_LEAF_H

#include "stack/native/native.h"

struct frame;
struct stack_job;
struct stack_proc;
struct stack_thread;

enum { STACK_LEAF_DEPTH = 48, STACK_LEAVES_MAX = 4 };

/* Innermost first. Of a thread with Python frames it is one place; of others its callers are there, too. */
struct stack_leaf {
	struct native_place places[STACK_LEAF_DEPTH];
	size_t n;
	bool cut; /* further callers are not known */
};

/* What is known in one look at a process. */
struct stack_leaves {
	struct {
		const struct stack_thread *thread;
		struct stack_leaf leaf;
	} v[STACK_LEAVES_MAX];
	size_t n;
	struct stack_thread *asked; /* with Python frames, NULL: none */
};

/* Is it the turn of this process, of which p->leaf_looks were counted? */
bool stack_leaf_turn(const struct stack_job *j, const struct stack_proc *p);
/* Takes what was asked for at the last look, and asks threads of the process, if it is its turn. */
void stack_leaf_begin(struct stack_job *j, struct stack_proc *p);
/* Behind the reading of its stacks: waits for the answer of a thread with Python frames, 30 us at most. */
void stack_leaf_end(struct stack_job *j, struct stack_proc *p);
/* The answer of a thread, NULL: none. */
const struct stack_leaf *stack_leaf_of(const struct stack_job *j, const struct stack_thread *t);
/* What cannot be had of the running threads of a process without Python, and why: once. */
void stack_leaf_tell(struct stack_job *j, struct stack_proc *p, struct frame *f);

#endif

/* SPDX-License-Identifier: MIT
 *
 * Stacks of the recent past: the part of a history that keeps them. The same frames give the same
 * slices as the reader of a run file gives.
 */
#ifndef SPOTTER_MODEL_HISTORY_STACKS_H
#define SPOTTER_MODEL_HISTORY_STACKS_H

#include "model/window.h"

/* Rows kept at most, of all slices; the oldest slices go. 32 bytes each. */
enum { HISTORY_STACK_ROWS = 1 << 18 };

/* {0} is empty. */
struct history_stacks {
	struct stack_book book;
	VEC(struct stack_slice) slices; /* rows owned; in order of time */
	size_t gone;                    /* slices at the front that were forgotten */
	size_t rows;
};

void history_stacks_done(struct history_stacks *h);
/* Takes what a frame says of stacks: 0 or -ENOMEM. */
int history_stacks_frame(struct history_stacks *h, const struct frame *f);
/* Forgets slices that ended at or before this time. */
void history_stacks_forget(struct history_stacks *h, int64_t before_ns);
/* As window_ops.stacks. */
int history_stacks_each(const struct history_stacks *h, int64_t from, int64_t to,
			window_slice_fn fn, void *arg);

#endif

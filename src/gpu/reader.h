/* SPDX-License-Identifier: MIT
 *
 * All back-ends together: opened when they can be, opened again after a while when not, read to a
 * depth into one whole snapshot. Runs in the helper, or for a fixture in the caller.
 */
#ifndef SPOTTER_GPU_READER_H
#define SPOTTER_GPU_READER_H

#include "gpu/backend.h"

enum { GPU_READER_MAX = 8 }; /* back-ends */

struct gpu_reader;

/* The world is kept by pointer (its root may change between readings of a fixture). */
int gpu_reader_open(struct gpu_world *w, struct gpu_reader **ret);
/* This vendor is left alone; the text is shown as its problem. */
void gpu_reader_leave_alone(struct gpu_reader *r, enum gpu_vendor v, const char *why);
/* All is closed and opened again with the next reading, and no vendor is left alone any more: what the
 * world skips has changed. */
void gpu_reader_restart(struct gpu_reader *r);
/* Told before each GPU of a reading: what has been read of it by then, and who the others are. Its `whole`
 * is not set. NULL: told no more. */
void gpu_reader_tell(struct gpu_reader *r, void (*tell)(void *arg, const struct gpu_snapshot *s),
		     void *arg);
/* One reading. What was not due is taken over from the one before. Valid until the next. */
const struct gpu_snapshot *gpu_reader_read(struct gpu_reader *r, enum gpu_depth depth,
					   int64_t now_ns);
/* Is there a back-end that wants a thread for slow calls? gpu_reader_crawl() runs them all once; for
 * one other thread than the reading one, with a world of its own. */
bool gpu_reader_crawls(struct gpu_reader *r);
void gpu_reader_crawl(struct gpu_reader *r, struct gpu_world *own);
void gpu_reader_close(struct gpu_reader *r);

/* Parts, for tests: takes what `now` was not asked for from `before`. */
void gpu_carry_over(struct gpu_snapshot *now, const struct gpu_snapshot *before, bool processes);

#endif

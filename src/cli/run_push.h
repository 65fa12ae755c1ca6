/* SPDX-License-Identifier: MIT
 *
 * `run --push`: the recorder tells an engine of its run while it goes on. A thread of its own reads the record every few
 * seconds, as any other reader would, and hands series to src/push: sampling and the program notice nothing of it.
 */
#ifndef SPOTTER_CLI_RUN_PUSH_H
#define SPOTTER_CLI_RUN_PUSH_H

#include "cli/pushing.h"
#include "cli/recording.h"

struct run_push;

/* In R, with the recording started. NULL: nothing is pushed; why is in e, or nobody asked for it. */
struct run_push *run_push_start(const struct pushing_options *o, const struct recording *rec,
				struct err *e);
/* No more looks from now on: the record is about to be finished. Does not wait. */
void run_push_hold(struct run_push *p);
/* With the record finished: a last look, then what can be sent within the bound. What was not sent is said in words. */
void run_push_stop(struct run_push *p, const struct recording *rec, int64_t bound_ns,
		   struct buf *words);

#endif

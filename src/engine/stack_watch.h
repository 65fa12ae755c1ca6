/* SPDX-License-Identifier: MIT
 *
 * The stack sampler: a thread of its own that looks at what every thread of the job is doing, all
 * processes in one tick, by a clock that is never regular (a regular one that beats with the training's
 * step sees the same moment of it again and again). It reads memory and /proc, nothing else, and never
 * waits for anyone.
 *
 * Who is in the job it learns from the lives in the sampler's frames; what it saw it hands over, added
 * up, about once a second, into such a frame. So the two threads share one lock, held for moments.
 */
#ifndef SPOTTER_ENGINE_STACK_WATCH_H
#define SPOTTER_ENGINE_STACK_WATCH_H

#include "engine/stack_pace.h"
#include "model/frame.h"

struct err;
struct stack_watch;

struct stack_watch_options {
	double hz;     /* mean rate */
	double budget; /* share of one core this thread may use; 0: as much as it likes */
};

int stack_watch_start(const struct stack_watch_options *o, struct stack_watch **ret, struct err *e);
void stack_watch_stop(struct stack_watch *w);

/* In the sampler's thread, after the collectors have filled f: learns its lives, and adds what was seen
 * since the last time. last: hand over what there is, however little. */
void stack_watch_tick(struct stack_watch *w, struct frame *f, bool last);
/* What this thread may use from now on. */
void stack_watch_allow(struct stack_watch *w, const struct stack_allowance *a);
int64_t stack_watch_cpu_ns(struct stack_watch *w);
/* What could be observed of this job so far: 1 /proc only, 2 stacks, 3 with native leaf. */
int stack_watch_level(struct stack_watch *w);

#endif

/* SPDX-License-Identifier: MIT
 *
 * The way of a frame from the sampler to the writer: a fixed pool. The sampler never waits: when no
 * frame is free it skips the tick and counts, so a slow disk costs samples and nothing else. The
 * writer waits for work.
 */
#ifndef SPOTTER_ENGINE_QUEUE_H
#define SPOTTER_ENGINE_QUEUE_H

#include "model/frame.h"

#include <pthread.h>

enum { QUEUE_FRAMES = 32 }; /* 3 s at 10 Hz: longer than a commit ought to take */

struct queue {
	pthread_mutex_t lock;
	pthread_cond_t filled;
	struct frame frames[QUEUE_FRAMES];
	uint8_t free[QUEUE_FRAMES], full[QUEUE_FRAMES]; /* stack of free, ring of full */
	unsigned n_free, n_full, first_full;
	bool closed;
};

int queue_init(struct queue *q);
void queue_done(struct queue *q);
/* A free frame, or NULL at once. */
struct frame *queue_take(struct queue *q);
/* Gives a taken frame to the writer. */
void queue_push(struct queue *q, struct frame *f);
/* Gives a taken frame back unused. */
void queue_return(struct queue *q, struct frame *f);
/* The oldest full frame; waits up to timeout_ns. NULL on timeout, or when closed and empty. */
struct frame *queue_pop(struct queue *q, int64_t timeout_ns);
/* No more will come: wakes the writer, which drains what is left. */
void queue_close(struct queue *q);
bool queue_drained(struct queue *q);

#endif

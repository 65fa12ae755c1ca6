/* SPDX-License-Identifier: MIT */
#include "engine/queue.h"

#include "base/clock.h"

#include <string.h>
#include <time.h>

int queue_init(struct queue *q)
{
	pthread_condattr_t attr;
	int r;

	memset(q, 0, sizeof(*q));
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	r = pthread_cond_init(&q->filled, &attr);
	pthread_condattr_destroy(&attr);
	if (r)
		return -r;
	r = pthread_mutex_init(&q->lock, NULL);
	if (r)
		return -r;
	for (unsigned i = 0; i < QUEUE_FRAMES; i++)
		q->free[q->n_free++] = (uint8_t)(QUEUE_FRAMES - 1 - i);
	return 0;
}

void queue_done(struct queue *q)
{
	for (unsigned i = 0; i < QUEUE_FRAMES; i++)
		frame_done(&q->frames[i]);
	pthread_mutex_destroy(&q->lock);
	pthread_cond_destroy(&q->filled);
}

struct frame *queue_take(struct queue *q)
{
	struct frame *f = NULL;

	pthread_mutex_lock(&q->lock);
	/* Last in, first out: few frames grow warm, and memory stays small. */
	if (q->n_free)
		f = &q->frames[q->free[--q->n_free]];
	pthread_mutex_unlock(&q->lock);
	return f;
}

void queue_return(struct queue *q, struct frame *f)
{
	pthread_mutex_lock(&q->lock);
	q->free[q->n_free++] = (uint8_t)(f - q->frames);
	pthread_mutex_unlock(&q->lock);
}

void queue_push(struct queue *q, struct frame *f)
{
	pthread_mutex_lock(&q->lock);
	q->full[(q->first_full + q->n_full++) % QUEUE_FRAMES] = (uint8_t)(f - q->frames);
	pthread_cond_signal(&q->filled);
	pthread_mutex_unlock(&q->lock);
}

struct frame *queue_pop(struct queue *q, int64_t timeout_ns)
{
	int64_t until = clock_mono_ns() + timeout_ns;
	struct timespec ts = { .tv_sec = until / NS_PER_S, .tv_nsec = until % NS_PER_S };
	struct frame *f = NULL;
	int r = 0;

	pthread_mutex_lock(&q->lock);
	while (!q->n_full && !q->closed && !r)
		r = pthread_cond_timedwait(&q->filled, &q->lock, &ts);
	if (q->n_full) {
		f = &q->frames[q->full[q->first_full]];
		q->first_full = (q->first_full + 1) % QUEUE_FRAMES;
		q->n_full--;
	}
	pthread_mutex_unlock(&q->lock);
	return f;
}

void queue_close(struct queue *q)
{
	pthread_mutex_lock(&q->lock);
	q->closed = true;
	pthread_cond_broadcast(&q->filled);
	pthread_mutex_unlock(&q->lock);
}

bool queue_drained(struct queue *q)
{
	bool drained;

	pthread_mutex_lock(&q->lock);
	drained = q->closed && !q->n_full;
	pthread_mutex_unlock(&q->lock);
	return drained;
}

/* SPDX-License-Identifier: MIT */
#include "push/target.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/map.h"
#include "base/text.h"
#include "base/thread.h"
#include "base/vec.h"
#include "push/client.h"
#include "push/spool.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	BOX_BYTES = 8 << 20, /* what may wait for the thread */
	QUEUE_DISK = 64 << 20,
	QUEUE_MEMORY = 8 << 20,
	BACKOFF_MAX_S = 60,
	END_TRIES = 5, /* failures in a row at the end, then it is given up before its time */
};

/* A request on its way to the queue. */
struct letter {
	char *data;
	size_t n;
	uint32_t samples;
};

struct target {
	/* The thread's own. */
	struct client *client;
	struct spool *queue;
	bool in_memory;
	int64_t backoff_first_ns, backoff_ns, next_ns; /* nothing is sent before next_ns */
	bool told_to_wait;                             /* next_ns is theirs */
	unsigned end_failures;
	uint64_t dice;
	struct buf body;
	atomic_llong stop_ns; /* 0: goes on */

	pthread_mutex_t lock; /* of all below; never held while anything is waited for */
	pthread_cond_t news;
	VEC(struct letter) box;
	size_t box_bytes;
	struct push_stats stats;
	bool ending, ended;
	unsigned owners; /* the thread, and who opened it */
};

static void target_free(struct target *t)
{
	for (size_t i = 0; i < t->box.n; i++)
		free(t->box.v[i].data);
	vec_done(&t->box);
	buf_done(&t->body);
	client_close(t->client);
	spool_close(t->queue);
	pthread_cond_destroy(&t->news);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

/* One owner less; the lock is held, and is not any more. */
static void leave(struct target *t)
{
	bool last = --t->owners == 0;

	pthread_mutex_unlock(&t->lock);
	if (last)
		target_free(t);
}

/* From the box into the queue: the disk may take its time, so the box is taken away whole. */
static void empty_box(struct target *t)
{
	VEC(struct letter) mine = { 0 };

	pthread_mutex_lock(&t->lock);
	mine.v = t->box.v;
	mine.n = t->box.n;
	mine.cap = t->box.cap;
	t->box.v = NULL;
	t->box.n = t->box.cap = t->box_bytes = 0;
	pthread_mutex_unlock(&t->lock);
	for (size_t i = 0; i < mine.n; i++) {
		(void)spool_put(t->queue, mine.v[i].data, mine.v[i].n, mine.v[i].samples);
		free(mine.v[i].data);
	}
	vec_done(&mine);
}

static void copy_queue_stats(struct target *t)
{
	struct push_stats *s = &t->stats;
	struct spool_stats q;

	spool_stats(t->queue, &q);
	s->queue_bytes = q.bytes;
	s->queue_samples = q.samples;
	s->queue_damaged = q.damaged;
	s->dropped_samples[PUSH_DROP_QUEUE_FULL] = q.full_samples;
	s->dropped_samples[PUSH_DROP_DISK] = q.disk_samples;
}

/* Half to all of it, by chance: those that failed together do not come back together. */
static int64_t jitter(struct target *t, int64_t ns)
{
	t->dice = map_mix(t->dice + 1);
	return ns / 2 + (int64_t)(t->dice % (uint64_t)(ns / 2 + 1));
}

static void note_answer(struct target *t, const struct client_answer *a, size_t bytes,
			uint32_t samples)
{
	struct push_stats *s = &t->stats;
	uint64_t rejected = a->rejected < samples ? a->rejected : samples;

	switch (a->verdict) {
	case CLIENT_TAKEN:
		s->sent_requests++;
		s->sent_bytes += bytes;
		s->sent_samples += samples - rejected;
		s->dropped_samples[PUSH_DROP_REFUSED] += rejected;
		if (rejected)
			text_copy(s->refused, sizeof(s->refused),
				  "the collector took some points of a request only");
		s->last_sent_ms = clock_wall_ns() / NS_PER_MS;
		break;
	case CLIENT_REFUSED:
		s->dropped_samples[PUSH_DROP_REFUSED] += samples;
		text_copy(s->refused, sizeof(s->refused), a->words);
		break;
	case CLIENT_AGAIN:
		s->retries++;
	}
	text_copy(s->problem, sizeof(s->problem), a->words);
}

/* The oldest request. False: there is none. */
static bool send_one(struct target *t)
{
	struct client_answer a;
	uint32_t samples;

	if (spool_head(t->queue, &t->body, &samples) < 0)
		return false;
	client_post(t->client, t->body.data, t->body.len, &t->stop_ns, &a);
	t->end_failures =
	    a.verdict == CLIENT_AGAIN && atomic_load(&t->stop_ns) ? t->end_failures + 1 : 0;
	if (a.verdict == CLIENT_AGAIN) {
		t->told_to_wait = a.wait_ns > 0;
		t->next_ns =
		    clock_mono_ns() + (t->told_to_wait ? a.wait_ns : jitter(t, t->backoff_ns));
		t->backoff_ns *= 2;
		if (t->backoff_ns > BACKOFF_MAX_S * NS_PER_S)
			t->backoff_ns = BACKOFF_MAX_S * NS_PER_S;
	} else {
		spool_pop(t->queue);
		t->backoff_ns = t->backoff_first_ns;
		t->next_ns = 0;
	}
	pthread_mutex_lock(&t->lock);
	note_answer(t, &a, t->body.len, samples);
	copy_queue_stats(t);
	pthread_mutex_unlock(&t->lock);
	return true;
}

static struct timespec to_timespec(int64_t ns)
{
	return (struct timespec){ .tv_sec = ns / NS_PER_S, .tv_nsec = ns % NS_PER_S };
}

/* Until something comes, or it is time; 0: no such time. ending: that it is to end is no news. */
static void wait_news(struct target *t, int64_t until_ns, bool ending)
{
	struct timespec until = to_timespec(until_ns);

	pthread_mutex_lock(&t->lock);
	while (!t->box.n && t->ending == ending) {
		if (!until_ns)
			pthread_cond_wait(&t->news, &t->lock);
		else if (pthread_cond_timedwait(&t->news, &t->lock, &until) == ETIMEDOUT)
			break;
	}
	pthread_mutex_unlock(&t->lock);
}

/* At the end there is no time for patience of our own; for theirs there is. */
static int64_t stop_time(struct target *t, bool *told)
{
	int64_t stop = atomic_load(&t->stop_ns);

	if (stop && !*told) {
		*told = true;
		t->backoff_ns = t->backoff_first_ns;
		if (!t->told_to_wait)
			t->next_ns = 0;
	}
	return stop;
}

static void finish(struct target *t)
{
	pthread_mutex_lock(&t->lock);
	copy_queue_stats(t);
	if (t->in_memory)
		t->stats.dropped_samples[PUSH_DROP_END] += t->stats.queue_samples;
	t->ended = true;
	pthread_cond_broadcast(&t->news);
	leave(t);
}

static void *target_main(void *arg)
{
	struct target *t = arg;
	bool told = false;

	for (;;) {
		int64_t stop = stop_time(t, &told), now;

		empty_box(t);
		pthread_mutex_lock(&t->lock);
		copy_queue_stats(t);
		pthread_mutex_unlock(&t->lock);
		now = clock_mono_ns();
		if (stop && (now >= stop || t->end_failures >= END_TRIES))
			break;
		if (now >= t->next_ns) {
			if (send_one(t))
				continue;
			t->next_ns = 0;
			if (stop)
				break;
		}
		wait_news(t, stop && (!t->next_ns || stop < t->next_ns) ? stop : t->next_ns,
			  stop != 0);
	}
	finish(t);
	return NULL;
}

static int make_queue(struct target *t, const struct push_options *o, struct err *e)
{
	uint64_t bytes = o->queue_bytes;
	char path[4096];

	if (!o->queue)
		return spool_open(NULL, bytes ? bytes : QUEUE_MEMORY, &t->queue, e);
	if ((size_t)snprintf(path, sizeof(path), "%s/%s", o->queue,
			     push_kind_name(t->stats.kind)) >= sizeof(path))
		return err_set(e, -ENAMETOOLONG, "the name of the queue folder is too long");
	return spool_open(path, bytes ? bytes : QUEUE_DISK, &t->queue, e);
}

static struct target *target_new(const struct push_options *o, const struct push_address *a)
{
	struct target *t = calloc(1, sizeof(*t));
	pthread_condattr_t monotonic;

	if (!t)
		return NULL;
	pthread_mutex_init(&t->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&t->news, &monotonic);
	pthread_condattr_destroy(&monotonic);
	buf_init(&t->body, SPOOL_RECORD_MAX + 1);
	t->stats.kind = a->kind;
	t->in_memory = !o->queue;
	t->backoff_first_ns = o->backoff_ns > 0 ? o->backoff_ns : NS_PER_S / 2;
	t->backoff_ns = t->backoff_first_ns;
	t->dice = map_mix((uint64_t)clock_mono_ns() ^ (uint64_t)(uintptr_t)t);
	t->owners = 2;
	return t;
}

int target_open(const struct push_options *o, const struct push_address *a, struct target **ret,
		struct err *e)
{
	struct target *t = target_new(o, a);
	int error;

	if (!t)
		return err_set(e, -ENOMEM, "out of memory");
	error = client_open(o, a, &t->client, e);
	if (!error)
		error = make_queue(t, o, e);
	if (!error)
		error = thread_start(NULL, 0, target_main, t);
	if (error < 0) {
		target_free(t);
		return err_set(e, error, "cannot start sending");
	}
	*ret = t;
	return 0;
}

void target_give(struct target *t, struct buf *body, uint32_t samples)
{
	struct letter *l = NULL;

	pthread_mutex_lock(&t->lock);
	t->stats.taken_samples += samples;
	if (!body->failed && t->box_bytes + body->len <= BOX_BYTES)
		l = vec_push(&t->box);
	if (l) {
		*l = (struct letter){ .data = body->data, .n = body->len, .samples = samples };
		t->box_bytes += body->len;
		body->data = NULL;
		body->len = body->cap = 0;
	} else {
		t->stats.dropped_samples[PUSH_DROP_BUSY] += samples;
	}
	pthread_cond_broadcast(&t->news);
	pthread_mutex_unlock(&t->lock);
}

void target_stats(struct target *t, struct push_stats *ret)
{
	pthread_mutex_lock(&t->lock);
	*ret = t->stats;
	pthread_mutex_unlock(&t->lock);
}

void target_end(struct target *t, int64_t deadline_ns)
{
	pthread_mutex_lock(&t->lock);
	t->ending = true;
	atomic_store(&t->stop_ns, deadline_ns);
	pthread_cond_broadcast(&t->news);
	pthread_mutex_unlock(&t->lock);
}

void target_close(struct target *t, int64_t deadline_ns, struct push_stats *ret)
{
	struct timespec until = to_timespec(deadline_ns);

	pthread_mutex_lock(&t->lock);
	while (!t->ended && pthread_cond_timedwait(&t->news, &t->lock, &until) == 0)
		;
	if (ret) {
		*ret = t->stats;
		if (!t->ended && t->in_memory)
			ret->dropped_samples[PUSH_DROP_END] += ret->queue_samples;
	}
	leave(t);
}

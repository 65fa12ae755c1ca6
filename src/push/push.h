/* SPDX-License-Identifier: MIT
 *
 * Sending series out: to anything that takes Prometheus' remote_write or OpenTelemetry's OTLP/HTTP. Each address has a
 * thread and a queue of its own; handing samples over never waits for either of them.
 *
 *	push_open() -> push_take() for each sample, push_flush() behind the last, every so often -> push_close()
 */
#ifndef SPOTTER_PUSH_PUSH_H
#define SPOTTER_PUSH_PUSH_H

#include "model/series.h"
#include "push/otlp.h"

#include <stdbool.h>

struct err;
struct push;

enum push_kind { PUSH_REMOTE_WRITE, PUSH_OTLP };

enum { PUSH_ADDRESSES_MAX = 4, PUSH_HEADERS_MAX = 16 };

struct push_address {
	enum push_kind kind;
	const char *url;
};

struct push_options {
	struct push_address addresses[PUSH_ADDRESSES_MAX];
	size_t addresses_n;
	const char *queue;          /* folder for what cannot be sent yet; NULL: in memory */
	uint64_t queue_bytes;       /* bound of each address; 0: 64 MiB, or 8 in memory */
	const char *token_file;     /* "Authorization: Bearer" what is in it; NULL: none */
	const char *user_file;      /* user:password in it, as basic authorization; NULL: none */
	const char *ca_file;        /* certificates to trust instead of the system's; NULL */
	const char *const *headers; /* "Name: value" */
	size_t headers_n;
	int64_t timeout_ns;       /* of a request; 0: 10 s */
	int64_t backoff_ns;       /* the first wait before a request is sent again; 0: 0.5 s */
	struct push_resource who; /* copied */
};

/* Why samples were not sent, for `spotter_push_dropped_samples_total{reason=}`. */
enum push_drop {
	PUSH_DROP_QUEUE_FULL, /* the oldest, to stay within the bound */
	PUSH_DROP_REFUSED,    /* the other side does not want them: 4xx */
	PUSH_DROP_DISK,       /* the queue's disk did not take them, or lost them */
	PUSH_DROP_BUSY,       /* the thread was stuck, and what it takes over is full */
	PUSH_DROP_END,        /* unsent at the end, and there is no folder to keep them in */
	PUSH_DROPS,
};
const char *push_drop_name(enum push_drop why);
const char *push_kind_name(enum push_kind kind);

struct push_stats {
	enum push_kind kind;
	uint64_t taken_samples; /* by push_take(), since push_open() */
	uint64_t sent_samples, sent_requests, sent_bytes;
	uint64_t retries;
	uint64_t dropped_samples[PUSH_DROPS];
	uint64_t queue_bytes,
	    queue_samples;      /* waiting; bytes with what is sent and not removed yet */
	uint64_t queue_damaged; /* times that a file of the queue was cut */
	int64_t last_sent_ms;   /* since 1970; 0: never */
	char problem[320];      /* what keeps it from being sent now; "" nothing */
	char refused[320];      /* what was said to the last refusal of samples; "" none */
};

/* remote_write or OTLP, by how the address ends (/api/v1/write, /api/v1/push, /v1/metrics). -EINVAL: cannot tell. */
int push_kind_of(const char *url, enum push_kind *ret);

/* Everything a user may have got wrong but for the folder; nothing is started. */
int push_check(const struct push_options *o, struct err *e);
/* Checks it, opens the queues and starts the threads. */
int push_open(const struct push_options *o, struct push **ret, struct err *e);
/* A series_fn, `push` being a struct push: encodes the sample and never waits. Always true. One thread at a time. */
bool push_take(const struct series_sample *s, void *push);
/* What was taken is to be sent, now. Never waits. */
void push_flush(struct push *p);
/* Addresses are numbered as they were given; false: there is no such. */
bool push_stats(struct push *p, size_t address, struct push_stats *ret);
/* Sends what it can within the bound (and hardly a second more), then ends. What is left stays in the folder, or is
 * dropped where there is none. The last figures go into ret[PUSH_ADDRESSES_MAX], which may be NULL. */
void push_close(struct push *p, int64_t flush_ns, struct push_stats *ret);

#endif

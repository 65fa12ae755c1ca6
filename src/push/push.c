/* SPDX-License-Identifier: MIT */
#include "push/push.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "push/client.h"
#include "push/remote_write.h"
#include "push/target.h"
#include "push/url.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	BATCH_SAMPLES = 5000,     /* in a request, hardly more */
	BATCH_BYTES = 1000 << 10, /* of a request before it is compressed */
};

/* An address, and the request for it in the making. */
struct route {
	enum push_kind kind;
	struct target *target;
	struct remote_write write;
	struct otlp otlp;
	uint32_t samples;
};

struct push {
	struct route routes[PUSH_ADDRESSES_MAX];
	size_t n;
	char *host, *run_id;
};

const char *push_drop_name(enum push_drop why)
{
	static const char *const names[] = { [PUSH_DROP_QUEUE_FULL] = "queue_full",
					     [PUSH_DROP_REFUSED] = "refused",
					     [PUSH_DROP_DISK] = "disk",
					     [PUSH_DROP_BUSY] = "busy",
					     [PUSH_DROP_END] = "end" };

	return (size_t)why < ARRAY_LEN(names) ? names[why] : "?";
}

const char *push_kind_name(enum push_kind kind)
{
	return kind == PUSH_OTLP ? "otlp" : "remote-write";
}

static void push_free(struct push *p)
{
	for (size_t i = 0; i < p->n; i++) {
		remote_write_done(&p->routes[i].write);
		otlp_done(&p->routes[i].otlp);
	}
	free(p->host);
	free(p->run_id);
	free(p);
}

static int copy_text(char **into, const char *from)
{
	if (from && !(*into = strdup(from)))
		return -ENOMEM;
	return 0;
}

/* Two of a kind would share a folder, whose lock says so too, less plainly. What one is trusted with is not for the
 * other to know. */
static int check_together(const struct push_options *o, struct err *e)
{
	if (o->addresses_n > PUSH_ADDRESSES_MAX)
		return err_set(e, -EINVAL, "at most %d addresses", PUSH_ADDRESSES_MAX);
	for (size_t i = 1; (o->token_file || o->user_file) && i < o->addresses_n; i++) {
		if (url_same_host(o->addresses[0].url, o->addresses[i].url))
			continue;
		err_set(e, -EINVAL, "one host's credentials would be sent to the other, too");
		err_hint(e, "push to one of them, and let that pass it on");
		return -EINVAL;
	}
	for (size_t i = 0; o->queue && i < o->addresses_n; i++)
		for (size_t k = 0; k < i; k++)
			if (o->addresses[i].kind == o->addresses[k].kind)
				return err_set(e, -EINVAL,
					       "with a queue folder, one address of each kind");
	return 0;
}

int push_check(const struct push_options *o, struct err *e)
{
	int error = check_together(o, e);

	for (size_t i = 0; !error && i < o->addresses_n; i++) {
		struct client *c = NULL;

		error = client_open(o, &o->addresses[i], &c, e);
		client_close(c);
	}
	return error;
}

int push_open(const struct push_options *o, struct push **ret, struct err *e)
{
	struct push *p = calloc(1, sizeof(*p));
	int error = p ? check_together(o, e) : err_set(e, -ENOMEM, "out of memory");

	if (!error && (copy_text(&p->host, o->who.host) || copy_text(&p->run_id, o->who.run_id)))
		error = err_set(e, -ENOMEM, "out of memory");
	for (size_t i = 0; !error && i < o->addresses_n; i++) {
		struct route *r = &p->routes[i];

		r->kind = o->addresses[i].kind;
		error = target_open(o, &o->addresses[i], &r->target, e);
		p->n += !error;
	}
	if (error < 0) {
		if (p)
			push_close(p, 0, NULL);
		return error;
	}
	*ret = p;
	return 0;
}

static void cut(struct push *p, struct route *r)
{
	struct push_resource who = { .host = p->host, .run_id = p->run_id };
	auto_done(buf) struct buf body = { 0 };

	if (!r->samples)
		return;
	if (r->kind == PUSH_OTLP)
		otlp_end(&r->otlp, &who, &body);
	else
		remote_write_end(&r->write, &body);
	if (body.len || body.failed)
		target_give(r->target, &body, r->samples);
	r->samples = 0;
}

/* Not between the parts of a histogram. */
static bool may_cut(const struct series_sample *s)
{
	return s->part == SERIES_VALUE || s->part == SERIES_COUNT;
}

bool push_take(const struct series_sample *s, void *push)
{
	struct push *p = push;

	for (size_t i = 0; i < p->n; i++) {
		struct route *r = &p->routes[i];
		size_t size;

		r->samples +=
		    r->kind == PUSH_OTLP ? otlp_add(&r->otlp, s) : remote_write_add(&r->write, s);
		size = r->kind == PUSH_OTLP ? otlp_size(&r->otlp) : r->write.request.len;
		if ((r->samples >= BATCH_SAMPLES || size >= BATCH_BYTES) && may_cut(s))
			cut(p, r);
	}
	return true;
}

void push_flush(struct push *p)
{
	for (size_t i = 0; i < p->n; i++)
		cut(p, &p->routes[i]);
}

bool push_stats(struct push *p, size_t address, struct push_stats *ret)
{
	if (address >= p->n)
		return false;
	target_stats(p->routes[address].target, ret);
	return true;
}

void push_close(struct push *p, int64_t flush_ns, struct push_stats *ret)
{
	int64_t deadline = clock_mono_ns() + flush_ns;

	push_flush(p);
	for (size_t i = 0; i < p->n; i++)
		target_end(p->routes[i].target, deadline);
	/* libcurl looks at its clock once a second while nothing moves. */
	for (size_t i = 0; i < p->n; i++)
		target_close(p->routes[i].target, deadline + NS_PER_S + NS_PER_S / 4,
			     ret ? &ret[i] : NULL);
	push_free(p);
}

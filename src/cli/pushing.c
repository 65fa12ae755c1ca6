/* SPDX-License-Identifier: MIT */
#include "cli/pushing.h"

#include "agent/series.h"
#include "base/auto.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/text.h"
#include "cli/command.h"

#include <errno.h>
#include <math.h>
#include <string.h>

enum { EVERY_S = 15, FLUSH_S = 3 };

bool pushing_wanted(const struct pushing_options *o)
{
	return o->remote_write || o->otlp || o->url;
}

static int kind_of(const struct pushing_options *o, enum push_kind *ret, struct err *e)
{
	if (o->as) {
		*ret = strcmp(o->as, "otlp") == 0 ? PUSH_OTLP : PUSH_REMOTE_WRITE;
		return 0;
	}
	if (push_kind_of(o->url, ret) == 0)
		return 0;
	err_set(e, -EINVAL, "cannot tell from its end what this address takes");
	err_hint(e, "remote_write is .../api/v1/write, OTLP .../v1/metrics; or say --push-as");
	return -EINVAL;
}

static int fill(const struct pushing_options *o, struct push_options *ret, struct err *e)
{
	int error = 0;

	*ret = (struct push_options){ .queue = o->queue,
				      .queue_bytes = o->queue_bytes,
				      .token_file = o->token_file,
				      .user_file = o->user_file,
				      .ca_file = o->ca_file,
				      .headers = o->headers.v,
				      .headers_n = o->headers.n };
	if (o->remote_write)
		ret->addresses[ret->addresses_n++] =
		    (struct push_address){ PUSH_REMOTE_WRITE, o->remote_write };
	if (o->otlp)
		ret->addresses[ret->addresses_n++] = (struct push_address){ PUSH_OTLP, o->otlp };
	if (o->url) {
		struct push_address *a = &ret->addresses[ret->addresses_n++];

		a->url = o->url;
		error = kind_of(o, &a->kind, e);
	}
	return error;
}

int pushing_check(const struct pushing_options *o, struct err *e)
{
	struct push_options po;
	int error = fill(o, &po, e);

	return error < 0 ? error : push_check(&po, e);
}

int pushing_open(const struct pushing_options *o, const struct push_resource *who,
		 struct push **ret, struct err *e)
{
	struct push_options po;
	int error = fill(o, &po, e);

	po.who = *who;
	return error < 0 ? error : push_open(&po, ret, e);
}

static void take_node(const struct agent_view *v, void *arg)
{
	text_copy(arg, sizeof(v->node), v->node);
}

int agent_push_start(struct agent_push *p, const struct cli *cli, const struct pushing_options *o,
		     struct agent *a, struct err *e)
{
	char node[sizeof(((struct agent_view *)0)->node)];

	*p = (struct agent_push){ .cli = cli,
				  .every_ns = o->every_ns ? o->every_ns : EVERY_S * NS_PER_S };
	if (!pushing_wanted(o))
		return 0;
	agent_with_view(a, take_node, node);
	return pushing_open(o, &(struct push_resource){ .host = node }, &p->push, e);
}

static void give_view(const struct agent_view *v, void *arg)
{
	struct agent_push *p = arg;

	/* Two values of one series at one time are a mistake, and these below would be. */
	if (v->time_ms <= p->given_ms)
		return;
	p->given_ms = v->time_ms;
	(void)(agent_series_each(v, push_take, p->push) &&
	       agent_push_series(v, push_take, p->push, p));
}

static void give(struct agent_push *p, struct agent *a)
{
	agent_with_view(a, give_view, p);
	push_flush(p->push);
}

/* Once when it begins to fail, once when it is over: a log is read by people. */
static void say_problems(struct agent_push *p)
{
	struct push_stats s;

	for (size_t i = 0; push_stats(p->push, i, &s); i++) {
		bool fails = s.problem[0] != 0;

		if (fails && !p->told[i])
			cli_say(p->cli, "spotter: cannot push: %s", s.problem);
		else if (!fails && p->told[i])
			cli_say(p->cli, "spotter: pushing by %s works again",
				push_kind_name(s.kind));
		p->told[i] = fails;
	}
}

void agent_push_tick(struct agent_push *p, struct agent *a)
{
	int64_t now = clock_mono_ns();

	if (!p->push)
		return;
	say_problems(p);
	if (now < p->next_ns)
		return;
	p->next_ns = now + p->every_ns;
	give(p, a);
}

void agent_push_stop(struct agent_push *p, struct agent *a)
{
	if (!p->push)
		return;
	give(p, a);
	push_close(p->push, FLUSH_S * NS_PER_S, NULL);
	p->push = NULL;
}

enum push_family { SENT, SENT_BYTES, REQUESTS, RETRIES, DROPPED, QUEUE_BYTES, QUEUE_SAMPLES, LAST };

static const struct series_family push_families[] = {
	[SENT] = { "spotter_push_sent_samples_total", SERIES_COUNTER, "", "samples that were taken",
		   "" },
	[SENT_BYTES] = { "spotter_push_sent_bytes_total", SERIES_COUNTER, "bytes",
			 "bodies of requests that were taken", "" },
	[REQUESTS] = { "spotter_push_sent_requests_total", SERIES_COUNTER, "",
		       "requests that were taken", "" },
	[RETRIES] = { "spotter_push_retries_total", SERIES_COUNTER, "",
		      "requests that failed and are sent again", "" },
	[DROPPED] = { "spotter_push_dropped_samples_total", SERIES_COUNTER, "",
		      "samples that never arrive, by reason", "" },
	[QUEUE_BYTES] = { "spotter_push_queue_bytes", SERIES_GAUGE, "bytes",
			  "size of the queue of what is to be sent", "" },
	[QUEUE_SAMPLES] = { "spotter_push_queue_samples", SERIES_GAUGE, "",
			    "samples that wait in it", "" },
	[LAST] = { "spotter_push_last_success_timestamp_seconds", SERIES_GAUGE, "seconds",
		   "when a request was taken last, since 1970", "" },
};

static double value_of(const struct push_stats *s, enum push_family f)
{
	switch (f) {
	case SENT:
		return (double)s->sent_samples;
	case SENT_BYTES:
		return (double)s->sent_bytes;
	case REQUESTS:
		return (double)s->sent_requests;
	case RETRIES:
		return (double)s->retries;
	case QUEUE_BYTES:
		return (double)s->queue_bytes;
	case QUEUE_SAMPLES:
		return (double)s->queue_samples;
	case LAST:
		return s->last_sent_ms ? (double)s->last_sent_ms / 1e3 : NAN;
	default:
		return NAN;
	}
}

static bool put_family(struct series_walk *w, const struct push_stats *s, enum push_family f)
{
	unsigned reasons = f == DROPPED ? PUSH_DROPS : 1;
	bool more = true;

	for (unsigned i = 0; more && i < reasons; i++) {
		walk_begin(w, &push_families[f]);
		walk_label(w, "protocol", s->kind == PUSH_OTLP ? "otlp" : "remote_write");
		if (f == DROPPED)
			walk_label(w, "reason", push_drop_name((enum push_drop)i));
		more = walk_put(w, f == DROPPED ? (double)s->dropped_samples[i] : value_of(s, f));
	}
	return more;
}

bool agent_push_series(const struct agent_view *v, series_fn fn, void *arg, void *push)
{
	struct agent_push *p = push;
	struct series_walk w = { .view = v, .fn = fn, .arg = arg };
	bool more = true;

	for (size_t f = 0; p->push && more && f < ARRAY_LEN(push_families); f++) {
		struct push_stats s;

		for (size_t i = 0; more && push_stats(p->push, i, &s); i++)
			more = put_family(&w, &s, (enum push_family)f);
	}
	return more;
}

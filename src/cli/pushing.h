/* SPDX-License-Identifier: MIT
 *
 * Sending series out, for `agent` and `run`: the options both have, and the agent's share.
 */
#ifndef SPOTTER_CLI_PUSHING_H
#define SPOTTER_CLI_PUSHING_H

#include "agent/agent.h"
#include "base/opt.h"
#include "model/series.h"
#include "push/push.h"

struct cli;

struct pushing_options {
	const char *remote_write, *otlp; /* of the agent */
	const char *url, *as;            /* of a run */
	const char *queue;
	uint64_t queue_bytes;
	const char *token_file, *user_file, *ca_file;
	struct opt_list headers;
	int64_t every_ns; /* 0: the command's own */
	int64_t flush_ns; /* of a run */
};

/* What goes along, however it is sent. */
#define PUSHING_OPTS(type, field, default_)                                           \
	OPT("push-every", 0, OPT_DURATION, "TIME", type, field.every_ns,              \
	    "time between two pushes (default " default_ ")", .min = 1, .max = 3600), \
	    OPT("push-token-file", 0, OPT_STRING, "FILE", type, field.token_file,     \
		"send what is in FILE as bearer token"),                              \
	    OPT("push-user-file", 0, OPT_STRING, "FILE", type, field.user_file,       \
		"send USER:PASSWORD in FILE as basic authorization"),                 \
	    OPT("push-ca", 0, OPT_STRING, "FILE", type, field.ca_file,                \
		"certificates to trust for https instead of the system's"),           \
	    OPT("push-header", 0, OPT_LIST, "'NAME: VALUE'", type, field.headers,     \
		"send this header along, a tenant's for instance; may be given several times")

bool pushing_wanted(const struct pushing_options *o);
/* Everything that can be checked before anything is started. */
int pushing_check(const struct pushing_options *o, struct err *e);
int pushing_open(const struct pushing_options *o, const struct push_resource *who,
		 struct push **ret, struct err *e);

/* The agent's: pushes its view every so often; all zero: nothing is pushed. */
struct agent_push {
	const struct cli *cli;
	struct push *push;
	int64_t every_ns, next_ns;
	int64_t given_ms;              /* time of the view that was pushed last */
	bool told[PUSH_ADDRESSES_MAX]; /* that it cannot be sent */
};

int agent_push_start(struct agent_push *p, const struct cli *cli, const struct pushing_options *o,
		     struct agent *a, struct err *e);
/* After each tick of the agent. Never waits. */
void agent_push_tick(struct agent_push *p, struct agent *a);
/* Sends the last view within a few seconds. */
void agent_push_stop(struct agent_push *p, struct agent *a);
/* spotter_push_*: how the pushing itself goes. `push` is a struct agent_push. */
bool agent_push_series(const struct agent_view *v, series_fn fn, void *arg, void *push);

#endif

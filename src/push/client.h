/* SPDX-License-Identifier: MIT
 *
 * One HTTP client for one address: posts a body, and says by the rules of the protocol whether it is to be sent again.
 * TLS certificates are checked; proxies are as curl takes them from the environment; redirects are not followed, as
 * credentials would go along. Credentials come from files, read anew for every request (they may be rotated), and are
 * in no message.
 */
#ifndef SPOTTER_PUSH_CLIENT_H
#define SPOTTER_PUSH_CLIENT_H

#include "push/push.h"

#include <stdatomic.h>

struct err;
struct client;

enum client_verdict {
	CLIENT_TAKEN,
	CLIENT_AGAIN,   /* the network, or they say so: later */
	CLIENT_REFUSED, /* it never will be taken */
};

struct client_answer {
	enum client_verdict verdict;
	long status;       /* of HTTP; 0: none came */
	int64_t wait_ns;   /* Retry-After; 0: it did not say */
	uint64_t rejected; /* taken, but for so many samples */
	char words[240];   /* what happened, safe to show; "" when taken */
};

/* Checks the address and what goes along; nothing is sent, and libcurl not loaded. */
int client_open(const struct push_options *o, const struct push_address *a, struct client **ret,
		struct err *e);
void client_close(struct client *c);
/* Loads libcurl at its first call, which may take its time. Ends by the time limit, or soon after *stop_ns (monotonic;
 * 0: never) has passed. */
void client_post(struct client *c, const void *body, size_t n, const atomic_llong *stop_ns,
		 struct client_answer *ret);
/* The address without what may be secret: scheme, host, port and path. */
const char *client_shown(const struct client *c);

/* The rules, apart: what a status means. */
enum client_verdict client_judge(enum push_kind kind, long status);

#endif

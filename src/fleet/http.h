/* SPDX-License-Identifier: MIT
 *
 * Asking an engine over HTTP, by the libcurl that src/push/curl.c loads. TLS certificates are checked; proxies are as curl
 * takes them from the environment; redirects are not followed, as credentials would go along. Credentials come
 * from a file or from the environment, and are in no message.
 */
#ifndef SPOTTER_FLEET_HTTP_H
#define SPOTTER_FLEET_HTTP_H

#include <stddef.h>
#include <stdint.h>

struct buf;
struct err;
struct http;

enum { HTTP_BODY_MAX = 96 << 20 };

struct http_options {
	const char *url;            /* as the user gave it: what has /api/v1/query below it */
	const char *token_file;     /* NULL: $SPOTTER_PROMETHEUS_TOKEN, where it is set */
	const char *user_file;      /* user:password in it; NULL: $SPOTTER_PROMETHEUS_USER */
	const char *ca_file;        /* NULL: the system's */
	const char *const *headers; /* "X-Scope-OrgID: team" */
	size_t headers_n;
	int64_t timeout_ns; /* of one request */
};

/* Checks all that a user may have got wrong; nothing is sent. */
int http_open(const struct http_options *o, struct http **ret, struct err *e);
void http_close(struct http *h);
/* GET of an address below the user's ("/api/v1/query?query=..."); the body in place of what `out` held. Anything but
 * status 200 is an error, with what the other side says. */
int http_get(struct http *h, const char *path, struct buf *out, struct err *e);
/* The user's address without what may be secret. */
const char *http_shown(const struct http *h);

/* The address to ask, of what people paste: without a slash or /api/v1/query at its end. Pure; *ret to free. */
int http_base(const char *url, char **ret, struct err *e);

#endif

/* SPDX-License-Identifier: MIT
 *
 * The smallest HTTP server that a scraper needs: GET and HEAD, one answer a connection, a few connections at a time, each with a
 * deadline. One thread, no dependency. For pages and streams there is src/web.
 */
#ifndef SPOTTER_AGENT_HTTP_H
#define SPOTTER_AGENT_HTTP_H

#include "base/buf.h"

struct err;
struct http;

enum { HTTP_CONNECTIONS = 32, HTTP_REQUEST_MAX = 8192 };

struct http_request {
	const char *path;   /* without what is behind '?' */
	const char *accept; /* header, NULL: none */
};

struct http_answer {
	int status;
	const char *type; /* static */
	struct buf body;
};

/* Called in the server's thread. */
typedef void (*http_fn)(const struct http_request *q, struct http_answer *ret, void *arg);

/* at: "127.0.0.1:9815", "[::1]:0", ":9815" (all addresses). Starts the thread. */
int http_start(const char *at, http_fn fn, void *arg, struct http **ret, struct err *e);
/* "127.0.0.1:40123": where it really listens. */
const char *http_address(const struct http *h);
/* Only this machine can reach it. */
bool http_is_local(const struct http *h);
void http_stop(struct http *h);

/* http_parse.c, pure. The head of a request, up to and with the empty line. */
enum http_parsed { HTTP_MORE, HTTP_OK, HTTP_BAD };
struct http_head {
	bool head_only; /* HEAD */
	bool other;     /* a method that is neither */
	char path[256];
	char accept[512]; /* "" none */
	char host[256];   /* "" none */
};
enum http_parsed http_parse(const char *text, size_t n, struct http_head *ret);
/* "localhost:80", "127.0.0.1", "[::1]:9815": names no page of another site can have. */
bool http_host_is_local(const char *host);
/* "[::1]:80" -> "::1", "80"; false when there is no port. */
bool http_split(const char *at, char *host, size_t host_size, char *port, size_t port_size);

#endif

/* SPDX-License-Identifier: MIT
 *
 * One request on its way, and what the parts of the server share. Private to http_*.c.
 */
#ifndef SPOTTER_WEB_HTTP_VISIT_H
#define SPOTTER_WEB_HTTP_VISIT_H

#include "web/http_lib.h"
#include "web/serve_desk.h"
#include "web/serve_request.h"

enum {
	LINES = 64, /* connections at a time; more wait to be taken */
	LINE_BYTES =
	    32768, /* memory of one: line and headers of a request, and what is on its way out */
	LINE_IDLE_S = 15, /* nothing comes and nothing goes: closed */
	REQUEST_S = 10,   /* from the first byte of a request to the last of its headers */
	CROWDED_S = 1,    /* the same while all lines are in use: others wait for them */
	STREAMS = 32,     /* viewers of events */
	PING_S = 5,       /* so that a viewer who is gone is noticed */
};

struct server;

/* A connection, for the time between two requests: a browser's, or of somebody who never asks. */
struct line {
	bool used;
	int fd;
	int64_t since_ns; /* that it has asked nothing; 0: a request is being answered */
};

struct visit {
	struct server *server;
	struct MHD_Connection *connection;
	struct visit *next, **self;         /* in the server's list */
	char target[SERVE_TARGET_MOST + 2]; /* as it came; too long: one byte more than allowed */
	struct serve_decision decision;
	bool decided;
	bool asleep;     /* suspended: till the desk has something */
	int item;        /* at the desk; -1 none */
	uint64_t waited; /* `made` of the item when it began to wait */
	/* events */
	bool streaming, greeted, over, pinged;
	uint64_t sent; /* version */
	struct paper *paper;
	size_t at;      /* of it, that is sent */
	char note[320]; /* a short event */
	size_t note_at, note_n;
};

struct server {
	struct http_lib lib;
	struct MHD_Daemon *daemon;
	const struct serve_self *self;
	struct desk *desk;
	struct line lines[LINES];
	struct visit *visits;
	unsigned streams;
	int64_t ping_ns;
	unsigned alone; /* rounds without a connection */
	bool ending;
};

/* http_answer.c: queues an answer to the visit. */
enum MHD_Result http_answer(struct visit *v);
enum MHD_Result http_refuse(struct visit *v, unsigned status, const char *why);
/* The headers that every answer has. type: of its content. */
struct MHD_Response *http_dress(struct server *s, struct MHD_Response *r, const char *type);

/* http_stream.c: an answer without an end. */
enum MHD_Result http_stream(struct visit *v);
void http_stream_done(struct visit *v);
/* Is there something for one that sleeps? */
bool http_stream_due(struct visit *v);

#endif

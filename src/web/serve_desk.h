/* SPDX-License-Identifier: MIT
 *
 * What viewers look at, made by one thread of its own so that no request ever waits for another: the list
 * of runs, and the story of each run that somebody has open. It is made once for all viewers together, a
 * run that goes on at most once a second and never so often that it takes more than a twentieth of a
 * core: the run it is about needs that core.
 *
 * The calls are those of the server's thread; the desk tells it by an eventfd that something is new.
 */
#ifndef SPOTTER_WEB_SERVE_DESK_H
#define SPOTTER_WEB_SERVE_DESK_H

#include "web/serve_request.h"

struct desk;
struct err;

/* Different things looked at at a time: more than there can be viewers. */
enum { DESK_ITEMS = 72 };

/* JSON, framed as an event of a stream: "id: 7\nevent: run\ndata: {...}\n\n". Shared; never changes. */
struct paper {
	unsigned users; /* the desk's lock guards it */
	size_t n;       /* of the whole event */
	size_t json, json_n;
	char text[];
};

struct desk_view {
	unsigned status;     /* 200, 404, 500; 0: not made yet */
	uint64_t version;    /* of the paper: grows with every one; 0 none */
	struct paper *paper; /* to be given back; NULL unless 200 */
	bool live;           /* there will be another one */
	bool fresh;          /* as new as it gets */
	uint64_t made; /* how often it was looked for: one who waits, waits for a change of it */
	char why[200]; /* status is an error */
};

int desk_open(struct desk **ret, struct err *e);
/* Waits a bounded time for what is being made. */
void desk_close(struct desk *d);
/* Readable when something is new; desk_heard() makes it quiet again. */
int desk_fd(const struct desk *d);
void desk_heard(struct desk *d);

/* Somebody looks at a run, or at the list (""): its number, or -EBUSY. While anybody does it is kept new. */
int desk_take(struct desk *d, const char *run);
void desk_leave(struct desk *d, int item);
void desk_look(struct desk *d, int item, struct desk_view *ret);
void desk_give_back(struct desk *d, struct paper *p);

#endif

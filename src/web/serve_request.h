/* SPDX-License-Identifier: MIT
 *
 * What a request may have: decided from its line and headers alone, before anything is opened. Pure, so
 * that it is tested and fuzzed without a socket.
 *
 * Who may ask: whoever has the token, which is in the address that `spotter serve` prints and, from the
 * first visit on, in a cookie. A page from elsewhere that a browser of the user has open must not get
 * through: its requests come with the name it was loaded from as Host (a name that was made to lead
 * here, "DNS rebinding") or say themselves that they are from another site.
 */
#ifndef SPOTTER_WEB_SERVE_REQUEST_H
#define SPOTTER_WEB_SERVE_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	SERVE_TARGET_MOST = 200, /* bytes of a path with its query: ours have 80 at most */
	SERVE_ID_MOST = 39,      /* of a run's id */
	SERVE_TOKEN = 32,        /* digits: 128 bits */
	SERVE_NAME_MOST = 80,    /* "[fe80::1234:5678:9abc:def0]:65535" */
	SERVE_NAMES = 12,
};

/* As it came. NULL: there is no such header. */
struct serve_request {
	const char *method, *target, *host, *origin, *fetch_site, *fetch_mode, *cookie, *last_event;
	bool doubled; /* one of these headers came twice: whom to believe is not known */
};

/* What the server is. */
struct serve_self {
	int port;
	char names[SERVE_NAMES][SERVE_NAME_MOST]; /* what Host may say, with the port, lower case */
	size_t n_names;
	bool
	    any_address; /* it hears all addresses of the machine: each may be asked for by number */
	char token[SERVE_TOKEN + 1];
	char cookie[24]; /* its name. Cookies do not know ports: each server has its own */
};

enum serve_route {
	ROUTE_NONE,        /* refused */
	ROUTE_ENTER,       /* the right token in the address: a cookie, and on to the page */
	ROUTE_LIST_PAGE,   /* / */
	ROUTE_RUN_PAGE,    /* /run/ID */
	ROUTE_APP,         /* /app.js: the report's own script */
	ROUTE_SCRIPT,      /* /serve.js */
	ROUTE_STYLE,       /* /app.css */
	ROUTE_RUNS,        /* /api/runs */
	ROUTE_RUN,         /* /api/run/ID */
	ROUTE_RUNS_EVENTS, /* /events */
	ROUTE_RUN_EVENTS,  /* /events/ID */
};

struct serve_decision {
	enum serve_route route;
	unsigned status;             /* of the answer, when all goes well: 200, 303; or why not */
	const char *why;             /* refused: a sentence */
	char run[SERVE_ID_MOST + 1]; /* "" none */
	char to[64];                 /* ENTER: the page to go to */
	bool
	    from_elsewhere; /* ENTER by a link on another site: its redirect would come without cookie */
	uint64_t seen;      /* Last-Event-ID; 0 none */
};

struct serve_decision serve_decide(const struct serve_self *self, const struct serve_request *r);

/* Letters, digits, '-', '_' and '.' behind the first: what an id has, and no path. */
bool serve_id_ok(const char *id, size_t n);
/* Takes as long for any two texts of this length. */
bool serve_same_token(const char *token, const char *given, size_t n);

#endif

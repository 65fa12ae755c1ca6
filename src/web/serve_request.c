/* SPDX-License-Identifier: MIT */
#include "web/serve_request.h"

#include "base/auto.h"
#include "base/text.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static const char elsewhere[] = "this was asked for by a page from elsewhere";
static const char nothing[] = "there is nothing here";

static const struct {
	const char *path;
	bool takes_run; /* an id follows */
	bool page;      /* something a person goes to */
	bool stream;    /* has no end, so it has no head alone either */
	enum serve_route route;
} routes[] = {
	{ "/", false, true, false, ROUTE_LIST_PAGE },
	{ "/run/", true, true, false, ROUTE_RUN_PAGE },
	{ "/app.js", false, false, false, ROUTE_APP },
	{ "/serve.js", false, false, false, ROUTE_SCRIPT },
	{ "/app.css", false, false, false, ROUTE_STYLE },
	{ "/api/runs", false, false, false, ROUTE_RUNS },
	{ "/api/run/", true, false, false, ROUTE_RUN },
	{ "/events", false, false, true, ROUTE_RUNS_EVENTS },
	{ "/events/", true, false, true, ROUTE_RUN_EVENTS },
};

static struct serve_decision refuse(unsigned status, const char *why)
{
	return (struct serve_decision){ .status = status, .why = why };
}

bool serve_id_ok(const char *id, size_t n)
{
	if (!n || n > SERVE_ID_MOST || id[0] == '.')
		return false;
	for (size_t i = 0; i < n; i++) {
		char c = id[i];

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		      c == '-' || c == '_' || c == '.'))
			return false;
	}
	return true;
}

bool serve_same_token(const char *token, const char *given, size_t n)
{
	unsigned char differs = n != SERVE_TOKEN;

	for (size_t i = 0; i < SERVE_TOKEN; i++)
		differs |= (unsigned char)(token[i] ^ (i < n ? given[i] : '\0'));
	/* An empty token is none, and nobody has it. */
	return !differs && token[0];
}

/* "10.0.0.7:7768", "[fe80::1]:7768": no name that somebody could make lead here. */
static bool is_number_with_port(const char *host, int port)
{
	char address[SERVE_NAME_MOST], tail[16];
	unsigned char raw[16];
	const char *colon = strrchr(host, ':');
	size_t n = colon ? (size_t)(colon - host) : 0;

	snprintf(tail, sizeof(tail), ":%d", port);
	if (!n || n >= sizeof(address) || strcmp(colon, tail) != 0)
		return false;
	memcpy(address, host, n);
	address[n] = '\0';
	if (address[0] != '[')
		return inet_pton(AF_INET, address, raw) == 1;
	if (address[n - 1] != ']')
		return false;
	address[n - 1] = '\0';
	return inet_pton(AF_INET6, address + 1, raw) == 1;
}

static bool host_is_ours(const struct serve_self *self, const char *host)
{
	for (size_t i = 0; i < self->n_names; i++)
		if (strcasecmp(self->names[i], host) == 0)
			return true;
	return self->any_address && is_number_with_port(host, self->port);
}

/* "spotter-7768=0123...; theirs=1" */
static bool cookie_ok(const struct serve_self *self, const char *cookies)
{
	size_t name = strlen(self->cookie);
	bool ok = false;

	while (cookies && *cookies) {
		size_t n;

		cookies += strspn(cookies, "; ");
		n = strcspn(cookies, ";");
		if (n > name && memcmp(cookies, self->cookie, name) == 0 && cookies[name] == '=')
			ok |= serve_same_token(self->token, cookies + name + 1, n - name - 1);
		cookies += n;
	}
	return ok;
}

/* The path up to its query, and the token where the query is one. False: nothing of ours. */
struct target {
	size_t path_n;
	const char *token;
	bool has_query;
};

static bool read_target(const char *text, struct target *ret)
{
	size_t n = strnlen(text, SERVE_TARGET_MOST + 1);
	const char *query = strchr(text, '?');

	for (size_t i = 0; i < n; i++)
		if (text[i] <= ' ' || text[i] > '~')
			return false;
	*ret = (struct target){ .path_n = query ? (size_t)(query - text) : n, .has_query = query };
	if (query && strncmp(query, "?token=", 7) == 0)
		ret->token = query + 7;
	return text[0] == '/';
}

static const char *wrong_sender(const struct serve_self *self, const struct serve_request *r)
{
	const char *site = r->fetch_site;
	bool goes_there = r->fetch_mode && strcmp(r->fetch_mode, "navigate") == 0;

	if (r->doubled)
		return "a header came twice";
	if (!r->host || !host_is_ours(self, r->host))
		return "this server is not called that: open the address that 'spotter serve' "
		       "printed (through 'ssh -L', with the same port at both ends)";
	if (r->origin &&
	    (strncmp(r->origin, "http://", 7) != 0 || strcasecmp(r->origin + 7, r->host) != 0))
		return elsewhere;
	if (!site || strcmp(site, "same-origin") == 0 || strcmp(site, "none") == 0)
		return NULL;
	/* A link on a page of another port of this machine (a notebook's), or of another site to the
	 * address with the token: a person went there. */
	if (goes_there && (strcmp(site, "same-site") == 0 || strcmp(site, "cross-site") == 0))
		return NULL;
	return elsewhere;
}

/* Pages may be gone to from other ports of this machine. The cookie does not come along from another site;
 * from a browser that sends it anyway it counts for nothing. */
static bool asked_elsewhere(const struct serve_request *r, bool page)
{
	const char *site = r->fetch_site;

	if (!site || strcmp(site, "same-origin") == 0 || strcmp(site, "none") == 0)
		return false;
	return !page || strcmp(site, "cross-site") == 0;
}

static uint64_t number_of(const char *text)
{
	uint64_t n = 0;

	if (!text || !*text || strlen(text) > 18)
		return 0;
	for (; *text; text++) {
		if (*text < '0' || *text > '9')
			return 0;
		n = n * 10 + (uint64_t)(*text - '0');
	}
	return n;
}

static struct serve_decision find_route(const struct serve_request *r, const struct target *t,
					bool *ret_page, bool *ret_stream)
{
	for (size_t i = 0; i < ARRAY_LEN(routes); i++) {
		size_t n = strlen(routes[i].path), left = t->path_n - n;
		struct serve_decision d = { .route = routes[i].route, .status = 200 };

		if (t->path_n < n || memcmp(r->target, routes[i].path, n) != 0)
			continue;
		if (routes[i].takes_run ? !serve_id_ok(r->target + n, left) : left != 0)
			continue;
		if (routes[i].takes_run)
			memcpy(d.run, r->target + n, left);
		*ret_page = routes[i].page;
		*ret_stream = routes[i].stream;
		return d;
	}
	return refuse(404, nothing);
}

static struct serve_decision enter(const struct serve_request *r, const struct target *t)
{
	struct serve_decision d = { .route = ROUTE_ENTER, .status = 303 };

	if (t->path_n >= sizeof(d.to))
		return refuse(404, nothing);
	memcpy(d.to, r->target, t->path_n);
	d.from_elsewhere = r->fetch_site && strcmp(r->fetch_site, "cross-site") == 0;
	if (d.from_elsewhere)
		d.status = 200;
	return d;
}

struct serve_decision serve_decide(const struct serve_self *self, const struct serve_request *r)
{
	bool head = r->method && strcmp(r->method, "HEAD") == 0, page = false, stream = false;
	struct serve_decision d;
	const char *wrong;
	struct target t;

	if (!r->method || (!head && strcmp(r->method, "GET") != 0))
		return refuse(405, "this server only shows: GET and HEAD");
	if (!r->target || strnlen(r->target, SERVE_TARGET_MOST + 1) > SERVE_TARGET_MOST)
		return refuse(414, "the address is too long");
	if (!read_target(r->target, &t))
		return refuse(400, "this is not an address of this server");
	wrong = wrong_sender(self, r);
	if (wrong)
		return refuse(403, wrong);
	d = find_route(r, &t, &page, &stream);
	if (page && t.token && serve_same_token(self->token, t.token, strlen(t.token)))
		return enter(r, &t);
	if (!cookie_ok(self, r->cookie))
		return refuse(403, "the token is missing or old: open the address that 'spotter "
				   "serve' printed");
	if (asked_elsewhere(r, page))
		return refuse(403, elsewhere);
	if (!d.route || (t.has_query && !(t.token && page)))
		return refuse(404, nothing);
	/* With the cookie an old token in the address does no harm; it leaves it all the same. */
	if (t.token)
		return enter(r, &t);
	if (stream && head)
		return refuse(405, "a stream of events has no end: GET only");
	d.seen = number_of(r->last_event);
	return d;
}

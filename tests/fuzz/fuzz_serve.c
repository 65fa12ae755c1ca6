/* SPDX-License-Identifier: MIT
 *
 * A request to the dashboard, a line for each part of it: method, target, Host, Origin, Sec-Fetch-Site,
 * Sec-Fetch-Mode, Cookie, Last-Event-ID; a line that is "-" is a header that is not there. The first byte says whether a
 * header came twice and whether all addresses are heard. Whatever it is: who has not the token gets nothing,
 * nor does who calls the server by another name or comes from another page; what is looked up is never a path.
 */
#include "fuzz.h"
#include "web/serve_request.h"

#include <string.h>

#define TOKEN "0123456789abcdef0123456789abcdef"

enum { PARTS = 8 };

static const struct serve_self self = {
	.port = 7768,
	.names = { "127.0.0.1:7768", "localhost:7768", "[::1]:7768" },
	.n_names = 3,
	.token = TOKEN,
	.cookie = "spotter-7768",
};

static bool has(const char *text, const char *what)
{
	return text && strstr(text, what);
}

/* Independent of how it is decided: what must be there when anything is given out. */
static void check_let_in(const struct serve_request *r, const struct serve_decision *d, bool all)
{
	must(has(r->cookie, TOKEN) || has(r->target, TOKEN), "nobody gets in without the token");
	must(strcmp(r->method, "GET") == 0 || strcmp(r->method, "HEAD") == 0, "it is only looked");
	must(has(r->host, ":7768"), "it is called by its port");
	must(all || has(r->host, "127.0.0.1") || has(r->host, "::1") ||
		 strncmp(r->host, "l", 1) == 0 || strncmp(r->host, "L", 1) == 0,
	     "it is called by its name");
	must(!r->origin || has(r->origin, "http://"), "a page that asks is ours");
	must(!r->doubled, "no header came twice");
	if (r->fetch_site && strcmp(r->fetch_site, "cross-site") == 0)
		must(d->route == ROUTE_ENTER && has(r->target, TOKEN), "other sites get nothing");
	must(d->status == 200 || d->status == 303, "what is given has a status of its own");
}

static void check(const struct serve_request *r, const struct serve_decision *d, bool all)
{
	size_t n = strnlen(d->run, sizeof(d->run));

	must(n <= SERVE_ID_MOST, "an id ends");
	must(!n || serve_id_ok(d->run, n), "what is looked up is an id");
	must(!strchr(d->run, '/') && strcmp(d->run, "..") != 0, "and no path");
	must(strnlen(d->to, sizeof(d->to)) < sizeof(d->to), "where to go ends");
	if (d->route == ROUTE_NONE) {
		must(d->status >= 400 && d->status < 500 && d->why && *d->why,
		     "a refusal says why");
		return;
	}
	check_let_in(r, d, all);
	if (d->route == ROUTE_ENTER)
		must(d->to[0] == '/' && d->to[1] != '/' && !strchr(d->to, '?'),
		     "on to a page of ours");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct serve_self me = self;
	struct serve_request r = { 0 };
	const char **parts[PARTS] = { &r.method,     &r.target,     &r.host,   &r.origin,
				      &r.fetch_site, &r.fetch_mode, &r.cookie, &r.last_event };
	struct serve_decision d;
	char *text, *at;

	if (!n)
		return 0;
	text = malloc(n);
	if (!text)
		return 0;
	memcpy(text, data + 1, n - 1);
	text[n - 1] = '\0';
	r.doubled = data[0] & 1;
	me.any_address = data[0] & 2;
	at = text;
	for (size_t i = 0; i < PARTS && at; i++) {
		char *line = strsep(&at, "\n");

		*parts[i] = strcmp(line, "-") == 0 ? NULL : line;
	}
	d = serve_decide(&me, &r);
	check(&r, &d, me.any_address);
	free(text);
	return 0;
}

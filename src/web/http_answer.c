/* SPDX-License-Identifier: MIT
 *
 * From a decision to an answer.
 */
#include "web/http_visit.h"

#include "base/auto.h"
#include "base/buf.h"
#include "web/assets.h"
#include "web/serve_page.h"

#include <stdio.h>
#include <string.h>

struct MHD_Response *http_dress(struct server *s, struct MHD_Response *r, const char *type)
{
	static const char *const always[][2] = {
		{ "Content-Security-Policy", SERVE_POLICY },
		{ "X-Content-Type-Options", "nosniff" },
		{ "X-Frame-Options", "DENY" },
		{ "Referrer-Policy", "no-referrer" },
		{ "Cross-Origin-Resource-Policy", "same-origin" },
		{ "Cache-Control", "no-store" },
	};

	for (size_t i = 0; i < ARRAY_LEN(always); i++)
		s->lib.MHD_add_response_header(r, always[i][0], always[i][1]);
	s->lib.MHD_add_response_header(r, "Content-Type", type);
	return r;
}

static enum MHD_Result queue(struct visit *v, unsigned status, struct MHD_Response *r)
{
	enum MHD_Result ok = v->server->lib.MHD_queue_response(v->connection, status, r);

	v->server->lib.MHD_destroy_response(r);
	return ok;
}

/* The text is copied unless it stays where it is as long as the program runs. */
static struct MHD_Response *respond(struct visit *v, const char *type, const char *text, size_t n,
				    bool stays)
{
	struct server *s = v->server;
	struct MHD_Response *r = s->lib.MHD_create_response_from_buffer(
	    n, (void *)(uintptr_t)text, stays ? MHD_RESPMEM_PERSISTENT : MHD_RESPMEM_MUST_COPY);

	return r ? http_dress(s, r, type) : NULL;
}

enum MHD_Result http_refuse(struct visit *v, unsigned status, const char *why)
{
	auto_done(buf) struct buf text = { 0 };
	struct MHD_Response *r;

	buf_printf(&text, "spotter: %s\n", why);
	r = respond(v, "text/plain; charset=utf-8", buf_text(&text), text.len, false);
	if (!r)
		return MHD_NO;
	if (status == 405)
		v->server->lib.MHD_add_response_header(r, "Allow", "GET, HEAD");
	if (status == 503)
		v->server->lib.MHD_add_response_header(r, "Retry-After", "10");
	/* Who is refused is not kept waiting for. */
	v->server->lib.MHD_add_response_header(r, "Connection", "close");
	return queue(v, status, r);
}

static enum MHD_Result answer_text(struct visit *v, const char *type, const struct buf *text)
{
	struct MHD_Response *r;

	if (!buf_ok(text))
		return http_refuse(v, 500, "out of memory");
	r = respond(v, type, buf_text(text), text->len, false);
	return r ? queue(v, 200, r) : MHD_NO;
}

static enum MHD_Result answer_asset(struct visit *v, const char *type, const struct asset *a)
{
	struct MHD_Response *r = respond(v, type, a->text, a->size, true);

	return r ? queue(v, 200, r) : MHD_NO;
}

static enum MHD_Result answer_page(struct visit *v)
{
	auto_done(buf) struct buf page = { 0 };

	serve_page(v->decision.run, &page);
	return answer_text(v, "text/html; charset=utf-8", &page);
}

/* The token leaves the address, and stays as a cookie. */
static enum MHD_Result answer_enter(struct visit *v)
{
	const struct serve_self *self = v->server->self;
	auto_done(buf) struct buf page = { 0 };
	struct MHD_Response *r;
	char cookie[120];

	snprintf(cookie, sizeof(cookie), "%s=%s; Path=/; HttpOnly; SameSite=Strict", self->cookie,
		 self->token);
	if (v->decision.from_elsewhere)
		serve_page_enter(v->decision.to, &page);
	r = respond(v, "text/html; charset=utf-8", buf_text(&page), page.len, false);
	if (!r)
		return MHD_NO;
	v->server->lib.MHD_add_response_header(r, "Set-Cookie", cookie);
	if (!v->decision.from_elsewhere)
		v->server->lib.MHD_add_response_header(r, "Location", v->decision.to);
	return queue(v, v->decision.status, r);
}

/* JSON of the desk: at once where it is new enough, else when it has been made. */
static enum MHD_Result answer_made(struct visit *v)
{
	struct server *s = v->server;
	struct desk_view view;
	struct MHD_Response *r = NULL;
	bool first = v->item < 0;
	enum MHD_Result ok = MHD_NO;

	if (first)
		v->item = desk_take(s->desk, v->decision.run);
	if (v->item < 0)
		return http_refuse(v, 503, "too many runs are looked at: close some");
	desk_look(s->desk, v->item, &view);
	if (first)
		v->waited = view.made;
	if (!view.fresh && view.made == v->waited && !s->ending) {
		desk_give_back(s->desk, view.paper);
		v->asleep = true;
		s->lib.MHD_suspend_connection(v->connection);
		return MHD_YES;
	}
	if (s->ending || !view.paper) {
		ok = http_refuse(v, s->ending ? 503 : view.status,
				 s->ending ? "the server ends" : view.why);
	} else {
		r = respond(v, "application/json", view.paper->text + view.paper->json,
			    view.paper->json_n, false);
		ok = r ? queue(v, 200, r) : MHD_NO;
	}
	desk_give_back(s->desk, view.paper);
	return ok;
}

enum MHD_Result http_answer(struct visit *v)
{
	switch (v->decision.route) {
	case ROUTE_NONE:
		break;
	case ROUTE_ENTER:
		return answer_enter(v);
	case ROUTE_LIST_PAGE:
	case ROUTE_RUN_PAGE:
		return answer_page(v);
	case ROUTE_APP:
		return answer_asset(v, "text/javascript; charset=utf-8", &asset_script);
	case ROUTE_SCRIPT:
		return answer_asset(v, "text/javascript; charset=utf-8", &asset_serve);
	case ROUTE_STYLE:
		return answer_asset(v, "text/css; charset=utf-8", &asset_serve_style);
	case ROUTE_RUNS:
	case ROUTE_RUN:
		return answer_made(v);
	case ROUTE_RUNS_EVENTS:
	case ROUTE_RUN_EVENTS:
		return http_stream(v);
	}
	return http_refuse(v, v->decision.status, v->decision.why);
}

/* SPDX-License-Identifier: MIT
 *
 * Server-sent events: a viewer gets what is new, the whole of it, as soon as it has taken what it got
 * before. One that is slow gets fewer, never a queue of old ones.
 *
 *	retry: 2000
 *
 *	id: 1794836062127
 *	event: run
 *	data: {"live":true,...}
 */
#include "web/http_visit.h"

#include "base/buf.h"
#include "base/json.h"

#include <stdio.h>
#include <string.h>

/* Bytes handed over at a time. */
enum { BLOCK = 16384 };

static void note(struct visit *v, const char *text)
{
	v->note_n = (size_t)snprintf(v->note, sizeof(v->note), "%s", text);
	v->note_at = 0;
}

/* event: trouble, data: {"why": "..."} */
static void note_why(struct visit *v, const char *event, const char *why)
{
	char text[sizeof(v->note)];
	struct buf b = { .max = sizeof(text) - 40 };
	struct json j;

	json_init(&j, &b, false);
	json_begin(&j, '{');
	json_key_str(&j, "why", why);
	json_end(&j, '}');
	snprintf(text, sizeof(text), "event: %s\ndata: %s\n\n", event,
		 buf_ok(&b) ? buf_text(&b) : "{}");
	buf_done(&b);
	note(v, text);
}

/* Takes what the desk has, if it is new to this viewer. */
static bool take_new(struct visit *v)
{
	struct desk *desk = v->server->desk;
	struct desk_view view;
	bool is_new;

	desk_look(desk, v->item, &view);
	is_new = view.status && view.version != v->sent;
	if (is_new) {
		v->sent = view.version;
		if (view.status == 200) {
			v->paper = view.paper;
			v->at = 0;
			view.paper = NULL;
		} else {
			note_why(v, view.status == 404 ? "gone" : "trouble", view.why);
		}
	}
	/* A run that has ended has nothing more to say. What has been told already is not told again. */
	if ((view.status == 200 && !view.live) || view.status == 404) {
		v->over = true;
		if (!is_new)
			note(v, "event: done\ndata: {}\n\n");
	}
	desk_give_back(desk, view.paper);
	return is_new || v->over;
}

bool http_stream_due(struct visit *v)
{
	struct desk_view view;
	bool due;

	desk_look(v->server->desk, v->item, &view);
	due = view.status && (view.version != v->sent || (view.status == 200 && !view.live));
	desk_give_back(v->server->desk, view.paper);
	return due;
}

static ssize_t copy_part(char *to, size_t max, const char *from, size_t *at, size_t n)
{
	size_t part = n - *at < max ? n - *at : max;

	memcpy(to, from + *at, part);
	*at += part;
	return (ssize_t)part;
}

/* What is on its way, in this order: a paper, a note. 0: nothing. */
static ssize_t go_on(struct visit *v, char *to, size_t max)
{
	ssize_t n;

	if (v->paper) {
		n = copy_part(to, max, v->paper->text, &v->at, v->paper->n);
		if (v->at == v->paper->n) {
			desk_give_back(v->server->desk, v->paper);
			v->paper = NULL;
			if (v->over)
				note(v, "event: done\ndata: {}\n\n");
		}
		return n;
	}
	if (v->note_at < v->note_n)
		return copy_part(to, max, v->note, &v->note_at, v->note_n);
	return 0;
}

static ssize_t next_part(void *cls, uint64_t pos, char *to, size_t max)
{
	struct visit *v = cls;
	struct server *s = v->server;
	ssize_t n;

	(void)pos;
	if (s->ending)
		return MHD_CONTENT_READER_END_OF_STREAM;
	if (!v->greeted) {
		v->greeted = true;
		note(v, "retry: 2000\n\n");
	}
	n = go_on(v, to, max);
	if (n)
		return n;
	if (v->over)
		return MHD_CONTENT_READER_END_OF_STREAM;
	if (take_new(v))
		return go_on(v, to, max);
	if (v->pinged) {
		v->pinged = false;
		note(v, ": still here\n\n");
		return go_on(v, to, max);
	}
	v->asleep = true;
	s->lib.MHD_suspend_connection(v->connection);
	return 0;
}

enum MHD_Result http_stream(struct visit *v)
{
	struct server *s = v->server;
	struct MHD_Response *r;
	enum MHD_Result ok;

	if (s->streams >= STREAMS)
		return http_refuse(v, 503, "too many viewers look at live pages: close some");
	v->item = desk_take(s->desk, v->decision.run);
	if (v->item < 0)
		return http_refuse(v, 503, "too many runs are looked at: close some");
	v->sent = v->decision.seen;
	r = s->lib.MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK, next_part, v, NULL);
	if (!r)
		return MHD_NO;
	v->streaming = true;
	s->streams++;
	http_dress(s, r, "text/event-stream");
	s->lib.MHD_add_response_header(r, "X-Accel-Buffering", "no");
	ok = s->lib.MHD_queue_response(v->connection, 200, r);
	s->lib.MHD_destroy_response(r);
	return ok;
}

void http_stream_done(struct visit *v)
{
	if (v->paper)
		desk_give_back(v->server->desk, v->paper);
	if (v->streaming)
		v->server->streams--;
	v->paper = NULL;
	v->streaming = false;
}

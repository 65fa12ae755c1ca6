/* SPDX-License-Identifier: MIT */
#include "fleet/ask.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/num.h"
#include "base/text.h"
#include "fleet/answer.h"
#include "fleet/http.h"
#include "fleet/query.h"

#include <errno.h>
#include <math.h>
#include <string.h>

enum {
	DETAILED_RUNS_MAX = 16,
	MATCHER_MAX = 1500, /* proxies refuse addresses of more than 8 kB */
};

void ask_done(struct ask *a)
{
	fleet_judged_done(&a->judged);
	fleet_done(&a->fleet);
}

struct taking {
	struct fleet *fleet;
	const struct query *query;
};

static int take(const struct fleet_sample *s, void *arg)
{
	const struct taking *t = arg;

	return fleet_take(t->fleet, t->query, s);
}

static int ask_one(struct http *h, const struct ask_options *o, const struct query *q,
		   const struct query_scope *scope, struct ask *a, struct buf *body, struct err *e)
{
	auto_done(buf) struct buf text = { 0 }, path = { 0 };
	struct taking t = { &a->fleet, q };
	struct answer_notes notes = { 0 };
	int r;

	query_text(q, scope, &text);
	buf_str(&path, "/api/v1/query?query=");
	query_escape(buf_text(&text), &path);
	if (o->at) {
		buf_str(&path, "&time=");
		query_escape(o->at, &path);
	}
	if (!buf_ok(&path) || !buf_ok(&text))
		return err_set(e, -ENOMEM, "out of memory");
	r = http_get(h, buf_text(&path), body, e);
	if (r < 0)
		return r;
	a->queries++;
	a->bytes += body->len;
	r = answer_read(buf_text(body), body->len, take, &t, &notes, e);
	a->series += notes.series;
	a->odd += notes.odd;
	if (!a->warning[0])
		text_copy(a->warning, sizeof(a->warning), notes.warning);
	return r;
}

static int ask_all(struct http *h, const struct ask_options *o, enum query_when when,
		   const char *matcher, struct ask *a, struct buf *body, struct err *e)
{
	struct query_scope scope = { .window_s = o->since_ns / NS_PER_S, .matcher = matcher };
	int r = 0;

	for (size_t i = 0; r == 0 && i < queries_n; i++)
		if (queries[i].when == when)
			r = ask_one(h, o, &queries[i], &scope, a, body, e);
	return r;
}

static int judge_now(struct ask *a, struct err *e)
{
	int r = fleet_order(&a->fleet);

	fleet_judged_done(&a->judged);
	if (r == 0)
		r = fleet_judge(&a->fleet, &a->judged);
	return r < 0 ? err_set(e, r, "out of memory") : 0;
}

/* A matcher of those runs that something is wrong with, the dearest first; hung: that hang. Empty: there are none. */
static void match_wrong(struct ask *a, bool hung, struct buf *out)
{
	const char *ids[DETAILED_RUNS_MAX];
	size_t n = 0, bytes = 0;

	for (size_t i = 0; i < a->judged.runs.n; i++) {
		const struct fleet_judged_run *r = &a->judged.runs.v[i];
		const char *id = a->fleet.runs.v[r->run].id;

		if (hung ? r->state != FLEET_HUNG : !(r->lost_share > 0))
			continue;
		if (n == DETAILED_RUNS_MAX || bytes + strlen(id) > MATCHER_MAX) {
			a->undetailed++;
			continue;
		}
		bytes += strlen(id);
		ids[n++] = id;
	}
	query_matcher(ids, n, out);
}

static int ask_details(struct http *h, const struct ask_options *o, struct ask *a, struct buf *body,
		       struct err *e)
{
	auto_done(buf) struct buf slow = { 0 }, hung = { 0 };
	int r = 0;

	match_wrong(a, false, &slow);
	match_wrong(a, true, &hung);
	if (!slow.len && !hung.len)
		return 0;
	if (slow.len)
		r = ask_all(h, o, ASK_DETAIL, buf_text(&slow), a, body, e);
	if (r == 0 && hung.len)
		r = ask_all(h, o, ASK_HUNG, buf_text(&hung), a, body, e);
	return r < 0 ? r : judge_now(a, e);
}

static int check_found(const struct ask *a, const struct ask_options *o, struct err *e)
{
	char window[32];

	if (!isfinite(a->fleet.now_s))
		return err_set(e, -EPROTO, "the engine does not say what time it is");
	if (!o->run || fleet_find(&a->fleet, o->run))
		return 0;
	err_set(e, -ENOENT, "there is no run '%s' in the last %s", o->run,
		num_seconds((double)o->since_ns / 1e9, window, sizeof(window)));
	err_hint(e, "without --run all are listed; --since looks further back");
	return -ENOENT;
}

int ask_fleet(struct http *h, const struct ask_options *o, struct ask *ret, struct err *e)
{
	auto_done(buf) struct buf matcher = { 0 }, body = { 0 };
	int64_t begin = clock_mono_ns();
	int r;

	*ret = (struct ask){ 0 };
	fleet_begin(&ret->fleet, (double)o->since_ns / 1e9);
	if (o->run)
		query_matcher(&o->run, 1, &matcher);
	r = ask_all(h, o, ASK_ALWAYS, buf_text(&matcher), ret, &body, e);
	if (r == 0)
		r = check_found(ret, o, e);
	if (r == 0)
		r = judge_now(ret, e);
	if (r == 0)
		r = ask_details(h, o, ret, &body, e);
	ret->seconds = (double)(clock_mono_ns() - begin) / 1e9;
	if (r < 0)
		ask_done(ret);
	return r;
}

/* SPDX-License-Identifier: MIT */
#include "tui/board.h"

#include "base/clock.h"
#include "base/text.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { WHY_LEAST = 60, WHY_MOST = 120, RATE_STEPS = 32, ALIGN_MOST_S = 60, EVENT_S = 60 };

/* Ticks near an interval: rates are right only from tick to tick. */
struct near_ticks {
	int64_t from_ns, to_ns; /* wanted */
	int64_t a_ns, b_ns;     /* the last tick at or before each; 0 none */
};

static bool see_tick(const struct point *p, void *arg)
{
	struct near_ticks *n = arg;

	if (p->t_ns <= n->from_ns)
		n->a_ns = p->t_ns;
	if (p->t_ns <= n->to_ns)
		n->b_ns = p->t_ns;
	return p->t_ns <= n->to_ns;
}

/* Ticks come a little early or late: an interval that begins just before one would have two in it. */
static void align(const struct window *w, struct window *at)
{
	int64_t length = at->to_ns - at->from_ns;
	struct near_ticks n = { .from_ns = at->from_ns + length / 8, .to_ns = at->to_ns };

	if (length <= 0 || length > ALIGN_MOST_S * NS_PER_S)
		return;
	w->ops->each(w->src, M_CPU_USER, ID_HOST, at->from_ns - length - NS_PER_S, at->to_ns, 0,
		     see_tick, &n);
	if (!n.b_ns || !n.a_ns || n.a_ns >= n.b_ns)
		return;
	at->from_ns = n.a_ns;
	at->to_ns = n.b_ns;
}

static void take_steps(struct board *b, const struct window *w)
{
	size_t n = 0;
	const struct window_step *s = w->ops->steps ? w->ops->steps(w->src, &n) : NULL;
	int64_t recent[RATE_STEPS];
	size_t count = 0, kept;

	b->steps.count = b->steps.rate = b->steps.loss = NAN;
	for (size_t i = 0; i < n; i++) {
		if (s[i].end_ns > b->at_ns)
			break;
		if (s[i].entity != s[0].entity)
			continue;
		recent[count++ % RATE_STEPS] = s[i].end_ns;
		if (isfinite(s[i].loss))
			b->steps.loss = s[i].loss;
	}
	if (!count)
		return;
	b->steps.count = (double)count;
	kept = count < RATE_STEPS ? count : RATE_STEPS;
	if (kept > 1) {
		int64_t newest = recent[(count - 1) % RATE_STEPS];
		int64_t oldest = recent[count < RATE_STEPS ? 0 : count % RATE_STEPS];

		if (newest > oldest)
			b->steps.rate = (double)(kept - 1) / ((double)(newest - oldest) / 1e9);
	}
}

/* What a person should see at once; the rest of what happened is the report's. */
static bool is_news(enum event_kind kind)
{
	return kind == EVENT_OOM_KILL || kind == EVENT_XID || kind == EVENT_GPU_LOST ||
	       kind == EVENT_GPU_HANG || kind == EVENT_GPU_HELPER || kind == EVENT_SUSPEND ||
	       kind == EVENT_WRITE_ERROR || kind == EVENT_LIMIT || kind == EVENT_CPU_HOTPLUG;
}

static void take_event(struct board *b, const struct window *w)
{
	size_t n = 0;
	const struct window_event *e = w->ops->events(w->src, &n);

	b->event[0] = '\0';
	for (size_t i = 0; i < n && e[i].t_ns <= b->at_ns; i++) {
		double ago = (double)(b->at_ns - e[i].t_ns) / 1e9;

		if (!is_news(e[i].kind) || !e[i].text || ago > EVENT_S)
			continue;
		text_safe_copy(b->event, sizeof(b->event), e[i].text);
		b->event_ago = ago;
	}
}

static int take_lines(struct board *b, const struct window *w)
{
	uint32_t gpus[LINE_GPUS];
	struct line_spec spec = {
		.right_ns = b->right_ns, .step_ns = b->step_ns, .job = b->job, .gpus = gpus
	};

	for (size_t i = 0; i < b->snap.gpus.n && spec.n_gpus < LINE_GPUS; i++)
		if (!b->snap.gpus.v[i].whole)
			gpus[spec.n_gpus++] = b->snap.gpus.v[i].entity->id;
	return lines_take(w, &spec, b->lines);
}

int board_take(struct board *b, const struct window *w, const struct board_when *when)
{
	unsigned flags =
	    (b->job ? SNAPSHOT_JOB : 0) | (b->replay || when->at_ns < w->to_ns ? SNAPSHOT_PAST : 0);
	const struct run_info *run = window_run(w);
	struct window at = *w;
	struct snapshot snap;
	int r;

	at.to_ns = when->at_ns;
	at.from_ns = when->at_ns - when->interval_ns;
	if (at.from_ns < w->from_ns)
		at.from_ns = w->from_ns;
	align(w, &at);
	r = snapshot_take(&at, run->started_wall_ns + (when->at_ns - run->started_mono_ns), flags,
			  &snap);
	if (r < 0)
		return r;
	snapshot_done(&b->snap);
	b->snap = snap;
	b->run = run;
	b->first_ns = w->from_ns;
	b->last_ns = w->to_ns;
	b->at_ns = when->at_ns;
	b->right_ns = when->right_ns;
	b->step_ns = when->step_ns;
	take_steps(b, w);
	take_event(b, w);
	return when->same_lines ? 0 : take_lines(b, w);
}

int board_judge(struct board *b, const struct window *w)
{
	struct verdict v;
	int r = explain(w, &v);

	if (r < 0)
		return r;
	if (b->judged)
		verdict_done(&b->verdict);
	b->verdict = v;
	b->judged = true;
	b->judged_at_ns = w->to_ns;
	b->why_width = 0;
	return 0;
}

void board_why(struct board *b, unsigned width)
{
	struct render_style style;

	width = width < WHY_LEAST ? WHY_LEAST : width > WHY_MOST ? WHY_MOST : width;
	if (!b->judged || width == b->why_width)
		return;
	style = (struct render_style){ .width = width };
	buf_reset(&b->why);
	render_text(&b->verdict, &style, &b->why);
	b->why_width = width;
}

void board_done(struct board *b)
{
	snapshot_done(&b->snap);
	if (b->judged)
		verdict_done(&b->verdict);
	b->judged = false;
	buf_done(&b->why);
}

/* What started the processes that train, and does nothing itself. */
static bool is_launcher(const struct board *b, const struct entity *e)
{
	const struct verdict *v = &b->verdict;

	if (e->kind != ENTITY_PROC || e->key != b->run->pid)
		return false;
	for (size_t i = 0; i < v->roles.n; i++)
		if (v->roles.v[i].first && v->roles.v[i].process != e->id &&
		    strcmp(v->roles.v[i].role, "main") == 0)
			return true;
	return false;
}

const char *board_role(const struct board *b, const struct entity *e, char *buf, size_t size)
{
	const struct verdict *v = &b->verdict;
	bool process = e->kind == ENTITY_PROC;
	size_t n = 0;

	buf[0] = '\0';
	if (!b->judged)
		return buf;
	for (size_t i = 0; process && i < v->steps.groups.n; i++) {
		const struct step_group *g = &v->steps.groups.v[i];

		if (g->entity == e->id && g->rank >= 0 && v->steps.ranks > 1) {
			snprintf(buf, size, "rank %d", g->rank);
			return buf;
		}
	}
	for (size_t i = 0; i < v->roles.n; i++) {
		const struct thread_role *t = &v->roles.v[i];

		if (process ? (t->process == e->id && t->first) : t->thread == e->id) {
			for (const char *s = t->role; *s && n + 1 < size; s++)
				buf[n++] = *s == '_' ? ' ' : *s;
			buf[n] = '\0';
			break;
		}
	}
	if ((!n || strcmp(buf, "other") == 0 || strcmp(buf, "child") == 0) && is_launcher(b, e))
		snprintf(buf, size, "launcher");
	return buf;
}

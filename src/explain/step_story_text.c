/* SPDX-License-Identifier: MIT */
#include "base/buf.h"
#include "base/json.h"
#include "base/num.h"
#include "base/text.h"
#include "explain/page.h"
#include "explain/render.h"
#include "explain/step_story.h"

#include <math.h>
#include <stdio.h>

static double since_start(const struct step_story *x, int64_t t_ns)
{
	return ((double)t_ns - (double)window_run(x->window)->started_mono_ns) / 1e9;
}

static bool is_inside(const struct step_story *x, int64_t t_ns)
{
	return t_ns > x->step->begin_ns && t_ns <= x->step->end_ns;
}

static void put_head(struct page *p, const struct step_story *x)
{
	char rank[32] = "", pid[96] = "", count[32], a[32], b[32], c[32];
	double times = x->seconds / x->group->median_s;

	if (x->step->rank >= 0)
		snprintf(rank, sizeof(rank), ", rank %d", x->step->rank);
	if (x->group->pid > 0)
		snprintf(pid, sizeof(pid), ", pid %lld%s%s", (long long)x->group->pid,
			 x->group->node[0] ? " on " : "", x->group->node);
	page_add(p, W_HEAD, PAGE_BOLD, "Step", "%llu, one of %s%s%s",
		 (unsigned long long)x->step->number,
		 num_count((double)x->group->count, count, sizeof(count)), rank, pid);
	if (!isfinite(x->seconds)) {
		page_add(p, W_HEAD, PAGE_PLAIN, "Time",
			 "it ended after %s; when it began is not known",
			 num_seconds(since_start(x, x->step->end_ns), a, sizeof(a)));
		return;
	}
	num_seconds(x->seconds, a, sizeof(a));
	page_add(p, W_HEAD, PAGE_PLAIN, "Time", "%s, from %s to %s of the run", a,
		 num_seconds(since_start(x, x->step->begin_ns), b, sizeof(b)),
		 num_seconds(since_start(x, x->step->end_ns), c, sizeof(c)));
	if (isfinite(times) && x->group->steady >= STEPS_STEADY_LEAST)
		page_add(p, W_HEAD, times >= 1.5 ? PAGE_WARN : PAGE_PLAIN, "",
			 "%.*f times the median of %s", times < 9.95 ? 2 : 0, times,
			 num_seconds(x->group->median_s, a, sizeof(a)));
	if (x->aside > 0)
		page_add(p, W_HEAD, PAGE_PLAIN, "", "%s of it evaluation, checkpoint or the like",
			 num_seconds(x->aside, a, sizeof(a)));
}

static void put_said(struct page *p, const struct step_story *x)
{
	char a[32], b[32];

	if (isfinite(x->step->data_wait) && isfinite(x->group->median_wait))
		page_add(p, W_HEAD, PAGE_PLAIN, "Data", "waited %s for data (usually %s)",
			 num_seconds(x->step->data_wait, a, sizeof(a)),
			 num_seconds(x->group->median_wait, b, sizeof(b)));
	else
		page_add(p, W_HEAD, PAGE_DIM, "Data", "how long it waited for data was not said");
	if (x->step->micro > 1)
		page_add(p, W_HEAD, PAGE_PLAIN, "Batches", "%u (gradient accumulation)",
			 x->step->micro);
	if (isfinite(x->step->loss) && x->before && isfinite(x->before->loss))
		page_add(p, W_HEAD, PAGE_PLAIN, "Loss", "%.6g (%.6g the step before)",
			 x->step->loss, x->before->loss);
	else if (isfinite(x->step->loss))
		page_add(p, W_HEAD, PAGE_PLAIN, "Loss", "%.6g", x->step->loss);
}

static void put_lists(struct page *p, const struct step_story *x)
{
	const struct window_ops *ops = x->window->ops;
	size_t n = 0, shown = 0;
	const struct window_scalar *s = ops->scalars ? ops->scalars(x->window->src, &n) : NULL;
	const struct window_phase *f;
	char a[32], b[32];

	for (size_t i = 0; i < n && shown < STORY_LINES; i++)
		if (s[i].entity == x->step->entity && s[i].step == x->step->number && s[i].name)
			page_add(p, W_HEAD, PAGE_PLAIN, shown++ ? "" : "Scalars", "%s %.6g",
				 s[i].name, s[i].value);
	n = shown = 0;
	f = ops->phases ? ops->phases(x->window->src, &n) : NULL;
	for (size_t i = 0; i < n && shown < STORY_LINES; i++) {
		int64_t end = f[i].end_ns ? f[i].end_ns : x->window->to_ns;

		if (f[i].entity == x->step->entity && f[i].begin_ns < x->step->end_ns &&
		    end > x->step->begin_ns && f[i].name)
			page_add(p, W_HEAD, PAGE_PLAIN, shown++ ? "" : "Phases",
				 "%s, from %s to %s", f[i].name,
				 num_seconds(since_start(x, f[i].begin_ns), a, sizeof(a)),
				 num_seconds(since_start(x, end), b, sizeof(b)));
	}
}

static void put_states(struct page *p, const struct step_story *x)
{
	bool said[TIME_STATES] = { false };
	char a[32];
	struct buf b;

	if (!x->tid) {
		page_add(p, W_TIME, PAGE_DIM, "States", "not known: %s", x->why_no_states);
		return;
	}
	buf_init(&b, 2048);
	for (;;) {
		int most = -1;

		for (int i = 0; i < TIME_STATES; i++)
			if (!said[i] && x->state[i] >= 0.005 &&
			    (most < 0 || x->state[i] > x->state[most]))
				most = i;
		if (most < 0)
			break;
		said[most] = true;
		buf_printf(&b, "%s%s %s", b.len ? ", " : "",
			   num_percent(x->state[most], a, sizeof(a)),
			   time_state_words(NULL, time_state_name((enum time_state)most)));
	}
	if (x->unaccounted >= 0.005)
		buf_printf(&b, "%s%s not seen", b.len ? ", " : "",
			   num_percent(x->unaccounted, a, sizeof(a)));
	page_add(p, W_TIME, PAGE_PLAIN, "States", "%s (thread %lld, %u samples)", buf_text(&b),
		 (long long)x->tid, x->samples);
	buf_done(&b);
}

static void put_gpu(struct page *p, const struct story_gpu *g)
{
	char a[32], number[24];
	struct buf b;

	buf_init(&b, 512);
	snprintf(number, sizeof(number), g->partition < 0 ? "%d" : "%d:%d", g->index, g->partition);
	if (isfinite(g->busy))
		buf_printf(&b, ", %s busy", num_percent(g->busy, a, sizeof(a)));
	if (isfinite(g->memory))
		buf_printf(&b, ", %s", num_bytes(g->memory, a, sizeof(a)));
	if (isfinite(g->power))
		buf_printf(&b, ", %.0f W", g->power);
	if (isfinite(g->clock) && isfinite(g->usual_clock))
		buf_printf(&b, ", %.0f MHz (usually %.0f)", g->clock / 1e6, g->usual_clock / 1e6);
	page_add(p, W_GPU, PAGE_PLAIN, "GPU", "%s %s%s", number, g->name ? g->name : "",
		 buf_text(&b));
	buf_done(&b);
}

static void put_usage(struct page *p, const struct step_story *x)
{
	char a[32];

	if (!x->has_usage) {
		page_add(p, W_CPU, PAGE_DIM, "Used", "not known: %s",
			 isfinite(x->seconds)
			     ? "fewer than two samples were taken during it, or are still kept"
			     : x->why_no_states);
		return;
	}
	if (isfinite(x->usage.cores))
		page_add(p, W_CPU, PAGE_PLAIN, "CPU", "%s cores",
			 num_cores(x->usage.cores, a, sizeof(a)));
	if (isfinite(x->usage.memory))
		page_add(p, W_MEMORY, PAGE_PLAIN, "Memory", "%s",
			 num_bytes(x->usage.memory, a, sizeof(a)));
	for (size_t i = 0; i < x->n_gpus; i++)
		put_gpu(p, &x->gpus[i]);
}

static void put_events(struct page *p, const struct step_story *x)
{
	size_t n = 0, shown = 0;
	const struct window_event *e = x->window->ops->events(x->window->src, &n);
	char a[32];

	for (size_t i = 0; i < n && shown < STORY_LINES; i++)
		if (is_inside(x, e[i].t_ns))
			page_add(p, W_NOTE, PAGE_PLAIN, shown++ ? "" : "Events", "%s: %s%s%s",
				 num_seconds(since_start(x, e[i].t_ns), a, sizeof(a)),
				 event_kind_name(e[i].kind), e[i].text && e[i].text[0] ? ", " : "",
				 e[i].text ? e[i].text : "");
}

void step_story_text(const struct step_story *x, const struct render_style *style, struct buf *out)
{
	struct page p = { .width = style->width ? style->width : 100 };

	put_head(&p, x);
	put_said(&p, x);
	put_lists(&p, x);
	put_states(&p, x);
	put_usage(&p, x);
	put_events(&p, x);
	if (x->differs[0])
		page_add(&p, W_VERDICT, PAGE_PLAIN, "Differs", "%s", x->differs);
	page_write(&p, style->max_lines, style->color, out);
	page_done(&p);
}

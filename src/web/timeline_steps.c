/* SPDX-License-Identifier: MIT
 *
 * What the training said, on the axis of time: steps, loss and other scalars, phases; and what
 * happened meanwhile. Of the process that stands for the run: other ranks say the same.
 */
#include "base/auto.h"
#include "base/text.h"
#include "explain/rows.h"
#include "explain/verdict.h"
#include "web/downsample.h"
#include "web/timeline.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SCALAR_TRACKS = 4, EVENTS_READ = 2000 };

static double since(const struct timeline *t, int64_t ns)
{
	return ((double)ns - (double)t->start_ns) / 1e9;
}

/* A track of one series from these stretches; nothing where they are empty. */
static int put_series(struct track *track, const char *name, const struct stretches *s)
{
	struct track_series *series;
	bool any = false;

	for (size_t i = 0; i < s->n; i++)
		any |= s->v[i].n > 0;
	if (!any)
		return 0;
	series = track_add(track, name);
	return series ? track_series_fill(series, s) : -ENOMEM;
}

static int put_steps(const struct window *w, const struct step_group *lead, struct timeline *t)
{
	auto_done(stretches) struct stretches took = { 0 }, waited = { 0 };
	size_t n = 0;
	const struct window_step *x = w->ops->steps(w->src, &n);
	int r = stretches_make(&took, t->from_ns, t->to_ns, t->points);
	struct track *track;

	if (r == 0)
		r = stretches_make(&waited, t->from_ns, t->to_ns, t->points);
	for (size_t i = 0; i < n && r == 0; i++) {
		double seconds = step_seconds(w, &x[i], false);

		if (x[i].entity != lead->entity || !step_in(w, &x[i]))
			continue;
		if (isfinite(seconds) && seconds > 0)
			stretches_put(&took, x[i].end_ns, seconds);
		if (isfinite(x[i].data_wait) && x[i].data_wait >= 0)
			stretches_put(&waited, x[i].end_ns, x[i].data_wait);
	}
	if (r < 0)
		return r;
	track = timeline_track(t, "steps", "s", "Time of a step", "step_time");
	if (!track)
		return -ENOMEM;
	r = put_series(track, "step", &took);
	if (r == 0)
		r = put_series(track, "waiting for data", &waited);
	if (!track->series.n)
		t->tracks.n--;
	return r;
}

/* "loss" is of steps, or a scalar of that name. */
static int put_scalar(const struct window *w, const struct step_group *lead, const char *name,
		      struct timeline *t)
{
	auto_done(stretches) struct stretches s = { 0 };
	bool is_loss = strcmp(name, "loss") == 0, is_it = false;
	const char *looked_at = NULL;
	char safe[64];
	size_t n = 0, steps = 0;
	const struct window_scalar *x = w->ops->scalars ? w->ops->scalars(w->src, &n) : NULL;
	const struct window_step *y = w->ops->steps ? w->ops->steps(w->src, &steps) : NULL;
	int r = stretches_make(&s, t->from_ns, t->to_ns, t->points);
	struct track *track;

	for (size_t i = 0; r == 0 && is_loss && i < steps; i++)
		if (y[i].entity == lead->entity && isfinite(y[i].loss))
			stretches_put(&s, y[i].end_ns, y[i].loss);
	for (size_t i = 0; r == 0 && i < n; i++) {
		if (x[i].entity != lead->entity || !x[i].name || !isfinite(x[i].value))
			continue;
		/* Each name is kept once: most are told apart by where they are. */
		if (x[i].name != looked_at)
			is_it = strcmp(text_safe_copy(safe, sizeof(safe), x[i].name), name) == 0;
		looked_at = x[i].name;
		if (is_it)
			stretches_put(&s, x[i].t_ns, x[i].value);
	}
	track = r == 0 ? timeline_track(t, "loss", "", name, "scalar_%zu", t->tracks.n) : NULL;
	if (!track)
		return r < 0 ? r : -ENOMEM;
	if (is_loss)
		text_copy(track->id, sizeof(track->id), "loss");
	r = put_series(track, name, &s);
	if (!track->series.n)
		t->tracks.n--;
	return r;
}

int timeline_steps(const struct window *w, const struct verdict *v, struct timeline *t)
{
	const struct step_group *lead = steps_lead(&v->steps);
	struct scalar_sum sums[SCALAR_TRACKS];
	size_t n = lead ? scalars_sum(w, &v->steps, sums, SCALAR_TRACKS) : 0;
	int r = 0;

	if (lead && w->ops->steps)
		r = put_steps(w, lead, t);
	for (size_t i = 0; i < n && r == 0; i++)
		r = put_scalar(w, lead, sums[i].name, t);
	return r;
}

/* The same phase again, after less than can be seen. */
static struct timeline_phase *phase_before(struct timeline *t, const char *name, double from,
					   double unseen)
{
	for (size_t i = t->phases.n; i-- > 0;) {
		struct timeline_phase *p = &t->phases.v[i];

		if (strcmp(p->name, name) == 0)
			return from - p->to < unseen ? p : NULL;
	}
	return NULL;
}

/* Takes away the shortest until there is room. */
static void thin_phases(struct timeline *t)
{
	while (t->phases.n > TIMELINE_PHASES) {
		size_t at = 0, last = t->phases.n - 1;

		for (size_t i = 1; i <= last; i++)
			if (t->phases.v[i].to - t->phases.v[i].from <
			    t->phases.v[at].to - t->phases.v[at].from)
				at = i;
		memmove(&t->phases.v[at], &t->phases.v[at + 1], (last - at) * sizeof(*t->phases.v));
		t->phases.n--;
	}
}

int timeline_phases(const struct window *w, const struct verdict *v, struct timeline *t)
{
	const struct step_group *lead = steps_lead(&v->steps);
	size_t n = 0;
	const struct window_phase *x = w->ops->phases ? w->ops->phases(w->src, &n) : NULL;
	double unseen = (double)(t->to_ns - t->from_ns) / 1e9 / TIMELINE_POINTS;

	for (size_t i = 0; i < n; i++) {
		int64_t end = x[i].end_ns ? x[i].end_ns : t->to_ns;
		double from = since(t, x[i].begin_ns), to = since(t, end);
		struct timeline_phase *p;
		char name[64];

		if (!x[i].name || (lead && x[i].entity != lead->entity) || !(to > from) ||
		    x[i].begin_ns > t->to_ns || end < t->from_ns)
			continue;
		text_safe_copy(name, sizeof(name), x[i].name);
		p = phase_before(t, name, from, unseen);
		if (p) {
			p->to = fmax(p->to, to);
			continue;
		}
		p = vec_push(&t->phases);
		if (!p)
			return -ENOMEM;
		*p = (struct timeline_phase){ .from = from, .to = to };
		text_copy(p->name, sizeof(p->name), name);
		/* Now and then, as most runs have few. */
		if (t->phases.n > 2 * TIMELINE_PHASES)
			thin_phases(t);
	}
	thin_phases(t);
	return 0;
}

/* What happens to every process all the time: the first to be left out where there are many. */
static bool is_common(const struct window_event *e)
{
	return e->kind == EVENT_EXIT || e->kind == EVENT_EXEC || e->kind == EVENT_STACKS ||
	       e->kind == EVENT_GOVERNOR;
}

/* Which of the rows are shown, the rare ones first. */
static size_t choose_events(const struct event_row *rows, size_t n, bool *shown)
{
	size_t chosen = 0;

	for (int common = 0; common < 2; common++)
		for (size_t i = 0; i < n && chosen < TIMELINE_EVENTS; i++)
			if (is_common(rows[i].event) == common) {
				shown[i] = true;
				chosen++;
			}
	return chosen;
}

static int put_event(struct timeline *t, const struct event_row *row)
{
	const struct window_event *e = row->event;
	struct timeline_event *x = vec_push(&t->events);
	size_t len;

	if (!x)
		return -ENOMEM;
	x->t = since(t, e->t_ns);
	x->kind = event_kind_name(e->kind);
	text_safe_copy(x->text, sizeof(x->text), e->text ? e->text : "");
	len = strlen(x->text);
	if (row->times > 1)
		snprintf(x->text + len, sizeof(x->text) - len, " (%zu processes)", row->times);
	return 0;
}

int timeline_events(const struct window *w, struct timeline *t)
{
	auto_free struct event_row *rows = calloc(EVENTS_READ, sizeof(*rows));
	auto_free bool *shown = calloc(EVENTS_READ, sizeof(*shown));
	size_t n, left = 0;
	int r = 0;

	if (!rows || !shown)
		return -ENOMEM;
	n = event_rows(w, rows, EVENTS_READ, &left);
	t->events_left = left + n - choose_events(rows, n, shown);
	for (size_t i = 0; i < n && r == 0; i++)
		if (shown[i])
			r = put_event(t, &rows[i]);
	return r;
}

/* SPDX-License-Identifier: MIT
 *
 * A scenario as frames: its lives, samples, gaps and events, tick by tick.
 */
#include "../unit.h"

#include "scenario.h"

#include <math.h>

static const struct scenario_entity *entity_of(const struct scenario *s, uint32_t id)
{
	for (size_t i = 0; i < s->entities.n; i++)
		if (s->entities.v[i].id == id)
			return &s->entities.v[i];
	return NULL;
}

void scenario_life(const struct scenario *s, uint32_t id, double *from, double *to)
{
	const struct scenario_entity *e = entity_of(s, id);

	/* A thread lives with its process. */
	if (e && e->kind == ENTITY_THREAD)
		e = entity_of(s, e->parent);
	*from = e ? e->from : 0;
	*to = e && e->to >= 0 ? e->to : s->seconds;
}

static double value_at(const struct scenario *s, const struct scenario_series *x, double t)
{
	double from, to;

	scenario_life(s, x->entity, &from, &to);
	if (x->n == 2 && x->at[0].t == -1)
		return x->at[0].v + (x->at[1].v - x->at[0].v) * (t - from) / (to - from);
	for (size_t i = 1; i < x->n; i++)
		if (t <= x->at[i].t) {
			double a = x->at[i - 1].t, b = x->at[i].t;

			return x->at[i - 1].v +
			       (x->at[i].v - x->at[i - 1].v) * (t < a ? 0 : (t - a) / (b - a));
		}
	return x->at[x->n - 1].v;
}

static void put_lives(const struct scenario *s, struct frame *f, double t, double step)
{
	for (size_t i = 0; i < s->entities.n; i++) {
		const struct scenario_entity *e = &s->entities.v[i];
		struct life l = {
			.id = e->id, .parent = e->parent, .kind = e->kind, .key = e->key
		};
		double from, to;

		scenario_life(s, e->id, &from, &to);
		if (from <= t && from > t - step) {
			l.change = LIFE_BORN;
			frame_life(f, &l, e->name, e->detail);
		}
		if (to < s->seconds && to <= t && to > t - step) {
			l.change = LIFE_GONE;
			frame_life(f, &l, e->name, "");
		}
	}
}

static void put_samples(const struct scenario *s, struct frame *f, double t, enum metric_id without,
			uint32_t entity)
{
	for (size_t i = 0; i < s->series.n; i++) {
		const struct scenario_series *x = &s->series.v[i];
		double from, to;

		if (x->metric == without && (!entity || entity == x->entity))
			continue;
		scenario_life(s, x->entity, &from, &to);
		if (t < from || (to < s->seconds && t >= to))
			continue;
		frame_put(f, x->metric, x->entity,
			  llround(value_at(s, x, t) / metrics[x->metric].scale));
	}
}

static void put_events(const struct scenario *s, struct frame *f, double t, double step)
{
	for (size_t i = 0; i < s->events.n; i++) {
		const struct scenario_event *e = &s->events.v[i];

		if (e->t <= t && e->t > t - step)
			frame_event(f, e->kind, e->entity, e->value, "%s", e->text);
	}
}

unsigned scenario_ticks(const struct scenario *s)
{
	return (unsigned)floor(s->seconds * s->run.hz + 1e-9) + 1;
}

static void make_frame(const struct scenario *s, unsigned tick, enum metric_id without,
		       uint32_t entity, struct frame *f)
{
	double step = 1 / s->run.hz, t = tick * step;

	frame_begin(f, s->run.started_mono_ns + llround(t * 1e9),
		    s->run.started_wall_ns + llround(t * 1e9));
	put_lives(s, f, t, step);
	put_samples(s, f, t, without, entity);
	for (size_t g = 0; tick == 0 && g < s->gaps.n; g++)
		frame_gap(f, s->gaps.v[g].metric, s->gaps.v[g].entity, s->gaps.v[g].why);
	put_events(s, f, t, step);
	scenario_put_marks(s, f, t, step);
	/* the second that is over since the tick before */
	if (floor(t + 1e-9) > floor(t - step + 1e-9) && t >= 1 - 1e-9)
		scenario_put_stacks(s, f, floor(t + 1e-9));
	assert_false(f->failed);
}

void scenario_frame(const struct scenario *s, unsigned tick, struct frame *f)
{
	make_frame(s, tick, M_NONE, 0, f);
}

void scenario_each(const struct scenario *s, enum metric_id without, uint32_t entity,
		   void (*fn)(const struct frame *f, void *arg), void *arg)
{
	struct frame f = { 0 };

	for (unsigned i = 0; i < scenario_ticks(s); i++) {
		make_frame(s, i, without, entity, &f);
		fn(&f, arg);
	}
	frame_done(&f);
}

static void add_frame(const struct frame *f, void *arg)
{
	assert_int_equal(history_frame(arg, f), 0);
}

struct history *scenario_play(const struct scenario *s, enum metric_id without, uint32_t entity)
{
	struct history *h = history_new(&s->run, (unsigned)(s->seconds * s->run.hz) + 2);

	assert_non_null(h);
	scenario_each(s, without, entity, add_frame, h);
	return h;
}

void scenario_judge(struct scenario *s, const char *folder, const char *name, struct verdict *v)
{
	char path[512];
	struct history *h;
	struct window w;

	*s = (struct scenario){ 0 };
	snprintf(path, sizeof(path), "%s/%s.scn", folder, name);
	scenario_load(s, path);
	h = scenario_play(s, M_NONE, 0);
	w = history_window(h, 0);
	assert_int_equal(explain(&w, v), 0);
	v->run = &s->run;
	history_free(h);
}

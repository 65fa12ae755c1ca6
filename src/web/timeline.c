/* SPDX-License-Identifier: MIT */
#include "web/timeline.h"

#include "base/text.h"
#include "explain/verdict.h"
#include "web/downsample.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void timeline_done(struct timeline *t)
{
	for (size_t i = 0; i < t->tracks.n; i++) {
		for (size_t k = 0; k < t->tracks.v[i].series.n; k++)
			free(t->tracks.v[i].series.v[k].mean);
		vec_done(&t->tracks.v[i].series);
	}
	vec_done(&t->tracks);
	vec_done(&t->phases);
	vec_done(&t->events);
}

int64_t timeline_start(const struct window *w, const struct verdict *v)
{
	int64_t start = v->run->started_mono_ns;

	return start > 0 && start <= w->from_ns ? start : w->from_ns;
}

double timeline_at(const struct timeline *t, size_t point)
{
	double step = (double)(t->to_ns - t->from_ns) / (double)t->points;

	return ((double)(t->from_ns - t->start_ns) + step * ((double)point + 0.5)) / 1e9;
}

struct track *timeline_track(struct timeline *t, const char *group, const char *unit,
			     const char *title, const char *id_format, ...)
{
	struct track *track = vec_push(&t->tracks);
	va_list ap;

	if (!track)
		return NULL;
	track->group = group;
	track->unit = unit;
	track->limit = NAN;
	text_safe_copy(track->title, sizeof(track->title), title);
	va_start(ap, id_format);
	vsnprintf(track->id, sizeof(track->id), id_format, ap);
	va_end(ap);
	return track;
}

struct track_series *track_add(struct track *track, const char *name)
{
	struct track_series *s = track ? vec_push(&track->series) : NULL;

	if (s)
		text_safe_copy(s->name, sizeof(s->name), name);
	return s;
}

int track_series_fill(struct track_series *s, const struct stretches *from)
{
	bool several = false;

	s->mean = calloc(3 * from->n, sizeof(*s->mean));
	if (!s->mean)
		return -ENOMEM;
	for (size_t i = 0; i < from->n; i++) {
		const struct stretch *x = &from->v[i];

		s->mean[i] = stretch_mean(x);
		s->mean[from->n + i] = x->n ? x->min : NAN;
		s->mean[2 * from->n + i] = x->n ? x->max : NAN;
		several |= x->n && x->max > x->min;
	}
	s->min = several ? s->mean + from->n : NULL;
	s->max = several ? s->mean + 2 * from->n : NULL;
	return 0;
}

int timeline_take(const struct window *w, const struct verdict *v, size_t points,
		  struct timeline *ret)
{
	struct timeline t = { .start_ns = timeline_start(w, v),
			      .from_ns = w->from_ns,
			      .to_ns = w->to_ns > w->from_ns ? w->to_ns : w->from_ns + 1000 };
	int r = timeline_tracks(w, v, points, &t);

	if (r == 0)
		r = timeline_steps(w, v, &t);
	if (r == 0)
		r = timeline_phases(w, v, &t);
	if (r == 0)
		r = timeline_events(w, &t);
	if (r < 0)
		timeline_done(&t);
	else
		*ret = t;
	return r;
}

/* SPDX-License-Identifier: MIT */
#include "engine/glance.h"

#include "model/frame.h"

#include <math.h>

/* One loop is told of: with several ranks that of the lowest, else the first that made a step. */
static bool is_clock(struct glance *g, const struct frame_mark *m)
{
	if (g->steps && m->entity == g->who)
		return true;
	if (g->steps && (m->rank < 0 || (g->who_rank >= 0 && m->rank >= g->who_rank)))
		return false;
	g->who = m->entity;
	g->who_rank = m->rank;
	g->steps = 0;
	g->loss = NAN;
	return true;
}

void glance_frame(struct glance *g, const struct frame *f)
{
	g->t_ns = f->mono_ns;
	for (size_t i = 0; i < f->samples.n; i++) {
		const struct sample *s = &f->samples.v[i];

		if (s->metric != M_JOB_CPU || s->entity != ID_JOB)
			continue;
		g->has_cpu = true;
		g->cpu_ns = s->raw;
	}
	for (size_t i = 0; i < f->marks.n; i++) {
		const struct frame_mark *m = &f->marks.v[i];

		if (m->type != SAID_STEP || !is_clock(g, m))
			continue;
		g->steps++;
		g->number = m->number;
		g->step_ns = m->t_ns;
		if (isfinite(m->value))
			g->loss = m->value;
	}
}

/* SPDX-License-Identifier: MIT */
#include "sink/step_table.h"

#include "model/step_usage.h"

#include <errno.h>
#include <math.h>
#include <string.h>

const char *const step_figure_names[STEP_FIGURES] = {
	[STEP_TIME] = "step_time",      [STEP_DATA_WAIT] = "data_wait",
	[STEP_BATCHES] = "batches",     [STEP_LOSS] = "loss",
	[STEP_CPU_CORES] = "cpu_cores", [STEP_MEMORY] = "memory",
	[STEP_GPU_BUSY] = "gpu_busy",   [STEP_GPU_MEMORY] = "gpu_memory",
	[STEP_GPU_POWER] = "gpu_power",
};

static size_t column_of(const struct step_table *t, const char *name)
{
	size_t i = 0;

	while (i < t->n_columns && strcmp(t->columns[i], name) != 0)
		i++;
	return i;
}

void step_table_begin(struct step_table *t, const struct sink_source *src)
{
	const struct window *w = src->window;
	size_t n = 0;
	const struct window_scalar *s = w && w->ops->scalars ? w->ops->scalars(w->src, &n) : NULL;

	for (size_t i = 0; i < n && t->n_columns < STEP_SCALARS_MAX; i++)
		if (s[i].name && column_of(t, s[i].name) == t->n_columns)
			t->columns[t->n_columns++] = s[i].name;
}

static struct step_pending *pending_of(struct step_table *t, uint32_t entity)
{
	for (size_t i = 0; i < t->pending.n; i++)
		if (t->pending.v[i].step.entity == entity)
			return &t->pending.v[i];
	return NULL;
}

void step_table_scalar(struct step_table *t, const struct window_scalar *s)
{
	struct step_pending *p = pending_of(t, s->entity);
	size_t column = s->name ? column_of(t, s->name) : t->n_columns;

	if (p && column < t->n_columns && p->step.number == s->step)
		p->values[column] = s->value;
}

static int give(const struct sink_source *src, const struct step_pending *p, step_row_fn fn,
		void *arg)
{
	const struct window_step *s = &p->step;
	struct step_usage u = { NAN, NAN, 0, NAN, NAN, NAN, NAN };
	bool timed = s->begin_ns < s->end_ns;
	struct step_row row = {
		.step = s,
		.process = entity_find(src->entities, s->entity),
		.wall_ns = sink_wall_ns(src->run, s->end_ns),
		.seconds = ((double)s->end_ns - (double)src->run->started_mono_ns) / 1e9,
		.scalars = p->values,
	};

	if (src->window)
		step_usage(src->window, s, &u);
	row.figures[STEP_TIME] = timed ? ((double)s->end_ns - (double)s->begin_ns) / 1e9 : NAN;
	row.figures[STEP_DATA_WAIT] = s->data_wait;
	row.figures[STEP_BATCHES] = s->micro ? s->micro : NAN;
	row.figures[STEP_LOSS] = s->loss;
	row.figures[STEP_CPU_CORES] = u.cores;
	row.figures[STEP_MEMORY] = u.memory;
	row.figures[STEP_GPU_BUSY] = u.gpu_busy;
	row.figures[STEP_GPU_MEMORY] = u.gpu_memory;
	row.figures[STEP_GPU_POWER] = u.gpu_power;
	return fn(&row, arg);
}

int step_table_step(struct step_table *t, const struct sink_source *src,
		    const struct window_step *s, step_row_fn fn, void *arg)
{
	struct step_pending *p = pending_of(t, s->entity);
	int r = 0;

	if (p)
		r = give(src, p, fn, arg);
	else
		p = vec_push(&t->pending);
	if (!p)
		return -ENOMEM;
	p->step = *s;
	for (size_t i = 0; i < STEP_SCALARS_MAX; i++)
		p->values[i] = NAN;
	return r;
}

int step_table_end(struct step_table *t, const struct sink_source *src, step_row_fn fn, void *arg)
{
	int r = 0;

	for (size_t i = 0; i < t->pending.n && r == 0; i++)
		r = give(src, &t->pending.v[i], fn, arg);
	t->pending.n = 0;
	return r;
}

void step_table_done(struct step_table *t)
{
	vec_done(&t->pending);
}

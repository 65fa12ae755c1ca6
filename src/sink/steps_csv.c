/* SPDX-License-Identifier: MIT
 *
 * One line a step (`export --to csv --what steps`):
 *
 *	time,seconds,rank,pid,step,step_time,data_wait,batches,loss,cpu_cores,memory,gpu_busy,gpu_memory,gpu_power,accuracy
 *	2026-11-15T21:12:11.123Z,2.1,0,4242,7,0.31,0.002,,0.42,3.1,2e9,0.93,11e9,212,0.87
 *
 * What is not known is empty: the columns from cpu_cores to gpu_power are for steps that are longer
 * than two samples. Behind them comes a column for each scalar, with the last value that was said with
 * the step or behind it, before the next. Rows of several ranks are in order of each rank.
 */
#include "sink/sink.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/vec.h"
#include "model/step_usage.h"

#include <errno.h>
#include <math.h>
#include <string.h>

enum { COLUMNS_MAX = 100 };

/* A step whose row waits for what is said behind it: with step(), scalars come after their step. */
struct pending {
	struct window_step step;
	double values[COLUMNS_MAX];
};

struct steps_csv {
	const char *columns[COLUMNS_MAX]; /* borrowed from the window */
	size_t n_columns;
	VEC(struct pending) pending; /* one a process */
};

static size_t column_of(const struct steps_csv *st, const char *name)
{
	size_t i = 0;

	while (i < st->n_columns && strcmp(st->columns[i], name) != 0)
		i++;
	return i;
}

static int steps_begin(void *state, const struct sink_source *src, struct buf *out)
{
	struct steps_csv *st = state;
	const struct window *w = src->window;
	size_t n = 0;
	const struct window_scalar *s = w && w->ops->scalars ? w->ops->scalars(w->src, &n) : NULL;

	for (size_t i = 0; i < n && st->n_columns < COLUMNS_MAX; i++)
		if (s[i].name && column_of(st, s[i].name) == st->n_columns)
			st->columns[st->n_columns++] = s[i].name;
	buf_str(out, "time,seconds,rank,pid,step,step_time,data_wait,batches,loss,cpu_cores,memory,"
		     "gpu_busy,gpu_memory,gpu_power");
	for (size_t i = 0; i < st->n_columns; i++) {
		buf_char(out, ',');
		csv_field(out, st->columns[i], strlen(st->columns[i]));
	}
	buf_char(out, '\n');
	return 0;
}

static struct pending *pending_of(struct steps_csv *st, uint32_t entity)
{
	for (size_t i = 0; i < st->pending.n; i++)
		if (st->pending.v[i].step.entity == entity)
			return &st->pending.v[i];
	return NULL;
}

static int steps_scalar(void *state, const struct sink_source *src, const struct window_scalar *s,
			struct buf *out)
{
	struct steps_csv *st = state;
	struct pending *p = pending_of(st, s->entity);
	size_t column = s->name ? column_of(st, s->name) : st->n_columns;

	(void)src;
	(void)out;
	if (p && column < st->n_columns && p->step.number == s->step)
		p->values[column] = s->value;
	return 0;
}

static void put_row(const struct steps_csv *st, const struct sink_source *src,
		    const struct pending *p, struct buf *out)
{
	const struct window_step *s = &p->step;
	const struct entity *e = entity_find(src->entities, s->entity);
	struct step_usage u = { NAN, NAN, 0, NAN, NAN, NAN, NAN };
	bool timed = s->begin_ns < s->end_ns;
	char time[32];
	double parts[8];

	if (src->window)
		step_usage(src->window, s, &u);
	clock_iso(sink_wall_ns(src->run, s->end_ns), time, sizeof(time));
	buf_printf(out, "%s,", time);
	csv_number(out, ((double)s->end_ns - (double)src->run->started_mono_ns) / 1e9);
	buf_char(out, ',');
	if (s->rank >= 0)
		buf_printf(out, "%d", s->rank);
	buf_char(out, ',');
	if (e)
		buf_printf(out, "%lld", (long long)e->key);
	buf_printf(out, ",%llu,", (unsigned long long)s->number);
	csv_number(out, timed ? ((double)s->end_ns - (double)s->begin_ns) / 1e9 : NAN);
	parts[0] = s->data_wait;
	parts[1] = s->micro ? s->micro : NAN;
	parts[2] = s->loss;
	parts[3] = u.cores;
	parts[4] = u.memory;
	parts[5] = u.gpu_busy;
	parts[6] = u.gpu_memory;
	parts[7] = u.gpu_power;
	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		buf_char(out, ',');
		csv_number(out, parts[i]);
	}
	for (size_t i = 0; i < st->n_columns; i++) {
		buf_char(out, ',');
		csv_number(out, p->values[i]);
	}
	buf_char(out, '\n');
}

static int steps_step(void *state, const struct sink_source *src, const struct window_step *s,
		      struct buf *out)
{
	struct steps_csv *st = state;
	struct pending *p = pending_of(st, s->entity);

	if (p)
		put_row(st, src, p, out);
	else
		p = vec_push(&st->pending);
	if (!p)
		return -ENOMEM;
	p->step = *s;
	for (size_t i = 0; i < COLUMNS_MAX; i++)
		p->values[i] = NAN;
	return 0;
}

static int steps_end(void *state, const struct sink_source *src, struct buf *out)
{
	struct steps_csv *st = state;

	for (size_t i = 0; i < st->pending.n; i++)
		put_row(st, src, &st->pending.v[i], out);
	st->pending.n = 0;
	return 0;
}

static void steps_csv_done(void *state)
{
	struct steps_csv *st = state;

	vec_done(&st->pending);
}

const struct sink_type steps_csv_sink = {
	.name = "csv-steps",
	.extension = "csv",
	.help = "one line a step",
	.needs_steps = true,
	.state_size = sizeof(struct steps_csv),
	.begin = steps_begin,
	.step = steps_step,
	.scalar = steps_scalar,
	.end = steps_end,
	.done = steps_csv_done,
};

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

#include "base/buf.h"
#include "base/clock.h"
#include "sink/step_table.h"

#include <string.h>

struct steps_csv {
	struct step_table table;
	struct buf *out; /* of the call at hand */
};

static int steps_begin(void *state, const struct sink_source *src, struct buf *out)
{
	struct steps_csv *st = state;

	step_table_begin(&st->table, src);
	buf_str(out, "time,seconds,rank,pid,step");
	for (int i = 0; i < STEP_FIGURES; i++)
		buf_printf(out, ",%s", step_figure_names[i]);
	for (size_t i = 0; i < st->table.n_columns; i++) {
		buf_char(out, ',');
		csv_field(out, st->table.columns[i], strlen(st->table.columns[i]));
	}
	buf_char(out, '\n');
	return 0;
}

static int steps_scalar(void *state, const struct sink_source *src, const struct window_scalar *s,
			struct buf *out)
{
	struct steps_csv *st = state;

	(void)src;
	(void)out;
	step_table_scalar(&st->table, s);
	return 0;
}

static int put_row(const struct step_row *row, void *arg)
{
	const struct steps_csv *st = arg;
	struct buf *out = st->out;
	char time[32];

	clock_iso(row->wall_ns, time, sizeof(time));
	buf_printf(out, "%s,", time);
	csv_number(out, row->seconds);
	buf_char(out, ',');
	if (row->step->rank >= 0)
		buf_printf(out, "%d", row->step->rank);
	buf_char(out, ',');
	if (row->process)
		buf_printf(out, "%lld", (long long)row->process->key);
	buf_printf(out, ",%llu", (unsigned long long)row->step->number);
	for (int i = 0; i < STEP_FIGURES; i++) {
		buf_char(out, ',');
		csv_number(out, row->figures[i]);
	}
	for (size_t i = 0; i < st->table.n_columns; i++) {
		buf_char(out, ',');
		csv_number(out, row->scalars[i]);
	}
	buf_char(out, '\n');
	return 0;
}

static int steps_step(void *state, const struct sink_source *src, const struct window_step *s,
		      struct buf *out)
{
	struct steps_csv *st = state;

	st->out = out;
	return step_table_step(&st->table, src, s, put_row, st);
}

static int steps_end(void *state, const struct sink_source *src, struct buf *out)
{
	struct steps_csv *st = state;

	st->out = out;
	return step_table_end(&st->table, src, put_row, st);
}

static void steps_csv_done(void *state)
{
	struct steps_csv *st = state;

	step_table_done(&st->table);
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

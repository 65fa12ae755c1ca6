/* SPDX-License-Identifier: MIT
 *
 * The tables of csv as Parquet: `export --to parquet` has a row a sample, with `--what steps` a row a
 * step. Column names and meanings are those of csv.c and steps_csv.c; what is empty there is null here.
 *
 *	SELECT metric, avg(value) FROM 'run.parquet' GROUP BY metric    -- duckdb
 *	pandas.read_parquet("run.parquet")                              # Python
 */
#include "sink/sink.h"

#include "sink/parquet_file.h"
#include "sink/step_table.h"

#include <stddef.h>

/* Columns of samples, in the order of begin. */
enum { C_TIME, C_SECONDS, C_KIND, C_NAME, C_KEY, C_METRIC, C_UNIT, C_VALUE };
/* And of steps; figures and scalars behind them. */
enum { S_TIME, S_SECONDS, S_RANK, S_PID, S_STEP, S_FIGURES };

struct parquet_steps {
	struct parquet file;
	struct step_table table;
	struct buf *out; /* of the call at hand */
};

static int samples_begin(void *state, const struct sink_source *src, struct buf *out)
{
	struct parquet *p = state;

	(void)src;
	parquet_column(p, "time", PARQUET_TIME, false);
	parquet_column(p, "seconds", PARQUET_DOUBLE, false);
	parquet_column(p, "kind", PARQUET_TEXT, true);
	parquet_column(p, "name", PARQUET_TEXT, true);
	parquet_column(p, "key", PARQUET_INT, true);
	parquet_column(p, "metric", PARQUET_TEXT, false);
	parquet_column(p, "unit", PARQUET_TEXT, true);
	parquet_column(p, "value", PARQUET_DOUBLE, true);
	parquet_begin(p, out);
	return 0;
}

static int samples_sample(void *state, const struct sink_source *src, const struct sink_sample *s,
			  struct buf *out)
{
	struct parquet *p = state;
	const struct entity *entity = entity_find(src->entities, s->entity);

	parquet_int(p, C_TIME, sink_wall_ns(src->run, s->t_ns) / 1000);
	parquet_double(p, C_SECONDS, ((double)s->t_ns - (double)src->run->started_mono_ns) / 1e9);
	parquet_text(p, C_KIND, entity ? entity_kind_name(entity->kind) : NULL);
	parquet_text(p, C_NAME, entity ? entity->name : NULL);
	if (entity && sink_has_key(entity))
		parquet_int(p, C_KEY, entity->key);
	parquet_text(p, C_METRIC, s->metric);
	parquet_text(p, C_UNIT, s->unit[0] ? s->unit : NULL);
	parquet_double(p, C_VALUE, s->value);
	return parquet_row(p, out);
}

static int put_end(struct parquet *p, const struct sink_source *src, const char *schema,
		   struct buf *out)
{
	const struct parquet_word words[] = {
		{ "spotter.schema", schema },
		{ "spotter.run_id", src->run->id },
		{ "spotter.run_name", src->run->name },
		{ "spotter.hostname", src->run->machine.hostname },
		{ NULL, NULL },
	};

	return parquet_end(p, words, out);
}

static int samples_end(void *state, const struct sink_source *src, struct buf *out)
{
	return put_end(state, src, "spotter.samples/1", out);
}

static void samples_done(void *state)
{
	parquet_done(state);
}

const struct sink_type parquet_sink = {
	.name = "parquet",
	.extension = "parquet",
	.help = "a row a sample, for duckdb, pandas, polars and Spark",
	.state_size = sizeof(struct parquet),
	.begin = samples_begin,
	.sample = samples_sample,
	.end = samples_end,
	.done = samples_done,
};

static int steps_begin(void *state, const struct sink_source *src, struct buf *out)
{
	struct parquet_steps *st = state;
	struct parquet *p = &st->file;

	step_table_begin(&st->table, src);
	parquet_column(p, "time", PARQUET_TIME, false);
	parquet_column(p, "seconds", PARQUET_DOUBLE, false);
	parquet_column(p, "rank", PARQUET_INT, true);
	parquet_column(p, "pid", PARQUET_INT, true);
	parquet_column(p, "step", PARQUET_INT, false);
	for (int i = 0; i < STEP_FIGURES; i++)
		parquet_column(p, step_figure_names[i],
			       i == STEP_BATCHES ? PARQUET_INT : PARQUET_DOUBLE, true);
	for (size_t i = 0; i < st->table.n_columns; i++)
		parquet_column(p, st->table.columns[i], PARQUET_DOUBLE, true);
	parquet_begin(p, out);
	return 0;
}

static int put_row(const struct step_row *row, void *arg)
{
	struct parquet_steps *st = arg;
	struct parquet *p = &st->file;

	parquet_int(p, S_TIME, row->wall_ns / 1000);
	parquet_double(p, S_SECONDS, row->seconds);
	if (row->step->rank >= 0)
		parquet_int(p, S_RANK, row->step->rank);
	if (row->process)
		parquet_int(p, S_PID, row->process->key);
	parquet_int(p, S_STEP,
		    row->step->number < INT64_MAX ? (int64_t)row->step->number : INT64_MAX);
	for (int i = 0; i < STEP_FIGURES; i++) {
		if (i != STEP_BATCHES)
			parquet_double(p, (size_t)(S_FIGURES + i), row->figures[i]);
		else if (row->step->micro)
			parquet_int(p, (size_t)(S_FIGURES + i), row->step->micro);
	}
	for (size_t i = 0; i < st->table.n_columns; i++)
		parquet_double(p, (size_t)(S_FIGURES + STEP_FIGURES) + i, row->scalars[i]);
	return parquet_row(p, st->out);
}

static int steps_step(void *state, const struct sink_source *src, const struct window_step *s,
		      struct buf *out)
{
	struct parquet_steps *st = state;

	st->out = out;
	return step_table_step(&st->table, src, s, put_row, st);
}

static int steps_scalar(void *state, const struct sink_source *src, const struct window_scalar *s,
			struct buf *out)
{
	struct parquet_steps *st = state;

	(void)src;
	(void)out;
	step_table_scalar(&st->table, s);
	return 0;
}

static int steps_end(void *state, const struct sink_source *src, struct buf *out)
{
	struct parquet_steps *st = state;
	int r;

	st->out = out;
	r = step_table_end(&st->table, src, put_row, st);
	return r < 0 ? r : put_end(&st->file, src, "spotter.steps/1", out);
}

static void steps_done(void *state)
{
	struct parquet_steps *st = state;

	step_table_done(&st->table);
	parquet_done(&st->file);
}

const struct sink_type steps_parquet_sink = {
	.name = "parquet-steps",
	.extension = "parquet",
	.help = "a row a step",
	.needs_steps = true,
	.state_size = sizeof(struct parquet_steps),
	.begin = steps_begin,
	.step = steps_step,
	.scalar = steps_scalar,
	.end = steps_end,
	.done = steps_done,
};

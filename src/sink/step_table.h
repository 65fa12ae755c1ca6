/* SPDX-License-Identifier: MIT
 *
 * The table of steps that csv and parquet write: a row a step, with what it used and a column for each
 * scalar. The row of a step waits for what is said behind it: with step(), scalars come after theirs.
 */
#ifndef SPOTTER_SINK_STEP_TABLE_H
#define SPOTTER_SINK_STEP_TABLE_H

#include "base/vec.h"
#include "sink/sink.h"

enum { STEP_SCALARS_MAX = 100 };

/* Columns behind time, seconds, rank, pid and step; all may be absent (NAN). */
enum step_figure {
	STEP_TIME,
	STEP_DATA_WAIT,
	STEP_BATCHES,
	STEP_LOSS,
	STEP_CPU_CORES,
	STEP_MEMORY,
	STEP_GPU_BUSY,
	STEP_GPU_MEMORY,
	STEP_GPU_POWER,
	STEP_FIGURES
};
extern const char *const step_figure_names[STEP_FIGURES]; /* "step_time", ... */

struct step_row {
	const struct window_step *step;
	const struct entity *process; /* NULL: not known */
	int64_t wall_ns;              /* of its end */
	double seconds;               /* since the run began */
	double figures[STEP_FIGURES];
	const double *scalars; /* in the order of the table's columns */
};

struct step_pending {
	struct window_step step;
	double values[STEP_SCALARS_MAX];
};

/* {0} is empty. */
struct step_table {
	const char *columns[STEP_SCALARS_MAX]; /* borrowed from the window; foreign text */
	size_t n_columns;
	VEC(struct step_pending) pending; /* one a process */
};

/* 0 or -errno. */
typedef int (*step_row_fn)(const struct step_row *row, void *arg);

/* Finds the names of scalars. */
void step_table_begin(struct step_table *t, const struct sink_source *src);
void step_table_scalar(struct step_table *t, const struct window_scalar *s);
/* Gives out the row of the step before it in its process. */
int step_table_step(struct step_table *t, const struct sink_source *src,
		    const struct window_step *s, step_row_fn fn, void *arg);
/* And those that are left. */
int step_table_end(struct step_table *t, const struct sink_source *src, step_row_fn fn, void *arg);
void step_table_done(struct step_table *t);

#endif

/* SPDX-License-Identifier: MIT
 *
 * One row of `samples` or `rollups`, and its columns.
 */
#ifndef SPOTTER_RECORD_VTAB_ROW_H
#define SPOTTER_RECORD_VTAB_ROW_H

#include "record/rollup.h"
#include "record/vtab.h"

struct sqlite3_context;

enum {
	SAMPLES_T,
	SAMPLES_METRIC,
	SAMPLES_ENTITY,
	SAMPLES_KIND,
	SAMPLES_KEY,
	SAMPLES_NAME,
	SAMPLES_VALUE,
	SAMPLES_UNIT
};
enum {
	ROLLUPS_T,
	ROLLUPS_T_END,
	ROLLUPS_METRIC,
	ROLLUPS_ENTITY,
	ROLLUPS_KIND,
	ROLLUPS_KEY,
	ROLLUPS_NAME,
	ROLLUPS_MIN,
	ROLLUPS_MAX,
	ROLLUPS_LAST,
	ROLLUPS_MEAN,
	ROLLUPS_GROWTH,
	ROLLUPS_UNIT
};

struct row {
	const struct source_metric *metric;
	int64_t entity, t_ns;
	int64_t raw;          /* samples */
	struct bucket bucket; /* rollups */
};

void row_column(const struct row *r, struct source *s, bool rollups, struct sqlite3_context *ctx,
		int column);

#endif

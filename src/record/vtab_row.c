/* SPDX-License-Identifier: MIT */
#include "record/vtab_row.h"

#include "record/sqlite_api.h"

static double seconds(const struct source *s, int64_t t_ns)
{
	return (double)(int64_t)((uint64_t)t_ns - (uint64_t)s->start_ns) / 1e9;
}

/* Columns both tables have, by their number in `samples`. */
static void shared_column(const struct row *r, struct source *s, sqlite3_context *ctx, int column)
{
	switch (column) {
	case SAMPLES_T:
		sqlite3_result_double(ctx, seconds(s, r->t_ns));
		break;
	case SAMPLES_METRIC:
		sqlite3_result_text(ctx, r->metric->name, -1, SQLITE_TRANSIENT);
		break;
	case SAMPLES_ENTITY:
		sqlite3_result_int64(ctx, r->entity);
		break;
	case SAMPLES_KIND:
		sqlite3_result_text(ctx, r->metric->group, -1, SQLITE_TRANSIENT);
		break;
	case SAMPLES_KEY:
		source_entity(s, r->entity);
		if (s->has_key)
			sqlite3_result_int64(ctx, s->key);
		break;
	case SAMPLES_NAME:
		source_entity(s, r->entity);
		if (s->name)
			sqlite3_result_text(ctx, s->name, -1, SQLITE_TRANSIENT);
		break;
	case SAMPLES_UNIT:
		sqlite3_result_text(ctx, r->metric->unit, -1, SQLITE_TRANSIENT);
		break;
	default:
		break;
	}
}

static void rollup_column(const struct row *r, struct source *s, sqlite3_context *ctx, int column)
{
	double scale = r->metric->scale;

	switch (column) {
	case ROLLUPS_T:
		shared_column(r, s, ctx, SAMPLES_T);
		break;
	case ROLLUPS_T_END:
		sqlite3_result_double(ctx, seconds(s, r->bucket.t1_ns));
		break;
	case ROLLUPS_MIN:
		sqlite3_result_double(ctx, (double)r->bucket.min * scale);
		break;
	case ROLLUPS_MAX:
		sqlite3_result_double(ctx, (double)r->bucket.max * scale);
		break;
	case ROLLUPS_LAST:
		sqlite3_result_double(ctx, (double)r->bucket.last * scale);
		break;
	case ROLLUPS_MEAN:
		sqlite3_result_double(ctx, r->bucket.mean * scale);
		break;
	case ROLLUPS_GROWTH: /* of a gauge it means nothing */
		if (r->metric->counter)
			sqlite3_result_double(ctx, (double)r->bucket.growth * scale);
		break;
	case ROLLUPS_UNIT:
		shared_column(r, s, ctx, SAMPLES_UNIT);
		break;
	default:
		shared_column(r, s, ctx, column - ROLLUPS_METRIC + SAMPLES_METRIC);
		break;
	}
}

void row_column(const struct row *r, struct source *s, bool rollups, struct sqlite3_context *ctx,
		int column)
{
	if (rollups)
		rollup_column(r, s, ctx, column);
	else if (column == SAMPLES_VALUE)
		sqlite3_result_double(ctx, (double)r->raw * r->metric->scale);
	else
		shared_column(r, s, ctx, column);
}

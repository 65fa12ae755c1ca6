/* SPDX-License-Identifier: MIT
 *
 * The plain rows of a run file into memory. All of it may be made up: ids are checked, texts are
 * copied, and what makes no sense is left out.
 */
#include "record/read.h"

#include "record/db.h"
#include "record/sqlite_api.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { METRIC_ID_MAX = 1 << 20 };
#define TIME_MOST (INT64_MAX / 4)

/* So that no later sum of two times overflows. */
static int64_t sane_ns(int64_t t)
{
	return t < -TIME_MOST ? -TIME_MOST : t > TIME_MOST ? TIME_MOST : t;
}

static void metrics_done(struct record *r)
{
	for (size_t i = 0; i < r->metrics.n; i++) {
		free(r->metrics.v[i].name);
		free(r->metrics.v[i].unit);
		free(r->metrics.v[i].group);
	}
	vec_done(&r->metrics);
	map_done(&r->metric_by_id);
	memset(r->metric_of, 0, sizeof(r->metric_of));
}

void load_done(struct record *r)
{
	metrics_done(r);
	entity_table_done(&r->entities);
	for (size_t i = 0; i < r->events.n; i++)
		free((char *)r->events.v[i].text);
	vec_done(&r->events);
	vec_done(&r->gaps);
	free(r->verdict);
	r->verdict = NULL;
	run_info_done(&r->run);
	r->run = (struct run_info){ 0 };
}

const struct file_metric *file_metric(const struct record *r, uint64_t file_id)
{
	uint32_t at;

	return map_get(&r->metric_by_id, file_id, &at) ? &r->metrics.v[at] : NULL;
}

static int add_metric(struct record *r, struct sqlite3_stmt *s)
{
	int64_t id = sqlite3_column_int64(s, 0);
	double scale = sqlite3_column_double(s, 5);
	const struct metric *known = metric_by_name(db_column(s, 1));
	struct file_metric *m;

	if (id <= 0 || id > METRIC_ID_MAX || !isfinite(scale))
		return 0;
	m = vec_push(&r->metrics);
	if (!m)
		return -ENOMEM;
	m->id = (uint32_t)id;
	m->known = known ? known->id : M_NONE;
	m->name = strdup(db_column(s, 1));
	m->unit = strdup(db_column(s, 2));
	m->counter = strcmp(db_column(s, 3), "counter") == 0;
	m->group = strdup(db_column(s, 4));
	m->scale = scale;
	if (!m->name || !m->unit || !m->group ||
	    !map_put(&r->metric_by_id, (uint64_t)id, (uint32_t)(r->metrics.n - 1)))
		return -ENOMEM;
	m->kind = entity_kind_by_name(m->group);
	if (m->known && m->kind)
		r->metric_of[m->known] = (uint32_t)r->metrics.n;
	return 0;
}

static int add_entity(struct record *r, struct sqlite3_stmt *s)
{
	int64_t id = sqlite3_column_int64(s, 0), parent = sqlite3_column_int64(s, 2);

	if (id <= 0 || id > UINT32_MAX || parent < 0 || parent > UINT32_MAX)
		return 0;
	return entity_table_add(&r->entities,
				&(struct entity){ .id = (uint32_t)id,
						  .parent = (uint32_t)parent,
						  .kind = entity_kind_by_name(db_column(s, 1)),
						  .key = sqlite3_column_int64(s, 3),
						  .start_ns = sqlite3_column_int64(s, 4),
						  .born_ns = sane_ns(sqlite3_column_int64(s, 5)),
						  .gone_ns = sane_ns(sqlite3_column_int64(s, 6)),
						  .name = (char *)db_column(s, 7),
						  .detail = (char *)db_column(s, 8) });
}

/* A value that was not known is no zero: the status of a process that nobody waited for. */
static double double_or_nan(sqlite3_stmt *s, int column)
{
	return sqlite3_column_type(s, column) == SQLITE_NULL ? (double)NAN
							     : sqlite3_column_double(s, column);
}

static int add_event(struct record *r, struct sqlite3_stmt *s)
{
	enum event_kind kind = event_kind_by_name(db_column(s, 1));
	struct window_event *e;
	char *text;

	if (kind == EVENT_KINDS) /* of a newer version: SQL shows it */
		return 0;
	text = strdup(db_column(s, 4));
	e = text ? vec_push(&r->events) : NULL;
	if (!e) {
		free(text);
		return -ENOMEM;
	}
	*e = (struct window_event){ .t_ns = sane_ns(sqlite3_column_int64(s, 0)),
				    .kind = kind,
				    .entity = (uint32_t)sqlite3_column_int64(s, 2),
				    .value = double_or_nan(s, 3),
				    .text = text };
	return 0;
}

static bool why_by_name(const char *name, enum gap_why *ret)
{
	for (int i = GAP_NOT_SUPPORTED; i < GAP_OVER; i++) {
		if (strcmp(gap_why_name((enum gap_why)i), name) != 0)
			continue;
		*ret = (enum gap_why)i;
		return true;
	}
	return false;
}

static int add_gap(struct record *r, struct sqlite3_stmt *s)
{
	const struct file_metric *m = file_metric(r, (uint64_t)sqlite3_column_int64(s, 0));
	enum gap_why why;
	struct window_gap *g;

	if (!m || !m->known || !why_by_name(db_column(s, 2), &why))
		return 0;
	g = vec_push(&r->gaps);
	if (!g)
		return -ENOMEM;
	*g = (struct window_gap){ .metric = m->known,
				  .entity = (uint32_t)sqlite3_column_int64(s, 1),
				  .why = why,
				  .from_ns = sane_ns(sqlite3_column_int64(s, 3)),
				  .to_ns = sane_ns(sqlite3_column_int64(s, 4)) };
	return 0;
}

static int add_kept(struct record *r, struct sqlite3_stmt *s)
{
	enum entity_kind kind = entity_kind_by_name(db_column(s, 1));
	const char *level = db_column(s, 0);
	int64_t from = sane_ns(sqlite3_column_int64(s, 2));

	if (strcmp(level, "raw") == 0)
		r->raw_from_ns[kind] = from;
	else if (strcmp(level, ROLLUP_FINE) == 0)
		r->fine_from_ns[kind] = from;
	return 0;
}

static int add_verdict(struct record *r, struct sqlite3_stmt *s)
{
	free(r->verdict);
	r->verdict = strdup(db_column(s, 0));
	return r->verdict ? 0 : -ENOMEM;
}

enum { ROWS_MOST = 1 << 22 }; /* of a table: more are made up */

static int load_rows(struct record *r, const char *sql,
		     int (*add)(struct record *r, struct sqlite3_stmt *s))
{
	auto_stmt *s = NULL;
	int got = db_prepare(r->file.db, sql, &s);

	for (int n = 0; got >= 0 && (got = db_row(s)) > 0; n++)
		got = n < ROWS_MOST ? add(r, s) : -EBADMSG;
	return got < 0 ? got : 0;
}

int load_all(struct record *r)
{
	static const struct {
		const char *sql;
		int (*add)(struct record *r, struct sqlite3_stmt *s);
	} tables[] = {
		{ "SELECT id, name, unit, kind, entity, scale FROM metric ORDER BY id",
		  add_metric },
		{ "SELECT id, 'process', parent, pid, start_ns, born_ns, gone_ns, name, argv"
		  " FROM process UNION ALL"
		  " SELECT id, 'thread', process, tid, start_ns, born_ns, gone_ns, name, detail"
		  " FROM thread UNION ALL"
		  " SELECT id, kind, parent, key, start_ns, born_ns, gone_ns, name, detail FROM "
		  "device"
		  " ORDER BY 6, 1",
		  add_entity },
		{ "SELECT t_ns, kind, entity, value, text FROM event ORDER BY t_ns", add_event },
		{ "SELECT metric, entity, why, from_ns, to_ns FROM gap ORDER BY from_ns", add_gap },
		{ "SELECT level, grp, from_ns FROM kept", add_kept },
		{ "SELECT json FROM verdict", add_verdict },
	};
	int got;

	load_done(r);
	for (int g = 0; g < ENTITY_KINDS; g++)
		r->raw_from_ns[g] = r->fine_from_ns[g] = -TIME_MOST;
	got = run_file_info(r->file.db, &r->run, &r->recorder, &r->fine_to_ns, &r->coarse_to_ns);
	r->fine_to_ns = sane_ns(r->fine_to_ns);
	r->coarse_to_ns = sane_ns(r->coarse_to_ns);
	for (size_t i = 0; got >= 0 && i < sizeof(tables) / sizeof(tables[0]); i++)
		got = load_rows(r, tables[i].sql, tables[i].add);
	return got;
}

/* SPDX-License-Identifier: MIT
 *
 * What the training said, out of a run file. All of it may be made up: numbers are checked, and what
 * makes no sense is left out. Files of before schema 1.2 say nothing.
 */
#include "model/training.h"
#include "record/db.h"
#include "record/read.h"
#include "record/sqlite_api.h"

#include <errno.h>
#include <math.h>

/* The last so many: 56 MB each. Of a longer run SQL has them all. */
enum { ROWS_MOST = 1 << 20, PHASES_MOST = 1 << 17, SETTINGS_MOST = 1 << 14 };
#define TIME_MOST (INT64_MAX / 4)

void marks_stale(struct record *r)
{
	r->marks.loaded = false;
}

void marks_done(struct record *r)
{
	struct mark_shelf *m = &r->marks;

	vec_done(&m->steps);
	vec_done(&m->phases);
	vec_done(&m->scalars);
	vec_done(&m->settings);
	name_set_done(&m->names);
	m->source = NULL;
	m->loaded = false;
}

static bool is_time(int64_t t)
{
	return t > -TIME_MOST && t < TIME_MOST;
}

static uint32_t entity_at(struct sqlite3_stmt *s, int at)
{
	int64_t id = sqlite3_column_int64(s, at);

	return id > 0 && id <= UINT32_MAX ? (uint32_t)id : 0;
}

static int32_t rank_at(struct sqlite3_stmt *s, int at)
{
	int64_t rank = sqlite3_column_int64(s, at);

	return sqlite3_column_type(s, at) != SQLITE_NULL && rank >= 0 && rank <= INT32_MAX
		   ? (int32_t)rank
		   : -1;
}

static uint64_t number_at(struct sqlite3_stmt *s, int at)
{
	int64_t n = sqlite3_column_int64(s, at);

	return n > 0 ? (uint64_t)n : 0;
}

static double value_at(struct sqlite3_stmt *s, int at)
{
	return sqlite3_column_type(s, at) == SQLITE_NULL ? NAN : sqlite3_column_double(s, at);
}

/* Once: what comes again is the same text. Too many names: "?" for the rest. */
static const char *name_at(struct record *r, struct sqlite3_stmt *s, int at)
{
	const char *name = name_set_add(&r->marks.names, db_column(s, at));

	return name ? name : "?";
}

bool step_row(struct sqlite3_stmt *s, struct window_step *ret)
{
	int64_t begin = sqlite3_column_int64(s, 2), end = sqlite3_column_int64(s, 3);
	int64_t wait = sqlite3_column_int64(s, 6), micro = sqlite3_column_int64(s, 7);

	if (!is_time(begin) || !is_time(end))
		return false;
	if (sqlite3_column_type(s, 2) == SQLITE_NULL || begin > end)
		begin = end;
	*ret = (struct window_step){ .rank = rank_at(s, 0),
				     .number = number_at(s, 1),
				     .begin_ns = begin,
				     .end_ns = end,
				     .entity = entity_at(s, 4),
				     .loss = value_at(s, 5),
				     .data_wait = NAN };
	if (sqlite3_column_type(s, 6) != SQLITE_NULL && wait >= 0)
		ret->data_wait = (double)wait / 1e9;
	ret->micro = micro > 0 && micro <= UINT32_MAX ? (uint32_t)micro : 0;
	return true;
}

static int add_step(struct record *r, struct sqlite3_stmt *s)
{
	struct window_step row, *x;

	if (!step_row(s, &row))
		return 0;
	x = vec_push(&r->marks.steps);
	if (!x)
		return -ENOMEM;
	*x = row;
	return 0;
}

static int add_phase(struct record *r, struct sqlite3_stmt *s)
{
	int64_t begin = sqlite3_column_int64(s, 0), end = sqlite3_column_int64(s, 1);
	uint32_t entity = entity_at(s, 2);
	const struct entity *e = entity_find(&r->entities, entity);
	struct window_phase *x;

	if (!is_time(begin) || !is_time(end))
		return 0;
	if (sqlite3_column_type(s, 1) == SQLITE_NULL)
		end = training_open_end(&r->run, e, begin);
	else if (end < begin)
		end = begin;
	x = vec_push(&r->marks.phases);
	if (!x)
		return -ENOMEM;
	*x = (struct window_phase){
		.name = name_at(r, s, 3), .entity = entity, .begin_ns = begin, .end_ns = end
	};
	return 0;
}

static bool value_row(struct record *r, struct sqlite3_stmt *s, struct window_scalar *ret)
{
	int64_t t = sqlite3_column_int64(s, 0);

	*ret = (struct window_scalar){ .t_ns = t,
				       .rank = rank_at(s, 1),
				       .step = number_at(s, 2),
				       .name = name_at(r, s, 3),
				       .value = value_at(s, 4),
				       .entity = entity_at(s, 5) };
	return is_time(t);
}

static int add_scalar(struct record *r, struct sqlite3_stmt *s)
{
	struct window_scalar row, *x;

	if (!value_row(r, s, &row))
		return 0;
	x = vec_push(&r->marks.scalars);
	if (!x)
		return -ENOMEM;
	*x = row;
	return 0;
}

static int add_setting(struct record *r, struct sqlite3_stmt *s)
{
	struct window_scalar row, *x;

	if (!value_row(r, s, &row))
		return 0;
	x = vec_push(&r->marks.settings);
	if (!x)
		return -ENOMEM;
	*x = row;
	return 0;
}

static int add_source(struct record *r, struct sqlite3_stmt *s)
{
	r->marks.source = name_at(r, s, 0);
	return 0;
}

static int load_rows(struct record *r, const char *sql, int64_t most,
		     int (*add)(struct record *r, struct sqlite3_stmt *s))
{
	auto_stmt *s = NULL;
	int got = db_prepare(r->file.db, sql, &s);

	if (got >= 0)
		db_int(s, 1, most);
	while (got >= 0 && (got = db_row(s)) > 0)
		got = add(r, s);
	return got < 0 ? got : 0;
}

/* Rows come in the order they were written, the last of them are wanted: counted by rowid, as rows are
 * never deleted. */
#define LAST_OF(table) " FROM " table " WHERE rowid > (SELECT max(rowid) FROM " table ") - ?1"

static int load_all_marks(struct record *r)
{
	static const struct {
		const char *sql;
		int64_t most;
		int (*add)(struct record *r, struct sqlite3_stmt *s);
	} tables[] = {
		{ "SELECT rank, n, begin_ns, end_ns, entity, loss, data_wait_ns, micro" LAST_OF(
		      "step"),
		  ROWS_MOST, add_step },
		{ "SELECT t_ns, end_ns, entity, name" LAST_OF("mark"), PHASES_MOST, add_phase },
		{ "SELECT t_ns, rank, step, name, value, entity" LAST_OF("scalar"), ROWS_MOST,
		  add_scalar },
		{ "SELECT t_ns, rank, 0, name, value, entity" LAST_OF("setting"), SETTINGS_MOST,
		  add_setting },
		{ "SELECT source" LAST_OF("trainer") " ORDER BY t_ns DESC, entity DESC LIMIT 1",
		  ROWS_MOST, add_source },
	};
	int got = 0;

	for (size_t i = 0; got >= 0 && i < sizeof(tables) / sizeof(tables[0]); i++)
		got = load_rows(r, tables[i].sql, tables[i].most, tables[i].add);
	return got;
}

static void sort_marks(struct mark_shelf *m)
{
	if (m->steps.n)
		qsort(m->steps.v, m->steps.n, sizeof(*m->steps.v), training_step_order);
	if (m->phases.n)
		qsort(m->phases.v, m->phases.n, sizeof(*m->phases.v), training_phase_order);
	if (m->scalars.n)
		qsort(m->scalars.v, m->scalars.n, sizeof(*m->scalars.v), training_scalar_order);
	if (m->settings.n)
		qsort(m->settings.v, m->settings.n, sizeof(*m->settings.v), training_scalar_order);
}

/* What cannot be read is not there: a file without these tables says nothing. */
struct mark_shelf *marks_of(struct record *r)
{
	struct mark_shelf *m = &r->marks;

	if (m->loaded)
		return m;
	marks_done(r);
	(void)db_exec(r->file.db, "BEGIN");
	(void)load_all_marks(r);
	(void)db_exec(r->file.db, "COMMIT");
	sort_marks(m);
	m->loaded = true;
	return m;
}

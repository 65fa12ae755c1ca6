/* SPDX-License-Identifier: MIT
 *
 * Steps with what they used, for SQL: the virtual table step_usage, and over it the view `steps` of this
 * connection, which stands before the one in the file (that one has no figures of use: it is there for an
 * SQLite without these tables). What a step used is computed for those rows and columns only that a
 * query wants, by the lines the exports use (model/step_usage.h).
 */
#include "base/err.h"
#include "model/step_usage.h"
#include "record/read.h"
#include "record/sqlite_api.h"
#include "record/vtab.h"

#include <math.h>
#include <stdlib.h>

enum { COL_CORES = 11, COL_MEMORY, COL_GPU_BUSY, COL_GPU_MEMORY, COL_GPU_POWER };
/* Behind the columns that are given as they are. */
enum { ROW_BEGIN = COL_CORES, ROW_END };

static const char columns[] =
    "CREATE TABLE x (rank INTEGER, step INTEGER, t REAL, t_end REAL, seconds REAL, loss REAL,"
    " data_wait REAL, micro INTEGER, pid INTEGER, source TEXT, entity INTEGER, cpu_cores REAL,"
    " memory REAL, gpu_busy REAL, gpu_memory REAL, gpu_power REAL)";

static const char query[] =
    "SELECT s.rank, s.n, (s.begin_ns - r.started_mono_ns) / 1e9,"
    " (s.end_ns - r.started_mono_ns) / 1e9, (s.end_ns - s.begin_ns) / 1e9, s.loss,"
    " s.data_wait_ns / 1e9, s.micro, p.pid, coalesce(s.source, q.source), s.entity, s.begin_ns,"
    " s.end_ns FROM main.run r JOIN main.step s LEFT JOIN main.process p ON p.id = s.entity"
    " LEFT JOIN main.trainer q ON q.entity = s.entity";

struct table {
	sqlite3_vtab base;
	sqlite3 *db;
};

struct cursor {
	sqlite3_vtab_cursor base;
	sqlite3 *db;
	sqlite3_stmt *rows;
	struct record *record; /* opened when the first figure is asked for */
	bool eof, computed, refused;
	struct step_usage usage; /* of this row, if computed */
	int64_t n_row;
};

static int connect_table(sqlite3 *db, void *aux, int argc, const char *const *argv,
			 sqlite3_vtab **ret, char **err)
{
	struct table *t = sqlite3_malloc(sizeof(*t));
	int code;

	(void)aux;
	(void)argc;
	(void)argv;
	(void)err;
	if (!t)
		return SQLITE_NOMEM;
	*t = (struct table){ .db = db };
	code = sqlite3_declare_vtab(db, columns);
	if (code != SQLITE_OK) {
		sqlite3_free(t);
		return code;
	}
	*ret = &t->base;
	return SQLITE_OK;
}

static int disconnect_table(sqlite3_vtab *v)
{
	sqlite3_free(v);
	return SQLITE_OK;
}

/* Always all rows: a row costs next to nothing until its use is asked for. */
static int best_index(sqlite3_vtab *v, sqlite3_index_info *info)
{
	(void)v;
	info->estimatedCost = 1e5;
	info->estimatedRows = 100000;
	return SQLITE_OK;
}

static int close_cursor(sqlite3_vtab_cursor *base)
{
	struct cursor *c = (struct cursor *)base;

	sqlite3_finalize(c->rows);
	record_close(c->record);
	free(c);
	return SQLITE_OK;
}

static int open_cursor(sqlite3_vtab *v, sqlite3_vtab_cursor **ret)
{
	struct cursor *c = calloc(1, sizeof(*c));
	int code;

	if (!c)
		return SQLITE_NOMEM;
	c->db = ((struct table *)v)->db;
	code = sqlite3_prepare_v2(c->db, query, -1, &c->rows, NULL);
	if (code != SQLITE_OK) {
		close_cursor(&c->base);
		sqlite3_free(v->zErrMsg);
		v->zErrMsg = sqlite3_mprintf("this database has no steps of a Spotter recording");
		return code;
	}
	*ret = &c->base;
	return SQLITE_OK;
}

static int next_row(sqlite3_vtab_cursor *base)
{
	struct cursor *c = (struct cursor *)base;
	int code = sqlite3_step(c->rows);

	c->n_row++;
	c->computed = false;
	c->eof = code != SQLITE_ROW;
	return code == SQLITE_ROW || code == SQLITE_DONE ? SQLITE_OK : code;
}

static int filter(sqlite3_vtab_cursor *base, int use, const char *unused, int argc,
		  sqlite3_value **argv)
{
	struct cursor *c = (struct cursor *)base;

	(void)use;
	(void)unused;
	(void)argc;
	(void)argv;
	sqlite3_reset(c->rows);
	c->n_row = -1;
	return next_row(base);
}

static int at_end(sqlite3_vtab_cursor *base)
{
	return ((struct cursor *)base)->eof;
}

static int64_t whole_at(sqlite3_stmt *row, int column, int64_t least, int64_t most, int64_t other)
{
	int64_t v = sqlite3_column_int64(row, column);

	if (sqlite3_column_type(row, column) == SQLITE_NULL || v < least || v > most)
		return other;
	return v;
}

/* A record is foreign: what makes no sense used nothing that is known. */
static void compute(struct cursor *c)
{
	struct window_step s = {
		.rank = (int32_t)whole_at(c->rows, 0, 0, INT32_MAX, -1),
		.entity = (uint32_t)whole_at(c->rows, 10, 1, UINT32_MAX, 0),
		.begin_ns = whole_at(c->rows, ROW_BEGIN, 0, INT64_MAX / 4, -1),
		.end_ns = whole_at(c->rows, ROW_END, 0, INT64_MAX / 4, -1),
	};
	struct window w;

	c->computed = true;
	c->usage = (struct step_usage){ NAN, NAN, 0, NAN, NAN, NAN, NAN };
	if (!c->record && !c->refused)
		c->refused = record_borrow(c->db, &c->record) < 0;
	if (!c->record || s.begin_ns < 0 || s.end_ns <= s.begin_ns)
		return;
	w = record_window(c->record, 0, 0);
	(void)step_usage(&w, &s, &c->usage);
}

static int give_column(sqlite3_vtab_cursor *base, sqlite3_context *ctx, int column)
{
	struct cursor *c = (struct cursor *)base;
	double v[5];

	if (column < COL_CORES) {
		sqlite3_result_value(ctx, sqlite3_column_value(c->rows, column));
		return SQLITE_OK;
	}
	if (!c->computed)
		compute(c);
	v[0] = c->usage.cores;
	v[1] = c->usage.memory;
	v[2] = c->usage.gpu_busy;
	v[3] = c->usage.gpu_memory;
	v[4] = c->usage.gpu_power;
	if (column <= COL_GPU_POWER && isfinite(v[column - COL_CORES]))
		sqlite3_result_double(ctx, v[column - COL_CORES]);
	return SQLITE_OK;
}

static int give_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *ret)
{
	*ret = ((struct cursor *)base)->n_row;
	return SQLITE_OK;
}

static const sqlite3_module module = {
	.iVersion = 0,
	.xConnect = connect_table,
	.xBestIndex = best_index,
	.xDisconnect = disconnect_table,
	.xOpen = open_cursor,
	.xClose = close_cursor,
	.xFilter = filter,
	.xNext = next_row,
	.xEof = at_end,
	.xColumn = give_column,
	.xRowid = give_rowid,
};

/* Only where the file says what its training did: other databases are left as they are. */
static bool has_steps(struct sqlite3 *db)
{
	sqlite3_stmt *s = NULL;
	bool has = sqlite3_prepare_v2(db, query, -1, &s, NULL) == SQLITE_OK;

	sqlite3_finalize(s);
	return has;
}

int vtab_steps_register(struct sqlite3 *db)
{
	int code = sqlite3_create_module_v2(db, "step_usage", &module, NULL, NULL);

	/* Without it (no memory for a temporary schema) there is still the file's own. */
	if (code == SQLITE_OK && has_steps(db))
		(void)sqlite3_exec(
		    db, "CREATE TEMP VIEW IF NOT EXISTS steps AS SELECT * FROM step_usage", NULL,
		    NULL, NULL);
	return code;
}

/* SPDX-License-Identifier: MIT
 *
 * What threads did, for SQL: the virtual table stack_samples. One row for a thread in a stack during a
 * slice. Ranges of t and t_end decide which blobs are read.
 */
#include "record/sqlite_api.h"
#include "record/stack_block.h"
#include "record/vtab.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	COL_T,
	COL_T_END,
	COL_ENTITY,
	COL_STACK,
	COL_STATE,
	COL_WAITS_ON,
	COL_PEER,
	COL_FLAGS,
	COL_SAMPLES,
	COL_SECONDS
};

/* What xBestIndex tells xFilter; the arguments come in this order. */
enum { BY_ENTITY = 1, BY_BEFORE = 2, BY_AFTER = 4, BY_ALL = 8 };

struct table {
	sqlite3_vtab base;
	sqlite3 *db;
};

struct cursor {
	sqlite3_vtab_cursor base;
	sqlite3_stmt *blobs;
	struct stack_block block;
	struct stack_slice slice;
	size_t at; /* in the slice */
	bool by_entity, eof;
	int64_t entity, start_ns, n_row;
	char *state[256]; /* names of the file's codes; NULL: none */
	char *flag[8];
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
	code = sqlite3_declare_vtab(
	    db, "CREATE TABLE x (t REAL, t_end REAL, entity INTEGER, stack INTEGER, state TEXT,"
		" waits_on TEXT, peer INTEGER, flags TEXT, samples INTEGER, seconds REAL)");
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

static int use_of(const struct sqlite3_index_constraint *c)
{
	bool equal = c->op == SQLITE_INDEX_CONSTRAINT_EQ;

	if (!c->usable)
		return 0;
	if (c->iColumn == COL_ENTITY)
		return equal ? BY_ENTITY : 0;
	if (c->iColumn == COL_T &&
	    (equal || c->op == SQLITE_INDEX_CONSTRAINT_LT || c->op == SQLITE_INDEX_CONSTRAINT_LE))
		return BY_BEFORE;
	/* A slice that ends after some time, or begins after it and so ends after it as well. */
	if ((c->iColumn == COL_T || c->iColumn == COL_T_END) &&
	    (equal || c->op == SQLITE_INDEX_CONSTRAINT_GT || c->op == SQLITE_INDEX_CONSTRAINT_GE))
		return BY_AFTER;
	return 0;
}

static int best_index(sqlite3_vtab *v, sqlite3_index_info *info)
{
	static const double share[] = { [BY_ENTITY] = 0.1, [BY_BEFORE] = 0.4, [BY_AFTER] = 0.4 };
	int argument = 0;

	(void)v;
	info->estimatedCost = 1e6;
	info->idxNum = 0;
	for (int bit = BY_ENTITY; bit < BY_ALL; bit <<= 1) {
		for (int i = 0; i < info->nConstraint; i++) {
			if (use_of(&info->aConstraint[i]) != bit)
				continue;
			info->aConstraintUsage[i].argvIndex = ++argument;
			info->idxNum |= bit;
			info->estimatedCost *= share[bit];
			break;
		}
	}
	info->estimatedRows = (sqlite3_int64)info->estimatedCost + 1;
	return SQLITE_OK;
}

static int close_cursor(sqlite3_vtab_cursor *base)
{
	struct cursor *c = (struct cursor *)base;

	sqlite3_finalize(c->blobs);
	stack_block_done(&c->block);
	for (int i = 0; i < 256; i++)
		free(c->state[i]);
	for (int i = 0; i < 8; i++)
		free(c->flag[i]);
	free(c);
	return SQLITE_OK;
}

/* Name for a code, in the file's own words. */
static int take_word(struct cursor *c, sqlite3_stmt *row)
{
	const char *what = (const char *)sqlite3_column_text(row, 0);
	const char *name = (const char *)sqlite3_column_text(row, 2);
	int64_t id = sqlite3_column_int64(row, 1);
	char **slot = NULL;

	if (!what || !name)
		return SQLITE_OK;
	if (strcmp(what, "state") == 0 && id >= 0 && id < 256)
		slot = &c->state[id];
	for (int bit = 0; strcmp(what, "flag") == 0 && bit < 8; bit++)
		if (id == 1 << bit)
			slot = &c->flag[bit];
	if (!slot)
		return SQLITE_OK;
	free(*slot);
	*slot = strdup(name);
	return *slot ? SQLITE_OK : SQLITE_NOMEM;
}

static int load_words(struct cursor *c, sqlite3 *db)
{
	sqlite3_stmt *rows = NULL;
	int code = sqlite3_prepare_v2(db, "SELECT started_mono_ns FROM main.run", -1, &rows, NULL);

	if (code == SQLITE_OK && sqlite3_step(rows) == SQLITE_ROW)
		c->start_ns = sqlite3_column_int64(rows, 0);
	sqlite3_finalize(rows);
	if (code != SQLITE_OK)
		return code;
	rows = NULL;
	code =
	    sqlite3_prepare_v2(db, "SELECT what, id, name FROM main.stack_word", -1, &rows, NULL);
	while (code == SQLITE_OK && sqlite3_step(rows) == SQLITE_ROW)
		code = take_word(c, rows);
	sqlite3_finalize(rows);
	return code;
}

static int open_cursor(sqlite3_vtab *v, sqlite3_vtab_cursor **ret)
{
	sqlite3 *db = ((struct table *)v)->db;
	struct cursor *c = calloc(1, sizeof(*c));
	int code;

	if (!c)
		return SQLITE_NOMEM;
	code = load_words(c, db);
	if (code == SQLITE_OK)
		code = sqlite3_prepare_v2(db,
					  "SELECT data FROM main.stack_slice WHERE t0_ns <= ?2 AND"
					  " t1_ns >= ?1 ORDER BY t0_ns, id",
					  -1, &c->blobs, NULL);
	if (code != SQLITE_OK) {
		close_cursor(&c->base);
		sqlite3_free(v->zErrMsg);
		v->zErrMsg = sqlite3_mprintf("this database has no stacks of a Spotter recording");
		return code;
	}
	*ret = &c->base;
	return SQLITE_OK;
}

/* Opens the next slice, over as many blobs as it takes: a code of SQLite's. */
static int next_slice(struct cursor *c)
{
	c->at = 0;
	for (;;) {
		int got = stack_block_next(&c->block, &c->slice), code;

		if (got < 0)
			return SQLITE_NOMEM;
		if (got > 0)
			return SQLITE_ROW;
		code = sqlite3_step(c->blobs);
		if (code != SQLITE_ROW)
			return code;
		/* What is no blob of ours gives no slice. */
		got = stack_block_open(&c->block, sqlite3_column_blob(c->blobs, 0),
				       (size_t)sqlite3_column_bytes(c->blobs, 0));
		if (got == -ENOMEM)
			return SQLITE_NOMEM;
		c->block.damaged |= got < 0;
	}
}

static int next_row(sqlite3_vtab_cursor *base)
{
	struct cursor *c = (struct cursor *)base;
	int code;

	c->n_row++;
	c->at++;
	for (;;) {
		while (c->at < c->slice.n) {
			if (!c->by_entity || c->slice.rows[c->at].entity == c->entity)
				return SQLITE_OK;
			c->at++;
		}
		code = next_slice(c);
		if (code == SQLITE_ROW)
			continue;
		c->eof = true;
		return code == SQLITE_DONE ? SQLITE_OK : code;
	}
}

/* Seconds of the run as a time of the monotonic clock, with a margin for what doubles round. */
static int64_t to_ns(const struct cursor *c, double t, int64_t margin)
{
	double ns = t * 1e9 + (double)margin;

	if (!(ns > -2e18))
		ns = -2e18;
	if (ns > 2e18)
		ns = 2e18;
	return (int64_t)ns +
	       (c->start_ns > -2000000000000000000ll && c->start_ns < 2000000000000000000ll
		    ? c->start_ns
		    : 0);
}

static int filter(sqlite3_vtab_cursor *base, int use, const char *unused, int argc,
		  sqlite3_value **argv)
{
	struct cursor *c = (struct cursor *)base;
	int64_t lo = INT64_MIN, hi = INT64_MAX;
	int i = 0;

	(void)unused;
	(void)argc;
	c->by_entity = use & BY_ENTITY;
	if (use & BY_ENTITY)
		c->entity = sqlite3_value_int64(argv[i++]);
	if (use & BY_BEFORE)
		hi = to_ns(c, sqlite3_value_double(argv[i++]), 1000);
	if (use & BY_AFTER)
		lo = to_ns(c, sqlite3_value_double(argv[i++]), -1000);
	sqlite3_reset(c->blobs);
	sqlite3_bind_int64(c->blobs, 1, lo);
	sqlite3_bind_int64(c->blobs, 2, hi);
	c->block.p = c->block.end = NULL;
	c->block.weight_ns = 0;
	c->slice = (struct stack_slice){ 0 };
	c->at = 0;
	c->eof = false;
	c->n_row = -1;
	return next_row(base);
}

static int at_end(sqlite3_vtab_cursor *base)
{
	return ((struct cursor *)base)->eof;
}

/* "python,gil" */
static void give_flags(const struct cursor *c, unsigned flags, sqlite3_context *ctx)
{
	struct buf b = { 0 };

	for (int bit = 0; bit < 8; bit++) {
		if (!(flags & 1u << bit) || !c->flag[bit])
			continue;
		if (b.len)
			buf_char(&b, ',');
		buf_str(&b, c->flag[bit]);
	}
	if (buf_ok(&b))
		sqlite3_result_text(ctx, buf_text(&b), -1, SQLITE_TRANSIENT);
	else
		sqlite3_result_error_nomem(ctx);
	buf_done(&b);
}

static void give_id(uint32_t id, sqlite3_context *ctx)
{
	if (id)
		sqlite3_result_int64(ctx, id);
}

static void give_state(const char *name, sqlite3_context *ctx)
{
	sqlite3_result_text(ctx, name ? name : "unknown", -1, SQLITE_TRANSIENT);
}

static double seconds(const struct cursor *c, int64_t t_ns)
{
	return (double)(int64_t)((uint64_t)t_ns - (uint64_t)c->start_ns) / 1e9;
}

static int give_column(sqlite3_vtab_cursor *base, sqlite3_context *ctx, int column)
{
	struct cursor *c = (struct cursor *)base;
	const struct stack_row *r = &c->slice.rows[c->at];

	if (column == COL_T || column == COL_T_END)
		sqlite3_result_double(
		    ctx, seconds(c, column == COL_T ? c->slice.from_ns : c->slice.to_ns));
	else if (column == COL_ENTITY)
		sqlite3_result_int64(ctx, r->entity);
	else if (column == COL_STACK)
		give_id(r->node, ctx);
	else if (column == COL_STATE)
		give_state(c->state[r->kind], ctx);
	else if (column == COL_WAITS_ON && c->state[r->on] &&
		 strcmp(c->state[r->on], "unknown") != 0)
		give_state(c->state[r->on], ctx);
	else if (column == COL_PEER)
		give_id(r->peer, ctx);
	else if (column == COL_FLAGS)
		give_flags(c, r->flags, ctx);
	else if (column == COL_SAMPLES)
		sqlite3_result_int64(ctx, r->count);
	else if (column == COL_SECONDS)
		sqlite3_result_double(ctx, (double)r->weight_ns / 1e9);
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

int vtab_stack_register(struct sqlite3 *db)
{
	return sqlite3_create_module_v2(db, "stack_samples", &module, NULL, NULL);
}

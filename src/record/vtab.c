/* SPDX-License-Identifier: MIT */
#include "record/vtab.h"

#include "record/chunk.h"
#include "record/rollup.h"
#include "record/sqlite_api.h"
#include "record/vtab_row.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What xBestIndex tells xFilter; the arguments come in this order. */
enum { BY_METRIC = 1, BY_ENTITY = 2, BY_KIND = 4, BY_FROM = 8, BY_TO = 16, BY_T = 32, BY_ALL = 64 };

struct table {
	sqlite3_vtab base;
	sqlite3 *db;
	bool rollups;
};

struct cursor {
	sqlite3_vtab_cursor base;
	struct source source;
	struct chunk_cursor chunk;

	/* What is asked for. */
	bool by_entity;
	int64_t entity, lo_ns, hi_ns;

	/* Where we are: metric that leads a group, phase of it, block, series, sample. */
	size_t leader;
	int phase; /* roll-ups: 0 the coarse ones where the fine are deleted, 1 the fine ones */
	int64_t fine_from_ns;
	bool in_chunk, in_blob, in_series, eof;
	struct block_cursor samples;
	struct rollup_reader reader;

	struct row row;
	int64_t n_row;
};

static bool is_rollups(const struct cursor *c)
{
	return ((const struct table *)c->base.pVtab)->rollups;
}

static int connect_table(sqlite3 *db, void *aux, int argc, const char *const *argv,
			 sqlite3_vtab **ret, char **err)
{
	bool rollups = aux != NULL;
	struct table *t = sqlite3_malloc(sizeof(*t));
	int code;

	(void)argc;
	(void)argv;
	(void)err;
	if (!t)
		return SQLITE_NOMEM;
	*t = (struct table){ .db = db, .rollups = rollups };
	code = sqlite3_declare_vtab(
	    db, rollups ? "CREATE TABLE x (t REAL, t_end REAL, metric TEXT, entity INTEGER,"
			  " kind TEXT, key INTEGER, name TEXT, min REAL, max REAL, last REAL,"
			  " mean REAL, growth REAL, unit TEXT)"
			: "CREATE TABLE x (t REAL, metric TEXT, entity INTEGER, kind TEXT,"
			  " key INTEGER, name TEXT, value REAL, unit TEXT)");
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

static bool is_lower(int op)
{
	return op == SQLITE_INDEX_CONSTRAINT_GT || op == SQLITE_INDEX_CONSTRAINT_GE;
}

static bool is_upper(int op)
{
	return op == SQLITE_INDEX_CONSTRAINT_LT || op == SQLITE_INDEX_CONSTRAINT_LE;
}

/* The use a constraint is to us, 0 none. A bucket's end says nothing about its start, so ranges are
 * used on t alone. */
static int use_of(const struct table *t, const struct sqlite3_index_constraint *c)
{
	int shift = t->rollups ? ROLLUPS_METRIC - SAMPLES_METRIC : 0;
	int column = c->iColumn;

	if (!c->usable)
		return 0;
	if (column == SAMPLES_T)
		return is_lower(c->op)                       ? BY_FROM
		       : is_upper(c->op)                     ? BY_TO
		       : c->op == SQLITE_INDEX_CONSTRAINT_EQ ? BY_T
							     : 0;
	if (c->op != SQLITE_INDEX_CONSTRAINT_EQ)
		return 0;
	if (column == SAMPLES_METRIC + shift)
		return BY_METRIC;
	if (column == SAMPLES_ENTITY + shift)
		return BY_ENTITY;
	return column == SAMPLES_KIND + shift ? BY_KIND : 0;
}

static int best_index(sqlite3_vtab *v, sqlite3_index_info *info)
{
	static const double share[] = { [BY_METRIC] = 0.02, [BY_ENTITY] = 0.02, [BY_KIND] = 0.3,
					[BY_FROM] = 0.4,    [BY_TO] = 0.4,      [BY_T] = 0.01 };
	const struct table *t = (const struct table *)v;
	int argument = 0;

	info->estimatedCost = 1e7;
	info->idxNum = 0;
	for (int bit = BY_METRIC; bit < BY_ALL; bit <<= 1) {
		for (int i = 0; i < info->nConstraint; i++) {
			if (use_of(t, &info->aConstraint[i]) != bit)
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

static int open_cursor(sqlite3_vtab *v, sqlite3_vtab_cursor **ret)
{
	struct cursor *c = calloc(1, sizeof(*c));
	int code;

	if (!c)
		return SQLITE_NOMEM;
	code = source_open(&c->source, ((struct table *)v)->db);
	if (code != SQLITE_OK) {
		source_done(&c->source);
		free(c);
		sqlite3_free(v->zErrMsg);
		v->zErrMsg = sqlite3_mprintf("this database is not a Spotter recording");
		return code;
	}
	*ret = &c->base;
	return SQLITE_OK;
}

static int close_cursor(sqlite3_vtab_cursor *base)
{
	struct cursor *c = (struct cursor *)base;

	chunk_cursor_done(&c->chunk);
	source_done(&c->source);
	free(c);
	return SQLITE_OK;
}

/* First wanted metric of its group: each group is walked once. */
static bool leads(const struct source *s, size_t i)
{
	if (!s->metrics.v[i].wanted)
		return false;
	for (size_t k = 0; k < i; k++)
		if (s->metrics.v[k].wanted &&
		    strcmp(s->metrics.v[k].group, s->metrics.v[i].group) == 0)
			return false;
	return true;
}

/* Opens the next stretch of blobs: 1, 0 when there is none, or a code of SQLite's negated. */
static int next_stretch(struct cursor *c)
{
	const struct source *s = &c->source;
	const char *group;
	bool coarse;
	int64_t lo, hi;
	int code;

	if (is_rollups(c) && c->phase == 0) {
		c->phase = 1;
	} else {
		do
			c->leader++;
		while (c->leader < s->metrics.n && !leads(s, c->leader));
		c->phase = 0;
	}
	if (c->leader >= s->metrics.n)
		return 0;
	group = s->metrics.v[c->leader].group;
	if (c->phase == 0)
		c->fine_from_ns = source_fine_from(&c->source, group);
	coarse = is_rollups(c) && c->phase == 0;
	lo = !coarse && is_rollups(c) && c->lo_ns < c->fine_from_ns ? c->fine_from_ns : c->lo_ns;
	hi = coarse && c->hi_ns > c->fine_from_ns ? c->fine_from_ns : c->hi_ns;
	code = chunk_begin(&c->chunk, s->db,
			   !is_rollups(c) ? NULL
			   : coarse       ? ROLLUP_COARSE
					  : ROLLUP_FINE,
			   group, lo, hi);
	c->in_chunk = code == SQLITE_OK;
	return code == SQLITE_OK ? 1 : -code;
}

/* Opens the next blob: 1, 0 at the end of the stretch, or a code of SQLite's negated. */
static int next_blob(struct cursor *c)
{
	int code = chunk_next(&c->chunk);

	if (code == SQLITE_ROW) {
		if (is_rollups(c))
			rollup_begin(&c->reader, &c->chunk.block,
				     c->phase == 0 ? ROLLUP_COARSE_NS : ROLLUP_FINE_NS);
		return 1;
	}
	chunk_end(&c->chunk);
	c->in_chunk = false;
	return code == SQLITE_DONE ? 0 : -code;
}

static bool wants(struct cursor *c, uint64_t series_id)
{
	c->row.metric = source_metric(&c->source, series_id >> 32);
	c->row.entity = (int64_t)(series_id & UINT32_MAX);
	return c->row.metric && (!c->by_entity || c->row.entity == c->entity);
}

/* The next series of this blob that is asked for. */
static bool next_series(struct cursor *c)
{
	struct block_series s;

	if (is_rollups(c)) {
		while (rollup_series(&c->reader))
			if (wants(c, c->reader.series_id))
				return true;
		return false;
	}
	while (block_next(&c->chunk.block, &s)) {
		if (!wants(c, s.head.id))
			continue;
		block_samples(&c->chunk.block, &s, &c->samples);
		return true;
	}
	return false;
}

static bool next_value(struct cursor *c)
{
	int i;

	if (is_rollups(c)) {
		bool there = rollup_bucket(&c->reader, c->row.metric->counter, &c->row.bucket);

		c->row.t_ns = c->row.bucket.t1_ns - c->reader.span_ns;
		return there;
	}
	i = block_sample(&c->samples);
	if (i < 0)
		return false;
	c->row.t_ns = c->chunk.block.ticks.v[i];
	c->row.raw = c->samples.raw;
	return true;
}

static int next_row(sqlite3_vtab_cursor *base)
{
	struct cursor *c = (struct cursor *)base;
	int got;

	c->n_row++;
	for (;;) {
		if (c->in_series && next_value(c)) {
			if (c->row.t_ns >= c->lo_ns && c->row.t_ns < c->hi_ns)
				return SQLITE_OK;
			continue;
		}
		c->in_series = c->in_blob && next_series(c);
		if (c->in_series)
			continue;
		got = c->in_chunk ? next_blob(c) : 0;
		c->in_blob = got > 0;
		if (got == 0 && !c->in_chunk)
			got = next_stretch(c);
		if (got < 0)
			return -got;
		if (got == 0) {
			c->eof = true;
			return SQLITE_OK;
		}
	}
}

/* Seconds of the run as a time of the monotonic clock, rounded outwards. */
static int64_t to_ns(const struct cursor *c, double t, int64_t outwards)
{
	double ns = t * 1e9 + (double)outwards;

	if (!(ns > -2e18))
		return -2000000000000000000ll;
	if (ns > 2e18)
		return 2000000000000000000ll;
	return c->source.start_ns / 2 + (int64_t)(ns) +
	       (c->source.start_ns - c->source.start_ns / 2);
}

static void want_metrics(struct cursor *c, const char *metric, const char *kind, const char *group)
{
	for (size_t i = 0; i < c->source.metrics.n; i++) {
		struct source_metric *m = &c->source.metrics.v[i];

		m->wanted = (!metric || strcmp(metric, m->name) == 0) &&
			    (!kind || strcmp(kind, m->group) == 0) &&
			    (!group || strcmp(group, m->group) == 0);
	}
}

static int filter(sqlite3_vtab_cursor *base, int use, const char *unused, int argc,
		  sqlite3_value **argv)
{
	struct cursor *c = (struct cursor *)base;
	const char *metric = NULL, *kind = NULL;
	char *group = NULL;
	int i = 0;

	(void)unused;
	(void)argc;
	c->by_entity = use & BY_ENTITY;
	if (use & BY_METRIC)
		metric = (const char *)sqlite3_value_text(argv[i++]);
	if (use & BY_ENTITY) {
		c->entity = sqlite3_value_int64(argv[i++]);
		group = source_group(&c->source, c->entity);
	}
	if (use & BY_KIND)
		kind = (const char *)sqlite3_value_text(argv[i++]);
	c->lo_ns = use & BY_FROM ? to_ns(c, sqlite3_value_double(argv[i++]), -1000) : INT64_MIN / 4;
	c->hi_ns = use & BY_TO ? to_ns(c, sqlite3_value_double(argv[i++]), 1000) : INT64_MAX / 4;
	if (use & BY_T) {
		double t = sqlite3_value_double(argv[i++]);

		c->lo_ns = to_ns(c, t, -1000);
		c->hi_ns = to_ns(c, t, 1000);
	}
	/* A comparison with NULL is never true. */
	want_metrics(c, use & BY_METRIC && !metric ? "" : metric,
		     use & BY_KIND && !kind ? "" : kind, group);
	free(group);
	chunk_end(&c->chunk);
	c->leader = SIZE_MAX; /* the first step goes to 0 */
	c->phase = 1;
	c->in_chunk = c->in_series = c->in_blob = c->eof = false;
	c->n_row = -1;
	return next_row(base);
}

static int at_end(sqlite3_vtab_cursor *base)
{
	return ((struct cursor *)base)->eof;
}

static int give_column(sqlite3_vtab_cursor *base, sqlite3_context *ctx, int column)
{
	struct cursor *c = (struct cursor *)base;

	row_column(&c->row, &c->source, is_rollups(c), ctx, column);
	return SQLITE_OK;
}

static int give_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *ret)
{
	*ret = ((struct cursor *)base)->n_row;
	return SQLITE_OK;
}

/* Without xCreate they are there by themselves, with nothing in the file. */
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

int vtab_register(struct sqlite3 *db)
{
	static const char rollups = 1;
	int code = sqlite3_create_module_v2(db, "samples", &module, NULL, NULL);

	if (code == SQLITE_OK)
		code = sqlite3_create_module_v2(db, "rollups", &module, (void *)(uintptr_t)&rollups,
						NULL);
	if (code == SQLITE_OK)
		code = vtab_stack_register(db);
	if (code == SQLITE_OK)
		code = vtab_steps_register(db);
	if (code == SQLITE_OK)
		code = aggregate_register(db);
	if (code == SQLITE_OK)
		return 0;
	return code == SQLITE_NOMEM ? -ENOMEM : -EIO;
}

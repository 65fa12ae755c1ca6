/* SPDX-License-Identifier: MIT */
#include "record/vtab.h"

#include "record/rollup.h"
#include "record/sqlite_api.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static char *copy_column(struct sqlite3_stmt *s, int at)
{
	const char *text = (const char *)sqlite3_column_text(s, at);

	return strdup(text ? text : "");
}

void source_done(struct source *s)
{
	for (size_t i = 0; i < s->metrics.n; i++) {
		free(s->metrics.v[i].name);
		free(s->metrics.v[i].unit);
		free(s->metrics.v[i].group);
	}
	vec_done(&s->metrics);
	sqlite3_finalize(s->find_entity);
	free(s->name);
	*s = (struct source){ 0 };
}

static int load_metrics(struct source *s, struct sqlite3_stmt *rows)
{
	int code;

	while ((code = sqlite3_step(rows)) == SQLITE_ROW) {
		struct source_metric *m = vec_push(&s->metrics);

		if (!m)
			return SQLITE_NOMEM;
		m->id = sqlite3_column_int64(rows, 0);
		m->name = copy_column(rows, 1);
		m->unit = copy_column(rows, 2);
		m->group = copy_column(rows, 3);
		m->scale = sqlite3_column_double(rows, 4);
		m->counter = sqlite3_column_int(rows, 5);
		if (!m->name || !m->unit || !m->group)
			return SQLITE_NOMEM;
	}
	return code == SQLITE_DONE ? SQLITE_OK : code;
}

int source_open(struct source *s, struct sqlite3 *db)
{
	struct sqlite3_stmt *rows = NULL;
	int code;

	s->db = db;
	code = sqlite3_prepare_v2(db, "SELECT started_mono_ns FROM main.run", -1, &rows, NULL);
	if (code == SQLITE_OK && sqlite3_step(rows) == SQLITE_ROW)
		s->start_ns = sqlite3_column_int64(rows, 0);
	sqlite3_finalize(rows);
	if (code != SQLITE_OK)
		return code;
	rows = NULL;
	code = sqlite3_prepare_v2(db,
				  "SELECT id, name, unit, entity, scale, kind = 'counter'"
				  " FROM main.metric ORDER BY id",
				  -1, &rows, NULL);
	if (code == SQLITE_OK)
		code = load_metrics(s, rows);
	sqlite3_finalize(rows);
	return code;
}

const struct source_metric *source_metric(const struct source *s, uint64_t id)
{
	size_t lo = 0, hi = s->metrics.n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if ((uint64_t)s->metrics.v[mid].id < id)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo >= s->metrics.n || (uint64_t)s->metrics.v[lo].id != id || !s->metrics.v[lo].wanted)
		return NULL;
	return &s->metrics.v[lo];
}

static struct sqlite3_stmt *find_entity(struct source *s, int64_t entity)
{
	if (!s->find_entity &&
	    sqlite3_prepare_v2(
		s->db,
		"SELECT pid, name, 'process' FROM main.process WHERE id = ?1 UNION ALL "
		"SELECT tid, name, 'thread' FROM main.thread WHERE id = ?1 UNION ALL "
		"SELECT key, name, kind FROM main.device WHERE id = ?1",
		-1, &s->find_entity, NULL) != SQLITE_OK)
		return NULL;
	sqlite3_reset(s->find_entity);
	sqlite3_bind_int64(s->find_entity, 1, entity);
	return sqlite3_step(s->find_entity) == SQLITE_ROW ? s->find_entity : NULL;
}

void source_entity(struct source *s, int64_t entity)
{
	struct sqlite3_stmt *row;
	const char *kind;

	if (s->has_entity && s->entity == entity)
		return;
	free(s->name);
	s->name = NULL;
	s->has_key = false;
	s->has_entity = true;
	s->entity = entity;
	row = find_entity(s, entity);
	if (row) {
		kind = (const char *)sqlite3_column_text(row, 2);
		s->key = sqlite3_column_int64(row, 0);
		/* CPU 0 is one; other things without a number have 0. */
		s->has_key = s->key || (kind && strcmp(kind, "cpu") == 0);
		s->name = copy_column(row, 1);
	}
	sqlite3_reset(s->find_entity);
}

char *source_group(struct source *s, int64_t entity)
{
	struct sqlite3_stmt *row = find_entity(s, entity);
	char *group = row ? copy_column(row, 2) : NULL;

	sqlite3_reset(s->find_entity);
	return group;
}

int64_t source_fine_from(struct source *s, const char *group)
{
	struct sqlite3_stmt *row = NULL;
	int64_t from = INT64_MIN;

	if (sqlite3_prepare_v2(
		s->db, "SELECT from_ns FROM main.kept WHERE level = '" ROLLUP_FINE "' AND grp = ?1",
		-1, &row, NULL) == SQLITE_OK) {
		sqlite3_bind_text(row, 1, group, -1, SQLITE_TRANSIENT);
		if (sqlite3_step(row) == SQLITE_ROW)
			from = sqlite3_column_int64(row, 0);
	}
	sqlite3_finalize(row);
	return from;
}

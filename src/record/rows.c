/* SPDX-License-Identifier: MIT */
#include "record/write.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "record/alive.h"
#include "record/db.h"

#include <errno.h>
#include <sqlite3.h>
#include <string.h>

/* A thing announced twice keeps its birth. */
#define BORN(table, key, owner, detail)                                                   \
	"INSERT INTO " table " (id, " key ", " owner ", start_ns, born_ns, name, " detail \
	") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (id) DO UPDATE SET name = "    \
	"excluded.name, " detail " = excluded." detail

static const char *const statements[ROW_STATEMENTS] = {
	[ROW_BLOCK] = "INSERT INTO block (level, grp, t0_ns, t1_ns, ticks, samples, data)"
		      " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
	[ROW_DROP_SECONDS] = "DELETE FROM block WHERE grp = ?1 AND t0_ns BETWEEN ?2 AND ?3"
			     " AND level = 'second'",
	[ROW_ROLLUP] = "INSERT INTO rollup (level, grp, t0_ns, t1_ns, ticks, samples, data)"
		       " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
	[ROW_BORN] = BORN("process", "pid", "parent", "argv"),
	[ROW_BORN_THREAD] = BORN("thread", "tid", "process", "detail"),
	[ROW_BORN_DEVICE] = "INSERT INTO device (id, key, parent, start_ns, born_ns, name, detail,"
			    " kind) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT (id)"
			    " DO UPDATE SET name = excluded.name, detail = excluded.detail",
	[ROW_CHANGED] = "UPDATE process SET parent = ?3, name = ?6, argv = ?7 WHERE id = ?1",
	[ROW_CHANGED_THREAD] =
	    "UPDATE thread SET process = ?3, name = ?6, detail = ?7 WHERE id = ?1",
	[ROW_CHANGED_DEVICE] =
	    "UPDATE device SET parent = ?3, name = ?6, detail = ?7 WHERE id = ?1",
	[ROW_GONE] = "UPDATE process SET gone_ns = ?2 WHERE id = ?1",
	[ROW_GONE_THREAD] = "UPDATE thread SET gone_ns = ?2 WHERE id = ?1",
	[ROW_GONE_DEVICE] = "UPDATE device SET gone_ns = ?2 WHERE id = ?1",
	[ROW_EVENT] = "INSERT INTO event (t_ns, kind, entity, value, text)"
		      " VALUES (?1, ?2, ?3, ?4, ?5)",
	[ROW_GAP_END] = "UPDATE gap SET to_ns = ?3 WHERE metric = ?1 AND entity = ?2"
			" AND to_ns IS NULL",
	[ROW_GAP] = "INSERT INTO gap (metric, entity, why, from_ns) VALUES (?1, ?2, ?3, ?4)",
	[ROW_PLACE] = "INSERT OR REPLACE INTO place (id, kind, function, file, line, source)"
		      " VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
	[ROW_NODE] = "INSERT OR REPLACE INTO stack (id, parent, place) VALUES (?1, ?2, ?3)",
	[ROW_STACKS] = "INSERT INTO stack_slice (level, t0_ns, t1_ns, samples, data)"
		       " VALUES (?1, ?2, ?3, ?4, ?5)",
	[ROW_DROP_STACKS] = "DELETE FROM stack_slice WHERE t0_ns >= ?1 AND t0_ns < ?2"
			    " AND level = 'second'",
	[ROW_STEP] = "INSERT INTO step (rank, n, begin_ns, end_ns, entity, loss, data_wait_ns,"
		     " micro) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
	[ROW_PHASE] = "INSERT INTO mark (id, t_ns, entity, name)"
		      " VALUES (?1, ?2, ?3, ?4)",
	[ROW_PHASE_END] = "UPDATE mark SET end_ns = ?2 WHERE id = ?1",
	[ROW_SCALAR] = "INSERT INTO scalar (t_ns, rank, step, name, value, entity)"
		       " VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
	[ROW_SETTING] = "INSERT INTO setting (t_ns, rank, name, value, entity)"
			" VALUES (?1, ?2, ?4, ?5, ?6)",
	[ROW_SOURCE] = "INSERT OR REPLACE INTO trainer (entity, rank, source, t_ns)"
		       " VALUES (?1, ?2, ?3, ?4)",
	[ROW_TICK] = "UPDATE run SET ended_mono_ns = ?1, fine_to_ns = ?2, coarse_to_ns = ?3",
	[ROW_BEGIN] = "BEGIN IMMEDIATE",
	[ROW_COMMIT] = "COMMIT",
};

int rows_prepare(struct record_writer *w)
{
	for (int i = 0; i < ROW_STATEMENTS; i++) {
		int r = db_prepare(w->db, statements[i], &w->rows[i]);

		if (r < 0)
			return r;
	}
	return 0;
}

void rows_done(struct record_writer *w)
{
	for (int i = 0; i < ROW_STATEMENTS; i++)
		sqlite3_finalize(w->rows[i]);
}

void rows_rollback(struct record_writer *w)
{
	/* SQLite ends it by itself after some errors. */
	if (!sqlite3_get_autocommit(w->db))
		(void)db_exec(w->db, "ROLLBACK");
}

int rows_block(struct record_writer *w, enum row_statement table, const char *level,
	       const char *group, const struct series_block *b)
{
	struct sqlite3_stmt *s = w->rows[table];
	int r;

	db_text(s, 1, level);
	db_text(s, 2, group);
	db_int(s, 3, b->t0_ns);
	db_int(s, 4, b->t1_ns);
	db_int(s, 5, (int64_t)b->ticks);
	db_int(s, 6, (int64_t)b->samples);
	sqlite3_bind_blob64(s, 7, b->blob, b->n, SQLITE_STATIC);
	r = db_run(s);
	sqlite3_clear_bindings(s);
	return r;
}

static int write_block(struct record_writer *w, const struct pending *p)
{
	static const char *const levels[] = { [PENDING_SECOND] = "second",
					      [PENDING_MINUTE] = "minute",
					      [PENDING_FINE] = ROLLUP_FINE,
					      [PENDING_COARSE] = ROLLUP_COARSE };
	const char *group = entity_kind_name(p->block.group);
	struct series_block b = { .t0_ns = p->block.t0_ns,
				  .t1_ns = p->block.t1_ns,
				  .ticks = p->block.ticks,
				  .samples = p->block.samples,
				  .blob = w->backlog.bytes.data + p->at,
				  .n = p->n };

	if (p->kind == PENDING_MINUTE) {
		struct sqlite3_stmt *s = w->rows[ROW_DROP_SECONDS];
		int r;

		db_text(s, 1, group);
		db_int(s, 2, p->block.slot_ns);
		db_int(s, 3, p->block.t1_ns);
		r = db_run(s);
		if (r < 0)
			return r;
	}
	return rows_block(w, p->kind >= PENDING_FINE ? ROW_ROLLUP : ROW_BLOCK, levels[p->kind],
			  group, &b);
}

/* Processes and threads have tables of their own. */
static enum row_statement of_kind(enum row_statement first, enum entity_kind kind)
{
	return first + (kind == ENTITY_PROC ? 0 : kind == ENTITY_THREAD ? 1 : 2);
}

static int write_life(struct record_writer *w, const struct pending *p)
{
	const struct life *l = &p->life;
	struct sqlite3_stmt *s;
	int r;

	if (l->change == LIFE_GONE) {
		s = w->rows[of_kind(ROW_GONE, l->kind)];
		db_int(s, 1, l->id);
		db_int(s, 2, p->t_ns);
		return db_run(s);
	}
	s = w->rows[of_kind(l->change == LIFE_BORN ? ROW_BORN : ROW_CHANGED, l->kind)];
	db_int(s, 1, l->id);
	db_int(s, 2, l->key);
	db_int(s, 3, l->parent);
	db_int(s, 4, l->start_ns);
	db_int(s, 5, p->t_ns);
	db_text(s, 6, w->backlog.bytes.data + p->at);
	db_text(s, 7, w->backlog.bytes.data + p->at2);
	if (l->kind != ENTITY_PROC && l->kind != ENTITY_THREAD && l->change == LIFE_BORN)
		db_text(s, 8, entity_kind_name(l->kind));
	r = db_run(s);
	sqlite3_clear_bindings(s);
	return r;
}

static int write_event(struct record_writer *w, const struct pending *p)
{
	struct sqlite3_stmt *s = w->rows[ROW_EVENT];
	int r;

	db_int(s, 1, p->t_ns);
	db_text(s, 2, event_kind_name(p->event.kind));
	db_int(s, 3, p->event.entity);
	sqlite3_bind_double(s, 4, p->event.value);
	db_text(s, 5, w->backlog.bytes.data + p->at);
	r = db_run(s);
	sqlite3_clear_bindings(s);
	return r;
}

static int write_gap(struct record_writer *w, const struct pending *p)
{
	struct sqlite3_stmt *s = w->rows[ROW_GAP_END];
	int r;

	db_int(s, 1, p->gap.metric);
	db_int(s, 2, p->gap.entity);
	db_int(s, 3, p->t_ns);
	r = db_run(s);
	if (r < 0 || p->gap.why == GAP_OVER)
		return r;
	s = w->rows[ROW_GAP];
	db_int(s, 1, p->gap.metric);
	db_int(s, 2, p->gap.entity);
	db_text(s, 3, gap_why_name(p->gap.why));
	db_int(s, 4, p->t_ns);
	return db_run(s);
}

static int write_pending(struct record_writer *w, const struct pending *p)
{
	switch (p->kind) {
	case PENDING_NOTHING:
		return 0;
	case PENDING_LIFE:
		return write_life(w, p);
	case PENDING_EVENT:
		return write_event(w, p);
	case PENDING_GAP:
		return write_gap(w, p);
	case PENDING_PLACE:
	case PENDING_NODE:
	case PENDING_STACK_SECOND:
	case PENDING_STACK_MINUTE:
		return stacks_write(w, p);
	case PENDING_STEP:
	case PENDING_PHASE:
	case PENDING_PHASE_END:
	case PENDING_SCALAR:
	case PENDING_SETTING:
	case PENDING_SOURCE:
		return marks_write(w, p);
	default:
		return write_block(w, p);
	}
}

static int64_t ended_ns(const struct record_writer *w)
{
	return w->run.state != RUN_GOING && w->run.ended_mono_ns > w->last_ns ? w->run.ended_mono_ns
									      : w->last_ns;
}

static void put_argv(char *const *argv, struct buf *out)
{
	struct json j;

	json_init(&j, out, false);
	json_begin(&j, '[');
	for (size_t i = 0; argv && argv[i]; i++)
		json_str(&j, argv[i]);
	json_end(&j, ']');
}

/* Every column that may be learnt late. */
static int write_run(struct record_writer *w)
{
	static const char sql[] =
	    "UPDATE run SET id = ?1, name = ?2, argv = ?3, cwd = ?4, hostname = ?5, kernel = ?6,"
	    " cpu_model = ?7, cpus = ?8, threads_per_core = ?9, memory_bytes = ?10,"
	    " virtualisation = ?11, version = ?12, started = ?13, started_wall_ns = ?14,"
	    " started_mono_ns = ?15, hz = ?16, level = ?17, attached = ?18, pid = ?19, state = ?20,"
	    " exit_code = ?21, exit_signal = ?22, rusage_cpu_ns = ?23, rusage_maxrss_bytes = ?24";
	const struct run_info *run = &w->run;
	const struct machine *m = &run->machine;
	auto_stmt *s = NULL;
	struct buf argv = { 0 }, name = { 0 }, cwd = { 0 };
	char started[32];
	int r = db_prepare(w->db, sql, &s);

	if (r < 0)
		return r;
	put_argv(run->argv, &argv);
	db_utf8(&name, run->name);
	db_utf8(&cwd, run->cwd ? run->cwd : "");
	clock_iso(run->started_wall_ns, started, sizeof(started));
	db_text(s, 1, run->id);
	db_text(s, 2, buf_text(&name));
	db_text(s, 3, buf_text(&argv));
	db_text(s, 4, run->cwd ? buf_text(&cwd) : NULL);
	db_text(s, 5, m->hostname);
	db_text(s, 6, m->kernel);
	db_text(s, 7, m->cpu_model);
	db_int_or_null(s, 8, m->cpus > 0, m->cpus);
	db_int_or_null(s, 9, m->threads_per_core > 0, m->threads_per_core);
	db_int_or_null(s, 10, m->memory_bytes > 0, m->memory_bytes);
	db_text(s, 11, m->virtualisation);
	db_text(s, 12, run->version);
	db_text(s, 13, started);
	db_int(s, 14, run->started_wall_ns);
	db_int(s, 15, run->started_mono_ns);
	sqlite3_bind_double(s, 16, run->hz);
	db_int(s, 17, run->level);
	db_int(s, 18, run->attached);
	db_int(s, 19, run->pid);
	db_text(s, 20, run_state_name(run->state));
	db_int_or_null(s, 21, run->has_exit, run->exit_code);
	db_int_or_null(s, 22, run->has_exit, run->exit_signal);
	db_int_or_null(s, 23, run->rusage_cpu_ns >= 0, run->rusage_cpu_ns);
	db_int_or_null(s, 24, run->rusage_maxrss_bytes >= 0, run->rusage_maxrss_bytes);
	r = db_run(s);
	buf_done(&argv);
	buf_done(&name);
	buf_done(&cwd);
	return r;
}

static int write_verdict(struct record_writer *w)
{
	auto_stmt *verdict = NULL, *findings = NULL;
	int r = db_exec(w->db, "DELETE FROM verdict; DELETE FROM finding");

	if (r >= 0)
		r = db_prepare(w->db, "INSERT INTO verdict VALUES (?1)", &verdict);
	if (r < 0)
		return r;
	db_text(verdict, 1, w->verdict);
	r = db_run(verdict);
	if (r < 0)
		return r;
	/* For SQL the findings are rows as well. Text that is no JSON has none. */
	r = db_prepare(w->db,
		       "INSERT INTO finding SELECT value ->> 'cause', value ->> 'family',"
		       " value ->> 'title', value ->> 'cost', value ->> 'confidence', value"
		       " FROM json_each(iif(json_valid(?1), ?1, '{}'), '$.findings')",
		       &findings);
	if (r < 0)
		return r;
	db_text(findings, 1, w->verdict);
	return db_run(findings);
}

static int write_all(struct record_writer *w)
{
	struct sqlite3_stmt *tick = w->rows[ROW_TICK];
	int r = 0;

	for (size_t i = 0; i < w->backlog.rows.n && r >= 0; i++)
		r = write_pending(w, &w->backlog.rows.v[i]);
	if (r >= 0 && w->run_dirty)
		r = write_run(w);
	if (r >= 0 && w->verdict)
		r = write_verdict(w);
	if (r < 0)
		return r;
	db_int(tick, 1, ended_ns(w));
	db_int(tick, 2, w->fine_end_ns - ROLLUP_FINE_NS);
	db_int(tick, 3, w->coarse_end_ns - ROLLUP_COARSE_NS);
	return db_run(tick);
}

int rows_write(struct record_writer *w)
{
	int r = db_run(w->rows[ROW_BEGIN]);

	if (r >= 0)
		r = write_all(w);
	if (r >= 0)
		r = db_run(w->rows[ROW_COMMIT]);
	if (r < 0) {
		rows_rollback(w);
		return r;
	}
	backlog_clear(&w->backlog);
	w->run_dirty = false;
	free(w->verdict);
	w->verdict = NULL;
	return 0;
}

static int create_metrics(struct record_writer *w)
{
	auto_stmt *s = NULL;
	int r = db_prepare(w->db,
			   "INSERT INTO metric (id, name, unit, kind, entity, scale, help)"
			   " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
			   &s);

	for (int i = 1; i < METRICS && r >= 0; i++) {
		const struct metric *m = &metrics[i];

		db_int(s, 1, m->id);
		db_text(s, 2, m->name);
		db_text(s, 3, metric_unit_name(m->unit));
		db_text(s, 4, metric_kind_name(m->kind));
		db_text(s, 5, entity_kind_name(m->entity));
		sqlite3_bind_double(s, 6, series_scale(m->id));
		db_text(s, 7, m->help);
		r = db_run(s);
	}
	return r;
}

int rows_create(struct record_writer *w)
{
	auto_stmt *s = NULL;
	struct recorder_id id;
	int r = db_prepare(w->db,
			   "INSERT INTO run (recorder_pid, recorder_start, recorder_namespace,"
			   " boot_id, ended_mono_ns) VALUES (?1, ?2, ?3, ?4, ?5)",
			   &s);

	if (r < 0)
		return r;
	recorder_self(&id);
	db_int(s, 1, id.pid);
	db_int_or_null(s, 2, id.start > 0, id.start);
	db_int_or_null(s, 3, id.pid_space > 0, id.pid_space);
	db_text(s, 4, id.boot_id);
	db_int(s, 5, w->run.started_mono_ns);
	r = db_run(s);
	if (r >= 0)
		r = write_run(w);
	if (r >= 0)
		r = create_metrics(w);
	return r < 0 ? r : stacks_create(w);
}

/* SPDX-License-Identifier: MIT */
#include "record/reader.h"

#include "base/clock.h"
#include "base/err.h"
#include "record/as_is.h"
#include "record/db.h"
#include "record/read.h"
#include "record/sqlite_api.h"
#include "record/vtab.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum {
	TORN_TRIES = 5, /* of a file that cannot be read for it */
	MIXED_TRIES = 2,
	OTHERS_TRIES = 1, /* of either, for who has many others to look at */
	TORN_PAUSE_MS = 20,
};

static int stat_op(void *src, enum metric_id m, uint32_t entity, int64_t from, int64_t to,
		   struct series_stat *ret)
{
	return stats_of(src, m, entity, from, to, ret);
}

static int each_op(void *src, enum metric_id m, uint32_t entity, int64_t from, int64_t to,
		   int64_t step_ns, window_point_fn fn, void *arg)
{
	return points_each(src, m, entity, from, to, step_ns, fn, arg);
}

static int each_of_op(void *src, const struct series_key *keys, size_t n, int64_t from, int64_t to,
		      int64_t step_ns, window_points_fn fn, void *arg)
{
	return points_of(src, keys, n, from, to, step_ns, fn, arg);
}

static const struct entity_table *entities_op(void *src)
{
	return &((struct record *)src)->entities;
}

static const struct run_info *run_op(void *src)
{
	return &((struct record *)src)->run;
}

static const struct window_event *events_op(void *src, size_t *ret_n)
{
	struct record *r = src;

	*ret_n = r->events.n;
	return r->events.v;
}

static const struct window_gap *gaps_op(void *src, size_t *ret_n)
{
	struct record *r = src;

	*ret_n = r->gaps.n;
	return r->gaps.v;
}

static int stacks_op(void *src, int64_t from, int64_t to, window_slice_fn fn, void *arg)
{
	return stacks_each(src, from, to, fn, arg);
}

static const struct stack_book *book_op(void *src)
{
	return stacks_book(src);
}

static const struct window_step *steps_op(void *src, size_t *ret_n)
{
	const struct mark_shelf *m = marks_of(src);

	*ret_n = m->steps.n;
	return m->steps.v;
}

static const struct window_phase *phases_op(void *src, size_t *ret_n)
{
	const struct mark_shelf *m = marks_of(src);

	*ret_n = m->phases.n;
	return m->phases.v;
}

static const struct window_scalar *scalars_op(void *src, size_t *ret_n)
{
	const struct mark_shelf *m = marks_of(src);

	*ret_n = m->scalars.n;
	return m->scalars.v;
}

static const struct window_scalar *settings_op(void *src, size_t *ret_n)
{
	const struct mark_shelf *m = marks_of(src);

	*ret_n = m->settings.n;
	return m->settings.v;
}

static const char *source_op(void *src)
{
	return marks_of(src)->source;
}

static const struct window_ops ops = {
	.stat = stat_op,
	.each = each_op,
	.each_of = each_of_op,
	.entities = entities_op,
	.run = run_op,
	.events = events_op,
	.gaps = gaps_op,
	.stacks = stacks_op,
	.book = book_op,
	.steps = steps_op,
	.phases = phases_op,
	.scalars = scalars_op,
	.settings = settings_op,
	.step_source = source_op,
};

void record_close(struct record *r)
{
	if (!r)
		return;
	stats_forget(r);
	stacks_done(r);
	marks_done(r);
	chunk_cursor_done(&r->chunk);
	load_done(r);
	if (!r->borrowed)
		run_file_close(&r->file);
	free(r->path);
	free(r);
}

/* One state of a live file for all tables. A recorder that is gone has not got round to saying so. */
static int load(struct record *r)
{
	int ret;

	(void)db_exec(r->file.db, "BEGIN");
	ret = load_all(r);
	(void)db_exec(r->file.db, "COMMIT");
	if (ret >= 0 && r->run.state == RUN_GOING &&
	    !recorder_alive(&r->recorder, run_file_age(r->path)))
		r->run.state = RUN_INTERRUPTED;
	return ret;
}

/* Tells two states of a file apart. 0: it cannot be looked at. */
static int64_t stamp_of(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return 0;
	/* its owner may have set it to any number of seconds */
	return (int64_t)((uint64_t)st.st_mtim.tv_sec * (uint64_t)NS_PER_S +
			 (uint64_t)st.st_mtim.tv_nsec + (uint64_t)st.st_size);
}

static int open_with(const char *path, enum run_file_how how, struct record **ret, struct err *e)
{
	struct record *r = calloc(1, sizeof(*r));
	int64_t stamp = stamp_of(path);
	int got;

	if (!r)
		return err_set(e, -ENOMEM, "out of memory");
	got = run_file_open(path, how, &r->file, e);
	if (got >= 0) {
		r->path = strdup(path);
		got = r->path ? vtab_register(r->file.db) : -ENOMEM;
	}
	if (got >= 0)
		got = db_number(r->file.db, "PRAGMA data_version", &r->data_version);
	if (r->file.as_is)
		r->data_version = stamp;
	if (got >= 0)
		got = load(r);
	if (got < 0) {
		char why[80];

		record_close(r);
		if (got == -EBADMSG)
			err_set(e, got, "'%s' is damaged: its tables cannot be read", path);
		return err_set(e, got, "cannot read '%s': %s", path,
			       err_name(got, why, sizeof(why)));
	}
	*ret = r;
	return 0;
}

static void pause_a_moment(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = TORN_PAUSE_MS * NS_PER_MS }, NULL);
}

bool record_is_mixed(const struct record *r)
{
	struct as_is_state now;

	return r->file.as_is && as_is_state(r->file.db, &now) == 0 && now.mixed;
}

int record_owner(const struct record *r, uid_t *ret)
{
	struct as_is_state now;
	int got = as_is_state(r->file.db, &now);

	if (got == 0)
		*ret = now.owner;
	return got;
}

/* Who reads a file as it is may see it while its recorder moves the log into it: half old, half new. SQLite may notice, or
 * take it for a file like any other. Is another look worth it? r: what it gave, NULL without. */
static bool was_torn(const char *path, int error, const struct record *r, int64_t before, int tries,
		     int most)
{
	bool torn = error == -EBADMSG && tries < most && stamp_of(path) != before;
	bool mixed = error >= 0 && tries < most && tries < MIXED_TRIES && record_is_mixed(r);

	if (torn || mixed)
		pause_a_moment();
	return torn || mixed;
}

static int open_whole(const char *path, enum run_file_how how, int most, struct record **ret,
		      struct err *e)
{
	struct record *record = NULL;
	struct err why;
	int64_t before;
	int r, tries = 0;

	do {
		record_close(record);
		record = NULL;
		why = (struct err){ 0 };
		before = stamp_of(path);
		r = open_with(path, how, &record, &why);
	} while (was_torn(path, r, record, before, tries++, most));
	if (r < 0 && e && !e->code)
		*e = why;
	if (r >= 0)
		*ret = record;
	return r;
}

int record_open(const char *path, struct record **ret, struct err *e)
{
	return open_whole(path, RUN_FILE_CLOSE, TORN_TRIES, ret, e);
}

int record_open_others(const char *path, struct record **ret, struct err *e)
{
	return open_whole(path, RUN_FILE_ANYBODYS, OTHERS_TRIES, ret, e);
}

int record_open_writing(const char *path, struct record **ret, struct err *e)
{
	return open_with(path, RUN_FILE_WRITING, ret, e);
}

int record_borrow(struct sqlite3 *db, struct record **ret)
{
	struct record *r = calloc(1, sizeof(*r));
	int got;

	if (!r)
		return -ENOMEM;
	r->file.db = db;
	r->borrowed = true;
	/* Within a query, so it is one state of the file without more ado. */
	got = load_all(r);
	if (got < 0)
		record_close(r);
	else
		*ret = r;
	return got;
}

/* What is read as it is notices no change by itself, so it is opened anew. */
static int reopen(struct record *r)
{
	struct run_file again = { 0 };
	int ret = run_file_open(r->path, RUN_FILE_LOOK, &again, NULL);

	if (ret < 0)
		return ret;
	ret = vtab_register(again.db);
	if (ret < 0) {
		run_file_close(&again);
		return ret;
	}
	chunk_end(&r->chunk);
	run_file_close(&r->file);
	r->file = again;
	if (r->on_read)
		record_on_read(r, r->on_read, r->on_read_arg);
	return 0;
}

static int refresh_as_is(struct record *r)
{
	int64_t before;
	int ret, tries = 0;

	do {
		before = stamp_of(r->path);
		if (!before || (before == r->data_version && !record_is_mixed(r)))
			return load(r); /* its recorder may have died */
		r->data_version = before;
		stacks_stale(r);
		marks_stale(r);
		stats_forget(r);
		ret = reopen(r);
		if (ret >= 0)
			ret = load(r);
	} while (was_torn(r->path, ret, r, before, tries++, TORN_TRIES));
	return ret;
}

int record_refresh(struct record *r)
{
	int64_t version = 0;
	int ret;

	if (r->file.as_is)
		return r->run.state == RUN_GOING && !r->file.budget ? refresh_as_is(r) : 0;
	ret = db_number(r->file.db, "PRAGMA data_version", &version);
	if (ret < 0 || (version == r->data_version && r->run.state != RUN_GOING))
		return ret;
	/* Also when nothing was written: the recorder may have died. */
	if (version != r->data_version) {
		stacks_stale(r);
		marks_stale(r);
	}
	r->data_version = version;
	stats_forget(r);
	return load(r);
}

const struct run_info *record_run(const struct record *r)
{
	return &r->run;
}

struct window record_window(struct record *r, int64_t from_ns, int64_t to_ns)
{
	int64_t first = r->entities.rows.n ? r->entities.rows.v[0].born_ns : 0;
	int64_t from = r->run.started_mono_ns;

	/* What was attached to is known from the first look at it only. */
	if (r->run.attached && first > from)
		from = first;
	return (struct window){ .ops = &ops,
				.src = r,
				.from_ns = from_ns > from ? from_ns : from,
				.to_ns = to_ns && to_ns < r->run.ended_mono_ns
					     ? to_ns
					     : r->run.ended_mono_ns };
}

struct sqlite3 *record_db(struct record *r)
{
	return r->file.db;
}

static int tell_read(void *arg)
{
	struct record *r = arg;

	r->on_read(r->on_read_arg);
	return 0; /* go on */
}

void record_on_read(struct record *r, void (*fn)(void *arg), void *arg)
{
	r->on_read = fn;
	r->on_read_arg = arg;
	/* 500 steps of SQLite's machine are some tens of rows: about a millisecond with unpacking. */
	sqlite3_progress_handler(r->file.db, fn ? 500 : 0, fn ? tell_read : NULL, r);
}

int64_t record_bytes(const struct record *r)
{
	struct stat st;

	return stat(r->path, &st) == 0 ? (int64_t)st.st_size : 0;
}

const char *record_verdict(struct record *r)
{
	return r->verdict;
}

const char *record_remark(struct record *r)
{
	unsigned damaged = r->chunk.damaged + r->stacks.damaged;
	const char *mixed = record_is_mixed(r)
				? "it was written to while it was read, so figures may be of two "
				  "moments"
				: "";
	char blocks[64] = "";

	if (damaged)
		snprintf(blocks, sizeof(blocks), "%u damaged blocks were left out", damaged);
	snprintf(r->remark, sizeof(r->remark), "%s%s%s%s%s", blocks,
		 blocks[0] && r->file.remark[0] ? "; " : "", r->file.remark,
		 mixed[0] && (blocks[0] || r->file.remark[0]) ? "; " : "", mixed);
	return r->remark;
}

/* SPDX-License-Identifier: MIT */
#include "record/writer.h"

#include "base/clock.h"
#include "base/err.h"
#include "record/db.h"
#include "record/write.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	/* A little less than a second, so that the tick which completes one is in its commit. */
	COMMIT_MS = 950,
	END_BUSY_MS = 500, /* how long a reader may keep the end waiting */
};

/* The end of the stretch of this length, counted from the start of the run, that t lies in. */
static int64_t end_of(const struct record_writer *w, int64_t t, int64_t length)
{
	int64_t since = t - w->run.started_mono_ns;
	int64_t n = since >= 0 ? since / length : -((-since + length - 1) / length);

	return w->run.started_mono_ns + (n + 1) * length;
}

typedef int (*series_block_fn)(struct record_writer *w, enum entity_kind g, int64_t end_ns,
			       struct series_block *ret);

static int cut_of(struct record_writer *w, enum entity_kind g, int64_t end_ns,
		  struct series_block *ret)
{
	(void)end_ns;
	return series_cut(&w->series, g, &w->codec, ret);
}

static int slot_of(struct record_writer *w, enum entity_kind g, int64_t end_ns,
		   struct series_block *ret)
{
	(void)end_ns;
	return series_slot(&w->series, g, &w->codec, ret);
}

static int fine_of(struct record_writer *w, enum entity_kind g, int64_t end_ns,
		   struct series_block *ret)
{
	return series_fine(&w->series, g, end_ns, &w->codec, ret);
}

static int coarse_of(struct record_writer *w, enum entity_kind g, int64_t end_ns,
		     struct series_block *ret)
{
	return series_coarse(&w->series, g, end_ns, false, &w->codec, ret);
}

static int coarse_of_gone(struct record_writer *w, enum entity_kind g, int64_t end_ns,
			  struct series_block *ret)
{
	return series_coarse(&w->series, g, end_ns, true, &w->codec, ret);
}

/* One block a group into the backlog. The first carries the count of frames in it. */
static int queue_blocks(struct record_writer *w, enum pending_kind kind, series_block_fn make,
			int64_t end_ns, unsigned frames)
{
	int worst = 0;

	for (int g = 0; g < ENTITY_KINDS; g++) {
		struct series_block b = { 0 };
		int r = make(w, (enum entity_kind)g, end_ns, &b);

		if (r >= 0 && b.n) {
			r = backlog_block(&w->backlog, kind, (enum entity_kind)g, &b, w->slot_ns,
					  frames);
			if (kind == PENDING_SECOND)
				w->samples += b.samples;
			frames = 0;
		}
		if (r < 0)
			worst = r;
	}
	return worst;
}

static int cut(struct record_writer *w)
{
	unsigned frames = w->frames;

	w->frames = 0;
	return queue_blocks(w, PENDING_SECOND, cut_of, 0, frames);
}

/* Ends the slot: its samples become the minute's blocks, which replace those of its seconds. */
static int rotate(struct record_writer *w, int64_t next_slot_ns)
{
	uint64_t waiting;
	int r = cut(w), q;

	waiting = backlog_frames(&w->backlog);
	q = queue_blocks(w, PENDING_COARSE, coarse_of_gone, w->coarse_end_ns, 0);
	r = r < 0 ? r : q;
	backlog_drop_seconds(&w->backlog, w->slot_ns);
	waiting -= backlog_frames(&w->backlog);
	w->codec.thorough = true;
	q = queue_blocks(w, PENDING_MINUTE, slot_of, 0, (unsigned)waiting);
	w->codec.thorough = false;
	r = r < 0 ? r : q;
	q = stacks_rotate(w);
	r = r < 0 ? r : q;
	series_rotate(&w->series);
	w->slot_ns = next_slot_ns;
	w->rotated = true;
	return r;
}

/* Ends every bucket and slot that is over at t. */
static int pass_time(struct record_writer *w, int64_t t)
{
	int r = 0, q = 0;

	if (!w->started) {
		w->slot_end_ns = end_of(w, t, SLOT_NS);
		w->fine_end_ns = end_of(w, t, ROLLUP_FINE_NS);
		w->coarse_end_ns = end_of(w, t, ROLLUP_COARSE_NS);
		w->slot_ns = w->slot_end_ns - SLOT_NS;
		w->thin_to_ns = w->slot_ns;
		w->packed_to_ns = w->coarse_end_ns - ROLLUP_COARSE_NS;
		w->flushed_ns = w->synced_ns = t;
		w->started = true;
	}
	for (; t >= w->fine_end_ns; w->fine_end_ns += ROLLUP_FINE_NS) {
		q = queue_blocks(w, PENDING_FINE, fine_of, w->fine_end_ns, 0);
		r = r < 0 ? r : q;
		if (w->fine_end_ns < w->coarse_end_ns)
			continue;
		q = queue_blocks(w, PENDING_COARSE, coarse_of, w->coarse_end_ns, 0);
		r = r < 0 ? r : q;
		w->coarse_end_ns += ROLLUP_COARSE_NS;
	}
	if (t >= w->slot_end_ns) {
		w->slot_end_ns = end_of(w, t, SLOT_NS);
		q = rotate(w, w->slot_end_ns - SLOT_NS);
	}
	return r < 0 ? r : q;
}

static int take_lives(struct record_writer *w, const struct frame *f, bool gone)
{
	int r = 0;

	for (size_t i = 0; i < f->lives.n; i++) {
		const struct life *l = &f->lives.v[i];
		enum entity_kind kind = l->kind;
		int q = 0;

		if ((l->change == LIFE_GONE) != gone)
			continue;
		if (gone)
			kind = series_gone(&w->series, l->id, series_time(f->mono_ns));
		else if (l->change == LIFE_CHANGED)
			kind = series_kind(&w->series, l->id);
		else
			q = series_born(&w->series, l->id, kind);
		if (q >= 0 && kind != ENTITY_NONE) /* unknown ids change nothing */
			q = backlog_life(&w->backlog, f, l, kind);
		r = r < 0 ? r : q;
	}
	return r;
}

static int take_frame(struct record_writer *w, const struct frame *f)
{
	int64_t t = series_time(f->mono_ns);
	int r = take_lives(w, f, false), q;

	for (size_t i = 0; i < f->samples.n; i++) {
		const struct sample *s = &f->samples.v[i];

		if (s->metric == M_NONE || s->metric >= METRICS)
			continue;
		q = series_put(&w->series, t, s->metric, s->entity, s->raw);
		r = r < 0 ? r : q;
	}
	/* What ended may still have had a last value in this frame. */
	q = take_lives(w, f, true);
	r = r < 0 ? r : q;
	for (size_t i = 0; i < f->events.n; i++) {
		const struct event *ev = &f->events.v[i];

		q = backlog_event(&w->backlog, t, ev, frame_text(f, ev->text));
		r = r < 0 ? r : q;
	}
	for (size_t i = 0; i < f->gaps.n; i++) {
		q = backlog_gap(&w->backlog, t, &f->gaps.v[i]);
		r = r < 0 ? r : q;
	}
	q = stacks_frame(w, f);
	r = r < 0 ? r : q;
	q = marks_frame(w, f);
	return r < 0 ? r : q;
}

static void note_size(struct record_writer *w)
{
	struct stat st;

	if (w->path_fd >= 0 && fstat(w->path_fd, &st) == 0)
		w->bytes = (uint64_t)st.st_size;
}

/* A file that was removed while we write it: the descriptor still works, nobody can read it. */
static bool is_deleted(const struct record_writer *w)
{
	struct stat st;

	return w->path_fd >= 0 && fstat(w->path_fd, &st) == 0 && st.st_nlink == 0;
}

static void note_failure(struct record_writer *w, int error)
{
	if (!w->error) {
		w->error_since_ns = w->last_ns;
		w->error_first = error;
	}
	w->error = error;
	w->lost_ticks += backlog_trim(&w->backlog, w->last_ns);
}

/* It works again: says so in the record, with the next commit. */
static void note_recovery(struct record_writer *w)
{
	struct event ev = { .kind = EVENT_WRITE_ERROR, .entity = ID_SELF };
	uint64_t slices = w->backlog.lost_slices, lost_marks = w->backlog.lost_marks;
	char text[280], stacks[60] = "", marks[60] = "", why[80];

	ev.value = (double)(w->last_ns - w->error_since_ns) / 1e9;
	if (slices)
		snprintf(stacks, sizeof(stacks), ", %llu slices of stacks",
			 (unsigned long long)slices);
	if (lost_marks)
		snprintf(marks, sizeof(marks), ", %llu marks of the program",
			 (unsigned long long)lost_marks);
	snprintf(text, sizeof(text),
		 "the record could not be written for %.1f s: %s; %llu ticks%s%s lost", ev.value,
		 err_name(w->error_first, why, sizeof(why)), (unsigned long long)w->lost_ticks,
		 stacks, marks);
	w->error = 0;
	(void)backlog_event(&w->backlog, w->last_ns, &ev, text);
}

static int checkpoint(struct record_writer *w)
{
	int code;

	if (w->last_ns - w->synced_ns < w->options.sync_every_ns)
		return 0;
	w->synced_ns = w->last_ns;
	code = sqlite3_wal_checkpoint_v2(w->db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
	return code == SQLITE_OK || code == SQLITE_BUSY ? 0 : db_errno(w->db);
}

/* Writes the backlog and does what is due after it. */
static int commit(struct record_writer *w)
{
	int r;

	w->flushed_ns = w->last_ns;
	if (is_deleted(w)) {
		w->lost_ticks += backlog_frames(&w->backlog);
		w->backlog.lost_slices += backlog_slices(&w->backlog);
		backlog_clear(&w->backlog);
		w->error = w->error_first = -ENOENT;
		w->bytes = 0;
		return -ENOENT;
	}
	r = rows_write(w);
	if (r >= 0 && w->rotated) {
		r = compact_minute(w);
		w->rotated = r < 0;
	}
	if (r >= 0)
		r = checkpoint(w);
	if (r < 0)
		note_failure(w, r);
	else if (w->error)
		note_recovery(w);
	note_size(w);
	return r;
}

int record_frame(struct record_writer *w, const struct frame *f)
{
	int64_t t = series_time(f->mono_ns);
	int r, q;

	if (w->started && t <= w->last_ns)
		return -EINVAL;
	r = pass_time(w, t);
	w->last_ns = t;
	w->frames++;
	q = take_frame(w, f);
	r = r < 0 ? r : q;
	if (series_full(&w->series)) {
		q = rotate(w, t + 1);
		r = r < 0 ? r : q;
	}
	if (w->last_ns - w->flushed_ns >= COMMIT_MS * NS_PER_MS) {
		q = record_flush(w);
		r = r < 0 ? r : q;
	}
	return r < 0 ? r : w->error;
}

int record_flush(struct record_writer *w)
{
	int r = cut(w), q = commit(w);

	return q < 0 ? q : r;
}

int record_set_run(struct record_writer *w, const struct run_info *run)
{
	struct run_info copy;
	int r = run_info_copy(&copy, run);

	if (r < 0)
		return r;
	/* All times in the file hang on it. */
	copy.started_mono_ns = w->run.started_mono_ns;
	run_info_done(&w->run);
	w->run = copy;
	w->run_dirty = true;
	return 0;
}

int record_set_verdict(struct record_writer *w, const char *json)
{
	char *copy = strdup(json);

	if (!copy)
		return -ENOMEM;
	free(w->verdict);
	w->verdict = copy;
	return 0;
}

void record_health(const struct record_writer *w, struct record_health *ret)
{
	*ret = (struct record_health){ .error = w->error,
				       .lost_ticks = w->lost_ticks,
				       .lost_slices = w->backlog.lost_slices,
				       .lost_marks = w->backlog.lost_marks,
				       .samples = w->samples,
				       .bytes = w->bytes };
}

/* One file, without -wal and -shm. A reader that holds it keeps the -wal: still readable. */
static int settle(struct record_writer *w)
{
	int r;

	r = db_exec(w->db, "PRAGMA wal_checkpoint(PASSIVE)");
	sqlite3_busy_timeout(w->db, END_BUSY_MS);
	if (r >= 0)
		r = db_exec(w->db, "PRAGMA wal_checkpoint(TRUNCATE)");
	/* A reader that has it open would not give way however long we waited. */
	sqlite3_busy_timeout(w->db, 0);
	if (r >= 0)
		r = db_exec(w->db, "PRAGMA journal_mode = DELETE");
	return r == -EBUSY ? 0 : r;
}

int record_finish(struct record_writer *w, const struct run_info *run)
{
	int r = run ? record_set_run(w, run) : 0, q;

	q = w->started ? rotate(w, w->last_ns + 1) : 0;
	r = r < 0 ? r : q;
	q = commit(w);
	if (q >= 0)
		q = compact_end(w);
	/* What was learnt while compacting: the recovery from an error, at least. */
	if (q >= 0 && w->backlog.rows.n)
		q = rows_write(w);
	rows_done(w);
	if (q >= 0)
		q = settle(w);
	if (sqlite3_close(w->db) != SQLITE_OK && q >= 0)
		q = -EIO;
	writer_free(w);
	return r < 0 ? r : q;
}

void record_abandon(struct record_writer *w)
{
	if (!w)
		return;
	/* SQLite's connections do not survive a fork: in a child its memory is left as it is. */
	if (w->owner == getpid()) {
		rows_done(w);
		sqlite3_db_config(w->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
		sqlite3_close(w->db);
	}
	writer_free(w);
}

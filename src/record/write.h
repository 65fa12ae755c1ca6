/* SPDX-License-Identifier: MIT
 *
 * The inside of a writer, shared by the files that are one: create.c (the empty file), writer.c
 * (frames and time), rows.c (what a commit writes), compact.c (what becomes of it later),
 * stack_write.c and stack_compact.c (the same of stacks), and mark_write.c (what the training says).
 */
#ifndef SPOTTER_RECORD_WRITE_H
#define SPOTTER_RECORD_WRITE_H

#include "model/training.h"
#include "record/backlog.h"
#include "record/block.h"
#include "record/merge.h"
#include "record/series.h"
#include "record/writer.h"

#include <sys/types.h>

struct sqlite3;
struct sqlite3_stmt;

#define SLOT_NS 60000000000ll

enum row_statement {
	ROW_BLOCK,
	ROW_DROP_SECONDS,
	ROW_ROLLUP,
	ROW_BORN, /* process, thread, device */
	ROW_BORN_THREAD,
	ROW_BORN_DEVICE,
	ROW_CHANGED,
	ROW_CHANGED_THREAD,
	ROW_CHANGED_DEVICE,
	ROW_GONE,
	ROW_GONE_THREAD,
	ROW_GONE_DEVICE,
	ROW_EVENT,
	ROW_GAP_END,
	ROW_GAP,
	ROW_PLACE,
	ROW_NODE,
	ROW_STACKS,
	ROW_DROP_STACKS,
	ROW_STEP,
	ROW_PHASE,
	ROW_PHASE_END,
	ROW_SCALAR,
	ROW_SETTING,
	ROW_SOURCE,
	ROW_TICK,
	ROW_BEGIN,
	ROW_COMMIT,
	ROW_STATEMENTS
};

/* The stacks of this minute, whose seconds become one row at its end. */
struct stack_slot {
	struct buf payload, one; /* of the minute; of the last second */
	VEC(struct stack_row) rows;
	int64_t t0_ns, t1_ns;
	int64_t last_ns; /* start of the last one */
	unsigned slices;
	uint64_t samples;
};

struct record_writer {
	struct sqlite3 *db;
	struct sqlite3_stmt *rows[ROW_STATEMENTS];
	int path_fd; /* O_PATH: closing it drops no lock of SQLite's, as closing a real one would */
	pid_t owner; /* another pid: we are a fork of it */

	struct record_options options;
	struct run_info run;
	bool run_dirty;
	char *verdict; /* to be written */

	struct series_set series;
	struct block_codec codec;
	struct backlog backlog;
	struct stack_slot stacks;
	struct training training;

	/* Monotonic times. Buckets and slots are counted from the start of the run. */
	int64_t last_ns, flushed_ns, synced_ns;
	int64_t slot_ns, slot_end_ns, fine_end_ns, coarse_end_ns;
	unsigned frames; /* since the last cut */
	bool started, rotated;

	int error; /* of the last write */
	int error_first;
	int64_t error_since_ns;
	uint64_t lost_ticks, samples, bytes;

	/* How far thinning and the packing of roll-ups have come. */
	int64_t thin_to_ns, packed_to_ns;
	struct thin thin;
};

/* create.c */
void writer_free(struct record_writer *w); /* all but the connection */

/* rows.c */
int rows_prepare(struct record_writer *w);
void rows_done(struct record_writer *w);
/* The row of table run, at the beginning. */
int rows_create(struct record_writer *w);
/* One transaction with all of the backlog in it: 0 or -errno, and then nothing of it is written. */
int rows_write(struct record_writer *w);
/* Ends a transaction that failed. */
void rows_rollback(struct record_writer *w);
int rows_block(struct record_writer *w, enum row_statement table, const char *level,
	       const char *group, const struct series_block *b);

/* stack_write.c: all 0 or -errno. */
/* What the numbers in slices mean, at the beginning. */
int stacks_create(struct record_writer *w);
int stacks_frame(struct record_writer *w, const struct frame *f);
/* Ends the minute. */
int stacks_rotate(struct record_writer *w);
/* PENDING_PLACE, _NODE, _STACK_*. */
int stacks_write(struct record_writer *w, const struct pending *p);
void stacks_free(struct stack_slot *s);

/* mark_write.c: both 0 or -errno. */
int marks_frame(struct record_writer *w, const struct frame *f);
/* The same of what is known as a whole already. All 0 or -errno. */
int marks_step(struct record_writer *w, const struct window_step *s);
int marks_phase(struct record_writer *w, const struct window_phase *p);
int marks_scalar(struct record_writer *w, const struct window_scalar *s);
int marks_setting(struct record_writer *w, const struct window_scalar *s);
int marks_source(struct record_writer *w, const struct window_scalar *s);
/* PENDING_STEP, _PHASE, _PHASE_END, _SCALAR, _SETTING, _SOURCE. */
int marks_write(struct record_writer *w, const struct pending *p);

/* stack_compact.c: adds up the slices of the minutes that began in [t0, t1); within a transaction. */
int stacks_thin(struct record_writer *w, int64_t t0_ns, int64_t t1_ns);

/* compact.c: all 0 or -errno, each in transactions of its own. */
/* Packs the fine roll-ups of finished coarse buckets, thins what is old, deletes what is too much. */
int compact_minute(struct record_writer *w);
/* At the end: gives back every free page. */
int compact_end(struct record_writer *w);

#endif

/* SPDX-License-Identifier: MIT
 *
 * Writing a run file. One thread calls these (the recorder's writer): the only connection that ever
 * writes or checkpoints. Frames go in as they come; a second of them becomes a block and a commit,
 * a minute of blocks is compacted into one, 10-second roll-ups are written beside, and what is older
 * than 15 minutes is thinned (except around events), so that a day stays under max_bytes.
 *
 * Stacks go the same way: a slice a second, a minute of slices as one row, one slice a minute in the end.
 *
 * What the training says (steps, phases, scalars) is rows, about 50 bytes a step, that are never
 * thinned: they count in max_bytes, so that older samples make room for them.
 *
 * Times and CPU times are kept to 10 us, everything else (steps too) as it is in the frame.
 *
 * A disk that is full or gone never stops the caller: record_frame() keeps a bounded backlog, drops
 * the oldest beyond it, counts, and tries again each second.
 */
#ifndef SPOTTER_RECORD_WRITER_H
#define SPOTTER_RECORD_WRITER_H

#include "model/frame.h"
#include "model/run.h"

struct err;
struct record_writer;

struct record_options {
	uint64_t max_bytes;    /* 0: 256 MiB */
	int64_t keep_raw_ns;   /* 0: 15 minutes */
	int64_t sync_every_ns; /* fsync at most this often; 0: 30 s */
};

struct record_health {
	int error;               /* negative errno of the last write, 0 when it went well */
	uint64_t lost_ticks;     /* ticks that could not be kept while the disk did not take them */
	uint64_t lost_slices;    /* and slices of stacks */
	uint64_t lost_marks;     /* and what the training said */
	uint64_t samples, bytes; /* written so far: samples, and size of the file */
};

/* Creates path (it must not exist) with mode 0600. The file is readable by others at once. */
int record_create(const char *path, const struct run_info *run, const struct record_options *o,
		  struct record_writer **ret, struct err *e);
/* 0, or -errno of the disk (the frame is then in the backlog). */
int record_frame(struct record_writer *w, const struct frame *f);
/* Commits what there is now, without waiting for the second to be over. */
int record_flush(struct record_writer *w);
/* Things learnt late about the run (pid, how it ended): written at the next commit. */
int record_set_run(struct record_writer *w, const struct run_info *run);
/* A verdict as text of JSON, kept in the file beside the data. */
int record_set_verdict(struct record_writer *w, const char *json);
void record_health(const struct record_writer *w, struct record_health *ret);
/* Compacts the rest, checkpoints, leaves one portable file without -wal, frees w. 0 or -errno. */
int record_finish(struct record_writer *w, const struct run_info *run);
/* Closes without finishing (after a fork, in tests). */
void record_abandon(struct record_writer *w);

#endif

/* SPDX-License-Identifier: MIT
 *
 * The inside of a reader, shared by the files that are one: reader.c (opening, windows), load.c
 * (plain rows), stats.c (figures over a range), points.c (the samples themselves), stack_read.c
 * (stacks) and mark_read.c (what the training said).
 */
#ifndef SPOTTER_RECORD_READ_H
#define SPOTTER_RECORD_READ_H

#include "base/map.h"
#include "base/vec.h"
#include "model/name_set.h"
#include "record/chunk.h"
#include "record/open.h"
#include "record/reader.h"
#include "record/rollup.h"

enum { STAT_SETS = 48 };

/* A metric as this file knows it. */
struct file_metric {
	uint32_t id;
	enum metric_id known; /* M_NONE: not in this version's vocabulary */
	bool counter;
	double scale;
	char *name, *unit;
	char *group;           /* as in block.grp */
	enum entity_kind kind; /* ENTITY_NONE: a group this version does not know */
};

/* What the series of one group did in one range. */
struct stat_set {
	enum entity_kind group; /* ENTITY_NONE: free */
	int64_t from_ns, to_ns;
	struct map index; /* metric << 32 | entity -> place in rows */
	VEC(struct series_stat) rows;
	unsigned used; /* for throwing out the one unused for longest */
};

/* Stacks: read when first asked for. */
struct stack_shelf {
	struct stack_book book;
	bool loaded;           /* as far as the file was then */
	uint8_t state_of[256]; /* code in the file -> enum wait_kind */
	uint8_t flag_of[8];    /* number of a bit in the file -> enum stack_flag, 0 not known */
	unsigned damaged;      /* blobs of which something was left out, at the last walk */
};

/* What the training said: read when first asked for. */
struct mark_shelf {
	VEC(struct window_step) steps;
	VEC(struct window_phase) phases;
	VEC(struct window_scalar) scalars, settings;
	struct name_set names;
	const char *source;
	bool loaded;
};

struct record {
	char *path;
	struct run_file file;
	bool borrowed; /* the connection is somebody's, who runs a query on it */
	struct run_info run;
	struct recorder_id recorder;
	VEC(struct file_metric) metrics;
	struct map metric_by_id;
	uint32_t metric_of[METRICS]; /* this version's id -> place in metrics + 1 */
	struct entity_table entities;
	VEC(struct window_event) events; /* text owned */
	VEC(struct window_gap) gaps;
	char *verdict;

	/* Roll-ups are complete up to, and what retention deleted ended at. */
	int64_t fine_to_ns, coarse_to_ns;
	int64_t raw_from_ns[ENTITY_KINDS], fine_from_ns[ENTITY_KINDS];

	int64_t data_version;
	struct stat_set sets[STAT_SETS];
	unsigned clock;
	struct chunk_cursor chunk;
	struct stack_shelf stacks;
	struct mark_shelf marks;
	unsigned damaged; /* blocks that could not be read and were left out */
	char remark[400];
	void (*on_read)(void *arg);
	void *on_read_arg;
};

/* reader.c: a reader on a connection during a query on it, for virtual tables. record_close() leaves the
 * connection open. 0 or -errno. */
int record_borrow(struct sqlite3 *db, struct record **ret);

/* load.c: everything but the series, from scratch. */
int load_all(struct record *r);
void load_done(struct record *r);
const struct file_metric *file_metric(const struct record *r, uint64_t file_id);

/* stats.c */
int stats_of(struct record *r, enum metric_id m, uint32_t entity, int64_t from, int64_t to,
	     struct series_stat *ret);
void stats_forget(struct record *r);

/* points.c */
int points_each(struct record *r, enum metric_id m, uint32_t entity, int64_t from, int64_t to,
		int64_t step_ns, window_point_fn fn, void *arg);
int points_of(struct record *r, const struct series_key *keys, size_t n, int64_t from, int64_t to,
	      int64_t step_ns, window_points_fn fn, void *arg);

/* stack_read.c */
int stacks_each(struct record *r, int64_t from, int64_t to, window_slice_fn fn, void *arg);
const struct stack_book *stacks_book(struct record *r);
/* The file has grown: what is in memory is not all of it any more. */
void stacks_stale(struct record *r);
void stacks_done(struct record *r);

/* mark_read.c */
struct mark_shelf *marks_of(struct record *r);
/* One step of a row that begins with rank, n, begin_ns, end_ns, entity, loss, data_wait_ns, micro; false: it makes no
 * sense. */
bool step_row(struct sqlite3_stmt *s, struct window_step *ret);
void marks_stale(struct record *r);
void marks_done(struct record *r);

/* A stretch to be answered from one source. Half open: [lo, hi). Buckets that stick out are
 * taken in proportion. */
enum piece_source { PIECE_RAW, PIECE_FINE, PIECE_COARSE };
struct piece {
	enum piece_source source;
	int64_t lo_ns, hi_ns;
};
struct plan {
	struct piece v[24];
	size_t n;
};
/* Covers [lo, hi) of a group. most: the longest bucket that may be used (0: raw wherever it is
 * kept). */
void plan_range(const struct record *r, enum entity_kind group, int64_t lo, int64_t hi,
		int64_t most, struct plan *ret);

#endif

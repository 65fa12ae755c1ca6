/* SPDX-License-Identifier: MIT
 *
 * Reading a run file, live or later, from any process: read-only, short transactions. The first
 * reader of a file whose recorder has died finalises it (state "interrupted").
 */
#ifndef SPOTTER_RECORD_READER_H
#define SPOTTER_RECORD_READER_H

#include "model/window.h"

#include <sys/types.h>

struct err;
struct record;
struct sqlite3;

/* A file that is no record, is torn or is from a newer major version is refused with a sentence. Whoever's it is: one that
 * others than root and ourselves could harm us by is read as it is, without its -wal (ours.h), and record_remark() says
 * what that leaves out. */
int record_open(const char *path, struct record **ret, struct err *e);
/* Always so, with no link followed and an end to every query: for who reads files of anybody without being asked (open.h). */
int record_open_others(const char *path, struct record **ret, struct err *e);
/* One that this process itself is writing, wherever it lies: with its log. */
int record_open_writing(const char *path, struct record **ret, struct err *e);
void record_close(struct record *r);
const struct run_info *record_run(const struct record *r);
/* The part of the run between two monotonic times; 0,0: all of it. Borrowed from r. */
struct window record_window(struct record *r, int64_t from_ns, int64_t to_ns);
/* For a live run: looks for what was written since (run row, entities, events, last tick). */
int record_refresh(struct record *r);
/* The connection, with `samples` and `rollups` registered; for `spotter sql` and exports. */
struct sqlite3 *record_db(struct record *r);
/* Calls fn now and then while something is read, for views of progress; NULL: nobody. */
void record_on_read(struct record *r, void (*fn)(void *arg), void *arg);
int64_t record_bytes(const struct record *r);
/* Read as it is, and written to since it was opened: figures may be of two moments. Worth asking again after reading. */
bool record_is_mixed(const struct record *r);
/* Whose file was opened, where it is read as it is: 0, or -ENOTSUP. */
int record_owner(const struct record *r, uid_t *ret);
/* What a person should know about this file ("3 damaged blocks were left out"), "" nothing. */
const char *record_remark(struct record *r);
/* Verdict JSON stored in the file, or NULL. Borrowed. */
const char *record_verdict(struct record *r);

/* All samples of the run in order of time, for exporters: raw where kept. fn returns false to stop. */
struct record_sample {
	int64_t t_ns;
	enum metric_id metric; /* M_NONE for a metric this version does not know; then name tells */
	const char *metric_name, *unit;
	uint32_t entity;
	double value;
};
/* The same one by one, for whoever goes through several records side by side. 1 with a sample, 0 at the
 * end, -errno. About a minute of samples is in memory. A record has one walk at a time. */
struct record_walk;
int record_walk_open(struct record *r, struct record_walk **ret);
int record_walk_next(struct record_walk *w, struct record_sample *ret);
void record_walk_close(struct record_walk *w);
int record_each_sample(struct record *r, bool (*fn)(const struct record_sample *s, void *arg),
		       void *arg);

#endif

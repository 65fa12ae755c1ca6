/* SPDX-License-Identifier: MIT
 *
 * A sink writes what was recorded in somebody else's format. To add one: write sink/NAME.c that ends
 * in `const struct sink_type NAME_sink`, add its row to all.c, and prove it with a unit test and a
 * golden export. It sees the vocabulary of model/ and nothing of files or databases: it appends text
 * (or bytes) to a buffer, and whoever drives it empties that buffer as it fills, so an export of a
 * day needs no more memory than one of a minute.
 *
 *	begin, then sample, event, step, scalar and phase in order of time as they come, then end.
 *
 * Whatever a format has no call for it does not get. Steps come by their end, phases by their begin.
 * Slices of stacks come behind all that, in order of time.
 */
#ifndef SPOTTER_SINK_SINK_H
#define SPOTTER_SINK_SINK_H

#include "model/entity.h"
#include "model/metric.h"
#include "model/run.h"
#include "model/window.h"

struct buf;

/* What does not change during an export. Borrowed. */
struct sink_source {
	const struct run_info *run;
	const struct entity_table *entities;
	const struct stack_book *book; /* NULL for formats without stacks */
	const struct window *window;   /* the whole run */
};

struct sink_sample {
	int64_t t_ns; /* monotonic, as in the record */
	const char
	    *metric; /* its name: a newer record may hold metrics this version has no id for */
	const char *unit;
	enum metric_kind kind;
	bool kind_known;
	uint32_t entity;
	double value;
};

struct sink_type {
	const char *name;      /* what --to takes */
	const char *extension; /* of its files, without the dot */
	const char *help;
	bool needs_steps;  /* without any there is nothing to write */
	size_t state_size; /* zeroed memory given to every call */
	/* 0 or -errno; out of memory shows as !buf_ok(out). */
	int (*begin)(void *state, const struct sink_source *src, struct buf *out);
	int (*sample)(void *state, const struct sink_source *src, const struct sink_sample *s,
		      struct buf *out);
	int (*event)(void *state, const struct sink_source *src, const struct window_event *e,
		     struct buf *out);
	int (*step)(void *state, const struct sink_source *src, const struct window_step *s,
		    struct buf *out);
	int (*scalar)(void *state, const struct sink_source *src, const struct window_scalar *s,
		      struct buf *out);
	int (*phase)(void *state, const struct sink_source *src, const struct window_phase *p,
		     struct buf *out);
	int (*stack)(void *state, const struct sink_source *src, const struct stack_slice *s,
		     struct buf *out);
	/* 1: there is more; empty the buffer and call it again. */
	int (*end)(void *state, const struct sink_source *src, struct buf *out);
	/* Frees what the state holds, however far it came; NULL: it holds nothing. */
	void (*done)(void *state);
};

extern const struct sink_type *const sinks[];           /* all.c; NULL-terminated */
const struct sink_type *sink_by_name(const char *name); /* NULL: unknown */

/* Wall-clock time of a monotonic time of this run, in ns. */
int64_t sink_wall_ns(const struct run_info *run, int64_t t_ns);
/* Whether `key` means something for this one (pid, tid, CPU number; CPU 0 has one). */
bool sink_has_key(const struct entity *e);
/* One CSV field (RFC 4180): quoted where it must be. Control bytes other than newline and tab become
 * '?', since a name in it may have been chosen to move somebody's cursor. */
void csv_field(struct buf *out, const char *s, size_t n);
/* Shortest text that reads back as the same number. */
void csv_number(struct buf *out, double v);

#endif

/* SPDX-License-Identifier: MIT
 *
 * What is to be written at the next commit. Normally a second's worth, and empty again after it;
 * when the disk does not take it, it waits here, bounded, the oldest blocks going first.
 */
#ifndef SPOTTER_RECORD_BACKLOG_H
#define SPOTTER_RECORD_BACKLOG_H

#include "base/buf.h"
#include "base/vec.h"
#include "model/window.h"
#include "record/series.h"

enum {
	BACKLOG_BYTES = 8 << 20,
	BACKLOG_ROWS = 200000,  /* births, events...: beyond it new ones are dropped */
	BACKLOG_MARKS = 100000, /* and beyond this marks: births must find room */
	BACKLOG_SECONDS = 120,
};

enum pending_kind {
	PENDING_NOTHING, /* taken back */
	PENDING_SECOND,
	PENDING_MINUTE,
	PENDING_FINE,
	PENDING_COARSE,
	PENDING_STACK_SECOND,
	PENDING_STACK_MINUTE,
	PENDING_LIFE,
	PENDING_EVENT,
	PENDING_GAP,
	PENDING_PLACE,
	PENDING_NODE,
	PENDING_STEP,
	PENDING_PHASE,
	PENDING_PHASE_END,
	PENDING_SCALAR,
	PENDING_SETTING,
	PENDING_SOURCE,
};

struct pending {
	enum pending_kind kind;
	int64_t t_ns; /* lives, events, gaps: of the frame; blocks: of the last tick */
	/* Offsets into backlog.bytes: the blob; or the two texts (places: three, the last behind
	 * the second; what was marked: one). */
	size_t at, n, at2;
	union {
		struct {
			enum entity_kind group;
			int64_t t0_ns, t1_ns;
			size_t ticks;
			uint64_t samples;
			int64_t
			    slot_ns; /* PENDING_MINUTE: replaces the second blocks from here on */
			unsigned frames; /* ticks lost when this is dropped */
		} block;
		struct life life;
		struct event event;
		struct gap gap;
		struct frame_place place;
		struct frame_node node;
		struct window_step step;
		struct window_scalar scalar; /* its name is at `at` */
		struct {
			uint32_t id, entity;
		} phase;
		struct {
			int64_t t0_ns, t1_ns;
			uint64_t samples;
			unsigned slices; /* lost when this is dropped */
		} stacks;
	};
};

struct backlog {
	VEC(struct pending) rows;
	struct buf bytes;
	uint64_t lost_slices; /* of stacks, since the beginning */
	uint64_t lost_marks;
};

void backlog_done(struct backlog *b);
void backlog_clear(struct backlog *b);
/* All: 0 or -ENOMEM. Text that is not UTF-8 is made so, since every reader of SQL expects it. */
int backlog_block(struct backlog *b, enum pending_kind kind, enum entity_kind group,
		  const struct series_block *block, int64_t slot_ns, unsigned frames);
int backlog_life(struct backlog *b, const struct frame *f, const struct life *life,
		 enum entity_kind kind);
int backlog_event(struct backlog *b, int64_t t_ns, const struct event *event, const char *text);
int backlog_gap(struct backlog *b, int64_t t_ns, const struct gap *gap);
int backlog_place(struct backlog *b, const struct frame *f, const struct frame_place *place);
int backlog_node(struct backlog *b, const struct frame_node *node);
/* A row of what was marked, with its name (NULL: none), to be filled in by the caller at once; NULL when
 * it is lost, which is counted. */
struct pending *backlog_mark(struct backlog *b, enum pending_kind kind, int64_t t_ns,
			     const char *name);
/* kind: PENDING_STACK_*. */
int backlog_stacks(struct backlog *b, enum pending_kind kind, const struct series_block *block,
		   unsigned slices);
/* Takes back the seconds of stacks that begin at t0_ns or later: the number of slices in them. */
unsigned backlog_drop_stacks(struct backlog *b, int64_t t0_ns);
/* Takes back the second blocks from slot_ns on: their minute has come. */
void backlog_drop_seconds(struct backlog *b, int64_t slot_ns);
/* Keeps it bounded; the number of ticks that were dropped. */
uint64_t backlog_trim(struct backlog *b, int64_t now_ns);
/* Ticks, and slices of stacks, that would be lost if all of it were. */
uint64_t backlog_frames(const struct backlog *b);
uint64_t backlog_slices(const struct backlog *b);

#endif

/* SPDX-License-Identifier: MIT
 *
 * A frame is one tick: one clock reading and what the sources saw at it. It is filled by the
 * sampler and then read by everyone else; sources never see each other's part.
 *
 * Absent is not zero: what could not be read is not in `samples`, and `gaps` says why (once when it
 * starts, not every tick). Processes and threads that did not run are not in it either: their values
 * hold (metrics.def). Things are born, change and end through `lives`, so whoever keeps a table of
 * them (writer, live history, file reader) builds it from the same stream and none is shared.
 *
 * frame_begin() keeps all memory: a frame that has been warm does not allocate.
 */
#ifndef SPOTTER_MODEL_FRAME_H
#define SPOTTER_MODEL_FRAME_H

#include "base/vec.h"
#include "model/metric.h"
#include "model/stacks.h"

#include <stdbool.h>
#include <stdint.h>

struct sample {
	uint32_t entity;
	uint16_t metric; /* enum metric_id */
	int64_t raw;
};

enum gap_why {
	GAP_NOT_SUPPORTED, /* this kernel or machine has no such thing */
	GAP_NO_PERMISSION,
	GAP_LOST,   /* it was there and went away */
	GAP_STALE,  /* too old to be used */
	GAP_BUDGET, /* left out to stay within Spotter's own budget */
	GAP_OVER,   /* readable again */
};

struct gap {
	uint32_t entity;
	uint16_t metric;
	enum gap_why why;
};

enum life_change { LIFE_BORN, LIFE_CHANGED, LIFE_GONE };

/* Text fields are offsets into frame.text (see frame_text()). */
struct life {
	enum life_change change;
	uint32_t id, parent;
	enum entity_kind kind;
	int64_t key; /* pid, tid, cpu number; 0 otherwise */
	int64_t
	    start_ns;  /* processes: start on the boot clock, 10 ms steps; with pid it is unique */
	uint32_t name; /* "python3", "nvme0n1", "cpu3": never empty */
	uint32_t detail; /* processes: arguments, NUL shown as blank; mounts: "ext4 on /data" */
};

/* Things that happen, for the event table. Stored by name (event_kind_name). */
enum event_kind {
	EVENT_EXIT, /* a process of the job ended */
	EVENT_EXEC, /* a process of the job became another program */
	EVENT_OOM_KILL,
	EVENT_LIMIT,       /* a limit appeared or changed */
	EVENT_GOVERNOR,    /* Spotter changed its own rate */
	EVENT_CLOCK_JUMP,  /* the wall clock was set */
	EVENT_SUSPEND,     /* ticks far apart: machine or recorder stood still */
	EVENT_WRITE_ERROR, /* the record could not be written for a while */
	EVENT_CPU_HOTPLUG,
	EVENT_XID,        /* a GPU driver reported a critical error; value: its number */
	EVENT_GPU_LOST,   /* a GPU fell off the bus or needs a reset */
	EVENT_GPU_HANG,   /* a driver call does not return; value: seconds so far */
	EVENT_GPU_HELPER, /* the process that talks to GPU drivers died or was replaced */
	EVENT_STACKS,     /* the stacks of a process can be read, or not and why; value: level */
	EVENT_NOTE,
	EVENT_KINDS
};

struct event {
	enum event_kind kind;
	uint32_t entity;
	uint32_t text; /* offset into frame.text */
	double value;  /* exit status, new rate, size of the jump in seconds... */
};

/* What a number in stack rows means, told before its first use. Texts are offsets into frame.text. A
 * place that is told again has got its source line. */
struct frame_place {
	uint32_t id;
	enum place_kind kind;
	int32_t line;
	uint32_t function, file, source;
};

struct frame_node {
	uint32_t id, parent, place;
};

/* What the training itself says; stored by name (mark_type_name). Text is an offset into frame.text. */
enum mark_type {
	SAID_STEP,        /* number, value: loss, NAN none; t_ns: its end */
	SAID_SCALAR,      /* name, value */
	SAID_PHASE_BEGIN, /* name */
	SAID_PHASE_END,   /* name */
	SAID_DATA_WAIT,   /* value: seconds, ending at t_ns */
	SAID_MICRO_STEP,
	SAID_EPOCH,   /* number */
	SAID_SETTING, /* name, value */
	SAID_SOURCE,  /* name: who marks: "torch", "keras", "api", "inferred" */
	SAID_LOST,    /* number: marks that were overwritten before they were read */
	SAID_TYPES
};

struct frame_mark {
	int64_t t_ns;
	enum mark_type type;
	uint32_t entity; /* process */
	int32_t rank;    /* -1: not known */
	uint32_t name;
	uint64_t number;
	double value;
};

struct frame {
	int64_t mono_ns, wall_ns;
	VEC(struct sample) samples;
	VEC(struct life) lives;
	VEC(struct event) events;
	VEC(struct gap) gaps;
	/* What threads did in a stretch of time that ended at or before this tick: about once a second. */
	VEC(struct frame_place) places;
	VEC(struct frame_node) nodes;
	VEC(struct stack_row) stacks;
	int64_t stacks_from_ns, stacks_to_ns; /* equal: no stacks in this frame */
	VEC(struct frame_mark) marks;         /* in order of time for each process */
	VEC(char) text;
	bool failed; /* out of memory: something is missing in it */
};

/* Entities that always exist. */
enum { ID_HOST = 1, ID_JOB = 2, ID_SELF = 3, ID_FIRST_FREE = 16 };

void frame_done(struct frame *f);
/* Empties it for the tick at this time. */
void frame_begin(struct frame *f, int64_t mono_ns, int64_t wall_ns);

void frame_put(struct frame *f, enum metric_id metric, uint32_t entity, int64_t raw);
void frame_gap(struct frame *f, enum metric_id metric, uint32_t entity, enum gap_why why);
/* life->name and ->detail are ignored and taken from the two strings (cut at 255 and 4095 bytes). */
void frame_life(struct frame *f, const struct life *life, const char *name, const char *detail);
void frame_event(struct frame *f, enum event_kind kind, uint32_t entity, double value,
		 const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* mark->name is ignored and taken from the string. */
void frame_mark(struct frame *f, const struct frame_mark *mark, const char *name);
void frame_place(struct frame *f, uint32_t id, const struct place *p);
void frame_node(struct frame *f, uint32_t id, const struct stack_node *n);
void frame_stack(struct frame *f, const struct stack_row *row);

const char *frame_text(const struct frame *f, uint32_t offset);

const char *mark_type_name(enum mark_type type);   /* "step", "phase_begin"... */
const char *gap_why_name(enum gap_why why);        /* "not supported", ... */
const char *event_kind_name(enum event_kind kind); /* "oom_kill", ... */
/* EVENT_KINDS when unknown (a newer record). */
enum event_kind event_kind_by_name(const char *name);

#endif

/* SPDX-License-Identifier: MIT
 *
 * Records of many machines as one: all ranks of a run side by side (`spotter merge`). What is read may
 * be anybody's; what is written is a run file as any other, with things as model/node.h says.
 *
 * Clocks of machines differ. Times of one are put on the axis of the first by the wall clocks and, where
 * both made steps of the same numbers, by those: ranks that wait for each other end a step together,
 * so the middle of the differences is taken for the difference of the clocks. Durations are as they
 * were. Machines of the same boot share a clock.
 */
#ifndef SPOTTER_RECORD_JOIN_H
#define SPOTTER_RECORD_JOIN_H

#include "base/map.h"
#include "base/vec.h"
#include "model/run.h"
#include "record/reader.h"

struct err;
struct record_writer;

enum { JOIN_RECORDS_MOST = 1024, JOIN_NOTE_BYTES = 280 };

enum join_by {
	JOIN_BY_CLOCK, /* it is the same clock */
	JOIN_BY_STEPS,
	JOIN_BY_WALL, /* no steps in common, or they do not end together */
};

/* One boot of one kernel. */
struct join_clock {
	char boot_id[40];  /* "" not known: nobody else's */
	int64_t rel_ns;    /* wall clock, since the first record began, less monotonic clock */
	enum join_by by;   /* how it was put beside the first */
	int64_t offset_ns; /* it is ahead of the first one's by */
	int64_t spread_ns; /* half the distance of the quartiles */
	size_t steps;      /* that it rests on */
};

struct join_machine {
	char name[65];
	int64_t pid_space;
	size_t clock;
	size_t part; /* whose readings of the machine itself are taken */
	size_t
	    same; /* the first machine that has measured the same host: containers of one kernel; else itself */
	int gpu_base;  /* its first GPU has this number */
	uint32_t host; /* entity in the joined run */
	int cpus;
};

struct join_part {
	struct record *record; /* borrowed */
	const char *label;     /* borrowed: what to call it in a sentence */
	size_t machine;
	VEC(int32_t) ranks;        /* that made steps in it, rising */
	int32_t world;             /* ranks there are, as its launcher said; 0: not known */
	int64_t shift_ns;          /* its times and this are the joined run's */
	uint32_t next;             /* while ids are given out */
	struct map ids;            /* its entities -> those of the joined run */
	struct join_value *values; /* of its machine, job and recorder (join_sum.c) */
};

struct join_note {
	char text[JOIN_NOTE_BYTES];
};

struct join {
	VEC(struct join_part) parts; /* by their lowest rank */
	VEC(struct join_machine) machines;
	VEC(struct join_clock) clocks;
	VEC(struct join_note) notes; /* what a person should know */
	struct run_info run;         /* of the joined run; name, id and version are the caller's */
	size_t ranks;                /* in all parts */
};

/* Looks at the records and decides what belongs where. What cannot be one run (a record twice, a rank
 * twice, records that do not overlap in time) is refused with a sentence, unless force, which leaves
 * it at a note. 0 or -errno; free with join_done() either way. */
int join_open(struct join *j, struct record *const *records, const char *const *labels, size_t n,
	      bool force, struct err *e);
/* Everything into a writer that was made with j->run; it is flushed and stays open. tell: called now
 * and then with the share that is done, or NULL. 0 or -errno. */
int join_write(struct join *j, struct record_writer *w, void (*tell)(void *arg, double share),
	       void *arg);
void join_done(struct join *j);

/* "gpu-b: clock 1.203 s ahead of gpu-a's, by 90 steps that end together (within 0.4 ms)"; "" for the
 * first. */
const char *join_clock_text(const struct join *j, size_t machine, char *buf, size_t size);
/* "0-3, 6" */
const char *join_ranks_text(const struct join_part *p, char *buf, size_t size);

#endif

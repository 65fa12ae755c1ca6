/* SPDX-License-Identifier: MIT
 *
 * What a training said, put together: marks of frames go in, steps with their beginning, phases and
 * scalars with the step they belong to come out. The run file's writer and the live history both
 * use these lines, so that a step is the same live and later.
 *
 * A step begins where the one before it in its process ended; the first at the first sign of work (a
 * wait for data, a phase, a batch). What stands between two steps by its nature (an evaluation, a
 * checkpoint) is part of neither. Where the beginning is not known (the very first mark is a step; marks
 * were lost) begin_ns is end_ns.
 */
#ifndef SPOTTER_MODEL_TRAINING_H
#define SPOTTER_MODEL_TRAINING_H

#include "base/map.h"
#include "model/window.h"

enum {
	TRAINING_PROCESSES = 4096, /* beyond it, those that have ended are forgotten */
	TRAINING_DEPTH = 64,       /* phases open at a time in a process */
};

/* All: 0 or -errno; an error does not stop the rest. Text is good for the call. */
struct training_sink {
	int (*step)(void *arg, const struct window_step *s);
	/* id: from 1 on, rising */
	int (*phase_begin)(void *arg, uint32_t id, const struct window_phase *p);
	int (*phase_end)(void *arg, uint32_t id, int64_t t_ns);
	int (*scalar)(void *arg, const struct window_scalar *s);
	int (*setting)(void *arg, const struct window_scalar *s);
	/* Who marks steps: its name; no value. */
	int (*source)(void *arg, const struct window_scalar *s);
};

struct open_phase {
	uint64_t name; /* its hash */
	uint32_t id;
	bool between;
	int64_t doubt_ns; /* marks were lost then: its end may have been one of them; 0: no */
};

struct trainer {
	uint32_t entity;
	bool gone;
	unsigned between; /* open phases that are part of no step */
	uint32_t micro;
	uint64_t number;  /* of the last step */
	int64_t since_ns; /* beginning of the step that is going on; 0: not known */
	int64_t wait_ns;  /* -1: nobody said */
	VEC(struct open_phase) open;
};

/* {0} is empty. */
struct training {
	VEC(struct trainer) trainers;
	struct map by_entity;
	uint32_t phases; /* so far */
};

void training_done(struct training *t);
/* Takes the marks of a frame: 0, or the first error of the sink, or -ENOMEM. */
int training_frame(struct training *t, const struct frame *f, const struct training_sink *sink,
		   void *arg);

/* When a phase nobody ended was over: with its process, with the run; 0 while it goes on. e: the process,
 * NULL: not known. */
int64_t training_open_end(const struct run_info *run, const struct entity *e, int64_t begin_ns);

/* For qsort: by end, process, number; by begin, process; by time, process. */
int training_step_order(const void *a, const void *b);
int training_phase_order(const void *a, const void *b);
int training_scalar_order(const void *a, const void *b);

#endif

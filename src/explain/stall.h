/* SPDX-License-Identifier: MIT
 *
 * What rules about the training thread's own time share: it does something that could be done seldom, by
 * others or not at all, while the GPU has nothing to do.
 */
#ifndef SPOTTER_EXPLAIN_STALL_H
#define SPOTTER_EXPLAIN_STALL_H

#include "explain/loading.h"
#include "explain/rule.h"

struct stall {
	enum fact_id share; /* of the training thread's time, with its line */
	double least;       /* from here on it is worth a word */
	const char
	    *title; /* "checkpoints stop the training", behind which comes ": 12 % of its time" */
	const char *what;            /* "writing checkpoints" */
	const char *fix, *edit;      /* "": none */
	double little, likely, much; /* share of it that can be spared */
	double confidence;
	bool
	    needs_gpu; /* only where the job works on a GPU: without one it may be the work itself */
	bool pauses;   /* seldom and long, unlike what is done in each step or takes milliseconds */
	bool on_gpu;   /* it keeps the GPU busy itself: that one is no reason to say nothing */
	bool tunes;    /* it tries things out on the GPU: how busy that is bounds no gain */
	bool note;     /* always a note */
	double rather_many; /* a note below this share; 0: never for that */
	bool repeats; /* once is as it must be: a note where steps do not tell the start apart */
};

/* The whole rule. A GPU that is busy meanwhile loses nothing. */
enum answer stall_check(const struct stall *s, const struct facts *f, struct opinion *o);
/* What a second takes when this share of the training thread's time is spared, with the GPU as busy as it is. */
double stall_then(const struct facts *f, enum loading_case c, double share);
/* Of this share of the training thread's time, the part on a CPU: what it waits for nobody knows what is taken for
 * waiting in this. */
double stall_cpu_part(const struct facts *f, double share);
/* "GPU-bound" or "its own work" */
const char *stall_next(const struct facts *f, double then);

#endif

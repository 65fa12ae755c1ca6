/* SPDX-License-Identifier: MIT
 *
 * The ranks of a job on this machine, side by side: what each does with its time. Filled by ranks_take(), read
 * by the sources of facts about them.
 */
#ifndef SPOTTER_EXPLAIN_FACTS_RANKS_H
#define SPOTTER_EXPLAIN_FACTS_RANKS_H

#include "explain/facts/stacked.h"

/* Shares of its time, of what is known of it. */
struct rank {
	const struct act_thread *t; /* NULL: no stacks of it, only its steps */
	uint32_t process;
	int32_t number; /* -1: not known */
	char pid[64];   /* "412", in a run of several machines "412 on gpu-7"; safe to show */
	double comm;    /* waits for the others */
	double
	    device; /* waits for the device: where collectives run there, part of it is waiting for others */
	double own;    /* all but comm */
	double data;   /* gets its data: waits for it, or loads it */
	double aside;  /* checkpoints, logs, validation, compiling */
	double queued; /* ready, without a CPU */
	double error;  /* half the 95 % interval of a share, by its samples */
};

struct ranks {
	VEC(struct rank) v;
	char why_not[100]; /* not all of them are known: nothing can be said; "" they are */
};

/* By its stacks. 0 or -ENOMEM. */
int ranks_take(const struct scene *s, struct ranks *ret);
/* Without any: by who marks steps and says which rank it is. Nothing is known of them but those. */
int ranks_take_marked(const struct scene *s, struct ranks *ret);
void ranks_done(struct ranks *r);
/* "rank 3 (pid 412)", "process 412" */
const char *rank_name(const struct rank *r, char *buf, size_t size);

/* Waiting for data of all ranks in the same step, over the steps of the window. */
struct ranks_steps {
	double uneven; /* longest of a step less the mean, as a share of its time; NAN not known */
	double
	    same; /* share of the steps in which the rank that waits longest most often does so */
	/* of the same steps: shares of their time */
	const struct rank *top;    /* who waits longest for data */
	double most, next, others; /* it, the second, the mean of all but it */
	double apart;              /* between the first end of a step and the last */
};
/* 0 or -ENOMEM. */
int ranks_by_step(const struct scene *s, const struct ranks *r, struct ranks_steps *ret);

#endif

/* SPDX-License-Identifier: MIT
 *
 * The last frame's handful of numbers for somebody who only wants a line about the run that is going
 * on (run --status): no history, no rates. Two of them a second apart make the rates.
 */
#ifndef SPOTTER_ENGINE_GLANCE_H
#define SPOTTER_ENGINE_GLANCE_H

#include <stdbool.h>
#include <stdint.h>

struct frame;

struct glance {
	int64_t t_ns; /* 0: nothing was seen yet */
	bool has_cpu;
	int64_t cpu_ns;   /* of the job, as it counts */
	uint64_t steps;   /* marks of `who` so far */
	uint64_t number;  /* of its last step */
	int64_t step_ns;  /* when that ended */
	double loss;      /* said last; NAN none */
	uint32_t who;     /* process whose steps these are: the lowest rank */
	int32_t who_rank; /* -1: not known */
};

/* {0} is empty. */
void glance_frame(struct glance *g, const struct frame *f);

#endif

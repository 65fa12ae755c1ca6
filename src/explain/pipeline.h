/* SPDX-License-Identifier: MIT
 *
 * What-if: how long a step takes when loader workers make batches ahead and a training takes them in
 * order, as torch, gluon and pools do it. Batch k is the work of worker k mod W; worker and training
 * share the cores they may use; at most W * prefetch batches are ordered and not yet taken. Batches
 * differ in what they cost (cv), and one that takes long holds up those behind it: no formula has
 * that, so it is played through, event by event, the same way each time. Some milliseconds at most.
 */
#ifndef SPOTTER_EXPLAIN_PIPELINE_H
#define SPOTTER_EXPLAIN_PIPELINE_H

#include <stdbool.h>

struct pipeline {
	int workers;  /* 0: the training makes the batches itself */
	int prefetch; /* batches ordered ahead for each worker; 2 where nobody says else */
	/* Seconds of one batch in a worker: on a CPU, waiting (files, network); of one step in the training
	 * thread besides taking the batch: on a CPU (dispatch, taking), waiting (device, ranks). */
	double make_cpu, make_wait, train_cpu, train_wait;
	double device; /* seconds of one step the device works; it does so while others go on */
	double cv;     /* standard deviation of what a batch costs, of its mean; 0 all alike */
	double
	    rare; /* 0: a tail (lognormal); else this share of the batches is large, the rest alike */
	double cores; /* that all of them may use; INFINITY: no matter */
	double crowd; /* how much longer a batch's CPU time gets for each further worker, 0.03 */
	double
	    pair; /* how fast a CPU is while the other thread of its core is busy too; 0: no such */
	bool any_order; /* the first batch that is ready is taken */
};

/* Seconds of a step in the long run; NAN for numbers that make no sense. */
double pipeline_step(const struct pipeline *p);
/* The fewest workers, at most `most`, with which a step is within 3 % of the best. */
int pipeline_workers(const struct pipeline *p, int most);

#endif

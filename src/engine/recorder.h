/* SPDX-License-Identifier: MIT
 *
 * The recorder: a sampler thread (blocks on /proc only) and a writer thread (blocks on the disk
 * only) with a fixed pool of frames between them. Used inside R by `run` and in the foreground by
 * `attach`. The thread that calls these stays free to wait for the program.
 */
#ifndef SPOTTER_ENGINE_RECORDER_H
#define SPOTTER_ENGINE_RECORDER_H

#include "collect/collector.h"
#include "engine/glance.h"
#include "explain/verdict.h"
#include "model/run.h"
#include "record/store.h"
#include "record/writer.h"

struct buf;
struct err;
struct recorder;

struct recorder_options {
	const struct run_info *run;      /* copied */
	const struct store_place *place; /* copied */
	struct record_options record;
	struct job_spec job;
	double hz, budget;
	double stacks_hz;  /* looks at stacks a second; 0: none */
	const char *nvml;  /* GPU library to load, NULL: the usual one; must outlive the recorder */
	const char *marks; /* folder of rings, removed at the end; NULL: none; must outlive it */
	pid_t supervisor;  /* its CPU time counts as ours; 0: none */
	bool glances;      /* recorder_glance() will be asked */
};

/* Starts both threads and returns at once: the file is created by the writer thread, so a slow disk
 * delays nobody. Signals are blocked in both threads. */
int recorder_start(const struct recorder_options *o, struct recorder **ret, struct err *e);
/* Takes one sample now, from the calling thread's point of view before it returns: the last look at
 * a program that has ended and has not been reaped. Waits at most 100 ms. */
void recorder_look(struct recorder *r);

/* What the last tick saw; from any thread, without waiting for one. */
void recorder_glance(struct recorder *r, struct glance *ret);

struct recorder_end {
	char path[PATH_MAX];         /* where the record is now; "" when there is none */
	struct record_health health; /* as of the last write */
	char problem[480];           /* what went wrong with the record, "" nothing */
};

/* Stops sampling, explains the run while its data is warm, puts the verdict into the file and (when
 * `out` is given) as text into out, writes how the run ended (and into run how much could be observed), settles the file and frees r. */
void recorder_stop(struct recorder *r, struct run_info *run, const struct render_style *style,
		   struct buf *out, struct recorder_end *ret);

#endif

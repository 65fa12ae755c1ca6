/* SPDX-License-Identifier: MIT
 *
 * What facts are computed from: the whole run, the steady window inside it, and a census of the
 * job's processes and threads and of the machine's GPUs, taken once so that no series is read twice.
 */
#ifndef SPOTTER_EXPLAIN_SCENE_H
#define SPOTTER_EXPLAIN_SCENE_H

#include "base/map.h"
#include "base/vec.h"
#include "explain/activity.h"
#include "explain/gpus.h"
#include "model/window.h"

/* One process of the job that had a value in the window. Numbers that are not known are NAN. */
struct member {
	uint32_t id;
	const char *name; /* foreign text, borrowed from the entity table */
	int64_t pid;
	bool is_main;
	int64_t born_ns, gone_ns; /* gone 0: still there */

	/* over the steady window */
	double alive_s;
	double cpu, kernel_cpu, threads, major_faults, swap; /* threads, swap: at most */
	/* sums over its threads; ready_cpu: CPU time of those whose waiting is known too */
	double thread_cpu, ready_cpu, delay, slices;
	double alone; /* thread seconds that would be ready if each had a CPU whenever it wants */

	/* over the whole run */
	double rss_max, rss_peak, read, written;
};

struct scene {
	const struct window *whole;
	struct window steady;
	const struct run_info *run;
	double seconds, whole_seconds;
	bool covers_run; /* `whole` reaches from the start of the run to its end */
	VEC(struct member) members;
	struct map by_id;            /* entity -> member */
	uint32_t main_proc;          /* entity of the first process, 0: unknown */
	uint32_t cg_cpu, cg_mem;     /* groups whose limits are the tightest, 0: none */
	double main_cpu, main_delay; /* of the first thread, over the steady window; NAN */
	const char *why_no_delay;    /* reason threads' waiting is not known */
	struct gpus gpus;
	struct activity activity;
};

/* 0 or -errno. */
int scene_open(struct scene *s, const struct window *whole, int64_t from_ns, int64_t to_ns);
void scene_done(struct scene *s);
const struct member *scene_member(const struct scene *s, uint32_t id); /* NULL: none of the job's */

/* Growth of a counter of the machine, a group or Spotter per second of the time it was read; false
 * when it was read fewer than two times. */
bool scene_rate(const struct window *w, enum metric_id m, uint32_t entity, double *ret);
/* The same as growth. */
bool scene_growth(const struct window *w, enum metric_id m, uint32_t entity, double *ret);

#endif

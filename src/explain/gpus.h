/* SPDX-License-Identifier: MIT
 *
 * A census of GPUs and of the processes on them, taken once for a scene: each series is read once, and
 * facts, usage and tables go over a few rows instead of the record. Numbers that are not known are NAN.
 */
#ifndef SPOTTER_EXPLAIN_GPUS_H
#define SPOTTER_EXPLAIN_GPUS_H

#include "base/vec.h"
#include "model/gpu_tag.h"

#include <stdint.h>
#include <string.h>

struct scene;
struct window_event;

/* Whether the job has a process on a GPU. Unknown where the driver's list, or whose a pid is, is not
 * known. */
enum gpu_use { GPU_USE_NO, GPU_USE_UNKNOWN, GPU_USE_YES };
/* By the job's environment; no mask is not the same as being given all of them. */
enum gpu_mask { GPU_MASK_NONE, GPU_MASK_HIDES, GPU_MASK_LEAVES };

/* Why clocks are held back, in the order of gravity. */
enum gpu_slow { SLOW_HEAT_HW, SLOW_HEAT, SLOW_BRAKE, SLOW_HW, SLOW_POWER, SLOW_SETTING, SLOWS };

/* Why readings of a GPU ended before the run did. */
enum gpu_end { GPU_END_NONE, GPU_END_LOST, GPU_END_HUNG, GPU_END_UNREAD };

struct gpu_row {
	uint32_t id;
	int index, partition; /* as the driver counts; partition -1: the GPU itself */
	int parent;           /* row of the GPU a partition is of, -1 */
	const char *name;     /* foreign text, borrowed */
	struct gpu_tag tag;
	bool parts;    /* has rows of partitions: work runs in those */
	bool replaced; /* came back later as another row */
	int64_t born_ns, gone_ns;
	int64_t until_ns; /* it was read up to here: its end, or where readings went stale */
	double seen_s;    /* seconds of the run in which it was read: figures are over those */
	enum gpu_end end;
	enum gpu_mask mask;
	enum gpu_use use;
	bool listed;        /* the driver's list of its processes is known */
	bool hidden;        /* of some process on it cannot be known whose it is */
	bool others;        /* another program was on it */
	double hidden_busy; /* share of the steady window kernels of such processes ran */

	/* over the time it was read: means, but peaks of memory and temperature */
	double busy, sm_active, memory_used, memory_peak, memory_last, memory_total, reserved,
	    power;
	double energy, temperature, clock, clock_max;
	bool busy_at_least; /* summed up from what is known of its processes */
	/* over the steady window */
	double busy_steady, memory_steady;
	double slow[SLOWS]; /* share of time */
};

struct gpu_process_row {
	uint32_t id;
	size_t gpu;  /* row */
	int64_t pid; /* 0: not known here */
	const char *name, *detail;
	int64_t born_ns, gone_ns;
	bool job;
	uint32_t member; /* entity of the job's process, 0 */
	bool dead;       /* that process has ended or is a zombie, and the driver still lists it */
	bool unclear;    /* whether it is one is not known */

	double memory, memory_peak; /* while it was there; the first its mean */
	double memory_last;         /* 0: it had left by the end */
	double busy;                /* share of the time it was there; NAN */
	/* shares of the steady window */
	double busy_steady, memory_steady;
};

struct gpus {
	VEC(struct gpu_row) rows; /* by index, partitions after their GPU */
	VEC(struct gpu_process_row) processes;
	int code;            /* processes of the job with a GPU runtime loaded, -1: not known */
	uint32_t code_first; /* entity of the first of them */
	/* When the recorder gave up reading GPUs, 0: it did not; and why, borrowed. */
	int64_t unread_ns;
	const char *unread_why;
};

int gpus_take(struct gpus *g, const struct scene *s); /* 0 or -ENOMEM */
void gpus_done(struct gpus *g);

/* Work runs on it: not the shell of partitions, nor what was replaced. */
static inline bool gpu_is_unit(const struct gpu_row *g)
{
	return !g->parts && !g->replaced;
}

/* One a training would want: not the graphics part of a processor, which has no memory of its own. Of
 * NVIDIA's some have none either, and are made for it. */
static inline bool gpu_is_fit(const struct gpu_row *g)
{
	return !g->tag.unified || strcmp(g->tag.vendor, "nvidia") == 0;
}

/* gpus_end.c. The row an event is about; NULL: it cannot be known. */
const struct gpu_row *gpus_row_of(const struct gpus *g, const struct window_event *e);
/* "driver call came back after 4.0 s: ...": the last word about a call that was blocked. */
bool gpu_came_back(const struct window_event *e);
void gpus_find_unread(struct gpus *g, const struct scene *s);
/* How long a row was read; before its figures are. */
void gpu_take_span(const struct gpus *g, const struct scene *s, struct gpu_row *x);
/* Why rows ended; when all of them are there. */
void gpus_take_ends(struct gpus *g, const struct scene *s);

/* "GPU 2", "GPU 2 partition 1" */
const char *gpu_label(const struct gpu_row *g, char *buf, size_t size);
const char *gpu_slow_name(enum gpu_slow why); /* "temperature", ... */

#endif

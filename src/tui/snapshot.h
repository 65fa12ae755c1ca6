/* SPDX-License-Identifier: MIT
 *
 * One interval of the machine, of its busiest processes and of a job, as data: what `top` shows, as a
 * screen, lines or JSON. Absent numbers are NAN. Rates are a second.
 */
#ifndef SPOTTER_TUI_SNAPSHOT_H
#define SPOTTER_TUI_SNAPSHOT_H

#include "base/vec.h"
#include "model/window.h"

struct snap_machine {
	double cpus, cores_used, user, kernel, iowait, steal; /* cores */
	double memory_total, memory_used, swap_used;          /* bytes */
	double load1, load5, load15, running;
	double psi_cpu, psi_memory, psi_io; /* share of the interval in which some task waited */
	double disk_read, disk_written, net_rx, net_tx;
};

struct snap_task {
	const struct entity *entity;
	double cores, run_delay; /* run_delay: cores' worth of waiting for a CPU; threads only */
	double rss, pss, threads, read, written;
	double gpu_memory; /* on all GPUs, as the driver says; processes only */
	char state;        /* 0: unknown */
	size_t first_thread, n_threads;
};

/* A GPU, or a partition of one. busy: share of the time a kernel ran, over the interval. */
struct snap_gpu {
	const struct entity *entity;
	const struct entity *whole; /* the GPU it is a partition of, or NULL */
	bool simulated;
	double busy, memory_used, memory_total, power, temperature;
	double job_memory, job_busy; /* of the tree asked for */
	bool slowed;                 /* temperature or power holds its clocks at the moment */
};

/* One CPU of the machine: shares of its time. */
struct snap_core {
	int64_t key;
	double busy, steal;
};

struct snap_job {
	bool present; /* a tree was asked for */
	double cores, cores_allowed, rss, pss, processes, threads;
	const char *cpu_limit; /* "affinity", "quota", "machine"; NULL not known */
	double memory;         /* pages that processes share counted once, where that is known */
	bool memory_at_most;   /* ...and it is not */
	double memory_allowed;
	const char *memory_limit; /* "cgroup", "machine"; NULL not known */
	double read, written;     /* of its processes, from and to storage */
	double throttled;         /* cores' worth of standing still for the quota */
};

struct snapshot {
	int64_t wall_ns;
	double seconds;
	unsigned flags; /* enum snapshot_flag */
	struct snap_machine machine;
	struct snap_job job;
	VEC(struct snap_core) cores; /* by number */
	VEC(struct snap_gpu) gpus;
	VEC(struct snap_task) processes; /* busiest first */
	VEC(struct snap_task) threads;   /* of each process in turn, busiest first; job only */
};

enum snapshot_flag {
	SNAPSHOT_JOB = 1,  /* of a tree, not of the machine: with its threads */
	SNAPSHOT_PAST = 2, /* of an interval that may be long past: with what has ended since */
};

/* w: from one tick to another. 0 or -ENOMEM. */
int snapshot_take(const struct window *w, int64_t wall_ns, unsigned flags, struct snapshot *ret);
void snapshot_done(struct snapshot *v);

/* Within the layer: was it there in the interval? Of the present, what has ended is not shown. */
bool snapshot_shows(const struct snapshot *v, const struct window *w, const struct entity *e);
/* Rows of v->gpus (snapshot_gpu.c). 0 or -ENOMEM. */
int snapshot_take_gpus(const struct window *w, bool job, struct snapshot *v);

#endif

/* SPDX-License-Identifier: MIT
 *
 * What `top` shows, as data: one interval of the machine and of its busiest processes. Absent
 * numbers are NAN. Rates are a second.
 */
#ifndef SPOTTER_CLI_TOP_VIEW_H
#define SPOTTER_CLI_TOP_VIEW_H

#include "base/vec.h"
#include "model/window.h"

struct buf;
struct cli;

struct top_machine {
	double cpus, cores_used, user, kernel, iowait, steal; /* cores */
	double memory_total, memory_used, swap_used;          /* bytes */
	double load1, load5, load15, running;
	double psi_cpu, psi_memory, psi_io; /* share of the interval in which some task waited */
	double disk_read, disk_written, net_rx, net_tx;
};

struct top_task {
	const struct entity *entity;
	double cores, run_delay; /* run_delay: cores' worth of waiting for a CPU; threads only */
	double rss, pss, threads, read, written;
	char state; /* 0: unknown */
	size_t first_thread, n_threads;
};

/* A GPU, or a partition of one. busy: share of the time a kernel ran, over the interval. */
struct top_gpu {
	const struct entity *entity;
	const struct entity *whole; /* the GPU it is a partition of, or NULL */
	bool simulated;
	double busy, memory_used, memory_total, power, temperature;
	double job_memory, job_busy; /* of the tree asked for */
	bool slowed;                 /* temperature or power holds its clocks at the moment */
};

struct top_job {
	bool present; /* a tree was asked for */
	double cores, cores_allowed, rss, processes, threads;
};

struct top_view {
	int64_t wall_ns;
	double seconds;
	struct top_machine machine;
	struct top_job job;
	VEC(struct top_gpu) gpus;
	VEC(struct top_task) processes; /* busiest first */
	VEC(struct top_task) threads;   /* of each process in turn, busiest first; job only */
};

/* Rows of v->gpus (top_gpu.c). 0 or -ENOMEM. */
int top_fill_gpus(const struct window *w, bool job, struct top_view *v);
/* Lines for --once, a few words for --plain; nothing without a GPU. */
void top_put_gpus(const struct top_view *v, struct buf *out);
void top_put_gpu_words(const struct top_view *v, struct buf *out);

/* w: from one tick to another. job: of a tree, not of the machine. 0 or -ENOMEM. */
int top_view_fill(const struct window *w, int64_t wall_ns, bool job, struct top_view *ret);
void top_view_done(struct top_view *v);

/* Tables for --once; one line for --plain; one line of JSON, "spotter.top/1". limit: processes. */
void top_put_screen(const struct cli *cli, const struct top_view *v, size_t limit, struct buf *out);
void top_put_line(const struct top_view *v, struct buf *out);
void top_put_json(const struct top_view *v, size_t limit, struct buf *out);

#endif

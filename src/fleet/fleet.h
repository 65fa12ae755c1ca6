/* SPDX-License-Identifier: MIT
 *
 * What an engine knows of a fleet, as plain data: runs, the nodes they are on, ranks and GPUs. Filled sample by sample
 * (fleet_take), then put in order (fleet_order); pure. Numbers that nobody told are NAN, texts "" and safe to show.
 */
#ifndef SPOTTER_FLEET_FLEET_H
#define SPOTTER_FLEET_FLEET_H

#include "base/map.h"
#include "base/vec.h"
#include "explain/activity.h"

#include <stdbool.h>
#include <stdint.h>

struct fleet_sample;
struct query;

enum {
	FLEET_RUNS_MAX = 1 << 16,
	FLEET_NODES_MAX = 1 << 17,
	FLEET_RANKS_MAX = 1 << 19,
	FLEET_GPUS_MAX = 1 << 19,
	FLEET_VERDICTS_MAX = 1 << 19,
};

struct fleet_run {
	char id[128], name[96], source[16], framework[24];
	int32_t world;      /* ranks it says it has; 0: it does not */
	double start_s;     /* since 1970 */
	double moves;       /* how often a count of its steps changed within the last minute */
	double mean_step_s; /* over its whole life */
	/* Its rows, by fleet_order(): `rank_order` and `hold_order` from here on. */
	size_t rank_from, ranks, hold_from, holds;
	size_t nodes, gpus; /* where it is now, or was last */
	bool here, up;      /* on some node, now; was it up when that was last said */
};

struct fleet_node {
	char name[65];
	double io_wait, cpu_wait, memory_wait; /* share of time some task stood still for it */
};

struct fleet_place {
	uint32_t run, node;
	double up;   /* 1, or 0 once it ended: the last that was said within the window */
	double here; /* the same, of now; NAN: nothing is said any more */
	size_t gpus; /* fleet_order(): that its ranks hold */
};

/* Seconds within the window, unless it says otherwise. */
struct fleet_rank {
	uint32_t run, node;
	int32_t rank; /* -1: it has no number */
	double info, steps, steps_ever;
	double step_seconds, steps_timed;
	double own, comm, data;
	double last_step_s;   /* when, since 1970, by the clock of its node */
	uint32_t ledger_from; /* TIME_STATES of `ledgers`, or FLEET_NONE */
};

struct fleet_ledger {
	double seconds, lately; /* in the window; in the last two minutes */
};

enum fleet_held { HELD_POWER, HELD_HEAT, HELD_REASONS };

struct fleet_gpu {
	uint32_t node;
	char index[12], partition[12], uuid[96];
	double busy_max; /* the most that was read */
	double clock_hz, xids;
	double held[HELD_REASONS]; /* seconds something held its clocks back */
};

struct fleet_hold {
	uint32_t rank, gpu;
	double info;
	double memory; /* the least it had */
};

struct fleet_verdict {
	uint32_t run, node;
	char cause[40], family[24];
	double info, cost, confidence;
};

#define FLEET_NONE UINT32_MAX

struct fleet {
	double now_s;
	double window_s;
	VEC(struct fleet_run) runs;
	VEC(struct fleet_node) nodes;
	VEC(struct fleet_place) places;
	VEC(struct fleet_rank) ranks;
	VEC(struct fleet_ledger) ledgers;
	VEC(struct fleet_gpu) gpus;
	VEC(struct fleet_hold) holds;
	VEC(struct fleet_verdict) verdicts;
	size_t odd; /* samples that lack a label, or have one that makes no sense */
	/* By fleet_order(): ranks by run and number, holds by run and GPU. */
	uint32_t *rank_order, *hold_order;
	struct map run_map, node_map, place_map, rank_map, gpu_map, hold_map, verdict_map;
};

void fleet_begin(struct fleet *f, double window_s);
void fleet_done(struct fleet *f);
/* 0, -E2BIG, -ENOMEM. What makes no sense is counted and passed over. */
int fleet_take(struct fleet *f, const struct query *q, const struct fleet_sample *s);
/* After the last sample, or again after more of them. */
int fleet_order(struct fleet *f);

/* The run with this id, or NULL. */
const struct fleet_run *fleet_find(const struct fleet *f, const char *id);
/* NULL: it is not known to be there. */
const struct fleet_place *fleet_place_of(const struct fleet *f, uint32_t run, uint32_t node);
/* Is it where the run is now? Of a run that moved, or whose ranks were numbered anew, only that counts. */
bool fleet_rank_live(const struct fleet *f, const struct fleet_rank *r);
/* Seconds of this state, or NAN. */
double fleet_ledger_of(const struct fleet *f, const struct fleet_rank *r, enum time_state s,
		       bool lately);
/* Seconds of the window that the run was there for. */
double fleet_seen_s(const struct fleet *f, const struct fleet_run *r);

#endif

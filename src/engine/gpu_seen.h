/* SPDX-License-Identifier: MIT
 *
 * What gpu_watch.c and its parts share.
 */
#ifndef SPOTTER_ENGINE_GPU_SEEN_H
#define SPOTTER_ENGINE_GPU_SEEN_H

#include "engine/gpu_job.h"
#include "engine/gpu_watch.h"
#include "gpu/client.h"

/* A GPU as an entity; found again by vendor, PCI address and partition. */
struct seen_gpu {
	uint32_t id;      /* 0: not alive */
	uint32_t last_id; /* what it was called last, for what is told after its end */
	uint8_t vendor, state;
	int16_t index, partition; /* as its driver counts */
	int number;               /* as everybody does */
	char pci[24], uuid[96];
	uint8_t have[GPU_METRICS]; /* what the record was told last */
	uint64_t met;              /* number of the reading it was in last */
	int8_t allowed;            /* -1: not told */
};

/* A process on one of them. */
struct seen_process {
	uint32_t id;
	int32_t driver_pid;
	int64_t key; /* pid here, 0 not known */
	uint32_t gpu;
	uint64_t met;
	bool sure; /* the owner is known, or cannot be: no need to ask again */
};

struct gpu_watch {
	const struct host *host;
	struct gpu_client *client;
	struct gpu_job job;
	VEC(struct seen_gpu) gpus;
	VEC(struct seen_process) processes;
	int row_of[GPU_DEVICES]; /* snapshot row -> gpus, -1 */
	bool stale, any, left_out_told, mask_told;
};

/* One process of a reading (gpu_seen.c). */
void gpu_take_process(struct gpu_watch *w, struct collect *c, struct frame *f,
		      const struct gpu_snapshot *s, const struct gpu_process *p);
/* Ends those the reading does not have any more. */
void gpu_sweep_processes(struct gpu_watch *w, struct frame *f, const struct gpu_snapshot *s);

#endif

/* SPDX-License-Identifier: MIT
 *
 * The memory between the recorder and its GPU helper: a sealed memfd (it cannot be cut short, so reading
 * it cannot fault). The helper has a vendor's library in its address space, so whatever is read
 * here may be anything: the recorder copies first, then forces it into bounds, and keeps no state here.
 *
 * Snapshots are published in two slots in turn, each behind a sequence number that is odd while it is
 * written. Only the rows in use are copied, so pages of absent GPUs are never touched.
 */
#ifndef SPOTTER_GPU_SHARED_H
#define SPOTTER_GPU_SHARED_H

#include "gpu/call.h"
#include "gpu/gpu.h"

#include <stdatomic.h>

#define GPU_SHARED_MAGIC 0x75706774746f7073ull /* "spottgpu" */
enum {
	GPU_SHARED_VERSION = 1,
	GPU_HELPER_MEMORY_FD = 3, /* where the helper finds its descriptors */
	GPU_HELPER_CONTROL_FD = 4,
	GPU_HELPER_NO_START = 125, /* exit status: our own failure, no library was touched */
	GPU_HELPER_NO_EXEC = 127,
};

/* What is not to be touched, because a call on it hung or crashed. */
struct gpu_skip {
	int16_t vendor;
	int16_t
	    index;  /* -1: not known; a GPU whose handle cannot be had has no PCI id to ask for */
	int16_t of; /* GPUs of the vendor that were counted then, -1: not known */
	char pci[24];
	bool vendor_whole; /* the call was about no GPU in particular: leave the vendor alone */
	char call[64];     /* the call that did it */
};

/* Written by the client before the helper starts; what is skipped may change later. */
struct gpu_orders {
	char nvml[4096];
	int64_t period_ns;
	int32_t depth;
	int32_t n_skips;
	struct gpu_skip skip[GPU_DEVICES];
};

struct gpu_slot {
	_Atomic uint64_t sequence;
	uint64_t asked; /* value of `ask` when the reading was begun */
	struct gpu_snapshot snapshot;
};

struct gpu_shared {
	uint64_t magic;
	uint64_t size;
	uint32_t version;
	/* From the client, at any time. */
	_Atomic uint32_t thrift;
	_Atomic uint64_t ask;           /* grows: a reading of the wanted depth, now */
	_Atomic uint64_t orders_number; /* odd while orders.skip is written anew */
	/* From the helper. */
	_Atomic uint64_t heartbeat; /* grows with each turn of its loop */
	_Atomic int32_t pid; /* of the helper itself: for its CPU time only, never to signal it */
	/* From its keeper. */
	_Atomic int32_t start_error; /* errno: why it could not become the helper; 0 */
	_Atomic int32_t ended;       /* 1 + its status as waitpid gives it; 0: not ended */
	_Atomic uint64_t published;  /* snapshots so far; the newest is in slot [published % 2] */
	struct gpu_calls calls;
	struct gpu_orders orders;
	struct gpu_slot slot[2];
};

/* A sealed region, mapped: 0 with its descriptor, or -errno. */
int gpu_shared_create(struct gpu_shared **ret, int *ret_fd);
int gpu_shared_map(int fd, struct gpu_shared **ret);
void gpu_shared_unmap(struct gpu_shared *s);
/* Is the head still as it was made? */
bool gpu_shared_intact(const struct gpu_shared *s);
/* Replaces the list of what is skipped while the helper runs; and takes it over there: true when there was
 * a new one, and *seen is moved. */
void gpu_write_skips(struct gpu_shared *s, const struct gpu_skip *skip, int n);
bool gpu_take_skips(struct gpu_shared *s, uint64_t *seen, struct gpu_orders *ret);

void gpu_publish(struct gpu_shared *s, const struct gpu_snapshot *from, uint64_t asked);
/* The newest snapshot, checked, when more than *seen have been published (then *seen is moved). */
bool gpu_take(struct gpu_shared *s, uint64_t *seen, struct gpu_snapshot *ret, uint64_t *ret_asked);
/* Copies the head and the rows in use. */
void gpu_snapshot_copy(struct gpu_snapshot *to, const struct gpu_snapshot *from);

#endif

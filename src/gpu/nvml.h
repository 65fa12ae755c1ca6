/* SPDX-License-Identifier: MIT
 *
 * The NVIDIA back-end's inside: nvml.c (library, devices), nvml_read.c (metrics), nvml_gpm.c (activity),
 * nvml_process.c, nvml_mig.c (partitions), nvml_event.c (XIDs), nvml_props.c (everything else).
 *
 * A call that this GPU does not support is not made again on the fast path, only with slow readings.
 */
#ifndef SPOTTER_GPU_NVML_H
#define SPOTTER_GPU_NVML_H

#include "gpu/backend.h"
#include "gpu/nvml_abi.h"

#include <stdatomic.h>

enum nvml_symbol {
#define SYMBOL(id, ...) NVML_S_##id,
#include "gpu/nvml_symbols.def"
#undef SYMBOL
	NVML_SYMBOLS
};

struct nvml_library {
	void *opened; /* by dlopen */
#define SYMBOL(id, names, ...) int (*id)(__VA_ARGS__);
#include "gpu/nvml_symbols.def"
#undef SYMBOL
	char found_as[NVML_SYMBOLS][64]; /* the name it was found by */
};

/* Beyond what any GPU can do, by far: a driver that says more does not know, or was misread. */
enum {
	NVML_MOST_MW = 10 * 1000 * 1000, /* 10 kW */
	NVML_MOST_MHZ = 20 * 1000,       /* 20 GHz */
};

enum { NVML_PARTITIONS = 8, NVML_SEEN = 512, NVML_XIDS_PENDING = 8 };

struct nvml_activity {
	bool asked, supported;
	bool has_before;
	int64_t before_ns;
	nvml_gpm_sample before, after;
};

struct nvml_part { /* a MIG instance */
	nvml_device handle;
	int number, gi, ci;
	char uuid[96], profile[32], name[96];
	struct nvml_activity gpm;
};

struct nvml_gpu {
	nvml_device handle;
	_Atomic(nvml_device)
	    open; /* the slow lane's: set when handle and pci are, NULL while not */
	int index;
	bool skipped;
	enum gpu_have state; /* GPU_KNOWN, or what is wrong with the whole of it */
	enum gpu_have told;  /* what was last noted: GPU_KNOWN, or as lost */
	char name[96], uuid[96], pci[24], mode[24];
	bool unified, mig;
	bool refused[NVML_SYMBOLS]; /* answered NOT_SUPPORTED */
	bool no_memory_v2;
	unsigned long long energy_mj; /* as last read, good or not; energy_ns 0: never */
	int64_t energy_ns;
	int64_t memory_total;
	struct nvml_activity gpm;
	int n_parts;
	struct nvml_part part[NVML_PARTITIONS];
	/* XIDs */
	bool watched;
	int64_t xids;
	int n_pending;
	int64_t pending[NVML_XIDS_PENDING];
	/* Processes */
	unsigned long long usage_seen_us; /* newest sample that was taken */
	/* From the crawling thread: KB/s, -1 - enum gpu_have when it cannot be had. */
	_Atomic int64_t pcie_tx, pcie_rx;
};

/* What is known of a process beyond one reading. */
struct nvml_seen {
	unsigned pid;
	int gpu;
	bool used;
	int64_t sampled_ns;           /* monotonic clock when its usage was got, 0 never */
	unsigned long long sample_us; /* the driver's own time of it */
	int busy, encoder, decoder;
	bool named;
	char name[64];
};

struct nvml {
	struct nvml_library lib;
	bool initialised, simulated;
	int dead; /* what the driver says since it takes no more calls, 0: it does */
	bool told_dead;
	char driver[48], cuda[24];
	int cuda_version;
	int process_size; /* bytes of a row of the _v3 calls: 24, or 32 in some 535 drivers */
	nvml_event_set events;
	bool has_events;
	int n_gpus;
	struct nvml_gpu gpu[GPU_DEVICES];
	struct nvml_seen seen[NVML_SEEN];
	int n_seen;
	void *rows; /* for lists of processes */
	unsigned max_rows;
	struct nvml_process_sample *samples; /* of the usage of processes */
	unsigned max_samples;
};

/* One GPU being read. */
struct nvml_at {
	struct gpu_world *w;
	struct nvml *n;
	struct nvml_gpu *g; /* NULL: none in particular */
	int lane;
	enum gpu_depth depth;
	struct gpu_snapshot *s;
	int row;
};

static inline struct gpu_device *nvml_row(const struct nvml_at *a)
{
	return &a->s->device[a->row];
}

void nvml_begin(const struct nvml_at *a, enum nvml_symbol s);
int nvml_end(const struct nvml_at *a, int result);
bool nvml_may_call(const struct nvml_at *a, enum nvml_symbol s);
int nvml_note_result(const struct nvml_at *a, enum nvml_symbol s, int result);

/* The call, told to whoever watches; FUNCTION_NOT_FOUND when this library lacks it. */
#define NVML_CALL(a, id, ...)                                                             \
	((a)->n->lib.id                                                                   \
	     ? (nvml_begin((a), NVML_S_##id), nvml_end((a), (a)->n->lib.id(__VA_ARGS__))) \
	     : NVML_ERROR_FUNCTION_NOT_FOUND)
/* The same, but not again for a while when this GPU does not support it. */
#define NVML_TRY(a, id, ...)                                                       \
	(nvml_may_call((a), NVML_S_##id)                                           \
	     ? nvml_note_result((a), NVML_S_##id, NVML_CALL((a), id, __VA_ARGS__)) \
	     : NVML_ERROR_NOT_SUPPORTED)

enum gpu_have nvml_have(int result);
/* Puts the value, or why it is not there. */
void nvml_put(const struct nvml_at *a, enum metric_id m, int result, int64_t raw);
void nvml_put_percent(const struct nvml_at *a, enum metric_id m, int result, unsigned percent);
/* The same for what no GPU can exceed: more is an error of the driver, not a value. */
void nvml_put_up_to(const struct nvml_at *a, enum metric_id m, int result, int64_t raw,
		    int64_t most);

bool nvml_identify(const void *state, int i, struct gpu_device *ret);
void nvml_read_device(struct nvml_at *a);
void nvml_read_memory(struct nvml_at *a, nvml_device handle);
void nvml_read_gpm(struct nvml_at *a, struct nvml_activity *g, int gi);
void nvml_gpm_done(struct nvml *n, struct nvml_activity *g);
void nvml_read_processes(struct nvml_at *a, nvml_device handle, bool usage);
void nvml_forget_processes(struct nvml *n);
void nvml_find_parts(struct nvml_at *a);
void nvml_read_parts(struct nvml_at *a);
void nvml_watch_events(struct nvml_at *a);
void nvml_take_events(struct nvml_at *a);
void nvml_tell_events(struct nvml_at *a);
void nvml_read_properties(struct nvml_at *a);
void nvml_read_ecc_properties(struct nvml_at *a);
/* Result and value of one field; 0 fine. */
int nvml_field(const struct nvml_field_value *v, int64_t *ret);

#endif

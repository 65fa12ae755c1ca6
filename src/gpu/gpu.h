/* SPDX-License-Identifier: MIT
 *
 * What is read of GPUs, as plain data without pointers: a snapshot lives in memory shared by the
 * helper process, which alone loads vendor libraries, and the recorder. Whoever reads one that
 * another process wrote must have had it checked (gpu_snapshot_check): a vendor library may have
 * written anything into it.
 *
 * To add a vendor: one file that ends in `const struct gpu_backend NAME_backend`, a row in all.c,
 * fixture roots (or a virtual driver), a unit test.
 */
#ifndef SPOTTER_GPU_GPU_H
#define SPOTTER_GPU_GPU_H

#include "model/metric.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct err;

enum {
	GPU_DEVICES = 64,     /* GPUs and partitions */
	GPU_PROCESSES = 1024, /* rows of all GPUs together */
	GPU_NOTES = 16,
	GPU_METRIC_FIRST = M_GPU_BUSY,
	GPU_METRICS = M_GPU_ALLOWED - M_GPU_BUSY + 1,
};

enum gpu_vendor { GPU_NVIDIA, GPU_AMD, GPU_INTEL, GPU_VENDORS };
const char *gpu_vendor_name(enum gpu_vendor v); /* "nvidia", ... */
/* "Default", "Exclusive_Process", ... of GPU_P_COMPUTE_MODE; NULL: none of the known ones. */
const char *gpu_compute_mode_name(int64_t mode);

/* Whether a value is there, and why not. */
enum gpu_have {
	GPU_NOT_ASKED, /* not due yet, or nobody wanted it */
	GPU_KNOWN,
	GPU_NOT_SUPPORTED, /* by this GPU, or this driver lacks the call */
	GPU_NO_PERMISSION,
	GPU_DEPRECATED,
	GPU_LOST,        /* fell off the bus */
	GPU_NEEDS_RESET, /* driver says so */
	GPU_HUNG,        /* a call on it did not return: it is left alone */
	GPU_FAILED,      /* any other error of the driver */
	GPU_HAVES
};

struct gpu_cell {
	int64_t raw; /* in the raw unit of metrics.def */
	uint8_t have;
};

/* What changes rarely, for `smi` and `doctor`: property.def. */
enum gpu_property_id {
#define PROPERTY(id, ...) GPU_P_##id,
#include "gpu/property.def"
#undef PROPERTY
	GPU_PROPERTIES
};

enum gpu_property_type { GPU_NUMBER, GPU_TEXT };

struct gpu_property {
	int64_t number;
	uint8_t have;
	char text[64];
};

struct gpu_property_info {
	const char *name;
	enum gpu_property_type type;
	const char *help;
};
extern const struct gpu_property_info gpu_properties[GPU_PROPERTIES];

struct gpu_device {
	uint8_t vendor;
	uint8_t state;                      /* GPU_KNOWN, or what is wrong with it as a whole */
	int16_t index;                      /* as its driver counts; partitions: of their GPU */
	int16_t partition;                  /* number within its GPU, -1: a whole GPU */
	int16_t parent;                     /* row of the GPU a partition is part of, -1 */
	int32_t instance, compute_instance; /* MIG ids, -1: none */
	bool simulated, unified, partitioned;
	char name[96], uuid[96], pci[24], driver[48], runtime[24], mode[24], profile[32];
	struct gpu_cell metric[GPU_METRICS]; /* by metric id - GPU_METRIC_FIRST */
	struct gpu_property property[GPU_PROPERTIES];
};

struct gpu_process {
	int16_t device;           /* row of the device (or partition) */
	int32_t pid;              /* as the driver says: maybe of another pid namespace */
	bool graphics;            /* listed for graphics only */
	int64_t memory_kb;        /* -1: not known */
	int64_t busy;             /* 1e-4, -1: not known */
	int64_t encoder, decoder; /* 1e-4, -1 */
	int64_t time_ns;          /* counted engine time, -1 */
	char name[64];            /* what the driver calls it, "" when it does not */
};

enum gpu_note_kind { GPU_NOTE_XID, GPU_NOTE_LOST, GPU_NOTE_BACK };

/* Something that happened, once; numbered so that none is told twice. */
struct gpu_note {
	uint64_t number;
	uint8_t kind;
	int16_t device;
	int64_t code; /* XID number */
};

struct gpu_snapshot {
	uint64_t number;  /* grows with each reading */
	int64_t taken_ns; /* monotonic clock when it was begun */
	int64_t ended_ns;
	int32_t n_devices, n_processes;
	int32_t processes_left_out; /* did not fit */
	bool whole;                 /* the devices of every vendor have been looked for */
	struct gpu_device device[GPU_DEVICES];
	struct gpu_process process[GPU_PROCESSES];
	struct gpu_note note[GPU_NOTES]; /* ring, by number */
	char problem[GPU_VENDORS][160]; /* why a vendor's devices cannot be read, "" fine or none */
};

/* Depth of one reading. Each includes those above it. */
enum gpu_depth {
	GPU_FAST,   /* several times a second: busy, memory, power, energy, clocks, slow.* */
	GPU_MIDDLE, /* once a second: processes, temperature, encoder, errors */
	GPU_SLOW,   /* every 5 s: limits, links, counters that hardly move */
	GPU_ALL,    /* every property as well: smi, doctor */
};

/* Forces every index, count and text of a snapshot into its bounds, so that it can be used whatever
 * wrote it. */
void gpu_snapshot_check(struct gpu_snapshot *s);

/* The number people use: GPUs of all vendors counted through, each vendor's in its driver's order and
 * NVIDIA's first, so that they are those of nvidia-smi. A partition has its GPU's. */
int gpu_number(const struct gpu_snapshot *s, int row);

/* For back-ends. */
struct gpu_device *gpu_add_device(struct gpu_snapshot *s, enum gpu_vendor v); /* NULL: full */
void gpu_put(struct gpu_device *d, enum metric_id m, int64_t raw);
void gpu_lacks(struct gpu_device *d, enum metric_id m, enum gpu_have why);
void gpu_put_number(struct gpu_device *d, enum gpu_property_id p, int64_t v);
void gpu_put_text(struct gpu_device *d, enum gpu_property_id p, const char *text);
void gpu_lacks_property(struct gpu_device *d, enum gpu_property_id p, enum gpu_have why);
/* A new row with everything unknown, or NULL (counted in processes_left_out). */
struct gpu_process *gpu_add_process(struct gpu_snapshot *s, int device, int32_t pid);
void gpu_note(struct gpu_snapshot *s, enum gpu_note_kind kind, int device, int64_t code);

static inline const struct gpu_cell *gpu_metric(const struct gpu_device *d, enum metric_id m)
{
	return &d->metric[m - GPU_METRIC_FIRST];
}

#endif

/* SPDX-License-Identifier: MIT
 *
 * GPUs whose driver is part of the kernel, found and read through files: sys/class/drm, hwmon, and the
 * DRM files that processes have open. Shared by the AMD and Intel back-ends; no libdrm, no ioctl.
 *
 * A GPU in runtime suspend must stay asleep: amdgpu before 6.13 and i915 wake it for nearly every
 * file of theirs, which costs seconds and power. drm_asleep() is asked first; what PCI, the driver's
 * memory manager and firmware tables in memory know is read all the same.
 */
#ifndef SPOTTER_GPU_DRM_H
#define SPOTTER_GPU_DRM_H

#include "base/map.h"
#include "base/vec.h"
#include "gpu/backend.h"
#include "gpu/fdinfo.h"

struct drm_card {
	int card, render; /* numbers of card0 and renderD128, -1: none */
	uint32_t vendor_id, device_id, subsystem_vendor, subsystem_device, pci_class;
	char pci[24];    /* "0000:03:00.0" */
	char driver[16]; /* "amdgpu", "i915", "xe" */
	char top[40];    /* "sys/class/drm/card0" */
	char device[48]; /* "sys/class/drm/card0/device" */
	char hwmon[80];  /* "sys/class/drm/card0/device/hwmon/hwmon3", "" none */
};

struct drm_cards {
	int n;
	struct drm_card card[GPU_DEVICES];
};

/* Cards of one vendor with one of these drivers (NULL-terminated), by PCI address. */
void drm_find(int root, uint32_t vendor_id, const char *const *drivers, struct drm_cards *ret);

/* A card being read: every read is announced as a call (a driver may hang in it). */
struct drm_reader {
	struct gpu_world *w;
	const struct drm_card *card;
	int lane, index;
};

/* What an error of a read means for the value. */
enum gpu_have drm_have(int error);
/* Text of dir/name: length or -errno. `name` must be static text. */
ssize_t drm_text(const struct drm_reader *r, const char *dir, const char *name, char *buf,
		 size_t size);
/* One number, decimal. */
enum gpu_have drm_number(const struct drm_reader *r, const char *dir, const char *name,
			 int64_t *ret);
/* Reads a number and puts it, or why not. Values are multiplied by num and divided by den. */
void drm_metric(const struct drm_reader *r, struct gpu_device *d, enum metric_id m, const char *dir,
		const char *name, int64_t num, int64_t den);
void drm_property(const struct drm_reader *r, struct gpu_device *d, enum gpu_property_id p,
		  const char *dir, const char *name, int64_t den);
void drm_property_text(const struct drm_reader *r, struct gpu_device *d, enum gpu_property_id p,
		       const char *dir, const char *name);

bool drm_asleep(const struct drm_reader *r);
/* Everything that is the same for every vendor: PCI, link, NUMA node, version of the driver. */
void drm_common(const struct drm_reader *r, struct gpu_device *d, enum gpu_depth depth,
		bool asleep);
/* "16.0 GT/s PCIe": 4. 0: not a speed PCIe has. */
int drm_link_generation(const char *text, size_t n);

/* Processes: found by the DRM files they have open. A look at one that has none is repeated after 1, 2,
 * 4, 8, then 16 sweeps, so that a sweep looks at few. A pid that is used again within that time is seen
 * that much later. */
struct drm_use;
struct drm_sweep {
	uint32_t round;
	struct map quiet;                /* pid -> round to look again << 3 | log2 of the wait */
	struct map clients;              /* of this round: (row, client) -> seen */
	VEC(int32_t) due;                /* pids to look at in this round */
	VEC(struct drm_use) now, before; /* one type: they change places */
	int64_t taken_ns;                /* of `before` */
	int unreadable; /* processes whose files we may not see: they may use a GPU */
};

/* Adds the processes of rows first..first+cards->n-1 to the snapshot. */
void drm_processes(struct gpu_world *w, struct drm_sweep *sweep, const struct drm_cards *cards,
		   int first, struct gpu_snapshot *s);
void drm_sweep_done(struct drm_sweep *sweep);

/* One process on one GPU, summed over its clients. */
struct drm_use {
	int32_t pid;
	int row;
	int64_t memory_kb, shared_kb, share; /* -1 */
	int64_t time_ns;                     /* counted so far where the driver counts cycles */
	bool kfd;                            /* computes through ROCm's own device */
	int n_engines;
	struct fdinfo_engine engine[FDINFO_ENGINES];
};

/* What engines did between two looks, in 1e-4 of that time; -1 unknown. Encoder and decoder are those
 * of amdgpu; Intel's video engine does both. */
struct drm_load {
	int64_t busy, encoder, decoder;
};
struct drm_load drm_load_between(const struct drm_use *before, const struct drm_use *now,
				 int64_t elapsed_ns);

#endif

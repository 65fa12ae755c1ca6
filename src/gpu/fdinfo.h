/* SPDX-License-Identifier: MIT
 *
 * /proc/PID/fdinfo/N of a DRM device file (Documentation/gpu/drm-usage-stats.rst, Linux 5.19; amdgpu
 * had a form of its own in 5.14 to 5.18):
 *
 *   drm-driver:	amdgpu			pdev:	0000:03:00.0
 *   drm-client-id:	42			pasid:	32770
 *   drm-pdev:	0000:03:00.0			vram mem:	2048 kB
 *   drm-memory-vram:	16384 KiB		gtt mem:	512 kB
 *   drm-engine-gfx:	731922110 ns		gfx0:	12.34%
 *
 * xe counts GPU cycles beside all cycles that passed instead of nanoseconds: drm-cycles-rcs: 28257900,
 * drm-total-cycles-rcs: 7655183225.
 */
#ifndef SPOTTER_GPU_FDINFO_H
#define SPOTTER_GPU_FDINFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FDINFO_ENGINES = 12, FDINFO_REGIONS = 8 };

struct fdinfo_engine {
	char name[20];         /* "gfx", "compute", "render", "rcs" */
	int64_t time_ns;       /* -1: not given */
	int64_t cycles, total; /* -1: not given */
	int64_t capacity;      /* engines of this kind: 1 unless said otherwise */
};

struct fdinfo_region {
	char name[20];                   /* "vram", "vram0", "local0", "gtt", "system0" */
	int64_t memory, total, resident; /* bytes, -1: not given */
};

struct fdinfo {
	char driver[16]; /* "" in the old form of amdgpu */
	char pdev[24];
	uint64_t client; /* drm-client-id, or the pasid of the old form */
	bool has_client;
	int64_t share; /* 1e-4: busiest engine over its last jobs, old form only, -1 */
	int n_engines, n_regions;
	struct fdinfo_engine engine[FDINFO_ENGINES];
	struct fdinfo_region region[FDINFO_REGIONS];
};

/* False when this is not of a DRM file. Lines that make no sense are passed over one by one. */
bool fdinfo_parse(const char *text, size_t n, struct fdinfo *ret);

/* Device memory (vram*, local*) and machine memory mapped for the GPU (gtt*, system*), in KiB; -1 when
 * there is no such region. What is resident where it is said, else all that was asked for. */
int64_t fdinfo_device_kb(const struct fdinfo *f);
int64_t fdinfo_shared_kb(const struct fdinfo *f);

#endif

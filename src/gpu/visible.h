/* SPDX-License-Identifier: MIT
 *
 * Which GPUs a program may use by its environment: CUDA_VISIBLE_DEVICES (indices in CUDA's order, "",
 * "-1", UUIDs and unique beginnings of them, MIG ids old and new; what follows an invalid entry does
 * not count), CUDA_DEVICE_ORDER, NVIDIA_VISIBLE_DEVICES ("all" and "" are no mask), HIP_VISIBLE_DEVICES,
 * ROCR_VISIBLE_DEVICES, GPU_DEVICE_ORDINAL, ZE_AFFINITY_MASK, ONEAPI_DEVICE_SELECTOR.
 */
#ifndef SPOTTER_GPU_VISIBLE_H
#define SPOTTER_GPU_VISIBLE_H

#include "gpu/gpu.h"

enum gpu_allowed { GPU_ALLOWED_UNKNOWN, GPU_ALLOWED_NO, GPU_ALLOWED_YES };

struct gpu_visible {
	uint8_t allowed[GPU_DEVICES];   /* enum gpu_allowed by row of the snapshot */
	bool masked[GPU_VENDORS];       /* a variable of this vendor chooses */
	bool none[GPU_VENDORS];         /* ...and hides every GPU of it */
	char variable[GPU_VENDORS][32]; /* which, "" none */
	char value[GPU_VENDORS][96];    /* its text, made safe to show and cut */
	char why[160]; /* what cannot be known: "CUDA order is not PCI order on mixed GPUs" */
};

/* environ: "A=1\0B=2\0", as /proc/PID/environ has it. */
void gpu_visible_read(const struct gpu_snapshot *s, const char *environ, size_t n,
		      struct gpu_visible *ret);

#endif

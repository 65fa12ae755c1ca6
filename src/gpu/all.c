/* SPDX-License-Identifier: MIT
 *
 * Every vendor, in the order devices are shown.
 */
#include "gpu/backend.h"

extern const struct gpu_backend nvml_backend, amd_backend, intel_backend;

const struct gpu_backend *const gpu_backends[] = {
	&nvml_backend,
	&amd_backend,
	&intel_backend,
	NULL,
};

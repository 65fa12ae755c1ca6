/* SPDX-License-Identifier: MIT
 *
 * The virtual libnvidia-ml.so.1: memory.
 */
#include "nvml_sim.h"

#include <stdlib.h>

struct amounts {
	uint64_t total, reserved, used;
};

/* Of a GPU or of a MIG instance. On a GPU that shares the host's memory there is nothing to say. */
static int amounts(struct nvml_call *c, const char *symbol, nvml_device h, const void *out,
		   struct amounts *ret)
{
	struct vgpu_now now;
	int rc = nvml_enter_mig(c, symbol, h);

	if (rc)
		return rc;
	if (!out)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (c->about->unified)
		return NVML_ERROR_NOT_SUPPORTED;
	rc = nvml_now(c, &now); /* also for an instance: what the dead held is free then */
	if (rc)
		return rc;
	if (c->part >= 0) {
		const struct vgpu_partition *p = &c->about->partition[c->part];

		*ret = (struct amounts){ p->memory_total, 0, p->memory_used };
	} else {
		*ret = (struct amounts){ c->about->memory_total, c->about->memory_reserved,
					 now.memory_used };
	}
	if (ret->used + ret->reserved > ret->total)
		ret->used = ret->total - ret->reserved;
	return NVML_SUCCESS;
}

/* The first version counts what the driver keeps for itself as used. */
NVML_API nvmlDeviceGetMemoryInfo(nvml_device h, struct nvml_memory *ret)
{
	struct nvml_call c;
	struct amounts m;
	int rc = amounts(&c, __func__, h, ret, &m);

	if (rc)
		return rc;
	*ret = (struct nvml_memory){ m.total, m.total - m.used - m.reserved, m.used + m.reserved };
	return NVML_SUCCESS;
}

NVML_API nvmlDeviceGetMemoryInfo_v2(nvml_device h, struct nvml_memory_v2 *ret)
{
	struct nvml_call c;
	struct amounts m;
	int rc = amounts(&c, __func__, h, ret, &m);

	if (!rc)
		rc = nvml_version(&c, ret->version, NVML_VERSION(struct nvml_memory_v2, 2));
	if (rc)
		return rc;
	ret->total = m.total;
	ret->reserved = m.reserved;
	ret->used = m.used;
	ret->free = m.total - m.used - m.reserved;
	return NVML_SUCCESS;
}

/* Data-centre parts map all of their memory (the next power of two), others 256 MiB. */
NVML_API nvmlDeviceGetBAR1MemoryInfo(nvml_device h, struct nvml_bar1 *ret)
{
	struct nvml_call c;
	struct amounts m;
	unsigned long long total = 256ull << 20;
	int rc = amounts(&c, __func__, h, ret, &m);

	if (rc)
		return rc;
	while (c.about->ecc && total < c.about->memory_total)
		total *= 2;
	*ret = (struct nvml_bar1){ total, total - (1 << 20), 1 << 20 };
	return NVML_SUCCESS;
}

/* Confidential computing is off: nothing is protected. nvitop takes the two symbols
 * ...GetConfComputeMemSizeInfo and ...GetRunningProcessDetailList as a sign of the process layout, so
 * both have to be there. */
NVML_API nvmlDeviceGetConfComputeMemSizeInfo(nvml_device h, struct nvml_protected *ret)
{
	struct nvml_call c;
	struct amounts m;
	int rc = amounts(&c, __func__, h, ret, &m);

	if (rc)
		return rc;
	*ret = (struct nvml_protected){ 0, m.total >> 10 };
	return NVML_SUCCESS;
}

NVML_API nvmlDeviceGetConfComputeProtectedMemoryUsage(nvml_device h, struct nvml_memory *ret)
{
	struct nvml_call c;
	struct amounts m;
	int rc = amounts(&c, __func__, h, ret, &m);

	if (!rc)
		*ret = (struct nvml_memory){ 0, 0, 0 };
	return rc;
}

/* SPDX-License-Identifier: MIT
 *
 * The virtual libnvidia-ml.so.1: partitions (MIG). They are made by the scenario; the calls that would
 * make or remove some are not supported.
 */
#include "nvml_sim.h"

NVML_API nvmlDeviceGetMigMode(nvml_device h, unsigned int *current, unsigned int *pending)
{
	struct nvml_call c;
	int rc = nvml_enter(&c, __func__, h);

	if (rc)
		return rc;
	if (!current || !pending)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (!nvml_mig_capable(c.about))
		return NVML_ERROR_NOT_SUPPORTED;
	*current = *pending = c.about->mig;
	return NVML_SUCCESS;
}

NVML_API nvmlDeviceIsMigDeviceHandle(nvml_device h, unsigned int *ret)
{
	struct nvml_call c;
	int rc = nvml_enter_mig(&c, __func__, h);

	if (rc)
		return rc;
	if (!ret)
		return NVML_ERROR_INVALID_ARGUMENT;
	*ret = c.part >= 0;
	return NVML_SUCCESS;
}

NVML_API nvmlDeviceGetMaxMigDeviceCount(nvml_device h, unsigned int *ret)
{
	struct nvml_call c;
	int rc = nvml_enter(&c, __func__, h);

	if (rc)
		return rc;
	if (!ret)
		return NVML_ERROR_INVALID_ARGUMENT;
	*ret = nvml_mig_capable(c.about) ? 7 : 0;
	return NVML_SUCCESS;
}

NVML_API nvmlDeviceGetMigDeviceHandleByIndex(nvml_device h, unsigned int index, nvml_device *ret)
{
	struct nvml_call c;
	int rc = nvml_enter(&c, __func__, h);

	if (rc)
		return rc;
	if (!ret)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (!nvml_mig_capable(c.about))
		return NVML_ERROR_NOT_SUPPORTED;
	if (!c.about->mig || index >= (unsigned int)c.about->n_partitions)
		return NVML_ERROR_NOT_FOUND;
	*ret = nvml_handle(c.device, (int)index);
	return NVML_SUCCESS;
}

NVML_API nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvml_device h, nvml_device *ret)
{
	struct nvml_call c;
	int rc = nvml_enter_mig(&c, __func__, h);

	if (rc)
		return rc;
	if (!ret || c.part < 0)
		return NVML_ERROR_INVALID_ARGUMENT;
	*ret = nvml_handle(c.device, -1);
	return NVML_SUCCESS;
}

/* The instance behind a handle; NOT_SUPPORTED for a whole GPU. */
static int instance(struct nvml_call *c, const char *symbol, nvml_device h, const void *ret,
		    const struct vgpu_partition **p)
{
	int rc = nvml_enter_mig(c, symbol, h);

	if (rc)
		return rc;
	if (!ret)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (c->part < 0)
		return NVML_ERROR_NOT_SUPPORTED;
	*p = &c->about->partition[c->part];
	return NVML_SUCCESS;
}

NVML_API nvmlDeviceGetGpuInstanceId(nvml_device h, unsigned int *ret)
{
	struct nvml_call c;
	const struct vgpu_partition *p;
	int rc = instance(&c, __func__, h, ret, &p);

	if (!rc)
		*ret = (unsigned int)p->gi;
	return rc;
}

NVML_API nvmlDeviceGetComputeInstanceId(nvml_device h, unsigned int *ret)
{
	struct nvml_call c;
	const struct vgpu_partition *p;
	int rc = instance(&c, __func__, h, ret, &p);

	if (!rc)
		*ret = (unsigned int)p->ci;
	return rc;
}

/* Multiprocessors of a slice: 14 on A100, 16 on H100 and later. */
static int attributes(const char *symbol, nvml_device h, struct nvml_mig_attributes *ret)
{
	struct nvml_call c;
	const struct vgpu_partition *p;
	unsigned int slices;
	int rc = instance(&c, symbol, h, ret, &p);

	if (rc)
		return rc;
	slices = (unsigned int)p->slices;
	*ret = (struct nvml_mig_attributes){
		.multiprocessors = slices * (c.about->architecture >= NVML_ARCH_HOPPER ? 16 : 14),
		.copy_engines = slices,
		.decoders = slices,
		.jpegs = slices,
		.ofas = slices == 7,
		.gi_slices = slices,
		.ci_slices = slices,
		.memory_mib = p->memory_total >> 20,
	};
	return NVML_SUCCESS;
}

NVML_API nvmlDeviceGetAttributes(nvml_device h, struct nvml_mig_attributes *ret)
{
	return attributes(__func__, h, ret);
}

NVML_API nvmlDeviceGetAttributes_v2(nvml_device h, struct nvml_mig_attributes *ret)
{
	return attributes(__func__, h, ret);
}

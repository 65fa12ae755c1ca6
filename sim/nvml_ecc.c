/* SPDX-License-Identifier: MIT
 *
 * The virtual libnvidia-ml.so.1: errors of memory. Up to Turing pages are retired, since Ampere rows
 * are remapped: each half answers NOT_SUPPORTED for the other.
 */
#include "nvml_sim.h"

static int ecc(struct nvml_call *c, const char *symbol, nvml_device h, const void *ret,
	       struct vgpu_now *now)
{
	int rc = nvml_enter_now(c, symbol, h, ret, now);

	return !rc && !c->about->ecc ? NVML_ERROR_NOT_SUPPORTED : rc;
}

NVML_API nvmlDeviceGetEccMode(nvml_device h, unsigned int *current, unsigned int *pending)
{
	struct nvml_call c;
	struct vgpu_now now;
	int rc = ecc(&c, __func__, h, current, &now);

	if (!rc && !pending)
		rc = NVML_ERROR_INVALID_ARGUMENT;
	if (!rc)
		*current = *pending = 1;
	return rc;
}

NVML_API nvmlDeviceGetDefaultEccMode(nvml_device h, unsigned int *ret)
{
	struct nvml_call c;
	struct vgpu_now now;
	int rc = ecc(&c, __func__, h, ret, &now);

	if (!rc)
		*ret = 1;
	return rc;
}

/* The lifetime of a virtual GPU starts with its state: aggregate and volatile are the same. */
static int errors(const char *symbol, nvml_device h, unsigned int type, unsigned int counter,
		  unsigned long long *ret)
{
	struct nvml_call c;
	struct vgpu_now now;
	int rc = ecc(&c, symbol, h, ret, &now);

	if (rc)
		return rc;
	if (type > NVML_ECC_UNCORRECTED || counter > NVML_ECC_AGGREGATE)
		return NVML_ERROR_INVALID_ARGUMENT;
	*ret = type == NVML_ECC_CORRECTED ? now.ecc_corrected : now.ecc_uncorrected;
	return NVML_SUCCESS;
}

NVML_API nvmlDeviceGetTotalEccErrors(nvml_device h, unsigned int type, unsigned int counter,
				     unsigned long long *ret)
{
	return errors(__func__, h, type, counter, ret);
}

/* All errors of a scenario are in DRAM. The finer places are known up to Turing only. */
NVML_API nvmlDeviceGetMemoryErrorCounter(nvml_device h, unsigned int type, unsigned int counter,
					 unsigned int location, unsigned long long *ret)
{
	struct nvml_call c;
	struct vgpu_now now;
	int rc = ecc(&c, __func__, h, ret, &now);

	if (rc)
		return rc;
	if (location >= NVML_LOCATION_COUNT)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (location == NVML_LOCATION_DRAM)
		return errors(__func__, h, type, counter, ret);
	if ((location == NVML_LOCATION_SRAM) != (c.about->architecture >= NVML_ARCH_AMPERE))
		return NVML_ERROR_NOT_SUPPORTED;
	*ret = 0;
	return NVML_SUCCESS;
}

NVML_API nvmlDeviceGetDetailedEccErrors(nvml_device h, unsigned int type, unsigned int counter,
					struct nvml_ecc_counts *ret)
{
	unsigned long long n;
	int rc = errors(__func__, h, type, counter, ret ? &n : NULL);

	if (!rc)
		*ret = (struct nvml_ecc_counts){ .device_memory = n };
	return rc;
}

static int remapped(struct nvml_call *c, const char *symbol, nvml_device h, const void *ret,
		    struct vgpu_now *now)
{
	int rc = ecc(c, symbol, h, ret, now);

	return !rc && c->about->architecture < NVML_ARCH_AMPERE ? NVML_ERROR_NOT_SUPPORTED : rc;
}

NVML_API nvmlDeviceGetRemappedRows(nvml_device h, unsigned int *corrected,
				   unsigned int *uncorrected, unsigned int *pending,
				   unsigned int *failed)
{
	struct nvml_call c;
	struct vgpu_now now;
	int rc = remapped(&c, __func__, h, corrected, &now);

	if (rc)
		return rc;
	if (!uncorrected || !pending || !failed)
		return NVML_ERROR_INVALID_ARGUMENT;
	*corrected = (unsigned int)now.remapped_correctable;
	*uncorrected = (unsigned int)now.remapped_uncorrectable;
	*pending = now.needs_reset;
	*failed = 0;
	return NVML_SUCCESS;
}

NVML_API nvmlDeviceGetRowRemapperHistogram(nvml_device h, struct nvml_remap_histogram *ret)
{
	struct nvml_call c;
	struct vgpu_now now;
	unsigned int used;
	int rc = remapped(&c, __func__, h, ret, &now);

	if (rc)
		return rc;
	used = (unsigned int)(now.remapped_correctable + now.remapped_uncorrectable);
	used = used > 640 ? 640 : used;
	*ret = (struct nvml_remap_histogram){ .max = 640 - used, .high = used };
	return NVML_SUCCESS;
}

/* Addresses are not kept: the count is right, each is its number times the page size. */
static int retired(const char *symbol, nvml_device h, unsigned int cause, unsigned int *count,
		   unsigned long long *addresses, unsigned long long *times)
{
	struct nvml_call c;
	struct vgpu_now now;
	unsigned int n;
	int rc = ecc(&c, symbol, h, count, &now);

	if (rc)
		return rc;
	if (c.about->architecture >= NVML_ARCH_AMPERE)
		return NVML_ERROR_NOT_SUPPORTED;
	if (cause > NVML_RETIRED_DOUBLE)
		return NVML_ERROR_INVALID_ARGUMENT;
	n = (unsigned int)(cause == NVML_RETIRED_SINGLE ? now.retired_single : now.retired_double);
	if (*count < n || (n && !addresses)) {
		*count = n;
		return NVML_ERROR_INSUFFICIENT_SIZE;
	}
	for (unsigned int i = 0; i < n; i++) {
		addresses[i] = (i + 1ull) << 16;
		if (times)
			times[i] = (unsigned long long)now.time_ns / 1000;
	}
	*count = n;
	return NVML_SUCCESS;
}

NVML_API nvmlDeviceGetRetiredPages(nvml_device h, unsigned int cause, unsigned int *count,
				   unsigned long long *addresses)
{
	return retired(__func__, h, cause, count, addresses, NULL);
}

NVML_API nvmlDeviceGetRetiredPages_v2(nvml_device h, unsigned int cause, unsigned int *count,
				      unsigned long long *addresses, unsigned long long *times)
{
	return retired(__func__, h, cause, count, addresses, times);
}

NVML_API nvmlDeviceGetRetiredPagesPendingStatus(nvml_device h, unsigned int *ret)
{
	struct nvml_call c;
	struct vgpu_now now;
	int rc = ecc(&c, __func__, h, ret, &now);

	if (rc)
		return rc;
	if (c.about->architecture >= NVML_ARCH_AMPERE)
		return NVML_ERROR_NOT_SUPPORTED;
	*ret = now.needs_reset;
	return NVML_SUCCESS;
}

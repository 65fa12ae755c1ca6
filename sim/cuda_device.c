/* SPDX-License-Identifier: MIT
 *
 * The calls that ask what a device is like.
 */
#include "cuda_local.h"

#include "base/auto.h"
#include "base/scan.h"
#include "base/text.h"

/* What the device is, and where in the scenario. */
static const struct vgpu_about *about(CUdevice device, struct cuda_visible *ret,
				      CUresult *ret_error)
{
	struct cuda *p = cuda_process(ret_error);

	if (!p)
		return NULL;
	*ret_error = CUDA_SUCCESS;
	if (device < 0 || device >= p->n_visible) {
		*ret_error = CUDA_ERROR_INVALID_DEVICE;
		return NULL;
	}
	*ret = p->visible[device];
	return vgpu_about(p->v, ret->device);
}

CUresult cuDeviceGetCount(int *ret)
{
	CUresult error = CUDA_ERROR_INVALID_VALUE;
	struct cuda *p = ret ? cuda_process(&error) : NULL;

	if (!p)
		return error;
	*ret = p->n_visible;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *ret, int ordinal)
{
	struct cuda_visible at;
	CUresult error = CUDA_ERROR_INVALID_VALUE;

	if (!ret || !about(ordinal, &at, &error))
		return error;
	*ret = ordinal;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *ret, int size, CUdevice device)
{
	struct cuda_visible at;
	CUresult error = CUDA_ERROR_INVALID_VALUE;
	const struct vgpu_about *a = ret && size > 0 ? about(device, &at, &error) : NULL;

	if (!a)
		return error;
	if (at.partition >= 0)
		snprintf(ret, (size_t)size, "%s MIG %s", a->name,
			 a->partition[at.partition].profile);
	else
		snprintf(ret, (size_t)size, "%s", a->name);
	return CUDA_SUCCESS;
}

/* "GPU-4d1c2a00-5107-..." as 16 bytes. */
static void put_uuid(const char *text, CUuuid *ret)
{
	size_t n = 0;

	memset(ret, 0, sizeof(*ret));
	for (text += 4; *text && n < 32; text++) {
		const char *digits = "0123456789abcdef", *at = strchr(digits, *text | 0x20);

		if (*text == '-' || !at)
			continue;
		ret->bytes[n / 2] |= (unsigned char)((at - digits) << (n % 2 ? 0 : 4));
		n++;
	}
}

CUresult cuDeviceGetUuid(CUuuid *ret, CUdevice device)
{
	struct cuda_visible at;
	CUresult error = CUDA_ERROR_INVALID_VALUE;
	const struct vgpu_about *a = ret ? about(device, &at, &error) : NULL;

	if (a)
		put_uuid(a->uuid, ret);
	return error;
}

/* Since CUDA 11.4: the instance's own under MIG. */
CUresult cuDeviceGetUuid_v2(CUuuid *ret, CUdevice device)
{
	struct cuda_visible at;
	CUresult error = CUDA_ERROR_INVALID_VALUE;
	const struct vgpu_about *a = ret ? about(device, &at, &error) : NULL;

	if (a)
		put_uuid(at.partition >= 0 ? a->partition[at.partition].uuid : a->uuid, ret);
	return error;
}

CUresult cuDeviceTotalMem_v2(size_t *ret, CUdevice device)
{
	struct cuda_visible at;
	CUresult error = CUDA_ERROR_INVALID_VALUE;
	const struct vgpu_about *a = ret ? about(device, &at, &error) : NULL;

	if (a)
		*ret = at.partition >= 0 ? a->partition[at.partition].memory_total
					 : a->memory_total - a->memory_reserved;
	return error;
}

/* The 32-bit call of CUDA 2: all it can say is "at least 4 GB". */
CUresult cuDeviceTotalMem(unsigned *ret, CUdevice device)
{
	size_t bytes = 0;
	CUresult r = ret ? cuDeviceTotalMem_v2(&bytes, device) : CUDA_ERROR_INVALID_VALUE;

	if (r == CUDA_SUCCESS)
		*ret = bytes > UINT32_MAX ? UINT32_MAX : (unsigned)bytes;
	return r;
}

CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice device)
{
	struct cuda_visible at;
	CUresult error = CUDA_ERROR_INVALID_VALUE;
	const struct vgpu_about *a = major && minor ? about(device, &at, &error) : NULL;

	if (a) {
		*major = a->cc_major;
		*minor = a->cc_minor;
	}
	return error;
}

/* 7.5 and 8.0 have 64 cores in a multiprocessor, the others here 128. */
static int multiprocessors(const struct vgpu_about *a, int partition)
{
	bool small = (a->cc_major == 8 && a->cc_minor == 0) || a->cc_major == 7;
	int all = a->cores / (small ? 64 : 128);

	return partition >= 0 ? all * a->partition[partition].slices / 7 : all;
}

/* CUdevice_attribute numbers with the same value on all GPUs here. */
static const struct {
	int attribute, value;
} fixed[] = {
	{ 1, 1024 },       /* MAX_THREADS_PER_BLOCK */
	{ 2, 1024 },       /* MAX_BLOCK_DIM_X */
	{ 3, 1024 },       /* MAX_BLOCK_DIM_Y */
	{ 4, 64 },         /* MAX_BLOCK_DIM_Z */
	{ 5, INT32_MAX },  /* MAX_GRID_DIM_X */
	{ 6, 65535 },      /* MAX_GRID_DIM_Y */
	{ 7, 65535 },      /* MAX_GRID_DIM_Z */
	{ 8, 49152 },      /* MAX_SHARED_MEMORY_PER_BLOCK */
	{ 9, 65536 },      /* TOTAL_CONSTANT_MEMORY */
	{ 10, 32 },        /* WARP_SIZE */
	{ 11, INT32_MAX }, /* MAX_PITCH */
	{ 12, 65536 },     /* MAX_REGISTERS_PER_BLOCK */
	{ 14, 512 },       /* TEXTURE_ALIGNMENT */
	{ 15, 1 },         /* GPU_OVERLAP */
	{ 17, 0 },         /* KERNEL_EXEC_TIMEOUT */
	{ 19, 1 },         /* CAN_MAP_HOST_MEMORY */
	{ 31, 1 },         /* CONCURRENT_KERNELS */
	{ 35, 0 },         /* TCC_DRIVER */
	{ 37, 5120 },      /* GLOBAL_MEMORY_BUS_WIDTH */
	{ 38, 50 << 20 },  /* L2_CACHE_SIZE */
	{ 39, 2048 },      /* MAX_THREADS_PER_MULTIPROCESSOR */
	{ 40, 2 },         /* ASYNC_ENGINE_COUNT */
	{ 41, 1 },         /* UNIFIED_ADDRESSING */
	{ 78, 1 },         /* STREAM_PRIORITIES_SUPPORTED */
	{ 81, 233472 },    /* MAX_SHARED_MEMORY_PER_MULTIPROCESSOR */
	{ 82, 65536 },     /* MAX_REGISTERS_PER_MULTIPROCESSOR */
	{ 83, 0 },         /* MANAGED_MEMORY */
	{ 84, 0 },         /* MULTI_GPU_BOARD */
	{ 88, 0 },         /* PAGEABLE_MEMORY_ACCESS */
	{ 89, 0 },         /* CONCURRENT_MANAGED_ACCESS */
	{ 95, 0 },         /* COOPERATIVE_LAUNCH */
	{ 115, 0 },        /* MEMORY_POOLS_SUPPORTED */
};

CUresult cuDeviceGetAttribute(int *ret, int attribute, CUdevice device)
{
	struct cuda_visible at;
	CUresult error = CUDA_ERROR_INVALID_VALUE;
	const struct vgpu_about *a = ret ? about(device, &at, &error) : NULL;

	if (!a)
		return error;
	for (size_t i = 0; i < ARRAY_LEN(fixed); i++) {
		if (fixed[i].attribute != attribute)
			continue;
		*ret = fixed[i].value;
		return CUDA_SUCCESS;
	}
	switch (attribute) {
	case 13: /* CLOCK_RATE, kHz */
		*ret = (int)a->clock_sm_max * 1000;
		break;
	case 16:
		*ret = multiprocessors(a, at.partition);
		break;
	case 18: /* INTEGRATED */
		*ret = a->unified;
		break;
	case 20:
		*ret = a->compute_mode;
		break;
	case 32:
		*ret = a->ecc;
		break;
	case 33:
		*ret = (int)a->bus;
		break;
	case 34:
		*ret = (int)a->device;
		break;
	case 36: /* MEMORY_CLOCK_RATE, kHz */
		*ret = (int)a->clock_mem_max * 1000;
		break;
	case 50:
		*ret = (int)a->domain;
		break;
	case 75:
		*ret = a->cc_major;
		break;
	case 76:
		*ret = a->cc_minor;
		break;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetPCIBusId(char *ret, int size, CUdevice device)
{
	struct cuda_visible at;
	CUresult error = CUDA_ERROR_INVALID_VALUE;
	const struct vgpu_about *a = ret && size > 0 ? about(device, &at, &error) : NULL;

	if (a &&
	    snprintf(ret, (size_t)size, "%04X:%02X:%02X.0", a->domain, a->bus, a->device) >= size)
		return CUDA_ERROR_INVALID_VALUE;
	return error;
}

CUresult cuDeviceGetByPCIBusId(CUdevice *ret, const char *place)
{
	struct scan s = scan_of(place ? place : "", place ? strlen(place) : 0);
	uint64_t domain, bus, slot;
	CUresult error = CUDA_ERROR_INVALID_VALUE;
	struct cuda *p = ret && place ? cuda_process(&error) : NULL;

	if (!p)
		return error;
	if (!scan_hex(&s, &domain) || !scan_lit(&s, ":") || !scan_hex(&s, &bus) ||
	    !scan_lit(&s, ":") || !scan_hex(&s, &slot))
		return CUDA_ERROR_INVALID_VALUE;
	for (int i = 0; i < p->n_visible; i++) {
		const struct vgpu_about *a = vgpu_about(p->v, p->visible[i].device);

		if (a->domain != domain || a->bus != bus || a->device != slot)
			continue;
		*ret = i;
		return CUDA_SUCCESS;
	}
	return CUDA_ERROR_INVALID_DEVICE;
}

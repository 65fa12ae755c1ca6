/* SPDX-License-Identifier: MIT
 *
 * Copies and kernels. No data moves and nothing is computed: they take the time that they would.
 */
#include "cuda_local.h"

#include "base/clock.h"
#include "base/text.h"

#include <math.h>
#include <stdlib.h>

/* A transfer of any size takes about this long before its first byte. */
static const double copy_latency_ns = 8000;

struct copy {
	CUdeviceptr device;
	const void *host;
	size_t bytes;
	bool out; /* device to host */
	CUstream stream;
	bool wait;
};

static bool on_device(struct cuda *p, CUdeviceptr at, size_t bytes)
{
	bool there;

	if (at == CUDA_SCRATCH)
		return true;
	cuda_lock(p);
	there = cuda_range_find(&p->device, at, bytes) != NULL;
	cuda_unlock(p);
	return there;
}

static bool pinned(struct cuda *p, const void *at, size_t bytes)
{
	bool there;

	cuda_lock(p);
	there = cuda_range_find(&p->pinned, (uintptr_t)at, bytes) != NULL;
	cuda_unlock(p);
	return there;
}

/* Pageable memory goes through the driver's own buffer, so the caller stays until it is through. */
static CUresult copy(const struct copy *k)
{
	struct cuda_context *c;
	struct op op = { .engine = k->out ? ENGINE_OUT : ENGINE_IN, .bytes = k->bytes };
	struct cuda_wait w = { 0 };
	CUresult r;
	struct cuda *p = cuda_here(&c, &r);
	bool fast;

	if (!p)
		return r;
	if (!k->bytes)
		return CUDA_SUCCESS;
	if (!k->host || !on_device(p, k->device, k->bytes))
		return CUDA_ERROR_INVALID_VALUE;
	fast = pinned(p, k->host, k->bytes);
	op.work = copy_latency_ns +
		  (double)k->bytes / model_bandwidth(vgpu_about(p->v, c->at.device), fast) * 1e9;
	r = cuda_submit(p, c, k->stream, &op, &w.ref);
	if (r != CUDA_SUCCESS || (fast && !k->wait))
		return r;
	w.context = c;
	w.spin = cuda_spins(c);
	return cuda_wait(p, &w);
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes)
{
	return copy(&(struct copy){ to, from, bytes, false, NULL, true });
}

CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes)
{
	return copy(&(struct copy){ from, to, bytes, true, NULL, true });
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
	return copy(&(struct copy){ to, from, bytes, false, stream, false });
}

CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
	return copy(&(struct copy){ from, to, bytes, true, stream, false });
}

static int compute_engine(const struct cuda_context *c)
{
	return ENGINE_COMPUTE + (c->at.partition > 0 ? c->at.partition : 0);
}

/* A kernel that writes as fast as the memory takes it: 1 TB/s or so. */
CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t n, CUstream stream)
{
	struct cuda_context *c;
	struct op op = { .work = 2000 + (double)n / 1e3, .load = { 0.2f, 0, 0.9f } };
	struct vgpu_ref ref;
	CUresult r;
	struct cuda *p = cuda_here(&c, &r);

	(void)value;
	if (!p)
		return r;
	if (!on_device(p, to, n))
		return CUDA_ERROR_INVALID_VALUE;
	op.engine = (int16_t)compute_engine(c);
	return cuda_submit(p, c, stream, &op, &ref);
}

CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t n)
{
	return cuMemsetD8Async(to, value, n, NULL);
}

/* The device that memory is on, -1: no such memory. */
static int place_of(struct cuda *p, CUdeviceptr at, size_t bytes)
{
	const struct cuda_range *row;
	int device;

	cuda_lock(p);
	row = cuda_range_find(&p->device, at, bytes);
	device = row ? row->context->at.device : -1;
	cuda_unlock(p);
	return device;
}

/* Between devices over NVLink where there is one, else over PCIe; within one as fast as its memory reads
 * and writes. The context's device must be one end: its engine does it. */
static CUresult copy_across(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
	struct cuda_context *c;
	struct op op = { .bytes = bytes };
	struct vgpu_ref ref;
	CUresult r;
	struct cuda *p = cuda_here(&c, &r);
	const struct vgpu_about *about;
	int source, target;

	if (!p)
		return r;
	if (!bytes)
		return CUDA_SUCCESS;
	source = place_of(p, from, bytes);
	target = place_of(p, to, bytes);
	if (source < 0 || target < 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (source != c->at.device && target != c->at.device)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (source == target) {
		op = (struct op){ .engine = (int16_t)compute_engine(c),
				  .work = 2000 + (double)bytes / 500,
				  .load = { 0.1f, 0, 0.9f } };
		return cuda_submit(p, c, stream, &op, &ref);
	}
	about = vgpu_about(p->v, c->at.device);
	op.engine = source == c->at.device ? ENGINE_OUT : ENGINE_IN;
	op.peer = (int16_t)(1 + (source == c->at.device ? target : source));
	op.work = (double)bytes /
		  (about->nvlinks ? model_link_bandwidth(about) : model_bandwidth(about, true));
	op.work = copy_latency_ns + op.work * 1e9;
	return cuda_submit(p, c, stream, &op, &ref);
}

CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
	return copy_across(to, from, bytes, NULL); /* does not wait, and neither does CUDA's */
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
	return copy_across(to, from, bytes, stream);
}

/* Where memory is the addresses say already. */
CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
			   CUcontext from_context, size_t bytes, CUstream stream)
{
	if (!to_context || !from_context)
		return CUDA_ERROR_INVALID_CONTEXT;
	return copy_across(to, from, bytes, stream);
}

CUresult cuMemcpyPeer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
		      CUcontext from_context, size_t bytes)
{
	return cuMemcpyPeerAsync(to, to_context, from, from_context, bytes, NULL);
}

struct cuda_function {
	struct cuda_function *next;
	char name[128];
};

struct cuda_module {
	struct cuda_function *first;
};

/* Any image will do: what a kernel costs is in its parameters. */
CUresult cuModuleLoadData(CUmodule *ret, const void *image)
{
	struct cuda_context *c;
	CUresult r = CUDA_ERROR_INVALID_VALUE;

	if (!ret || !image || !cuda_here(&c, &r))
		return r;
	*ret = calloc(1, sizeof(**ret));
	return *ret ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuModuleLoadDataEx(CUmodule *ret, const void *image, unsigned n, int *options,
			    void **values)
{
	(void)n;
	(void)options;
	(void)values;
	return cuModuleLoadData(ret, image);
}

CUresult cuModuleUnload(CUmodule module)
{
	CUresult r;

	if (!cuda_process(&r))
		return r;
	if (!module)
		return CUDA_ERROR_INVALID_HANDLE;
	while (module->first) {
		struct cuda_function *f = module->first;

		module->first = f->next;
		free(f);
	}
	free(module);
	return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction *ret, CUmodule module, const char *name)
{
	CUresult r = CUDA_ERROR_INVALID_VALUE;
	struct cuda *p = ret && module && name ? cuda_process(&r) : NULL;
	struct cuda_function *f;

	if (!p)
		return r;
	f = calloc(1, sizeof(*f));
	if (!f)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (!*name || !text_copy(f->name, sizeof(f->name), name)) {
		free(f);
		return CUDA_ERROR_NOT_FOUND;
	}
	cuda_lock(p);
	f->next = module->first;
	module->first = f;
	cuda_unlock(p);
	*ret = f;
	return CUDA_SUCCESS;
}

/* The share of an argument: NAN and what is out of range become the other. */
static float share(float v, float otherwise)
{
	return v >= 0 && v <= 1 ? v : otherwise;
}

/* The kernel "vgpu_kernel" takes (uint64_t ns, float sm, float tensor, float dram), -1 for "as usual".
 * All others are short ones that fill the device as far as their grid does. */
static void measure(const struct vgpu_about *a, const struct cuda_function *f, double threads,
		    void **parameters, struct op *op)
{
	double fills = threads / (a->cores > 0 ? a->cores : 1);
	float sm = (float)fmin(fills, 1);

	op->work = 5000 + 1000 * fills;
	op->load = (struct vgpu_load){ sm, 0, sm * 0.4f };
	if (strcmp(f->name, "vgpu_kernel") == 0 && parameters) {
		sm = share(*(float *)parameters[1], 0.8f);
		op->work = fmax((double)*(uint64_t *)parameters[0], 1);
		op->load.sm = sm;
		op->load.tensor = share(*(float *)parameters[2], sm * 0.6f);
		op->load.dram = share(*(float *)parameters[3], sm * 0.4f);
	}
	op->work = fmin(op->work, 86400e9); /* a day */
}

CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
			unsigned by, unsigned bz, unsigned shared, CUstream stream,
			void **parameters, void **extra)
{
	struct cuda_context *c;
	struct op op = { 0 };
	struct vgpu_ref ref;
	CUresult r;
	struct cuda *p = cuda_here(&c, &r);

	(void)extra;
	if (!p)
		return r;
	if (!f)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!gx || !gy || !gz || !bx || !by || !bz || bx > 1024 || by > 1024 || bz > 64 ||
	    bx * by * bz > 1024 || shared > 233472)
		return CUDA_ERROR_INVALID_VALUE;
	measure(vgpu_about(p->v, c->at.device), f, (double)gx * gy * gz * bx * by * bz, parameters,
		&op);
	op.engine = (int16_t)compute_engine(c);
	return cuda_submit(p, c, stream, &op, &ref);
}

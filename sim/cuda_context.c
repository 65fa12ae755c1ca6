/* SPDX-License-Identifier: MIT
 *
 * Contexts: a process's standing on a device. What NVML lists as a process is one with a context.
 */
#include "cuda_local.h"

#include <stdlib.h>

static __thread struct {
	struct cuda_context *stack[CUDA_CONTEXT_STACK];
	int n;
} thread;

bool cuda_context_lives(const struct cuda_context *c)
{
	return __atomic_load_n(&c->magic, __ATOMIC_RELAXED) == CUDA_MAGIC_CONTEXT;
}

struct cuda_context *cuda_current(void)
{
	return thread.n ? thread.stack[thread.n - 1] : NULL;
}

static CUresult push(struct cuda_context *c)
{
	if (thread.n == CUDA_CONTEXT_STACK)
		return CUDA_ERROR_INVALID_VALUE;
	thread.stack[thread.n++] = c;
	return CUDA_SUCCESS;
}

/* Whether the compute mode lets this process in. */
static bool may_enter(const struct shared *s, int device, int client)
{
	int mode = s->scenario.device[device].about.compute_mode;

	if (mode == 2) /* prohibited */
		return false;
	for (int i = 0; mode == 3 && i < VGPU_CLIENTS; i++) /* exclusive_process */
		if (s->client[i].used && i != client && s->client[i].device[device].contexts)
			return false;
	return true;
}

static CUresult enter(struct cuda *p, struct cuda_visible at)
{
	struct shared *s = p->v->s;
	CUresult r = CUDA_SUCCESS;

	if (!vgpu_lock(p->v))
		return CUDA_ERROR_OPERATING_SYSTEM;
	client_reap(p->v, vgpu_age(p->v), true);
	model_advance(s, at.device, vgpu_age(p->v));
	if (client_join(p->v)) {
		r = CUDA_ERROR_OUT_OF_MEMORY;
	} else if (!may_enter(s, at.device, p->v->client)) {
		r = CUDA_ERROR_DEVICE_UNAVAILABLE;
	} else {
		s->client[p->v->client].device[at.device].contexts++;
		s->client[p->v->client].device[at.device].partition = at.partition;
	}
	vgpu_unlock(p->v);
	return r;
}

static void leave(struct cuda *p, const struct cuda_context *c)
{
	struct shared *s = p->v->s;
	struct client_device *d = &s->client[p->v->client].device[c->at.device];

	if (!vgpu_lock(p->v))
		return;
	model_advance(s, c->at.device, vgpu_age(p->v));
	if (client_is_ours(p->v) && --d->contexts == 0)
		queue_cut(s, c->at.device, p->v->client);
	vgpu_unlock(p->v);
}

static CUresult make(struct cuda *p, unsigned flags, CUdevice device, struct cuda_context **ret)
{
	struct cuda_context *c;
	CUresult r;

	if (device < 0 || device >= p->n_visible)
		return CUDA_ERROR_INVALID_DEVICE;
	if (flags & ~(unsigned)CU_CTX_FLAGS_MASK)
		return CUDA_ERROR_INVALID_VALUE;
	c = calloc(1, sizeof(*c));
	if (!c)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*c = (struct cuda_context){ .magic = CUDA_MAGIC_CONTEXT,
				    .ordinal = device,
				    .at = p->visible[device],
				    .flags = flags,
				    .references = 1 };
	r = enter(p, c->at);
	if (r == CUDA_SUCCESS)
		*ret = c;
	else
		free(c);
	return r;
}

/* The struct itself stays: handles to it are in other threads, and must be seen to be stale. */
static void destroy(struct cuda *p, struct cuda_context *c)
{
	cuda_memory_done(p, c);
	leave(p, c);
	__atomic_store_n(&c->magic, 0, __ATOMIC_RELAXED);
}

CUresult cuCtxCreate_v2(CUcontext *ret, unsigned flags, CUdevice device)
{
	CUresult r = CUDA_ERROR_INVALID_VALUE;
	struct cuda *p = ret ? cuda_process(&r) : NULL;

	if (!p)
		return r;
	cuda_lock(p);
	r = make(p, flags, device, ret);
	cuda_unlock(p);
	return r == CUDA_SUCCESS ? push(*ret) : r;
}

CUresult cuCtxCreate_v3(CUcontext *ret, void *affinity, int n, unsigned flags, CUdevice device)
{
	if (affinity || n)
		return CUDA_ERROR_NOT_SUPPORTED;
	return cuCtxCreate_v2(ret, flags, device);
}

CUresult cuCtxDestroy_v2(CUcontext context)
{
	CUresult r = CUDA_ERROR_INVALID_VALUE;
	struct cuda *p = context ? cuda_process(&r) : NULL;

	if (!p)
		return r;
	if (!cuda_context_lives(context) || context->primary)
		return CUDA_ERROR_INVALID_CONTEXT;
	cuda_lock(p);
	destroy(p, context);
	cuda_unlock(p);
	if (cuda_current() == context)
		thread.n--;
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *ret, CUdevice device)
{
	CUresult r = CUDA_ERROR_INVALID_VALUE;
	struct cuda *p = ret ? cuda_process(&r) : NULL;

	if (!p)
		return r;
	if (device < 0 || device >= p->n_visible)
		return CUDA_ERROR_INVALID_DEVICE;
	cuda_lock(p);
	r = CUDA_SUCCESS;
	if (p->primary[device]) {
		p->primary[device]->references++;
	} else {
		r = make(p, p->primary_flags[device], device, &p->primary[device]);
		if (r == CUDA_SUCCESS)
			p->primary[device]->primary = true;
	}
	if (r == CUDA_SUCCESS)
		*ret = p->primary[device];
	cuda_unlock(p);
	return r;
}

static CUresult release(CUdevice device, bool all)
{
	CUresult r;
	struct cuda *p = cuda_process(&r);
	struct cuda_context *c;

	if (!p)
		return r;
	if (device < 0 || device >= p->n_visible)
		return CUDA_ERROR_INVALID_DEVICE;
	cuda_lock(p);
	c = p->primary[device];
	if (c && (all || --c->references == 0)) {
		destroy(p, c);
		p->primary[device] = NULL;
	}
	cuda_unlock(p);
	return c || all ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
	return release(device, false);
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device)
{
	return release(device, false);
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice device)
{
	return release(device, true);
}

CUresult cuDevicePrimaryCtxReset(CUdevice device)
{
	return release(device, true);
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned flags)
{
	CUresult r;
	struct cuda *p = cuda_process(&r);

	if (!p)
		return r;
	if (device < 0 || device >= p->n_visible)
		return CUDA_ERROR_INVALID_DEVICE;
	if (flags & ~(unsigned)CU_CTX_FLAGS_MASK)
		return CUDA_ERROR_INVALID_VALUE;
	cuda_lock(p);
	p->primary_flags[device] = flags;
	if (p->primary[device]) /* since CUDA 11 also while it is active */
		p->primary[device]->flags = flags;
	cuda_unlock(p);
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned flags)
{
	return cuDevicePrimaryCtxSetFlags_v2(device, flags);
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active)
{
	CUresult r = CUDA_ERROR_INVALID_VALUE;
	struct cuda *p = flags && active ? cuda_process(&r) : NULL;

	if (!p)
		return r;
	if (device < 0 || device >= p->n_visible)
		return CUDA_ERROR_INVALID_DEVICE;
	cuda_lock(p);
	*flags = p->primary_flags[device];
	*active = p->primary[device] != NULL;
	cuda_unlock(p);
	return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context)
{
	CUresult r;

	if (!cuda_process(&r))
		return r;
	if (context && !cuda_context_lives(context))
		return CUDA_ERROR_INVALID_CONTEXT;
	if (thread.n)
		thread.n--;
	return context ? push(context) : CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *ret)
{
	CUresult r = CUDA_ERROR_INVALID_VALUE;

	if (!ret || !cuda_process(&r))
		return r;
	*ret = cuda_current();
	return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent_v2(CUcontext context)
{
	CUresult r;

	if (!cuda_process(&r))
		return r;
	if (!context || !cuda_context_lives(context))
		return CUDA_ERROR_INVALID_CONTEXT;
	return push(context);
}

CUresult cuCtxPopCurrent_v2(CUcontext *ret)
{
	CUresult r;

	if (!cuda_process(&r))
		return r;
	if (!thread.n)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (ret)
		*ret = cuda_current();
	thread.n--;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice *ret)
{
	struct cuda_context *c;
	CUresult r = CUDA_ERROR_INVALID_VALUE;

	if (!ret || !cuda_here(&c, &r))
		return r;
	*ret = c->ordinal;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetFlags(unsigned *ret)
{
	struct cuda_context *c;
	CUresult r = CUDA_ERROR_INVALID_VALUE;

	if (!ret || !cuda_here(&c, &r))
		return r;
	*ret = __atomic_load_n(&c->flags, __ATOMIC_RELAXED);
	return CUDA_SUCCESS;
}

/* Since CUDA 12.1. */
CUresult cuCtxSetFlags(unsigned flags)
{
	struct cuda_context *c;
	CUresult r;

	if (!cuda_here(&c, &r))
		return r;
	if (flags & ~(unsigned)CU_CTX_FLAGS_MASK)
		return CUDA_ERROR_INVALID_VALUE;
	__atomic_store_n(&c->flags, flags, __ATOMIC_RELAXED);
	return CUDA_SUCCESS;
}

CUresult cuCtxGetApiVersion(CUcontext context, unsigned *ret)
{
	CUresult r = CUDA_ERROR_INVALID_VALUE;

	if (!ret || !cuda_process(&r))
		return r;
	if (context && !cuda_context_lives(context))
		return CUDA_ERROR_INVALID_CONTEXT;
	*ret = 3020;
	return CUDA_SUCCESS;
}

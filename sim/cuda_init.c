/* SPDX-License-Identifier: MIT
 *
 * cuInit, and what every other call asks first: is this process initialised, and not a fork of one?
 */
#include "cuda_local.h"

#include <unistd.h>

static struct cuda process = { .mutex = PTHREAD_MUTEX_INITIALIZER };

struct cuda *cuda_process(CUresult *ret_error)
{
	/* A forked child has the parent's memory but none of its standing with the driver: CUDA
	 * answers 3 to everything there, cuInit included. */
	if (__atomic_load_n(&process.pid, __ATOMIC_ACQUIRE) != getpid()) {
		*ret_error = CUDA_ERROR_NOT_INITIALIZED;
		return NULL;
	}
	return &process;
}

struct cuda *cuda_here(struct cuda_context **ret_context, CUresult *ret_error)
{
	struct cuda *p = cuda_process(ret_error);

	if (!p)
		return NULL;
	*ret_context = cuda_current();
	if (!*ret_context) {
		*ret_error = CUDA_ERROR_INVALID_CONTEXT;
		return NULL;
	}
	if (!cuda_context_lives(*ret_context)) {
		*ret_error = CUDA_ERROR_CONTEXT_IS_DESTROYED;
		return NULL;
	}
	return p;
}

void cuda_lock(struct cuda *p)
{
	pthread_mutex_lock(&p->mutex);
}

void cuda_unlock(struct cuda *p)
{
	pthread_mutex_unlock(&p->mutex);
}

/* The child of a fork has nothing to do with the device, so its copy of the descriptor must not keep
 * alive what its parent held there (model_life.c). */
static void forked(void)
{
	if (process.v && life_can_tell(process.v))
		close(process.v->fd);
	if (process.v)
		process.v->fd = -1;
}

static CUresult begin(struct cuda *p)
{
	if (!p->v)
		p->v = vgpu_open();
	if (!p->v)
		return CUDA_ERROR_OPERATING_SYSTEM;
	if (p->v->s->scenario.driver.init_error)
		return CUDA_ERROR_NO_DEVICE;
	p->n_visible = cuda_visible(&p->v->s->scenario, getenv("CUDA_VISIBLE_DEVICES"),
				    getenv("CUDA_DEVICE_ORDER"), p->visible);
	p->next_address = 1ull << 40;
	if (!p->n_visible)
		return CUDA_ERROR_NO_DEVICE;
	return pthread_atfork(NULL, NULL, forked) ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

CUresult cuInit(unsigned flags)
{
	CUresult r = CUDA_SUCCESS;
	pid_t pid = __atomic_load_n(&process.pid, __ATOMIC_ACQUIRE);

	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (pid)
		return pid == getpid() ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
	cuda_lock(&process);
	if (!process.pid) {
		r = begin(&process);
		if (r == CUDA_SUCCESS)
			__atomic_store_n(&process.pid, getpid(), __ATOMIC_RELEASE);
	}
	cuda_unlock(&process);
	return r;
}

/* Answers without cuInit, as the driver's does. */
CUresult cuDriverGetVersion(int *ret)
{
	CUresult error;
	struct cuda *p = cuda_process(&error);

	if (!ret)
		return CUDA_ERROR_INVALID_VALUE;
	if (!p) {
		struct vgpu *v = vgpu_open();

		if (!v)
			return CUDA_ERROR_OPERATING_SYSTEM;
		*ret = vgpu_driver(v)->cuda;
		vgpu_close(v);
		return CUDA_SUCCESS;
	}
	*ret = vgpu_driver(p->v)->cuda;
	return CUDA_SUCCESS;
}

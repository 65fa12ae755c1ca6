/* SPDX-License-Identifier: MIT
 *
 * Memory of the device (addresses with nothing behind them but their number of bytes) and pinned memory
 * of the host (real).
 */
#include "cuda_local.h"

#include <stdlib.h>
#include <sys/mman.h>

enum { GRANULE = 512 }; /* what cuMemAlloc aligns to */

/* The index of the first row that ends behind `at`. */
static size_t position(const struct cuda_ranges *r, uint64_t at)
{
	size_t low = 0, high = r->n;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (r->row[middle].from + r->row[middle].bytes <= at)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct cuda_range *cuda_range_find(struct cuda_ranges *r, uint64_t at, uint64_t bytes)
{
	size_t i = position(r, at);

	if (i == r->n || r->row[i].from > at || bytes > r->row[i].bytes ||
	    at - r->row[i].from > r->row[i].bytes - bytes)
		return NULL;
	return &r->row[i];
}

static bool add(struct cuda_ranges *r, struct cuda_range range)
{
	size_t i = position(r, range.from);

	if (r->n == r->room) {
		size_t room = r->room ? r->room * 2 : 64;
		struct cuda_range *row = reallocarray(r->row, room, sizeof(*row));

		if (!row)
			return false;
		r->row = row;
		r->room = room;
	}
	memmove(&r->row[i + 1], &r->row[i], (r->n - i) * sizeof(*r->row));
	r->row[i] = range;
	r->n++;
	return true;
}

static void take_out(struct cuda_ranges *r, size_t i)
{
	r->n--;
	memmove(&r->row[i], &r->row[i + 1], (r->n - i) * sizeof(*r->row));
}

static CUresult account(struct cuda *p, struct cuda_context *c, uint64_t bytes, bool give_back)
{
	CUresult r = CUDA_SUCCESS;

	if (!vgpu_lock(p->v))
		return CUDA_ERROR_OPERATING_SYSTEM;
	if (!client_is_ours(p->v))
		r = CUDA_ERROR_OPERATING_SYSTEM;
	else if (give_back)
		client_free(p->v, c->at.device, bytes);
	else if (client_alloc(p->v, c->at.device, bytes))
		r = CUDA_ERROR_OUT_OF_MEMORY;
	vgpu_unlock(p->v);
	return r;
}

CUresult cuMemAlloc_v2(CUdeviceptr *ret, size_t bytes)
{
	struct cuda_context *c;
	CUresult r = CUDA_ERROR_INVALID_VALUE;
	struct cuda *p = ret && bytes ? cuda_here(&c, &r) : NULL;
	uint64_t full = ((uint64_t)bytes + GRANULE - 1) / GRANULE * GRANULE;

	if (!p)
		return r;
	if (full < bytes || full > 1ull << 60)
		return CUDA_ERROR_OUT_OF_MEMORY;
	cuda_lock(p);
	r = account(p, c, full, false);
	if (r == CUDA_SUCCESS &&
	    !add(&p->device, (struct cuda_range){ p->next_address, full, c })) {
		account(p, c, full, true);
		r = CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (r == CUDA_SUCCESS) {
		*ret = p->next_address;
		p->next_address += full + GRANULE; /* a gap, so that an overrun is found */
	}
	cuda_unlock(p);
	return r;
}

/* Waits for the work that may use it, as the driver does. */
CUresult cuMemFree_v2(CUdeviceptr at)
{
	struct cuda_context *c;
	CUresult r;
	struct cuda *p = cuda_here(&c, &r);
	struct cuda_range *row;

	if (!p)
		return r;
	if (!at)
		return CUDA_SUCCESS;
	r = cuda_wait(p, &(struct cuda_wait){ .context = c, .all = true, .spin = cuda_spins(c) });
	if (r != CUDA_SUCCESS)
		return r;
	cuda_lock(p);
	row = cuda_range_find(&p->device, at, 1);
	if (row && row->from == at) {
		r = account(p, row->context, row->bytes, true);
		take_out(&p->device, (size_t)(row - p->device.row));
	} else {
		r = CUDA_ERROR_INVALID_VALUE;
	}
	cuda_unlock(p);
	return r;
}

void cuda_memory_done(struct cuda *p, struct cuda_context *c)
{
	for (size_t i = p->device.n; i-- > 0;) {
		if (p->device.row[i].context != c)
			continue;
		account(p, c, p->device.row[i].bytes, true);
		take_out(&p->device, i);
	}
}

CUresult cuMemGetInfo_v2(size_t *ret_free, size_t *ret_total)
{
	struct cuda_context *c;
	CUresult r = CUDA_ERROR_INVALID_VALUE;
	struct cuda *p = ret_free && ret_total ? cuda_here(&c, &r) : NULL;

	if (!p)
		return r;
	if (!vgpu_lock(p->v))
		return CUDA_ERROR_OPERATING_SYSTEM;
	client_reap(p->v, vgpu_age(p->v), false);
	*ret_free = client_room(p->v->s, c->at.device, c->at.partition);
	vgpu_unlock(p->v);
	return cuDeviceTotalMem_v2(ret_total, c->ordinal);
}

CUresult cuMemHostAlloc(void **ret, size_t bytes, unsigned flags)
{
	struct cuda_context *c;
	CUresult r = CUDA_ERROR_INVALID_VALUE;
	struct cuda *p = ret && bytes && flags < 8 ? cuda_here(&c, &r) : NULL;
	void *at;

	if (!p)
		return r;
	at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		  -1, 0);
	if (at == MAP_FAILED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	cuda_lock(p);
	if (add(&p->pinned, (struct cuda_range){ (uintptr_t)at, bytes, NULL })) {
		*ret = at;
		r = CUDA_SUCCESS;
	} else {
		munmap(at, bytes);
		r = CUDA_ERROR_OUT_OF_MEMORY;
	}
	cuda_unlock(p);
	return r;
}

CUresult cuMemAllocHost_v2(void **ret, size_t bytes)
{
	return cuMemHostAlloc(ret, bytes, 0);
}

CUresult cuMemFreeHost(void *at)
{
	CUresult r;
	struct cuda *p = cuda_process(&r);
	struct cuda_range *row;

	if (!p)
		return r;
	cuda_lock(p);
	row = cuda_range_find(&p->pinned, (uintptr_t)at, 1);
	if (row && row->from == (uintptr_t)at) {
		munmap(at, row->bytes);
		take_out(&p->pinned, (size_t)(row - p->pinned.row));
		r = CUDA_SUCCESS;
	} else {
		r = CUDA_ERROR_INVALID_VALUE;
	}
	cuda_unlock(p);
	return r;
}

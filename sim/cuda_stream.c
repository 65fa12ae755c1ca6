/* SPDX-License-Identifier: MIT
 *
 * Streams and events.
 */
#include "cuda_local.h"

#include <stdlib.h>

CUresult cuStreamCreateWithPriority(CUstream *ret, unsigned flags, int priority)
{
	struct cuda_context *c;
	CUresult r = CUDA_ERROR_INVALID_VALUE;
	struct cuda_stream *s;

	(void)priority; /* nothing overtakes in the model */
	if (!ret || flags > CU_STREAM_NON_BLOCKING || !cuda_here(&c, &r))
		return r;
	s = calloc(1, sizeof(*s));
	if (!s)
		return CUDA_ERROR_OUT_OF_MEMORY;
	s->magic = CUDA_MAGIC_STREAM;
	s->context = c;
	s->flags = flags;
	s->last.device = c->at.device;
	*ret = s;
	return CUDA_SUCCESS;
}

CUresult cuStreamCreate(CUstream *ret, unsigned flags)
{
	return cuStreamCreateWithPriority(ret, flags, 0);
}

/* What is queued still runs. */
CUresult cuStreamDestroy_v2(CUstream stream)
{
	struct cuda_context *c;
	struct cuda_stream *s;
	CUresult r;

	if (!cuda_here(&c, &r))
		return r;
	r = cuda_stream_of(c, stream, &s);
	if (r != CUDA_SUCCESS || !s)
		return CUDA_ERROR_INVALID_HANDLE;
	__atomic_store_n(&s->magic, 0, __ATOMIC_RELAXED);
	free(s);
	return CUDA_SUCCESS;
}

/* What waiting for a stream means now. */
static CUresult stream_wait(struct cuda *p, struct cuda_context *c, CUstream handle,
			    struct cuda_wait *ret)
{
	struct cuda_stream *s;
	CUresult r = cuda_stream_of(c, handle, &s);

	*ret = (struct cuda_wait){ .context = c, .spin = cuda_spins(c), .all = !s };
	if (r == CUDA_SUCCESS && s) {
		cuda_lock(p);
		ret->ref = s->last;
		ret->floor = s->floor;
		cuda_unlock(p);
	}
	return r;
}

CUresult cuStreamSynchronize(CUstream stream)
{
	struct cuda_context *c;
	struct cuda_wait w;
	CUresult r;
	struct cuda *p = cuda_here(&c, &r);

	if (!p)
		return r;
	r = stream_wait(p, c, stream, &w);
	return r == CUDA_SUCCESS ? cuda_wait(p, &w) : r;
}

CUresult cuStreamQuery(CUstream stream)
{
	struct cuda_context *c;
	struct cuda_wait w;
	CUresult r;
	struct cuda *p = cuda_here(&c, &r);

	if (!p)
		return r;
	r = stream_wait(p, c, stream, &w);
	return r == CUDA_SUCCESS ? cuda_done(p, &w) : r;
}

CUresult cuCtxSynchronize(void)
{
	struct cuda_context *c;
	CUresult r;
	struct cuda *p = cuda_here(&c, &r);

	if (!p)
		return r;
	return cuda_wait(p,
			 &(struct cuda_wait){ .context = c, .all = true, .spin = cuda_spins(c) });
}

static bool event_lives(CUevent e)
{
	return e && __atomic_load_n(&e->magic, __ATOMIC_RELAXED) == CUDA_MAGIC_EVENT;
}

CUresult cuEventCreate(CUevent *ret, unsigned flags)
{
	struct cuda_context *c;
	CUresult r = CUDA_ERROR_INVALID_VALUE;
	struct cuda_event *e;

	if (!ret || flags > 7 || !cuda_here(&c, &r))
		return r;
	if (flags & CU_EVENT_INTERPROCESS)
		return CUDA_ERROR_NOT_SUPPORTED;
	e = calloc(1, sizeof(*e));
	if (!e)
		return CUDA_ERROR_OUT_OF_MEMORY;
	e->magic = CUDA_MAGIC_EVENT;
	e->context = c;
	e->flags = flags;
	*ret = e;
	return CUDA_SUCCESS;
}

CUresult cuEventDestroy_v2(CUevent event)
{
	CUresult r;

	if (!cuda_process(&r))
		return r;
	if (!event_lives(event))
		return CUDA_ERROR_INVALID_HANDLE;
	__atomic_store_n(&event->magic, 0, __ATOMIC_RELAXED);
	free(event);
	return CUDA_SUCCESS;
}

/* The moment a wait will be over, as far as it is known now. */
static int64_t moment(struct cuda *p, const struct cuda_wait *w)
{
	int64_t now = vgpu_age(p->v), end = w->floor, other = 0;

	if (vgpu_lock(p->v)) {
		model_advance(p->v->s, w->context->at.device, now);
		other = queue_end(p->v->s, w->ref);
		vgpu_unlock(p->v);
	}
	end = other > end ? other : end;
	return end > now ? end : now;
}

CUresult cuEventRecord(CUevent event, CUstream stream)
{
	struct cuda_context *c;
	struct cuda_wait w;
	CUresult r;
	struct cuda *p = cuda_here(&c, &r);

	if (!p)
		return r;
	if (!event_lives(event))
		return CUDA_ERROR_INVALID_HANDLE;
	r = stream_wait(p, c, stream, &w);
	if (r != CUDA_SUCCESS)
		return r;
	if (w.all) { /* the legacy stream: behind everything, as an empty copy */
		struct op none = { .engine = ENGINE_OUT };

		r = cuda_submit(p, c, NULL, &none, &w.ref);
		if (r != CUDA_SUCCESS)
			return r;
	}
	cuda_lock(p);
	event->ref = w.ref;
	event->at = moment(p, &w);
	event->recorded = true;
	cuda_unlock(p);
	return CUDA_SUCCESS;
}

static struct cuda_wait event_wait(CUevent e)
{
	bool spin = cuda_spins(e->context) && !(e->flags & CU_EVENT_BLOCKING_SYNC);

	return (struct cuda_wait){ .context = e->context, .ref = e->ref, .spin = spin };
}

CUresult cuEventSynchronize(CUevent event)
{
	struct cuda_wait w;
	CUresult r;
	struct cuda *p = cuda_process(&r);

	if (!p)
		return r;
	if (!event_lives(event))
		return CUDA_ERROR_INVALID_HANDLE;
	w = event_wait(event);
	return event->recorded ? cuda_wait(p, &w) : CUDA_SUCCESS;
}

CUresult cuEventQuery(CUevent event)
{
	struct cuda_wait w;
	CUresult r;
	struct cuda *p = cuda_process(&r);

	if (!p)
		return r;
	if (!event_lives(event))
		return CUDA_ERROR_INVALID_HANDLE;
	w = event_wait(event);
	return event->recorded ? cuda_done(p, &w) : CUDA_SUCCESS;
}

CUresult cuEventElapsedTime(float *ret_ms, CUevent from, CUevent to)
{
	CUresult r;

	if (!ret_ms)
		return CUDA_ERROR_INVALID_VALUE;
	if (!event_lives(from) || !event_lives(to) || !from->recorded || !to->recorded ||
	    (from->flags | to->flags) & CU_EVENT_DISABLE_TIMING)
		return CUDA_ERROR_INVALID_HANDLE;
	r = cuEventQuery(from);
	r = r == CUDA_SUCCESS ? cuEventQuery(to) : r;
	if (r == CUDA_SUCCESS)
		*ret_ms = (float)((double)(to->at - from->at) / 1e6);
	return r;
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags)
{
	struct cuda_context *c;
	struct cuda_stream *s;
	CUresult r;
	struct cuda *p = cuda_here(&c, &r);

	if (!p)
		return r;
	if (!event_lives(event) || flags > 1)
		return CUDA_ERROR_INVALID_VALUE;
	r = cuda_stream_of(c, stream, &s);
	/* The legacy stream waits for everything anyway. */
	if (r != CUDA_SUCCESS || !s || !event->recorded)
		return r;
	cuda_lock(p);
	if (event->at > s->floor)
		s->floor = event->at;
	cuda_unlock(p);
	return CUDA_SUCCESS;
}

/* SPDX-License-Identifier: MIT
 *
 * Putting work into the device's queue and waiting for it: asleep or spinning, as the context's flags
 * say. Both happen here, in the driver's library, because that is where a real program is seen to be.
 */
#include "cuda_local.h"

#include "base/clock.h"

#include <errno.h>

/* Work queued before ours may be cut short when its process dies: look again at least this often. */
static const int64_t look_again_ns = 50 * NS_PER_MS;

bool cuda_spins(const struct cuda_context *c)
{
	unsigned flags = __atomic_load_n(&c->flags, __ATOMIC_RELAXED);

	/* AUTO spins when there are more processors than contexts: practically always. */
	return !(flags & CU_CTX_SCHED_BLOCKING_SYNC);
}

bool cuda_lost(const struct cuda *p, const struct cuda_context *c)
{
	const struct scenario_device *d = &p->v->s->scenario.device[c->at.device];

	return d->has_lost && scenario_open(&d->lost, vgpu_age(p->v));
}

/* The last of all that this process has queued there. */
static int64_t end_of_all(const struct shared *s, int device, int client)
{
	const struct device_state *d = &s->device[device];
	int64_t end = 0;

	for (int e = 0; e < VGPU_ENGINES; e++)
		for (int i = d->head[e]; i >= 0; i = d->op[i].next)
			if (d->op[i].client == client && d->op[i].end > end)
				end = d->op[i].end;
	return end;
}

/* 0: done; above: when it will be; negative: cannot tell. */
static int64_t end_of(struct cuda *p, const struct cuda_wait *w)
{
	struct shared *s = p->v->s;
	int64_t now, end = w->floor, other;

	if (!vgpu_lock(p->v))
		return -1;
	now = vgpu_age(p->v);
	client_reap(p->v, now, false);
	model_advance(s, w->context->at.device, now);
	if (w->ref.id && w->ref.device != w->context->at.device)
		model_advance(s, w->ref.device, now);
	other = w->all ? end_of_all(s, w->context->at.device, p->v->client) : queue_end(s, w->ref);
	vgpu_unlock(p->v);
	end = other > end ? other : end;
	return end > now ? end : 0;
}

static void sleep_until(const struct vgpu *v, int64_t age)
{
	int64_t at = v->s->born_mono + age;
	struct timespec t = { .tv_sec = at / NS_PER_S, .tv_nsec = at % NS_PER_S };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
		;
}

static void spin_until(const struct vgpu *v, int64_t age)
{
	while (vgpu_age(v) < age) {
#if defined(__x86_64__)
		__builtin_ia32_pause();
#endif
	}
}

static void pass_time(const struct vgpu *v, int64_t end, bool spin)
{
	int64_t again = vgpu_age(v) + look_again_ns;

	end = end < again ? end : again;
	if (spin)
		spin_until(v, end);
	else
		sleep_until(v, end);
}

CUresult cuda_wait(struct cuda *p, const struct cuda_wait *w)
{
	for (;;) {
		int64_t end;

		if (cuda_lost(p, w->context))
			return CUDA_ERROR_LAUNCH_FAILED;
		end = end_of(p, w);
		if (end == 0)
			return CUDA_SUCCESS;
		if (end < 0)
			return CUDA_ERROR_OPERATING_SYSTEM;
		pass_time(p->v, end, w->spin);
	}
}

CUresult cuda_done(struct cuda *p, const struct cuda_wait *w)
{
	int64_t end;

	if (cuda_lost(p, w->context))
		return CUDA_ERROR_LAUNCH_FAILED;
	end = end_of(p, w);
	if (end < 0)
		return CUDA_ERROR_OPERATING_SYSTEM;
	return end ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

CUresult cuda_stream_of(struct cuda_context *c, CUstream handle, struct cuda_stream **ret)
{
	*ret = NULL;
	if (!handle || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD)
		return CUDA_SUCCESS;
	if (__atomic_load_n(&handle->magic, __ATOMIC_RELAXED) != CUDA_MAGIC_STREAM)
		return CUDA_ERROR_INVALID_HANDLE;
	if (handle->context != c)
		return CUDA_ERROR_INVALID_HANDLE;
	*ret = handle;
	return CUDA_SUCCESS;
}

/* One try, with the process locked. -EAGAIN: full, *ret_room is when there may be room. */
static int try_put(struct cuda *p, struct cuda_context *c, struct cuda_stream *stream,
		   struct op *want, struct vgpu_ref *ret, int64_t *ret_room)
{
	struct shared *s = p->v->s;
	struct vgpu_ref after = stream ? stream->last : (struct vgpu_ref){ c->at.device, 0, 0 };
	int64_t now;
	int r;

	if (!vgpu_lock(p->v))
		return -ETIMEDOUT;
	if (!client_is_ours(p->v)) {
		vgpu_unlock(p->v);
		return -ESTALE;
	}
	now = vgpu_age(p->v);
	client_reap(p->v, now, false);
	model_advance(s, c->at.device, now);
	want->client = (int16_t)p->v->client;
	want->not_before = stream ? stream->floor : 0;
	/* The legacy stream waits for all others, and those that are not "non-blocking" for it. */
	if (!stream)
		want->not_before = end_of_all(s, c->at.device, p->v->client);
	else if (!(stream->flags & CU_STREAM_NON_BLOCKING) &&
		 queue_end(s, c->legacy) > want->not_before)
		want->not_before = queue_end(s, c->legacy);
	r = queue_put(s, c->at.device, want, after, ret);
	*ret_room = now + NS_PER_MS;
	if (r == -EAGAIN) {
		const struct device_state *d = &s->device[c->at.device];
		int head = d->head[want->engine];

		if (head >= 0 && d->op[head].end > now)
			*ret_room = d->op[head].end;
	} else if (stream) {
		stream->last = *ret;
	} else {
		c->legacy = *ret;
	}
	vgpu_unlock(p->v);
	return r;
}

CUresult cuda_submit(struct cuda *p, struct cuda_context *c, CUstream handle, struct op *want,
		     struct vgpu_ref *ret)
{
	struct cuda_stream *stream;
	CUresult r = cuda_stream_of(c, handle, &stream);

	while (r == CUDA_SUCCESS) {
		int64_t room = 0;
		int e;

		if (cuda_lost(p, c))
			return CUDA_ERROR_LAUNCH_FAILED;
		cuda_lock(p);
		e = try_put(p, c, stream, want, ret, &room);
		cuda_unlock(p);
		if (e == 0)
			return CUDA_SUCCESS;
		if (e != -EAGAIN)
			return CUDA_ERROR_OPERATING_SYSTEM;
		pass_time(p->v, room, cuda_spins(c));
	}
	return r;
}

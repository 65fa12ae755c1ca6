/* SPDX-License-Identifier: MIT
 *
 * Which interpreters and threads there are, and what must be read to have a thread's stack.
 */
#include "stack/py/process.h"

#include <errno.h>
#include <string.h>

#define TSTATE_MAX  4096
#define CHUNK_LIMIT (1u << 26) /* no chunk is larger */
#define PAGE        4096u
#define SLACK       1024 /* bytes of stack above the present top that are read, too */
#define SPOT_AGE    32   /* ticks a single frame is kept without being met */

void py_thread_done(struct py_tstate *t)
{
	vec_done(&t->windows);
	vec_done(&t->spots);
}

struct py_tstate *py_thread_find(struct py_process *p, uint64_t at)
{
	for (size_t i = 0; i < p->threads.n; i++) {
		size_t k = (p->find_hint + i) % p->threads.n;

		if (p->threads.v[k].at == at) {
			p->find_hint = k + 1;
			return &p->threads.v[k];
		}
	}
	return NULL;
}

/* An interpreter is one if its first thread says that it belongs to it. */
static int interp_check(struct py_process *p, uint64_t at)
{
	const struct py_layout *l = &p->place.layout;
	uint64_t thread, back;
	int r = mem_read_u64(p->mem, at + l->interp_threads, &thread);

	if (r < 0)
		return r;
	if (!thread)
		return -EAGAIN;
	r = mem_read_u64(p->mem, thread + l->thread_interp, &back);
	if (r < 0)
		return r;
	return back == at ? 0 : -EBADMSG;
}

static int list_interps(struct py_process *p)
{
	const struct py_layout *l = &p->place.layout;
	uint64_t at;
	int r = mem_read_u64(p->mem, p->place.runtime + l->runtime_interpreters, &at);

	p->interps.n = 0;
	if (r == 0 && !at)
		return -EAGAIN;
	while (r == 0 && at) {
		struct py_interp *interp =
		    p->interps.n < PY_INTERPS_MAX ? vec_push(&p->interps) : NULL;

		if (!interp)
			return -EBADMSG;
		interp->at = at;
		r = interp_check(p, at);
		/* One without threads is just being made or taken down; the first must have one. */
		if (r == -EAGAIN && p->interps.n > 1)
			r = 0;
		if (r == 0 && l->interp_gil != PY_ABSENT)
			r = mem_read_u64(p->mem, at + l->interp_gil, &interp->gil);
		else if (r == 0)
			interp->gil = p->place.runtime + l->runtime_gil;
		if (r == 0)
			r = mem_read_u64(p->mem, at + l->interp_next, &at);
	}
	return r == -EFAULT ? -EBADMSG : r;
}

/* Threads that come and go make the check of an interpreter fail as well: what was known before is kept then, for
 * py_interps_unchanged() holds it against what the last batch read. */
int py_interps_list(struct py_process *p)
{
	struct py_interp kept[PY_INTERPS_MAX];
	size_t n = p->interps.n;
	int r;

	if (n)
		memcpy(kept, p->interps.v, n * sizeof(kept[0]));
	r = list_interps(p);
	if (r < 0) {
		/* no more than there was room for before */
		if (n)
			memcpy(p->interps.v, kept, n * sizeof(kept[0]));
		p->interps.n = n;
	}
	return r;
}

/* Identity and id of a thread, from its tstate. */
static int thread_identify(struct py_process *p, struct py_tstate *t, const uint8_t *tstate)
{
	const struct py_layout *l = &p->place.layout;

	t->pthread = py_u64(tstate, l->thread_pthread);
	t->windows.n = t->spots.n = 0;
	t->base = 0;
	t->native = 0;
	t->tid = 0;
	if (l->thread_native == PY_ABSENT)
		return py_tid_read(p, t);
	t->native = py_u64(tstate, l->thread_native);
	t->tid = py_tid_outside(p, t->native);
	return 0;
}

/* A thread met for the first time: its successor goes to *ret_next. */
static int thread_learn(struct py_process *p, uint64_t at, uint32_t interp, uint64_t *ret_next)
{
	const struct py_layout *l = &p->place.layout;
	uint8_t tstate[TSTATE_MAX];
	struct py_tstate *t;
	int r =
	    l->thread_size > TSTATE_MAX ? -EBADMSG : mem_read(p->mem, at, tstate, l->thread_size);

	if (r < 0)
		return r;
	if (py_u64(tstate, l->thread_interp) != p->interps.v[interp].at)
		return -EBADMSG;
	*ret_next = py_u64(tstate, l->thread_next);
	t = vec_push(&p->threads);
	if (!t)
		return -ENOMEM;
	t->at = at;
	t->interp = interp;
	t->seen = true;
	t->learned = p->tick;
	return thread_identify(p, t, tstate);
}

static bool tid_changed(const struct py_process *p, const struct py_tstate *t)
{
	const struct mem_piece *piece = &p->pieces.v[t->tid_piece];

	return t->tid_piece && !piece->failed &&
	       (uint64_t)(int64_t)py_i32(piece->to, 0) != t->native;
}

/* A known thread: the same as before? Its successor goes to *ret_next. */
static int thread_again(struct py_process *p, struct py_tstate *t, uint32_t interp,
			uint64_t *ret_next)
{
	const struct py_layout *l = &p->place.layout;
	const uint8_t *tstate = py_copy_tstate(p, t);

	if (!tstate || t->seen || py_u64(tstate, l->thread_interp) != p->interps.v[interp].at)
		return -EBADMSG;
	*ret_next = py_u64(tstate, l->thread_next);
	t->seen = true;
	t->interp = interp;
	if (py_u64(tstate, l->thread_pthread) != t->pthread || tid_changed(p, t) ||
	    (l->thread_native != PY_ABSENT && py_u64(tstate, l->thread_native) != t->native))
		return thread_identify(p, t, tstate);
	return 0;
}

static int threads_of(struct py_process *p, uint32_t interp)
{
	const struct py_layout *l = &p->place.layout;
	uint32_t low = l->interp_next < l->interp_threads ? l->interp_next : l->interp_threads;
	const struct py_interp *i = &p->interps.v[interp];
	uint64_t at;
	int r = 0;

	if (p->pieces.v[i->span_piece].failed)
		return -EBADMSG;
	at = py_u64(p->arena.v + i->span, l->interp_threads - low);
	for (unsigned n = 0; at && r == 0; n++) {
		struct py_tstate *t = py_thread_find(p, at);

		if (n >= PY_THREADS_MAX)
			return -EBADMSG;
		r = t && t->read ? thread_again(p, t, interp, &at)
				 : thread_learn(p, at, interp, &at);
	}
	return r;
}

bool py_interps_unchanged(const struct py_process *p)
{
	const struct py_layout *l = &p->place.layout;
	uint32_t low = l->interp_next < l->interp_threads ? l->interp_next : l->interp_threads;
	uint64_t at = py_u64(p->arena.v + p->runtime_copy, 0);

	for (size_t i = 0; i < p->interps.n; i++) {
		const struct py_interp *interp = &p->interps.v[i];

		if (at != interp->at || p->pieces.v[interp->span_piece].failed)
			return false;
		at = py_u64(p->arena.v + interp->span, l->interp_next - low);
	}
	return at == 0 && p->interps.n;
}

static void keep_only(struct py_process *p,
		      bool (*wanted)(const struct py_process *p, const struct py_tstate *t))
{
	size_t n = 0;

	for (size_t i = 0; i < p->threads.n; i++) {
		if (wanted(p, &p->threads.v[i])) {
			struct py_tstate keep = p->threads.v[i];

			p->threads.v[i] = p->threads.v[n];
			p->threads.v[n++] = keep;
		}
	}
	for (size_t i = n; i < p->threads.n; i++)
		py_thread_done(&p->threads.v[i]);
	p->threads.n = n;
}

static bool was_seen(const struct py_process *p, const struct py_tstate *t)
{
	(void)p;
	return t->seen;
}

static bool was_known(const struct py_process *p, const struct py_tstate *t)
{
	return t->learned != p->tick && t->interp < p->interps.n;
}

void py_threads_drop_new(struct py_process *p)
{
	keep_only(p, was_known);
}

int py_threads_list(struct py_process *p)
{
	int r = 0;

	if (!py_interps_unchanged(p))
		return -EBADMSG;
	for (size_t i = 0; i < p->threads.n; i++)
		p->threads.v[i].seen = false;
	for (size_t i = 0; r == 0 && i < p->interps.n; i++)
		r = threads_of(p, (uint32_t)i);
	if (r == 0)
		keep_only(p, was_seen);
	return r;
}

static bool spot_add(struct py_process *p, struct py_tstate *t, uint64_t at, uint32_t n)
{
	struct py_spot *spot;
	size_t place;

	if (at > UINT64_MAX - n)
		return false;
	spot = py_spot_find(t, at, &place);
	if (spot) {
		spot->used = p->tick;
		return true;
	}
	if (t->spots.n >= PY_SPOTS_MAX || !vec_push(&t->spots))
		return false;
	spot = &t->spots.v[place];
	memmove(spot + 1, spot, (t->spots.n - 1 - place) * sizeof(*spot));
	*spot = (struct py_spot){ .at = at, .n = n, .used = p->tick };
	return true;
}

/* Those in pieces that could not be read: memory that was given back. */
static void forget_failed(struct py_process *p, struct py_tstate *t)
{
	size_t n = 0;

	if (!t->read)
		return;
	for (size_t i = 0; i < t->spots.n; i++) {
		uint32_t piece = t->spots.v[i].piece;

		if (!p->pieces.v[t->piece[0] + piece].failed &&
		    !p->pieces.v[t->piece[1] + piece].failed)
			t->spots.v[n++] = t->spots.v[i];
	}
	t->spots.n = n;
}

void py_thread_forget_old(struct py_process *p, struct py_tstate *t)
{
	size_t n = 0;

	for (size_t i = 0; i < t->spots.n; i++)
		if (p->tick - t->spots.v[i].used <= SPOT_AGE)
			t->spots.v[n++] = t->spots.v[i];
	t->spots.n = n;
}

static int window_add(struct py_tstate *t, uint64_t at, uint64_t used, uint64_t size)
{
	uint64_t n = ((used + SLACK + PAGE - 1) / PAGE) * PAGE, whole = 0;
	struct py_window *w;

	n = n < size ? n : size;
	for (size_t i = 0; i < t->windows.n; i++)
		whole += t->windows.v[i].n;
	if (whole + n > PY_WINDOW_MAX)
		return -ENOBUFS;
	w = vec_push(&t->windows);
	if (!w)
		return -ENOMEM;
	*w = (struct py_window){ .at = at, .n = (uint32_t)n };
	return 0;
}

/* The chunks of a data stack, from the newest to the root. */
static int predict_windows(struct py_process *p, struct py_tstate *t, uint64_t chunk, uint64_t top)
{
	uint8_t head[PY_CHUNK_DATA];
	int r = 0;

	t->windows.n = 0;
	t->base = 0;
	for (unsigned i = 0; chunk && r == 0; i++) {
		uint64_t size, used;

		r = i < PY_CHUNKS_MAX ? mem_read(p->mem, chunk, head, sizeof(head)) : -EBADMSG;
		if (r < 0)
			break;
		size = py_u64(head, PY_CHUNK_SIZE);
		used = i ? PY_CHUNK_DATA + 8 * py_u64(head, PY_CHUNK_TOP) : top - chunk;
		if (size < PY_CHUNK_DATA || size > CHUNK_LIMIT || used > size || chunk % 8)
			return -EBADMSG;
		r = window_add(t, chunk, used, size);
		if (!py_u64(head, PY_CHUNK_PREVIOUS))
			t->base = chunk + PY_CHUNK_DATA + 8;
		chunk = py_u64(head, PY_CHUNK_PREVIOUS);
	}
	return r == -EFAULT || r == -ENOBUFS ? -EBADMSG : r;
}

/* All windows as they are now, one behind the other, in one read. */
static int read_windows(struct py_process *p, struct py_tstate *t)
{
	struct mem_piece pieces[PY_CHUNKS_MAX];
	size_t n = 0;

	for (size_t i = 0; i < t->windows.n; i++) {
		t->windows.v[i].offset = (uint32_t)n;
		n += t->windows.v[i].n;
	}
	if (!vec_reserve(&p->scratch, n))
		return -ENOMEM;
	for (size_t i = 0; i < t->windows.n; i++)
		pieces[i] = (struct mem_piece){ .at = t->windows.v[i].at,
						.n = t->windows.v[i].n,
						.to = p->scratch.v + t->windows.v[i].offset };
	n = t->windows.n;
	if (n && mem_read_pieces(p->mem, pieces, n) < 0)
		return -EBADMSG;
	for (size_t i = 0; i < n; i++)
		if (pieces[i].failed)
			return -EBADMSG;
	return 0;
}

/* A frame from the windows just read, or else from a read of its own, which is then remembered as a
 * spot. */
static int predict_frame(struct py_process *p, struct py_tstate *t, uint64_t at,
			 struct py_link *ret)
{
	const struct py_layout *l = &p->place.layout;
	uint8_t bytes[TSTATE_MAX];
	int r;

	for (size_t i = 0; i < t->windows.n; i++) {
		const struct py_window *w = &t->windows.v[i];

		if (at < w->at || at - w->at >= w->n || w->n - (at - w->at) < l->frame_size)
			continue;
		py_link_parse(l, p->scratch.v + w->offset + (at - w->at), at, ret);
		return 0;
	}
	r = l->frame_size > sizeof(bytes) ? -EBADMSG : mem_read(p->mem, at, bytes, l->frame_size);
	if (r == 0) {
		py_link_parse(l, bytes, at, ret);
		r = spot_add(p, t, at, l->frame_size) ? 0 : -EBADMSG;
	}
	return r;
}

/* Adds what lies outside the windows by following the frames as they are now. Not proven; only where
 * to look. */
static int predict_spots(struct py_process *p, struct py_tstate *t, uint64_t at)
{
	const struct py_layout *l = &p->place.layout;
	struct py_link link;
	int r = 0;

	if (l->frames == PY_FRAMES_CFRAME && at) {
		if (!spot_add(p, t, at, l->cframe_frame + 8))
			return -EBADMSG;
		r = mem_read_u64(p->mem, at + l->cframe_frame, &at);
	}
	for (unsigned n = 0; r == 0 && at && n < PY_DEPTH_MAX; n++) {
		r = predict_frame(p, t, at, &link);
		at = link.previous;
	}
	return r;
}

int py_thread_predict(struct py_process *p, struct py_tstate *t)
{
	const struct py_layout *l = &p->place.layout;
	uint8_t tstate[TSTATE_MAX];
	int r = mem_read(p->mem, t->at, tstate, l->thread_size);

	forget_failed(p, t);
	t->read = false; /* the copies no longer match the list of pieces */
	if (r == 0 && l->frames != PY_FRAMES_HEAP)
		r = predict_windows(p, t, py_u64(tstate, l->thread_chunk),
				    py_u64(tstate, l->thread_top));
	if (r == 0)
		r = read_windows(p, t);
	if (r == 0)
		r = predict_spots(p, t, py_u64(tstate, l->thread_frame));
	return r == -EFAULT || r == -EBADMSG ? 0 : r;
}

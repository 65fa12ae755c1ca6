/* SPDX-License-Identifier: MIT
 *
 * One list of pieces for all that a sample is expected to need, in this order:
 *
 *	runtime, interpreters, GILs, a few code objects to look at again,
 *	thread 1: {chunks, single frames}, tstate, {chunks, single frames} once more, and where there
 *	are generators the single frames a third time; thread 2: ...
 *	or, while readings have been late: ..., tstate and all of it a third time
 *
 * The kernel reads pieces in the order given. Which frame is the innermost one is read between the two
 * copies, so what is the same in both was there at that moment. Unless it went away and came back in
 * between, for which a loop of the target must go round once: that does not fit in unless something
 * keeps us from going on in the middle (an interrupt, another process, the machine's host). So in a batch
 * that takes much longer than they do of late two copies prove nothing; and see walk.c for what frames tell.
 *
 * Where looks are rare (50 a second) caches are cold, and a third of the batches take that much longer for
 * no other reason. Reading again is another call and costs as much again. So after a late one the next
 * samples have three copies: an interruption is between the first and the second of them, or between the
 * second and the third, and the other two are a reading that was not interrupted. Three that are the same
 * prove what two prove in time; it takes two interruptions within some microseconds, each of which ends
 * when the loop has come round to the same place, to deceive them.
 */
#include "base/clock.h"
#include "stack/py/process.h"

#include <errno.h>

#define ARENA_MAX (64u << 20)
/* Single frames this close are read as one piece: a page costs 0.35 us, a kilobyte 0.07. */
#define GAP_MAX   1024u
#define GROUP_MAX 16384u
#define LATE_NS   3000u /* besides twice the usual time: a longer interruption is noticed */
#define WARY      64u   /* samples behind a late one that have three copies */

/* A piece of n bytes behind the others; its place in the arena goes to *ret. */
static int piece_add(struct py_process *p, uint64_t at, uint32_t n, uint32_t *ret)
{
	struct mem_piece *piece;
	size_t start = (p->arena.n + 7) & ~(size_t)7;

	if (start + n > ARENA_MAX)
		return -ENOBUFS;
	if (!vec_reserve(&p->arena, start + n))
		return -ENOMEM;
	piece = vec_push(&p->pieces);
	if (!piece)
		return -ENOMEM;
	p->arena.n = start + n;
	piece->at = at;
	piece->n = n;
	*ret = (uint32_t)start;
	return 0;
}

/* One read from the lowest to behind the highest of the fields in a row of a structure. */
static void runtime_span(const struct py_layout *l, uint32_t *start, uint32_t *n)
{
	uint32_t end = l->runtime_interpreters + 8;

	*start = l->runtime_interpreters;
	if (l->runtime_current != PY_ABSENT && l->runtime_current + 8 > end)
		end = l->runtime_current + 8;
	*n = end - *start;
}

static void interp_span(const struct py_layout *l, uint32_t *start, uint32_t *n)
{
	uint32_t low = l->interp_next < l->interp_threads ? l->interp_next : l->interp_threads;
	uint32_t end =
	    (l->interp_next > l->interp_threads ? l->interp_next : l->interp_threads) + 8;

	if (l->interp_collecting != PY_ABSENT && l->interp_collecting > low &&
	    l->interp_collecting - low < 1024 && l->interp_collecting + 4 > end)
		end = l->interp_collecting + 4;
	*start = low;
	*n = end - low;
}

/* Where the holder stands, and whether there is one: wherever a table of the target says, within 208 bytes
 * (offsets.c). */
static void gil_span(const struct py_layout *l, uint32_t *start, uint32_t *n)
{
	uint32_t end =
	    l->gil_holder + 8 > l->gil_locked + 4 ? l->gil_holder + 8 : l->gil_locked + 4;

	*start = l->gil_holder < l->gil_locked ? l->gil_holder : l->gil_locked;
	*n = end - *start;
}

static int add_interp(struct py_process *p, struct py_interp *interp)
{
	const struct py_layout *l = &p->place.layout;
	uint32_t start, n;
	int r;

	interp_span(l, &start, &n);
	interp->span_piece = (uint32_t)p->pieces.n;
	r = piece_add(p, interp->at + start, n, &interp->span);
	if (r < 0 || l->interp_gil == PY_ABSENT)
		return r;
	gil_span(l, &start, &n);
	interp->gil_piece = (uint32_t)p->pieces.n;
	return piece_add(p, interp->gil + start, n, &interp->gil_copy);
}

static int add_shared(struct py_process *p)
{
	const struct py_layout *l = &p->place.layout;
	uint32_t start, n;
	int r;

	runtime_span(l, &start, &n);
	r = piece_add(p, p->place.runtime + start, n, &p->runtime_copy);
	for (size_t i = 0; r == 0 && i < p->interps.n; i++)
		r = add_interp(p, &p->interps.v[i]);
	p->checks_piece = (uint32_t)p->pieces.n;
	for (unsigned i = 0; r == 0 && i < p->codes.checks_n; i++) {
		uint32_t at;

		r = piece_add(p, p->codes.slots.v[p->codes.checks[i]].at, l->code_size, &at);
		if (i == 0)
			p->checks_copy = at;
	}
	return r;
}

/* The single frames, neighbours together. A gap is never longer than a page is, so both its ends being
 * mapped it mostly is, too; where not, the group fails and is forgotten. */
static int add_spots(struct py_process *p, struct py_tstate *t, unsigned which)
{
	struct py_spot *spots = t->spots.v;
	size_t i = 0;
	int r = 0;

	while (r == 0 && i < t->spots.n) {
		uint64_t start = spots[i].at, end = start;
		uint32_t at, piece = (uint32_t)p->pieces.n - t->piece[which];
		size_t k = i;

		while (k < t->spots.n && spots[k].at - start < GROUP_MAX &&
		       (spots[k].at <= end || spots[k].at - end <= GAP_MAX || k == i)) {
			end = spots[k].at + spots[k].n > end ? spots[k].at + spots[k].n : end;
			k++;
		}
		r = piece_add(p, start, (uint32_t)(end - start), &at);
		for (; r == 0 && i < k; i++) {
			spots[i].offset = at - t->copy[which] + (uint32_t)(spots[i].at - start);
			spots[i].piece = piece;
		}
	}
	return r;
}

static int add_copy(struct py_process *p, struct py_tstate *t, unsigned which)
{
	const struct py_layout *l = &p->place.layout;
	uint32_t at = 0;
	int r = 0;

	/* Frames that are objects say whether they run, and take longer to read: the innermost one is asked for
	 * before each copy, so that what is called and returns in between does no harm. */
	if (which == 0 && l->frames == PY_FRAMES_HEAP) {
		t->before_piece = (uint32_t)p->pieces.n;
		r = piece_add(p, t->at, l->thread_size, &t->before);
	}
	if (which == 2) {
		t->last_piece = (uint32_t)p->pieces.n;
		r = piece_add(p, t->at, l->thread_size, &t->last);
	}
	t->piece[which] = (uint32_t)p->pieces.n;
	t->copy[which] = (uint32_t)((p->arena.n + 7) & ~(size_t)7);
	for (size_t i = 0; r == 0 && i < t->windows.n; i++) {
		r = piece_add(p, t->windows.v[i].at, t->windows.v[i].n, &at);
		t->windows.v[i].offset = at - t->copy[which];
	}
	if (r == 0)
		r = add_spots(p, t, which);
	if (r == 0 && which == 0) {
		t->tstate_piece = (uint32_t)p->pieces.n;
		r = piece_add(p, t->at, l->thread_size, &t->tstate);
	}
	/* A new thread may get both the tstate and the pthread_t of one that ended. */
	if (which == 1)
		t->tid_piece = 0;
	if (r == 0 && which == 1 && p->pthread_tid != PY_ABSENT && t->pthread) {
		t->tid_piece = (uint32_t)p->pieces.n;
		r = piece_add(p, t->pthread + p->pthread_tid, 4, &at);
	}
	return r;
}

/* The single frames alone, at the same places in relation to its (never read) beginning. */
static int add_third(struct py_process *p, struct py_tstate *t)
{
	size_t windows = t->windows.n;
	uint32_t before = 0;

	if (windows)
		before = (t->windows.v[windows - 1].offset + t->windows.v[windows - 1].n + 7) & ~7u;
	t->piece[2] = (uint32_t)(p->pieces.n - windows);
	t->copy[2] = (uint32_t)((p->arena.n + 7) & ~(size_t)7) - before;
	return add_spots(p, t, 2);
}

/* Holders of the GIL, as of the beginning of the batch. */
static void read_holders(struct py_process *p)
{
	const struct py_layout *l = &p->place.layout;
	uint32_t start, n, gil_start, gil_n;

	runtime_span(l, &start, &n);
	gil_span(l, &gil_start, &gil_n);
	for (size_t i = 0; i < p->interps.n; i++) {
		struct py_interp *interp = &p->interps.v[i];
		const uint8_t *gil = p->arena.v + interp->gil_copy;

		interp->holder = 0;
		if (l->runtime_current != PY_ABSENT)
			interp->holder =
			    py_u64(p->arena.v + p->runtime_copy, l->runtime_current - start);
		else if (!p->pieces.v[interp->gil_piece].failed &&
			 py_i32(gil, l->gil_locked - gil_start) > 0)
			interp->holder = py_u64(gil, l->gil_holder - gil_start);
	}
}

/* Did this batch take longer than twice the shortest of late? That one ages by 3 % a batch. Memory that
 * is no process (an image) is read by no clock. */
static bool was_late(struct py_process *p, bool first, int64_t ns)
{
	uint64_t units = p->pieces.n + p->arena.n / 4096, *pace = &p->pace[first];
	uint64_t took = ns > 0 ? (uint64_t)ns : 0, unit = took / (units ? units : 1) + 1;
	bool late = *pace && took > 2 * *pace * units + LATE_NS;

	if (!*pace || unit < *pace)
		*pace = unit;
	else
		*pace += *pace / 32 + 1;
	return late && (!p->mem->source || p->mem->timed);
}

static int add_thread(struct py_process *p, struct py_tstate *t, bool thrice)
{
	int r = add_copy(p, t, 0);

	if (r == 0)
		r = add_copy(p, t, 1);
	if (r == 0 && (thrice || t->generators))
		r = thrice ? add_copy(p, t, 2) : add_third(p, t);
	t->thrice = r == 0 && thrice;
	t->third = r == 0 && (thrice || t->generators);
	t->read = r == 0;
	return r;
}

/* Room for a third copy one day, and some more: a warm sampler allocates nothing. */
static bool reserve_third(struct py_process *p)
{
	size_t bytes = 2 * p->arena.n, pieces = 2 * p->pieces.n;

	return (p->arena.cap >= bytes || vec_reserve(&p->arena, bytes + bytes / 2)) &&
	       (p->pieces.cap >= pieces || vec_reserve(&p->pieces, pieces + pieces / 2));
}

/* `first`: of this sample, with everything; later ones read the threads that are not done. */
int py_batch_read(struct py_process *p, bool first)
{
	/* Frames that are objects say that they run, in each copy: nothing is known about three. */
	bool thrice = p->wary && p->place.layout.frames != PY_FRAMES_HEAP;
	uint32_t offset = 0;
	int64_t start;
	int r;

	p->batch++;
	p->pieces.n = 0;
	p->arena.n = 0;
	r = add_shared(p);
	for (size_t i = 0; r == 0 && i < p->threads.n; i++) {
		if (!first && p->threads.v[i].done)
			p->threads.v[i].read = false;
		else
			r = add_thread(p, &p->threads.v[i], thrice);
		if (r == -ENOBUFS) { /* the rest waits for the next attempt */
			for (; i < p->threads.n; i++)
				p->threads.v[i].read = false;
			break;
		}
	}
	if (r < 0 && r != -ENOBUFS)
		return r;
	if (!thrice && !reserve_third(p))
		return -ENOMEM;
	for (size_t i = 0; i < p->pieces.n; i++) {
		struct mem_piece *piece = &p->pieces.v[i];

		offset = (offset + 7) & ~7u;
		piece->to = p->arena.v + offset;
		offset += piece->n;
	}
	start = clock_mono_ns();
	r = mem_read_pieces(p->mem, p->pieces.v, p->pieces.n);
	if (r < 0)
		return r;
	p->late = was_late(p, first, clock_mono_ns() - start);
	if (p->late)
		p->wary = WARY;
	else if (first && p->wary)
		p->wary--;
	if (p->pieces.v[0].failed)
		return -ESTALE;
	if (first)
		read_holders(p);
	return 0;
}

const uint8_t *py_copy_tstate(const struct py_process *p, const struct py_tstate *t)
{
	if (!t->read || p->pieces.v[t->tstate_piece].failed)
		return NULL;
	return p->arena.v + t->tstate;
}

struct py_spot *py_spot_find(const struct py_tstate *t, uint64_t at, size_t *ret_place)
{
	size_t low = 0, high = t->spots.n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (t->spots.v[middle].at < at)
			low = middle + 1;
		else
			high = middle;
	}
	if (ret_place)
		*ret_place = low;
	return low < t->spots.n && t->spots.v[low].at == at ? &t->spots.v[low] : NULL;
}

const uint8_t *py_copy_before(const struct py_process *p, const struct py_tstate *t)
{
	if (p->place.layout.frames != PY_FRAMES_HEAP)
		return py_copy_tstate(p, t);
	if (!t->read || p->pieces.v[t->before_piece].failed)
		return NULL;
	return p->arena.v + t->before;
}

const uint8_t *py_copy_last(const struct py_process *p, const struct py_tstate *t)
{
	if (!t->read || !t->thrice || p->pieces.v[t->last_piece].failed)
		return NULL;
	return p->arena.v + t->last;
}

/* Those of two copies, each with what said at its time which frame is the innermost. */
static bool equal(const struct py_process *p, const struct py_tstate *t, unsigned a, unsigned b,
		  const uint8_t *at_a, const uint8_t *at_b)
{
	uint32_t frame = p->place.layout.thread_frame, n = t->tstate_piece - t->piece[0];

	if (!at_a || !at_b || py_u64(at_a, frame) != py_u64(at_b, frame))
		return false;
	for (uint32_t i = 0; i < n; i++) {
		const struct mem_piece *x = &p->pieces.v[t->piece[a] + i];
		const struct mem_piece *y = &p->pieces.v[t->piece[b] + i];

		if (x->failed || y->failed || memcmp(x->to, y->to, x->n) != 0)
			return false;
	}
	return true;
}

bool py_copies_equal(const struct py_process *p, const struct py_tstate *t)
{
	return equal(p, t, 0, 1, py_copy_before(p, t), py_copy_tstate(p, t));
}

bool py_copies_equal_still(const struct py_process *p, const struct py_tstate *t)
{
	return equal(p, t, 1, 2, py_copy_tstate(p, t), py_copy_last(p, t));
}

const uint8_t *py_copy_at(struct py_process *p, struct py_tstate *t, unsigned which, uint64_t at,
			  uint32_t n)
{
	const uint8_t *copy = p->arena.v + t->copy[which];
	const struct mem_piece *pieces = &p->pieces.v[t->piece[which]];
	struct py_spot *spot;

	if (!t->read)
		return NULL;
	for (size_t i = 0; i < t->windows.n; i++) {
		const struct py_window *w = &t->windows.v[i];

		if (at >= w->at && at - w->at < w->n && w->n - (at - w->at) >= n)
			return pieces[i].failed ? NULL : copy + w->offset + (at - w->at);
	}
	spot = py_spot_find(t, at, NULL);
	if (!spot || spot->n < n)
		return NULL;
	spot->used = p->tick;
	return pieces[spot->piece].failed ? NULL : copy + spot->offset;
}

/* SPDX-License-Identifier: MIT
 *
 * Following frames through copies of memory, and judging whether two copies prove a stack.
 *
 * From 3.11 on the first frame of a thread always stands at the same place: the root chunk of its
 * data stack, one word behind the start (the interpreter leaves index 0 out so that the root is never
 * given back). A chain that ends anywhere else was cut: a suspended generator has no caller either.
 * To 3.10 frames are objects, and one that is part of a running stack says that it is running.
 */
#include "stack/py/process.h"

void py_link_parse(const struct py_layout *l, const uint8_t *bytes, uint64_t at,
		   struct py_link *ret)
{
	ret->at = at;
	ret->slot = 0;
	ret->previous = py_u64(bytes, l->frame_previous);
	ret->code = py_u64(bytes, l->frame_code) & l->frame_code_mask;
	if (l->frames == PY_FRAMES_HEAP) {
		ret->instr = (uint64_t)(int64_t)py_i32(bytes, l->frame_instr);
		ret->owner =
		    bytes[l->frame_running] == l->running_value ? PY_OWNER_THREAD : PY_NOT_RUNNING;
		ret->calling = true;
		ret->from_c = false;
	} else {
		ret->instr = py_u64(bytes, l->frame_instr);
		ret->owner = bytes[l->frame_owner];
		ret->calling =
		    l->frame_stacktop == PY_ABSENT || py_i32(bytes, l->frame_stacktop) >= 0;
		ret->from_c = l->frame_entry != PY_ABSENT && bytes[l->frame_entry];
	}
}

bool py_walk_first(struct py_process *p, struct py_tstate *t, unsigned which, uint64_t *ret)
{
	const struct py_layout *l = &p->place.layout;
	const uint8_t *tstate = which == 0   ? py_copy_before(p, t)
				: which == 1 ? py_copy_tstate(p, t)
					     : py_copy_last(p, t);
	const uint8_t *cframe;

	if (!tstate)
		return false;
	*ret = py_u64(tstate, l->thread_frame);
	if (l->frames != PY_FRAMES_CFRAME || !*ret)
		return true;
	cframe = py_copy_at(p, t, which, *ret, l->cframe_frame + 8);
	if (cframe)
		*ret = py_u64(cframe, l->cframe_frame);
	return cframe != NULL;
}

void py_walk(struct py_process *p, struct py_tstate *t, unsigned which, struct py_chain *chain)
{
	const struct py_layout *l = &p->place.layout;
	uint64_t at;

	chain->links.n = 0;
	chain->end = PY_END_MISSING;
	if (!py_walk_first(p, t, which, &at))
		return;
	while (at) {
		const uint8_t *bytes = py_copy_at(p, t, which, at, l->frame_size);
		struct py_link *link;

		if (!bytes)
			return;
		link = chain->links.n < PY_DEPTH_MAX ? vec_push(&chain->links) : NULL;
		if (!link) {
			chain->end = PY_END_BROKEN;
			return;
		}
		py_link_parse(l, bytes, at, link);
		at = link->previous;
	}
	chain->end = PY_END_FIRST;
}

static bool is_shim(const struct py_layout *l, const struct py_link *link)
{
	return link->owner >= l->owner_shim && l->frames != PY_FRAMES_HEAP;
}

bool py_chain_whole(const struct py_process *p, const struct py_tstate *t, const struct py_chain *c)
{
	const struct py_layout *l = &p->place.layout;
	const struct py_link *last = NULL;

	if (c->end != PY_END_FIRST)
		return false;
	for (size_t i = 0; i < c->links.n; i++) {
		const struct py_link *link = &c->links.v[i];

		if (is_shim(l, link) || (i == 0 && link->owner == PY_NOT_RUNNING))
			continue;
		if (link->owner != PY_OWNER_THREAD && link->owner != PY_OWNER_GENERATOR)
			return false;
		last = link;
	}
	if (!last || l->frames == PY_FRAMES_HEAP)
		return true;
	return last->at == t->base && last->owner == PY_OWNER_THREAD;
}

/* A frame called without C code between, by one that says that it runs itself: what is left of an
 * earlier stack above the frame that runs now looks like that, and nothing else does. */
static bool left_over(const struct py_layout *l, const struct py_link *caller,
		      const struct py_link *callee)
{
	return !caller->calling && !callee->from_c && !is_shim(l, callee) && !is_shim(l, caller);
}

bool py_chain_linked(const struct py_process *p, const struct py_chain *c)
{
	for (size_t i = 1; i < c->links.n; i++)
		if (left_over(&p->place.layout, &c->links.v[i], &c->links.v[i - 1]))
			return false;
	return true;
}

static bool link_same(const struct py_link *a, const struct py_link *b)
{
	return a->at == b->at && a->code == b->code && a->owner == b->owner &&
	       a->previous == b->previous;
}

bool py_chain_same(const struct py_chain *a, const struct py_chain *b)
{
	if (a->links.n != b->links.n)
		return false;
	for (size_t i = 0; i < a->links.n; i++) {
		if (!link_same(&a->links.v[i], &b->links.v[i]))
			return false;
		if (i && (a->links.v[i].instr != b->links.v[i].instr ||
			  a->links.v[i].calling != b->links.v[i].calling))
			return false;
	}
	return true;
}

/* The third copy of a frame; it was not foreseen that one is needed: a read of its own. */
static bool third_look(struct py_process *p, struct py_tstate *t, uint64_t at, struct py_link *ret)
{
	uint32_t size = p->place.layout.frame_size;
	const uint8_t *bytes = t->third ? py_copy_at(p, t, 2, at, size) : NULL;

	if (!t->third && vec_reserve(&p->scratch, size) &&
	    mem_read(p->mem, at, p->scratch.v, size) == 0)
		bytes = p->scratch.v;
	if (bytes)
		py_link_parse(&p->place.layout, bytes, at, ret);
	return bytes != NULL;
}

size_t py_chain_restless(struct py_process *p, struct py_tstate *t, const struct py_chain *c)
{
	size_t restless = 0;

	t->generators = false;
	if (p->place.layout.frames == PY_FRAMES_HEAP) /* those say that they run */
		return 0;
	for (size_t i = 0; i < c->links.n; i++) {
		const struct py_link *was = &c->links.v[i];
		struct py_link now;

		if (was->owner != PY_OWNER_GENERATOR)
			continue;
		t->generators = true;
		if (!third_look(p, t, was->at, &now) || !link_same(was, &now) ||
		    (i && (was->instr != now.instr || was->calling != now.calling)))
			restless = i + 1;
	}
	return restless;
}

/* Both chains come to the first frame: what they have in common from there. */
static bool salvage_common(struct py_process *p)
{
	struct py_chain *a = &p->chain[0], *b = &p->chain[1];
	size_t n = 0, least = a->links.n < b->links.n ? a->links.n : b->links.n;

	while (n < least) {
		const struct py_link *x = &a->links.v[a->links.n - 1 - n];
		const struct py_link *y = &b->links.v[b->links.n - 1 - n];

		if (!link_same(x, y) || (n && (left_over(&p->place.layout, x + 1, x) ||
					       left_over(&p->place.layout, y + 1, y))))
			break;
		n++;
		if (x->instr != y->instr)
			break;
	}
	memmove(b->links.v, b->links.v + (b->links.n - n), n * sizeof(b->links.v[0]));
	b->links.n = n;
	return n > 0;
}

static bool link_at(struct py_process *p, struct py_tstate *t, unsigned which, uint64_t at,
		    struct py_link *ret)
{
	const uint8_t *bytes = py_copy_at(p, t, which, at, p->place.layout.frame_size);

	if (bytes)
		py_link_parse(&p->place.layout, bytes, at, ret);
	return bytes != NULL;
}

/* The same frame in both copies, called by `caller`. */
static bool both_at(struct py_process *p, struct py_tstate *t, uint64_t at, uint64_t caller,
		    struct py_link *a, struct py_link *b)
{
	return link_at(p, t, 0, at, a) && link_at(p, t, 1, at, b) && link_same(a, b) &&
	       a->owner == PY_OWNER_THREAD && a->previous == caller;
}

/* The end of what is in use of the root chunk. */
static uint64_t root_top(struct py_process *p, struct py_tstate *t)
{
	const struct py_layout *l = &p->place.layout;
	uint64_t root = t->base - PY_CHUNK_DATA - 8, top = UINT64_MAX;
	const uint8_t *tstate = py_copy_tstate(p, t);

	if (!tstate)
		return 0;
	if (py_u64(tstate, l->thread_chunk) == root)
		return py_u64(tstate, l->thread_top);
	for (unsigned which = 0; which < 2; which++) {
		const uint8_t *chunk = py_copy_at(p, t, which, root, PY_CHUNK_DATA);
		uint64_t here;

		if (!chunk)
			return 0;
		here = root + PY_CHUNK_DATA + 8 * py_u64(chunk, PY_CHUNK_TOP);
		top = here < top ? here : top;
	}
	return top;
}

/* Who called the first frame: nobody, or a shim that nobody called. In both copies. */
static bool called_by_nobody(struct py_process *p, struct py_tstate *t, const struct py_link *base)
{
	struct py_link a, b;

	if (!base->previous)
		return true;
	return link_at(p, t, 0, base->previous, &a) && link_at(p, t, 1, base->previous, &b) &&
	       link_same(&a, &b) && is_shim(&p->place.layout, &a) && !a.previous;
}

/* Upwards from the first frame: the next stands behind it, as far as the code says, and names it as
 * its caller. The last one so found is left out: it may be about to be written. */
static bool salvage_upwards(struct py_process *p, struct py_tstate *t)
{
	struct py_chain *c = &p->chain[1];
	struct py_link a, b, *slot;
	uint64_t top = t->base ? root_top(p, t) : 0, at = t->base;

	c->links.n = 0;
	if (!top || !link_at(p, t, 1, at, &b) || !both_at(p, t, at, b.previous, &a, &b) ||
	    !called_by_nobody(p, t, &b))
		return false;
	while (at < top && c->links.n < PY_DEPTH_MAX && both_at(p, t, at, b.previous, &a, &b)) {
		int64_t code = py_slot_find(&p->codes, b.code);
		uint64_t next;

		slot = vec_push(&c->links);
		if (!slot)
			return false;
		*slot = b;
		if (code < 0 || !p->codes.slots.v[code].frame_words || a.instr != b.instr ||
		    !a.calling || !b.calling)
			break;
		next = at + 8ull * p->codes.slots.v[code].frame_words;
		b.previous = at;
		at = next;
	}
	if (c->links.n < 2)
		return false;
	c->links.n--;
	for (size_t i = 0, k = c->links.n - 1; i < k; i++, k--) {
		struct py_link swap = c->links.v[i];

		c->links.v[i] = c->links.v[k];
		c->links.v[k] = swap;
	}
	return true;
}

bool py_chain_salvage(struct py_process *p, struct py_tstate *t)
{
	if (!t->read)
		return false;
	py_walk(p, t, 0, &p->chain[0]);
	py_walk(p, t, 1, &p->chain[1]);
	if (py_chain_whole(p, t, &p->chain[0]) && py_chain_whole(p, t, &p->chain[1]) &&
	    salvage_common(p))
		return true;
	return p->place.layout.frames != PY_FRAMES_HEAP && salvage_upwards(p, t);
}

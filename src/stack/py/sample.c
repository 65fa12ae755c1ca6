/* SPDX-License-Identifier: MIT
 *
 * One sample: a batch, judged; what is torn or was not foreseen is read again at once, a few times.
 */
#include "stack/py/process.h"

#include <errno.h>

#define ATTEMPTS       4  /* readings of a thread that tears */
#define ATTEMPTS_HEAP  10 /* the same before 3.11 */
#define ATTEMPTS_LIST  10 /* readings of a list of threads that come and go */
#define MOVING_MAX     20 /* samples in a row whose list could not be read: it is no list any more */
#define ROUNDS_BESIDES 5  /* those that only learn where to look or what a function is called */
#define FRESH          16u /* ticks for which a function that was seen is taken to be still the same */
#define YOUNG          32u /* sightings for which a function is compared each time */
#define DEEP_ROUNDS    2 /* readings of a stack that is too deep, which are dear, besides the first */
#define INTERVAL_MAX   32u
#define LEARN_MAX      16 /* functions learned from a stack that is not proven; some 5 us each */

void py_stacks_done(struct py_stacks *s)
{
	vec_done(&s->threads);
	vec_done(&s->frames);
}

enum verdict {
	ACCEPTED,
	TORN,     /* the copies differ */
	LEARNED,  /* a function was not known: read again */
	MISSED,   /* something was not foreseen: learn where to look, and read again */
	TOO_DEEP, /* or a torn one that goes round in a circle: the next reading tells */
};

/* Cached functions that were read along: is each still what it was? */
static void check_codes(struct py_process *p)
{
	struct py_codes *c = &p->codes;

	for (unsigned i = 0; i < c->checks_n; i++) {
		const struct mem_piece *piece = &p->pieces.v[p->checks_piece + i];
		struct py_slot *slot = &c->slots.v[c->checks[i]];

		if (!slot->at || (!piece->failed && py_slot_same(p, slot, piece->to)))
			continue;
		py_slot_reused(p, c->checks[i]);
	}
	c->checks_n = 0;
}

/* A function was met again: may be in line for a check with the next batch. Intervals double up to
 * INTERVAL_MAX sightings, so new ones are looked at often and old ones seldom. */
static void slot_seen(struct py_process *p, uint32_t index)
{
	struct py_slot *slot = &p->codes.slots.v[index];

	if (slot->counted == p->tick)
		return;
	slot->counted = slot->seen = p->tick;
	slot->sightings += slot->sightings < YOUNG;
	if (--slot->due)
		return;
	slot->due = 1;
	if (p->codes.checks_n >= PY_CHECKS)
		return;
	p->codes.checks[p->codes.checks_n++] = index;
	slot->interval = slot->interval < INTERVAL_MAX ? slot->interval * 2 : INTERVAL_MAX;
	slot->due = slot->interval;
}

static bool is_shim(const struct py_process *p, const struct py_link *link)
{
	return p->place.layout.frames != PY_FRAMES_HEAP &&
	       link->owner >= p->place.layout.owner_shim;
}

/* Byte offset of the instruction; false: outside of the code. */
static bool offset_of(const struct py_process *p, const struct py_slot *slot,
		      const struct py_link *link, int32_t *ret)
{
	const struct py_layout *l = &p->place.layout;
	int64_t offset;

	if (l->frames == PY_FRAMES_HEAP) {
		offset = (int64_t)link->instr * (l->minor >= 10 ? 2 : 1);
		if (offset < -2 || offset > INT32_MAX)
			return false;
	} else {
		offset = (int64_t)(link->instr - slot->at - l->code_instructions);
		/* prev_instr is one unit before the start until the first has run. */
		if (offset < -2 || offset >= (int64_t)slot->bytes)
			return false;
	}
	*ret = (int32_t)offset;
	return true;
}

static bool doubtful(const struct py_process *p, const struct py_slot *slot)
{
	return slot->restless || slot->sightings < YOUNG || p->tick - slot->seen > FRESH;
}

/* The slot of a frame's code, -1: none; sought once for a chain. */
static int64_t slot_of(struct py_process *p, struct py_link *link)
{
	int64_t index;

	if (link->slot && link->slot <= p->codes.slots.n && link->code &&
	    p->codes.slots.v[link->slot - 1].at == link->code)
		return link->slot - 1;
	index = py_slot_find(&p->codes, link->code);
	link->slot = (uint32_t)(index + 1);
	return index;
}

/* Lists the functions of a chain that are to be compared with what stands at their address now. */
static int list_doubtful(struct py_process *p, struct py_chain *c)
{
	uint32_t size = p->place.layout.code_size;

	p->verify.n = p->verified.n = 0;
	for (size_t i = 0; i < c->links.n; i++) {
		int64_t index = is_shim(p, &c->links.v[i]) ? -1 : slot_of(p, &c->links.v[i]);
		struct mem_piece *piece;

		if (index < 0 || !doubtful(p, &p->codes.slots.v[index]))
			continue;
		if (!vec_reserve(&p->verified, p->verified.n + 1))
			return -ENOMEM;
		piece = vec_push(&p->verify);
		if (!piece)
			return -ENOMEM;
		piece->at = p->codes.slots.v[index].at;
		piece->n = size;
		p->verified.v[p->verified.n++] = (uint32_t)index;
	}
	if (!vec_reserve(&p->scratch, p->verify.n * size))
		return -ENOMEM;
	for (size_t i = 0; i < p->verify.n; i++)
		p->verify.v[i].to = p->scratch.v + i * size;
	return 0;
}

/* In one call. Those that have become others are forgotten. */
static int verify_codes(struct py_process *p, struct py_chain *c)
{
	int r = list_doubtful(p, c);

	if (r == 0 && p->verify.n)
		r = mem_read_pieces(p->mem, p->verify.v, p->verify.n);
	for (size_t i = 0; r == 0 && i < p->verify.n; i++) {
		uint32_t index = p->verified.v[i];
		struct py_slot *slot = &p->codes.slots.v[index];

		if (!slot->at)
			continue;
		if (!p->verify.v[i].failed && py_slot_same(p, slot, p->verify.v[i].to))
			slot->seen = p->tick;
		else
			py_slot_reused(p, index);
	}
	return r;
}

/* All functions of a chain known, before it was read and now? Learns those that are not. */
static enum verdict know_codes(struct py_process *p, struct py_chain *c)
{
	enum verdict verdict = ACCEPTED;

	if (verify_codes(p, c) < 0)
		return TORN;
	for (size_t i = 0; i < c->links.n; i++) {
		struct py_link *link = &c->links.v[i];
		int64_t index;
		int32_t offset;

		if (is_shim(p, link))
			continue;
		index = slot_of(p, link);
		if (index < 0) {
			if (py_slot_learn(p, link->code) < 0)
				return TORN;
			verdict = LEARNED;
		} else if (!offset_of(p, &p->codes.slots.v[index], link, &offset)) {
			/* Other code than we know stands there, or this is no frame. */
			py_slot_reused(p, (uint32_t)index);
			return TORN;
		}
	}
	return verdict;
}

/* Does a third reading find the chain (chain[1]) once more? Then one interruption did no harm, see batch.c.
 * Generators take three copies that were not interrupted. */
static bool proven_though_late(struct py_process *p, struct py_tstate *t)
{
	struct py_chain *again = &p->chain[0], *c = &p->chain[1];

	if (!t->thrice)
		return false;
	for (size_t i = 0; i < c->links.n; i++)
		if (c->links.v[i].owner == PY_OWNER_GENERATOR)
			return false;
	if (py_copies_equal_still(p, t))
		return true;
	py_walk(p, t, 2, again);
	return again->end == PY_END_FIRST && py_chain_same(again, c);
}

static enum verdict judge(struct py_process *p, struct py_tstate *t)
{
	struct py_chain *a = &p->chain[0], *b = &p->chain[1];
	bool equal = t->read && py_copies_equal(p, t);

	if (!t->read)
		return MISSED;
	if (!equal) {
		py_walk(p, t, 0, a);
		if (a->end == PY_END_MISSING)
			return MISSED;
	}
	py_walk(p, t, 1, b);
	if (b->end == PY_END_MISSING)
		return MISSED;
	if (!vec_reserve(&a->links, b->links.n)) /* now: a warm sampler allocates nothing */
		return TORN;
	/* One that is, is so in both; in one alone it goes round in a circle of what was left over. */
	if (b->links.n >= PY_DEPTH_MAX && (equal || a->links.n >= PY_DEPTH_MAX))
		return TOO_DEEP;
	if ((!equal && !py_chain_same(a, b)) || !py_chain_linked(p, b) ||
	    (p->late && !proven_though_late(p, t)))
		return TORN;
	/* Equal but ending elsewhere: perhaps the thread's stack has moved. */
	if (!py_chain_whole(p, t, b))
		return b->end == PY_END_BROKEN ? TORN : MISSED;
	return py_chain_restless(p, t, b) ? TORN : know_codes(p, b);
}

static bool frame_put(struct py_stacks *out, uint32_t code, int32_t offset)
{
	struct py_frame *frame = vec_push(&out->frames);

	if (frame)
		*frame = (struct py_frame){ code, offset };
	return frame != NULL;
}

/* Writes chain[1] as the result; `partial`: the innermost frame's line is not known. */
static void put_chain(struct py_process *p, struct py_tstate *t, bool partial,
		      struct py_stacks *out)
{
	struct py_chain *c = &p->chain[1];
	struct py_thread *result = &t->result;

	result->first = (uint32_t)out->frames.n;
	for (size_t i = 0; i < c->links.n; i++) {
		struct py_link *link = &c->links.v[i];
		int64_t index = is_shim(p, link) ? -1 : slot_of(p, link);
		const struct py_slot *slot;
		int32_t offset;

		if (index < 0)
			continue;
		slot_seen(p, (uint32_t)index);
		slot = &p->codes.slots.v[index];
		if (slot->hidden || link->owner == PY_NOT_RUNNING ||
		    !offset_of(p, slot, link, &offset))
			continue;
		/* A frame that is being set up: Python does not show it either. */
		if (link->owner == 0 && offset < (int32_t)slot->traceable &&
		    p->place.layout.frames != PY_FRAMES_HEAP)
			continue;
		if (!frame_put(out, slot->id, offset))
			break;
	}
	result->n = (uint32_t)out->frames.n - result->first;
	if (partial && result->n)
		out->frames.v[result->first].offset = PY_OFFSET_UNKNOWN;
	result->status = partial ? PY_PARTIAL : result->n ? PY_COMPLETE : PY_EMPTY;
	t->done = true;
}

static void drop_inner(struct py_chain *c, size_t n)
{
	c->links.n -= n;
	memmove(c->links.v, c->links.v + n, c->links.n * sizeof(c->links.v[0]));
}

/* Keeps the outer part up to the first function that was not known before the copies were read, or is
 * another now. */
static void cut_unknown(struct py_process *p, struct py_chain *c)
{
	size_t i = c->links.n;

	if (verify_codes(p, c) < 0) {
		c->links.n = 0;
		return;
	}
	for (; i > 0; i--) {
		const struct py_link *link = &c->links.v[i - 1];
		int64_t index = is_shim(p, link) ? -1 : py_slot_find(&p->codes, link->code);
		int32_t offset;

		if (is_shim(p, link))
			continue;
		if (index < 0 || p->codes.slots.v[index].born == p->batch ||
		    !offset_of(p, &p->codes.slots.v[index], link, &offset))
			break;
	}
	drop_inner(c, i);
}

/* What a stack that never stands still consists of, for the next sample: of a function that was learned
 * behind this reading nothing is proven yet. From the outermost on, as far as there are functions. */
static void learn_some(struct py_process *p, const struct py_chain *c)
{
	unsigned learned = 0;

	for (size_t i = c->links.n; i > 0 && learned < LEARN_MAX; i--) {
		const struct py_link *link = &c->links.v[i - 1];

		if (is_shim(p, link) || py_slot_find(&p->codes, link->code) >= 0)
			continue;
		if (py_slot_learn(p, link->code) < 0)
			break;
		learned++;
	}
}

/* What is left when the attempts are used up. */
static void put_rest(struct py_process *p, struct py_tstate *t, struct py_stacks *out)
{
	bool salvaged;

	t->result.status = PY_UNPROVEN;
	t->result.n = 0;
	t->done = true;
	if (p->late)
		return;
	salvaged = py_chain_salvage(p, t);
	if (salvaged)
		drop_inner(&p->chain[1], py_chain_restless(p, t, &p->chain[1]));
	learn_some(p, &p->chain[1]);
	if (!salvaged)
		return;
	cut_unknown(p, &p->chain[1]);
	if (!p->chain[1].links.n)
		return;
	put_chain(p, t, true, out);
	if (!t->result.n)
		t->result.status = PY_UNPROVEN;
}

static void start_thread(struct py_process *p, struct py_tstate *t)
{
	t->done = false;
	t->result = (struct py_thread){ .tid = t->tid, .interpreter = t->interp };
	t->result.holds_gil = p->interps.v[t->interp].holder == t->at;
}

/* Before 3.11 each frame is an object of its own somewhere: a reading takes several times as long as one
 * of a stack that lies in one piece, and tears as much more often. */
static unsigned attempts(const struct py_process *p)
{
	return p->place.layout.minor < 11 ? ATTEMPTS_HEAP : ATTEMPTS;
}

/* One reading of all threads that are not done. *ret_left: how many of them remain. */
static int attempt(struct py_process *p, unsigned round, unsigned *torn, struct py_stacks *out,
		   size_t *ret_left)
{
	bool last = *torn >= attempts(p) || round + 1 >= attempts(p) + ROUNDS_BESIDES, tore = false;
	int r = 0;

	*ret_left = 0;
	for (size_t i = 0; i < p->threads.n && r == 0; i++) {
		struct py_tstate *t = &p->threads.v[i];
		enum verdict verdict;

		if (t->done)
			continue;
		verdict = judge(p, t);
		if (verdict == ACCEPTED) {
			put_chain(p, t, false, out);
			continue;
		}
		if (last || (verdict == TOO_DEEP && round >= DEEP_ROUNDS)) {
			put_rest(p, t, out);
			continue;
		}
		tore |= verdict == TORN || verdict == TOO_DEEP;
		++*ret_left;
		if (verdict == MISSED)
			r = py_thread_predict(p, t);
	}
	*torn += tore;
	return r;
}

static void count(struct py_process *p, const struct py_thread *t)
{
	switch (t->status) {
	case PY_COMPLETE:
		p->counts.complete++;
		break;
	case PY_PARTIAL:
		p->counts.partial++;
		break;
	case PY_EMPTY:
		p->counts.empty++;
		break;
	case PY_UNPROVEN:
		p->counts.unproven++;
		break;
	}
}

static int finish(struct py_process *p, struct py_stacks *out)
{
	if (!vec_reserve(&out->threads, p->threads.n))
		return -ENOMEM;
	for (size_t i = 0; i < p->threads.n; i++) {
		out->threads.v[out->threads.n++] = p->threads.v[i].result;
		count(p, &p->threads.v[i].result);
		py_thread_forget_old(p, &p->threads.v[i]);
	}
	return 0;
}

static void read_collecting(const struct py_process *p, struct py_stacks *out)
{
	const struct py_layout *l = &p->place.layout;
	uint32_t low = l->interp_next < l->interp_threads ? l->interp_next : l->interp_threads;

	out->collecting = false;
	if (l->runtime_collecting !=
	    PY_ABSENT) /* 3.8: within what is read for the holder of the GIL */
		out->collecting = py_i32(p->arena.v + p->runtime_copy,
					 l->runtime_collecting - l->runtime_interpreters) == 1;
	if (l->interp_collecting == PY_ABSENT || l->interp_collecting < low)
		return;
	for (size_t i = 0; i < p->interps.n; i++) {
		const struct mem_piece *piece = &p->pieces.v[p->interps.v[i].span_piece];

		if (!piece->failed && l->interp_collecting - low + 4 <= piece->n)
			out->collecting |= py_i32(p->arena.v + p->interps.v[i].span,
						  l->interp_collecting - low) == 1;
	}
}

/* Threads that come and go faster than their list can be read: the interpreter is still the one that was
 * attached to, and nothing is known of what its threads do at this moment. */
static bool list_moves(struct py_process *p)
{
	if (!py_interps_unchanged(p) || ++p->moving > MOVING_MAX)
		return false;
	py_threads_drop_new(p);
	if (!p->threads.n)
		return false;
	for (size_t i = 0; i < p->threads.n; i++) {
		start_thread(p, &p->threads.v[i]);
		p->threads.v[i].result.status = PY_UNPROVEN;
		p->threads.v[i].done = true;
	}
	return true;
}

/* The first batch, and the lists of interpreters and threads it leads to. */
static int begin(struct py_process *p, struct py_stacks *out)
{
	int r = -EBADMSG;

	for (unsigned i = 0; i < ATTEMPTS_LIST && r == -EBADMSG; i++) {
		p->counts.retries += i != 0;
		if (i && (r = py_interps_list(p)) < 0)
			break;
		r = py_batch_read(p, true);
		if (r < 0)
			return r;
		check_codes(p);
		r = py_threads_list(p);
		if (r == -EFAULT)
			r = -EBADMSG;
	}
	/* Whoever has become another program, or shuts down, has no list that makes sense. */
	if (r == -EBADMSG || r == -EAGAIN || r == -EFAULT)
		return list_moves(p) ? 0 : -ESTALE;
	if (r < 0)
		return r;
	p->moving = 0;
	read_collecting(p, out);
	for (size_t i = 0; i < p->threads.n; i++)
		start_thread(p, &p->threads.v[i]);
	return 0;
}

int py_sample(struct py_process *p, struct py_stacks *out)
{
	unsigned torn = 1;
	size_t left = 1;
	int r;

	out->threads.n = out->frames.n = 0;
	out->collecting = false;
	p->tick++;
	p->counts.samples++;
	r = begin(p, out);
	for (unsigned round = 0; r == 0 && left; round++) {
		if (round) {
			p->counts.retries++;
			p->counts.late += p->late;
			r = py_batch_read(p, false);
			if (r < 0)
				break;
			check_codes(p);
		}
		r = attempt(p, round, &torn, out, &left);
	}
	return r < 0 ? r : finish(p, out);
}

/* SPDX-License-Identifier: MIT
 *
 * Stacks whose innermost frames could not be proven, on a CPU: code that calls small functions all the time is read so
 * most often, so that leaving these out would hide just the loops that cost most. Their outer frames are proven, up to
 * the call of a function from a line; where nearly all that was seen below that call is one thing, this is, too.
 */
#include "explain/activity_part.h"
#include "explain/ledger/topics.h"

#include <string.h>

/* Of what was seen below the same call, in samples and as a share of its time. */
static const uint32_t seen_least = 4;
static const double same_least = 0.9;

/* What was seen below one call. */
struct call {
	double seconds[TIME_STATES], about[TOPICS], all;
	uint32_t samples;
	const struct act_row *longest; /* of all: an example of them */
};

struct calls {
	VEC(struct call) v;
	struct map by_key; /* -> place in v, + 1 */
};

/* A function as it is called from a line: the line inside of it is not what matters. 0: no such thing. */
static uint64_t call_of(const struct stack_book *book, uint32_t node)
{
	const struct stack_node *n =
	    node && node <= book->nodes.n ? &book->nodes.v[node - 1] : NULL;
	const struct place *p = n ? stack_book_find_place(book, n->place) : NULL;

	if (!p || p->kind != PLACE_PYTHON || !p->file || !p->function)
		return 0;
	return map_mix(place_code(p) ^ map_mix(n->parent));
}

static bool add(struct calls *c, uint64_t key, const struct act_row *r)
{
	uint32_t at = 0;
	struct call *x;

	if (!map_get(&c->by_key, key, &at)) {
		x = vec_push(&c->v);
		at = (uint32_t)c->v.n;
		if (!x || !map_put(&c->by_key, key, at))
			return false;
		*x = (struct call){ 0 };
	}
	x = &c->v.v[at - 1];
	x->seconds[r->state] += r->seconds;
	for (uint32_t left = r->topics; left; left &= left - 1)
		x->about[__builtin_ctz(left)] += r->seconds;
	x->all += r->seconds;
	x->samples += r->count;
	if (!x->longest || r->seconds > x->longest->seconds)
		x->longest = r;
	return true;
}

static bool is_known(const struct act_row *r)
{
	return !r->unknown && r->on_cpu && !(r->flags & STACK_PARTIAL) && r->node;
}

static bool is_open(const struct act_row *r)
{
	return r->unknown && r->on_cpu && r->flags & STACK_PARTIAL &&
	       !(r->flags & STACK_UNPROVEN) && r->node;
}

static bool note_calls(const struct activity *a, const struct act_thread *t, struct calls *c)
{
	for (size_t k = t->row; k < t->row + t->n_rows; k++) {
		const struct act_row *r = &a->rows.v[k];
		uint32_t node = is_known(r) ? r->node : 0;

		for (int depth = 0; node && depth < STACK_DEPTH_MAX; depth++) {
			uint64_t key = call_of(a->book, node);

			if (key && !add(c, key, r))
				return false;
			node = a->book->nodes.v[node - 1].parent;
		}
	}
	return true;
}

static uint32_t topics_of(const struct call *x)
{
	uint32_t topics = 0;

	for (int i = 0; i < TOPICS; i++)
		topics |= x->about[i] >= same_least * x->all ? TOPIC_BIT(i) : 0;
	return topics;
}

void rows_of_calls(struct activity *a, const struct act_thread *t)
{
	struct calls c = { 0 };
	/* without memory they stay what they were */
	bool ok = note_calls(a, t, &c);

	for (size_t k = t->row; ok && k < t->row + t->n_rows; k++) {
		struct act_row *r = &a->rows.v[k];
		const struct call *x;
		uint32_t at;

		if (!is_open(r) || !map_get(&c.by_key, call_of(a->book, r->node), &at))
			continue;
		x = &c.v.v[at - 1];
		if (x->samples < seen_least || x->seconds[x->longest->state] < same_least * x->all)
			continue;
		r->unknown = false;
		r->topics |= topics_of(x);
		r->state = x->longest->state;
		r->phase = x->longest->phase;
		r->matched = x->longest->matched;
		r->sure = x->longest->sure;
	}
	vec_done(&c.v);
	map_done(&c.by_key);
}

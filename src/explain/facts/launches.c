/* SPDX-License-Identifier: MIT
 *
 * Waiting for the device in the midst of handing out work: its queue holds a thousand kernels or so, and who launches the
 * next one waits for room. Nobody asks for a value there, and no order could be spared that way: it belongs to the
 * handing out. Known by the native call, else by the line, which hands out work as well.
 */
#include "explain/facts/stacked.h"
#include "explain/ledger/topics.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

/* Of the time a line waits: so much it must be seen to hand out. */
static const double given_least = 0.4;

static bool asks(const struct act_row *r)
{
	return r->topics & (TOPIC_BIT(TOPIC_READ_BACK) | TOPIC_BIT(TOPIC_COPY_IN));
}

/* By both lines, the program's and the innermost one: `trainer.fit(model)` hands out and waits, and is no line of either. */
struct lines {
	struct map ms; /* milliseconds */
	bool failed;
};

static uint64_t key_of(const struct act_row *r)
{
	return (uint64_t)r->place << 32 | r->leaf;
}

static void lines_add(struct lines *l, const struct act_row *r)
{
	uint32_t so_far = 0;
	double ms = ceil(r->seconds * 1e3);

	map_get(&l->ms, key_of(r), &so_far);
	l->failed |= !map_put(&l->ms, key_of(r), (uint32_t)fmin(so_far + ms, UINT32_MAX));
}

/* "cuLaunchKernel", "cudaLaunchKernelExC", "hipModuleLaunchKernel": where native callers are known they say it. */
static bool launches(const struct activity *a, const struct act_row *r)
{
	uint32_t places[STACK_DEPTH_MAX];
	size_t n = stack_book_walk(a->book, r->node, places, STACK_DEPTH_MAX);

	for (size_t i = 0; i < n; i++) {
		const struct place *p = stack_book_find_place(a->book, places[i]);

		if (!p || p->kind != PLACE_NATIVE || !p->function)
			continue;
		if ((strncmp(p->function, "cu", 2) == 0 || strncmp(p->function, "hip", 3) == 0) &&
		    strstr(p->function, "Launch"))
			return true;
	}
	return false;
}

/* Does its line hand out work, too? */
static bool hands_out(const struct lines *given, const struct lines *waited,
		      const struct act_row *r)
{
	uint32_t out = 0, wait = 0;

	map_get(&given->ms, key_of(r), &out);
	map_get(&waited->ms, key_of(r), &wait);
	return out && out >= given_least * wait;
}

static bool is_known(const struct act_row *r)
{
	return !r->unknown && !(r->flags & STACK_PARTIAL) && r->place && r->leaf;
}

/* Of the samples that wait for the device: the share that waits for room. NAN: out of memory. */
static double share_of(const struct activity *a, const struct act_thread *t)
{
	struct lines given = { 0 }, waited = { 0 };
	double all = 0, held = 0;

	for (size_t k = t->row; k < t->row + t->n_rows; k++) {
		const struct act_row *r = &a->rows.v[k];

		all += !r->unknown && r->state == TIME_GPU_WAIT ? r->seconds : 0;
		if (is_known(r) && r->state == TIME_DISPATCH)
			lines_add(&given, r);
		else if (is_known(r) && r->state == TIME_GPU_WAIT && !asks(r))
			lines_add(&waited, r);
	}
	for (size_t k = t->row; k < t->row + t->n_rows; k++) {
		const struct act_row *r = &a->rows.v[k];

		if (is_known(r) && r->state == TIME_GPU_WAIT && !asks(r) &&
		    (launches(a, r) || hands_out(&given, &waited, r)))
			held += r->seconds;
	}
	held = given.failed || waited.failed ? (double)NAN : all > 0 ? held / all : 0;
	map_done(&given.ms);
	map_done(&waited.ms);
	return held;
}

static void compute(const struct scene *s, struct facts *f)
{
	const struct activity *a = &s->activity;
	const char *why;
	const struct act_thread *t = stacked_critical(a, &why);
	double share = t ? share_of(a, t) : (double)NAN;

	if (isfinite(share))
		fact_set(f, FACT_DISPATCH_HELD, share * t->state[TIME_GPU_WAIT] / t->alive);
	else
		fact_absent(f, FACT_DISPATCH_HELD, "%s", t ? "out of memory" : why);
}

const struct fact_source launches_facts = { "launches", compute };

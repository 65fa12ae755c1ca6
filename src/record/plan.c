/* SPDX-License-Identifier: MIT
 *
 * Which source answers for which stretch: long buckets in the middle, shorter ones towards the
 * edges, samples at the ragged ends; and where retention has deleted the better source, the next
 * longer bucket in proportion.
 */
#include "record/read.h"

/* Multiples of length since the start of the run. */
static int64_t floor_to(const struct record *r, int64_t t, int64_t length)
{
	int64_t since = t - r->run.started_mono_ns;
	int64_t n = since >= 0 ? since / length : -((-since + length - 1) / length);

	return r->run.started_mono_ns + n * length;
}

static int64_t ceil_to(const struct record *r, int64_t t, int64_t length)
{
	int64_t low = floor_to(r, t, length);

	return low == t ? t : low + length;
}

static int64_t at_least(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static int64_t at_most(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static void add(struct plan *p, enum piece_source source, int64_t lo, int64_t hi)
{
	if (lo < hi && p->n < sizeof(p->v) / sizeof(p->v[0]))
		p->v[p->n++] = (struct piece){ source, lo, hi };
}

/* Buckets although they may stick out: the samples are gone. */
static void add_deleted(const struct record *r, enum entity_kind g, int64_t lo, int64_t hi,
			struct plan *p)
{
	int64_t fine = at_least(lo, at_most(hi, r->fine_from_ns[g]));

	add(p, PIECE_COARSE, lo, fine);
	add(p, PIECE_FINE, fine, hi);
}

static void add_raw(const struct record *r, enum entity_kind g, int64_t lo, int64_t hi,
		    struct plan *p)
{
	int64_t raw = at_least(lo, at_most(hi, r->raw_from_ns[g]));

	if (lo < raw)
		add_deleted(r, g, lo, raw, p);
	add(p, PIECE_RAW, raw, hi);
}

static void add_fine(const struct record *r, enum entity_kind g, int64_t lo, int64_t hi,
		     struct plan *p)
{
	int64_t f0 = ceil_to(r, at_least(lo, r->fine_from_ns[g]), ROLLUP_FINE_NS);
	int64_t f1 = floor_to(r, at_most(hi, r->fine_to_ns), ROLLUP_FINE_NS);

	if (f0 >= f1) {
		add_raw(r, g, lo, hi, p);
		return;
	}
	add_raw(r, g, lo, f0, p);
	add(p, PIECE_FINE, f0, f1);
	add_raw(r, g, f1, hi, p);
}

void plan_range(const struct record *r, enum entity_kind g, int64_t lo, int64_t hi, int64_t most,
		struct plan *ret)
{
	int64_t c0 = ceil_to(r, lo, ROLLUP_COARSE_NS);
	int64_t c1 = floor_to(r, at_most(hi, r->coarse_to_ns), ROLLUP_COARSE_NS);

	if (lo >= hi)
		return;
	if (most < ROLLUP_FINE_NS) {
		add_raw(r, g, lo, hi, ret);
	} else if (most < ROLLUP_COARSE_NS || c0 >= c1) {
		add_fine(r, g, lo, hi, ret);
	} else {
		add_fine(r, g, lo, c0, ret);
		add(ret, PIECE_COARSE, c0, c1);
		add_fine(r, g, c1, hi, ret);
	}
}

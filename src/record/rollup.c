/* SPDX-License-Identifier: MIT */
#include "record/rollup.h"

#include "model/window.h"

#include <math.h>

enum { MEAN_STEPS = 4095 };

void rollup_open(struct rollup *r, int64_t t_ns, int64_t value)
{
	*r = (struct rollup){ .since_ns = t_ns,
			      .held_to_ns = t_ns,
			      .base = value,
			      .min = value,
			      .max = value,
			      .any = true };
}

void rollup_first(struct rollup *r, int64_t t_ns, int64_t value)
{
	rollup_open(r, t_ns, value);
	r->first = value;
	r->fresh = true;
}

void rollup_hold(struct rollup *r, int64_t end_ns, int64_t value)
{
	if (!r->any || end_ns <= r->held_to_ns)
		return;
	r->integral += (double)value * (double)(end_ns - r->held_to_ns);
	r->held_to_ns = end_ns;
}

void rollup_change(struct rollup *r, int64_t t_ns, int64_t before, int64_t value, bool counter)
{
	rollup_hold(r, t_ns, before);
	r->changed = true;
	/* The same rule as for raw samples (model/window.h). */
	if (counter && counter_restarted((double)before, (double)value)) {
		r->reset = true;
		r->growth += (uint64_t)value;
	} else {
		r->growth += (uint64_t)value - (uint64_t)before;
	}
	if (value < r->min)
		r->min = value;
	if (value > r->max)
		r->max = value;
}

void rollup_fold(struct rollup *longer, const struct rollup *r)
{
	if (!r->any)
		return;
	if (!longer->any) {
		*longer = *r;
		return;
	}
	longer->held_to_ns = r->held_to_ns;
	longer->integral += r->integral;
	longer->growth += r->growth;
	longer->changed |= r->changed;
	longer->reset |= r->reset;
	if (r->min < longer->min)
		longer->min = r->min;
	if (r->max > longer->max)
		longer->max = r->max;
}

static void put_field(struct block_codec *c, uint64_t series_id, enum rollup_field field, bool held,
		      int64_t base, int64_t value)
{
	uint8_t token[BLOCK_TOKEN_MAX];
	size_t n = block_token(token, 1, held ? base : 0, value);

	block_put(c,
		  &(struct block_head){
		      .id = series_id << 3 | field, .back = 1, .held = held, .base = base },
		  token, n);
}

static int64_t mean_step(const struct rollup *r, int64_t last)
{
	double span = (double)(r->held_to_ns - r->since_ns);
	double range = (double)r->max - (double)r->min;
	double mean = span > 0 ? r->integral / span : (double)last;
	double at = range > 0 ? (mean - (double)r->min) / range : 0;

	return llround((at < 0 ? 0 : at > 1 ? 1 : at) * MEAN_STEPS);
}

void rollup_put(struct block_codec *c, uint64_t series_id, const struct rollup *r, int64_t t0_ns,
		int64_t last, bool counter)
{
	put_field(c, series_id, ROLLUP_LAST, !r->fresh, r->base, last);
	if (counter && r->reset)
		put_field(c, series_id, ROLLUP_GROWTH, false, 0, (int64_t)r->growth);
	if (!counter) {
		put_field(c, series_id, ROLLUP_LO, false, 0,
			  (int64_t)((uint64_t)last - (uint64_t)r->min));
		put_field(c, series_id, ROLLUP_HI, false, 0,
			  (int64_t)((uint64_t)r->max - (uint64_t)last));
		put_field(c, series_id, ROLLUP_MEAN, false, 0, mean_step(r, last));
	}
	if (!r->fresh)
		return;
	put_field(c, series_id, ROLLUP_SINCE, false, 0, r->since_ns - t0_ns);
	put_field(c, series_id, ROLLUP_FIRST, false, 0, r->first);
}

void rollup_begin(struct rollup_reader *r, struct block_reader *b, int64_t span_ns)
{
	*r = (struct rollup_reader){ .block = b, .span_ns = span_ns };
	r->has_ahead = block_next(b, &r->ahead);
}

static void advance(struct field *f)
{
	f->tick = block_sample(&f->cursor);
	f->there = f->tick >= 0;
}

bool rollup_series(struct rollup_reader *r)
{
	if (!r->has_ahead)
		return false;
	r->series_id = r->ahead.head.id >> 3;
	for (int i = 0; i < ROLLUP_FIELDS; i++)
		r->fields[i] = (struct field){ 0 };
	r->held = false;
	while (r->has_ahead && r->ahead.head.id >> 3 == r->series_id) {
		unsigned field = (unsigned)(r->ahead.head.id & 7);

		if (field == ROLLUP_LAST) {
			r->held = r->ahead.head.held;
			r->base = r->ahead.head.base;
		}
		if (field < ROLLUP_FIELDS) {
			block_samples(r->block, &r->ahead, &r->fields[field].cursor);
			advance(&r->fields[field]);
		}
		r->has_ahead = block_next(r->block, &r->ahead);
	}
	return true;
}

/* The value of a field in this bucket, if it has one. */
static bool take(struct rollup_reader *r, enum rollup_field field, int tick, int64_t *ret)
{
	struct field *f = &r->fields[field];

	while (f->there && f->tick < tick)
		advance(f);
	if (!f->there || f->tick != tick)
		return false;
	*ret = f->cursor.raw;
	advance(f);
	return true;
}

static void counter_bucket(struct rollup_reader *r, int tick, struct bucket *b)
{
	int64_t before = b->held ? b->base : b->fresh ? b->first : b->last;

	if (!take(r, ROLLUP_GROWTH, tick, &b->growth))
		b->growth = (int64_t)((uint64_t)b->last - (uint64_t)before);
	b->min = before < b->last ? before : b->last;
	b->max = before < b->last ? b->last : before;
	/* Nobody asks for the mean height of a counter: as if it had grown evenly. */
	b->mean = (double)before + ((double)b->last - (double)before) / 2;
}

static void gauge_bucket(struct rollup_reader *r, int tick, struct bucket *b)
{
	int64_t lo = 0, hi = 0, at = 0;

	take(r, ROLLUP_LO, tick, &lo);
	take(r, ROLLUP_HI, tick, &hi);
	take(r, ROLLUP_MEAN, tick, &at);
	b->min = (int64_t)((uint64_t)b->last - (uint64_t)lo);
	b->max = (int64_t)((uint64_t)b->last + (uint64_t)hi);
	b->mean = (double)b->min + ((double)b->max - (double)b->min) * (double)at / MEAN_STEPS;
}

bool rollup_bucket(struct rollup_reader *r, bool counter, struct bucket *ret)
{
	int tick = r->fields[ROLLUP_LAST].tick;
	int64_t since = 0;
	struct bucket b = { .held = r->held, .base = r->base };

	if (!r->fields[ROLLUP_LAST].there || !take(r, ROLLUP_LAST, tick, &b.last))
		return false;
	b.t1_ns = r->block->ticks.v[tick];
	/* Hostile times may lie anywhere: wrap rather than overflow. */
	b.t0_ns = (int64_t)((uint64_t)b.t1_ns - (uint64_t)r->span_ns);
	b.fresh = take(r, ROLLUP_FIRST, tick, &b.first) && !b.held;
	if (take(r, ROLLUP_SINCE, tick, &since) && since > 0 && since < r->span_ns)
		b.t0_ns = (int64_t)((uint64_t)b.t0_ns + (uint64_t)since);
	if (counter)
		counter_bucket(r, tick, &b);
	else
		gauge_bucket(r, tick, &b);
	r->held = true;
	r->base = b.last;
	*ret = b;
	return true;
}

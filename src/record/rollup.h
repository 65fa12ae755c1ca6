/* SPDX-License-Identifier: MIT
 *
 * Roll-ups: what each series did in a bucket of 10 s, and of 5 min, so that a question about a day
 * is answered without reading the day. A bucket is written only when it is over and only for series
 * whose value changed in it; all others held theirs.
 *
 * They are kept in blocks (record/block.h) whose ticks are the ends of the buckets, with a few plain
 * series for each measured one: id = series id * 8 + field.
 *
 *	last	the value at the end; its base is the value held from before the bucket
 *	growth	counters that were reset in it: the growth; else it is last - base (or - first)
 *	lo, hi	gauges: last - min and max - last
 *	mean	gauges: where between min and max the mean over time lies, 0..4095
 *	since	the first bucket a series has a value in: ns from the bucket's start to it
 *	first	the same: that value
 */
#ifndef SPOTTER_RECORD_ROLLUP_H
#define SPOTTER_RECORD_ROLLUP_H

#include "record/block.h"

#define ROLLUP_FINE_NS   10000000000ll
#define ROLLUP_COARSE_NS 300000000000ll
/* As stored in rollup.level. */
#define ROLLUP_FINE   "10s"
#define ROLLUP_COARSE "5min"

enum rollup_field {
	ROLLUP_LAST,
	ROLLUP_GROWTH,
	ROLLUP_LO,
	ROLLUP_HI,
	ROLLUP_MEAN,
	ROLLUP_SINCE,
	ROLLUP_FIRST,
	ROLLUP_FIELDS
};

/* A bucket in the making. {0}: the series has no value yet. */
struct rollup {
	int64_t since_ns;   /* start of the bucket, or the first value if that came later */
	int64_t held_to_ns; /* how far `integral` goes */
	int64_t base, first, min, max;
	uint64_t growth; /* wraps like the counters do */
	double integral; /* value x ns */
	bool any, fresh, changed, reset;
};

/* A new bucket for a series that holds this value. */
void rollup_open(struct rollup *r, int64_t t_ns, int64_t value);
/* The first value the series ever has. */
void rollup_first(struct rollup *r, int64_t t_ns, int64_t value);
/* Its value goes from one to another. */
void rollup_change(struct rollup *r, int64_t t_ns, int64_t before, int64_t value, bool counter);
/* Holds the value to the end (of the bucket or of the thing measured). */
void rollup_hold(struct rollup *r, int64_t end_ns, int64_t value);
/* Adds a closed bucket to the longer one it is part of. */
void rollup_fold(struct rollup *longer, const struct rollup *r);
/* Writes it into a block of one tick, which is the bucket's end. t0_ns: its start. */
void rollup_put(struct block_codec *c, uint64_t series_id, const struct rollup *r, int64_t t0_ns,
		int64_t last, bool counter);

/* A bucket as read back, in raw units. */
struct bucket {
	int64_t t0_ns, t1_ns; /* the part of it in which the series had a value (as far as known) */
	bool held;            /* `base` is the value it began with */
	bool fresh;           /* or `first` is the first value it ever had */
	int64_t base, first, last, min, max;
	int64_t growth;
	double mean;
};

/* Walks the roll-ups of one block, series by series. */
struct rollup_reader {
	struct block_reader *block;
	int64_t span_ns;
	struct block_series ahead; /* read and not yet used */
	bool has_ahead;
	uint64_t series_id;
	struct field {
		struct block_cursor cursor;
		int tick;
		bool there;
	} fields[ROLLUP_FIELDS];
	bool held;
	int64_t base;
};

void rollup_begin(struct rollup_reader *r, struct block_reader *b, int64_t span_ns);
/* The next measured series, its id in r->series_id; false at the end. */
bool rollup_series(struct rollup_reader *r);
/* Its next bucket; false at the end. */
bool rollup_bucket(struct rollup_reader *r, bool counter, struct bucket *ret);

#endif

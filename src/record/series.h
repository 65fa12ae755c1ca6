/* SPDX-License-Identifier: MIT
 *
 * The series a writer has in hand. Each sample is put once, as a token of 1 to 4 bytes behind those
 * of its series; a second's block is cut out of these tokens and the minute's block is all of them,
 * so compaction re-reads nothing. Roll-up buckets are kept beside. Once every series has had its
 * fullest minute nothing here allocates.
 *
 * A `slot` is the stretch between two rotations: a minute, or less when much comes in.
 */
#ifndef SPOTTER_RECORD_SERIES_H
#define SPOTTER_RECORD_SERIES_H

#include "base/map.h"
#include "base/vec.h"
#include "model/metric.h"
#include "record/block.h"
#include "record/rollup.h"

/* A block of a minute and group is made of at most this many bytes of tokens. */
enum { SERIES_SLOT_BYTES = 2 << 20, SERIES_SLOT_TICKS = 50000 };

struct series {
	uint64_t id;   /* metric in the file << 32 | entity */
	uint8_t group; /* enum entity_kind */
	bool counter, any, gone, touched;
	bool settled; /* gone, and the bucket it went in is closed */
	int64_t value;

	uint8_t *tokens;
	uint32_t bytes, cap;
	int32_t tick; /* of the last sample, in the group's ticks; -1: none in this slot */
	bool held;    /* there was a value before the slot: */
	int64_t base;

	/* The same at the last cut. */
	uint32_t cut;
	int32_t cut_tick;
	bool cut_held;
	int64_t cut_value;

	uint32_t after;   /* index + 1 of the series that followed this one in the frame before */
	uint32_t sibling; /* index + 1 of the next series of the same entity */
	struct rollup fine, coarse;
};

struct series_group {
	VEC(int64_t) ticks;    /* of this slot, those with a sample in this group */
	size_t cut;            /* first tick after the last cut */
	VEC(uint32_t) touched; /* series with samples since then */
	VEC(uint32_t) members;
	bool unsorted;
	size_t bytes; /* of tokens in this slot */
	uint64_t samples, cut_samples;
};

struct series_set {
	VEC(struct series) rows;
	VEC(uint32_t) unused; /* rows to use again */
	struct map by_id;
	struct map entities; /* id -> kind << 28 | index + 1 of its first series */
	uint32_t last;       /* index + 1 of the series put last: the next is probably ->after */
	struct series_group groups[ENTITY_KINDS];
};

void series_done(struct series_set *s);

/* Times are kept to 10 us: below that clocks, and the kernel's own accounts of a running thread, are
 * noise, and noise does not pack (it was half of every file). So nanoseconds of CPU time go into the
 * file in units of 10 us, and the file's own scale says so. Errors do not add up: it is the counter
 * that is cut, not its growth. */
enum { SERIES_TICK_NS = 10000 };

static inline int64_t series_raw(enum metric_id m, int64_t raw)
{
	return metrics[m].scale == 1e-9 ? raw / SERIES_TICK_NS : raw;
}

static inline double series_scale(enum metric_id m)
{
	return metrics[m].scale == 1e-9 ? 1e-5 : metrics[m].scale;
}

static inline int64_t series_time(int64_t t_ns)
{
	return t_ns - t_ns % SERIES_TICK_NS;
}

/* 0 or -ENOMEM. raw is as in the frame. Processes and threads: a value that did not change is not
 * kept. */
int series_put(struct series_set *s, int64_t t_ns, enum metric_id metric, uint32_t entity,
	       int64_t raw);
/* Remembers what kind of thing an id is; forgets it (and ends its series) when it is gone. */
int series_born(struct series_set *s, uint32_t entity, enum entity_kind kind);
enum entity_kind series_gone(struct series_set *s, uint32_t entity, int64_t t_ns);
enum entity_kind series_kind(const struct series_set *s, uint32_t entity); /* NONE: unknown */

/* A block to write: times of its ticks, and the blob borrowed from the codec. n 0: nothing to write. */
struct series_block {
	int64_t t0_ns, t1_ns;
	size_t ticks;
	uint64_t samples;
	const void *blob;
	size_t n;
};

/* The samples of this group since the last cut, as a block. */
int series_cut(struct series_set *s, enum entity_kind g, struct block_codec *c,
	       struct series_block *ret);
/* All samples of this group since the last rotation. */
int series_slot(struct series_set *s, enum entity_kind g, struct block_codec *c,
		struct series_block *ret);
/* True when a group has so much in hand that it must be rotated now. */
bool series_full(const struct series_set *s);
/* Starts a new slot, and frees what belonged to things that are gone. */
void series_rotate(struct series_set *s);

/* Ends the fine bucket at end_ns and writes what changed in it; starts the next. */
int series_fine(struct series_set *s, enum entity_kind g, int64_t end_ns, struct block_codec *c,
		struct series_block *ret);
/* The same for the coarse bucket, of which all fine ones are closed. only_gone: just those things
 * that are gone, before the bucket is over, so that they can be freed. */
int series_coarse(struct series_set *s, enum entity_kind g, int64_t end_ns, bool only_gone,
		  struct block_codec *c, struct series_block *ret);

#endif

/* SPDX-License-Identifier: MIT
 *
 * New blocks out of old ones: many short ones as one, and one with fewer samples. Pure.
 */
#ifndef SPOTTER_RECORD_MERGE_H
#define SPOTTER_RECORD_MERGE_H

#include "base/map.h"
#include "record/block.h"

/* More series than that are of things that live shortly: joining saves nothing and takes memory. */
enum { MERGE_SERIES = 20000 };

/* Joins blocks given in order of time. {0} is empty. */
struct merge {
	VEC(struct merge_series {
		struct block_head head;
		struct buf tokens;
		int64_t value;
		int64_t tick;
	})
	rows;
	struct map by_id;
	VEC(int64_t) ticks;
	struct block_reader reader;
};

void merge_done(struct merge *m);
/* 0, -EBADMSG (damaged: what could be read of it is in), -ENOMEM, -E2BIG beyond MERGE_SERIES. */
int merge_add(struct merge *m, const void *blob, size_t n);
/* The joined block, borrowed from the codec. */
int merge_end(struct merge *m, struct block_codec *c, const void **ret_blob, size_t *ret_n);

/* At most one sample a second and series: the last of each second (counted from start_ns), and for
 * counters also the ones before and after a reset, so that growth stays exact. */
struct thin {
	struct block_reader reader;
	VEC(uint32_t) place; /* tick in the old block -> tick in the new one + 1, 0: not kept */
	VEC(int64_t) ticks;
	struct buf tokens;
	uint64_t samples; /* kept */
};

void thin_done(struct thin *t);
int thin_block(struct thin *t, const void *blob, size_t n, int64_t start_ns,
	       bool (*is_counter)(uint64_t id), struct block_codec *c, const void **ret_blob,
	       size_t *ret_n);

#endif

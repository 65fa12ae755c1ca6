/* SPDX-License-Identifier: MIT
 *
 * The codec of stacks: slices (what each thread did during about a second) as one compressed blob. Pure:
 * no file, no database, and whatever bytes it is given it answers with rows or with "damaged".
 *
 * A blob is one zstd frame (with its content size) around this payload; numbers are LEB128 varints,
 * signed ones zigzag first:
 *
 *	version		1 byte, 1
 *	slices...	to the end; each:
 *	  from		signed ns
 *	  length	ns, at least 1
 *	  n		number of rows; each:
 *	    entity	step from the row before (the first: from 0)
 *	    node	step from the row before of the same entity, else from 0
 *	    state, on	1 byte each, as in table stack_word
 *	    flags	1 byte, bits as in table stack_word
 *	    peer, count	as they are
 *	    weight	ns
 *
 * Slices stand by themselves, so the payload of a minute is those of its seconds in a row.
 */
#ifndef SPOTTER_RECORD_STACK_BLOCK_H
#define SPOTTER_RECORD_STACK_BLOCK_H

#include "model/stacks.h"
#include "record/block.h"

enum {
	STACK_BLOCK_VERSION = 1,
	STACK_BLOCK_BYTES = 8 << 20, /* payload; a larger one is not ours */
	STACK_SLICE_ROWS = 1 << 16,  /* of one slice: at most 33 bytes each */
	STACK_ROW_BYTES = 8,         /* the shortest row */
};

/* What a stretch of a record weighs at most in all, so that sums of rows cannot overflow. */
#define STACK_WEIGHT_MAX (INT64_MAX / 4)

/* Appends a slice. The first one into an empty buffer gets the version byte before it. Rows must be in
 * order (stack_rows_merge). Check with buf_ok(). */
void stack_block_put(struct buf *payload, const struct stack_slice *s);

struct stack_block {
	struct block_codec codec;
	struct buf plain;
	const uint8_t *p, *end; /* what is left of it */
	VEC(struct stack_row) rows;
	int64_t last_ns; /* start of the slice before */
	int64_t
	    weight_ns; /* of all rows so far, over several blobs: stays below STACK_WEIGHT_MAX */
	bool damaged;
};

void stack_block_done(struct stack_block *b);
/* 0, -EBADMSG for what is no blob of ours, -ENOMEM. A blob that turns out damaged later sets ->damaged
 * and ends there. */
int stack_block_open(struct stack_block *b, const void *blob, size_t n);
/* The next slice: 1, 0 at the end, -ENOMEM. Its rows are borrowed until the next call. */
int stack_block_next(struct stack_block *b, struct stack_slice *ret);

#endif

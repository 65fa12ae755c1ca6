/* SPDX-License-Identifier: MIT
 *
 * The codec of the time series: many series of one stretch of time as one compressed blob. Pure: no
 * file, no database, and whatever bytes it is given it answers with values or with "damaged".
 *
 * A blob is one zstd frame (with its content size) around this payload; numbers are LEB128 varints,
 * signed ones zigzag first:
 *
 *	version			1 byte, 1
 *	head, gaps, firsts	lengths in bytes of the first three of four sections; then these:
 *
 *	head	n, unit		number of ticks, and the ns their steps are counted in
 *		t0, usual	the first tick (signed ns), and the usual step to the next one
 *		steps...	signed, each less the usual one
 *		series...	to the end of the head; each:
 *		  id		signed step from the id before
 *		  n		number of samples
 *		  gap, rest	bytes of this series in those sections; no gap bytes: no gaps
 *		  back*2 + held	how many ticks before this block's first one the last sample was (1 when
 *				there is none); held: a value from before the block is known, and
 *				follows as
 *		  base		signed
 *	gaps	for each sample the ticks skipped since the one before
 *	firsts	for each sample the first byte of the varint of its delta (signed)
 *	rests	the other bytes of it
 *
 * Sections are compressed with statistics of their own: what is noise (low bits of CPU times) does
 * not spoil what is not. Tokens, as series are kept in memory, have gap and delta side by side, so
 * the tokens of a second can be cut out of those of its minute: only base and back differ. Deltas
 * wrap at 64 bits: every int64 can follow every other.
 */
#ifndef SPOTTER_RECORD_BLOCK_H
#define SPOTTER_RECORD_BLOCK_H

#include "base/buf.h"
#include "base/vec.h"

#include <stdbool.h>
#include <stdint.h>

enum {
	BLOCK_VERSION = 1,
	BLOCK_MAX_BYTES = 32 << 20, /* payload; a larger one is not ours */
	BLOCK_MAX_TICKS = 1 << 16,
	BLOCK_TOKEN_MAX = 15, /* bytes of the longest token */
};

/* What a block says of a series besides its samples. */
struct block_head {
	uint64_t id;
	uint32_t back;
	bool held;
	int64_t base; /* when held */
};

/* Both directions; holds the compressor's memory (about 1 MB once used). {0} is valid. */
struct block_codec {
	void *cctx, *dctx; /* ZSTD_CCtx, ZSTD_DCtx: made when first needed */
	struct buf sections[4], packed;
	uint64_t id; /* of the series before */
	/* Packs harder: for what is kept, as opposed to a second's block that lives a minute. Costs
	 * twice the time for 3 % of the size. */
	bool thorough;
};

void block_codec_done(struct block_codec *c);

/* Encoding: begin, put the series in any order, end. Ticks rise strictly. The blob is borrowed until
 * the next begin. */
void block_begin(struct block_codec *c, const int64_t *ticks, size_t n);
void block_put(struct block_codec *c, const struct block_head *h, const uint8_t *tokens,
	       size_t bytes);
/* 0, or -ENOMEM (no memory, or beyond BLOCK_MAX_BYTES). */
int block_end(struct block_codec *c, const void **ret_blob, size_t *ret_n);

/* The wrapping alone, for other payloads: one zstd frame with its content size. The blob is borrowed
 * until the next use of c. 0 or -ENOMEM. */
int block_pack(struct block_codec *c, const void *p, size_t n, const void **ret_blob,
	       size_t *ret_n);
/* 0, -ENOMEM, -EBADMSG: not one, empty, or its content has `most` bytes or more. */
int block_unpack(struct block_codec *c, const void *blob, size_t n, size_t most, struct buf *ret);

/* One token: a sample `gap` (>= 1) ticks after the one before it. Returns its length. */
size_t block_token(uint8_t out[BLOCK_TOKEN_MAX], uint32_t gap, int64_t before, int64_t raw);

/* Decoding. */
struct block_span {
	const uint8_t *p, *end;
};

struct block_reader {
	struct block_codec codec;
	struct buf plain;
	VEC(int64_t) ticks;
	struct block_span head, gaps, firsts, rests; /* what is left of them */
	struct block_span starts[4];                 /* of the four, for block_rewind() */
	uint64_t id;
	bool damaged;
};

/* A series as read. */
struct block_series {
	struct block_head head;
	struct block_span gaps, firsts, rests;
};

void block_reader_done(struct block_reader *b);
/* 0, -EBADMSG for what is no block of ours, -ENOMEM. A block that turns out damaged later sets
 * ->damaged and ends there. */
int block_open(struct block_reader *b, const void *blob, size_t n);
/* The next series; false at the end. */
bool block_next(struct block_reader *b, struct block_series *ret);
/* Back to the first series. */
void block_rewind(struct block_reader *b);

struct block_cursor {
	struct block_reader *block;
	struct block_span gaps, firsts, rests;
	bool dense;
	int64_t tick; /* index of the sample before; negative: before the block */
	int64_t raw;
};

void block_samples(struct block_reader *b, const struct block_series *s, struct block_cursor *ret);
/* The next sample of the series: index of its tick, and its value in c->raw. -1 at the end. */
int block_sample(struct block_cursor *c);

#endif

/* SPDX-License-Identifier: MIT
 *
 * A block of series from anywhere. With an odd first byte the rest is the blob as it is; with an even
 * one it is compressed first, as otherwise next to nothing would come past the decompressor. What
 * can be read must obey the rules (ticks rise, samples are in order), survive thinning and merging,
 * and what was merged must read back the same.
 */
#include "fuzz.h"
#include "record/block.h"
#include "record/merge.h"
#include "record/rollup.h"

#include <string.h>
#include <zstd.h>

static bool odd_is_counter(uint64_t id)
{
	return id & 1;
}

/* A number for all that is in it; series in any order. */
static uint64_t digest(struct block_reader *b)
{
	struct block_series s;
	uint64_t sum = 0;

	while (block_next(b, &s)) {
		struct block_cursor c;
		int last = -1, i;

		block_samples(b, &s, &c);
		while ((i = block_sample(&c)) >= 0) {
			must(i > last && (size_t)i < b->ticks.n, "samples are in order, on ticks");
			sum += map_mix(s.head.id ^
				       map_mix((uint64_t)b->ticks.v[i] ^ map_mix((uint64_t)c.raw)));
			last = i;
		}
	}
	return sum;
}

static void rollups(struct block_reader *b)
{
	struct rollup_reader r;
	struct bucket bucket;

	block_rewind(b);
	rollup_begin(&r, b, ROLLUP_FINE_NS);
	while (rollup_series(&r))
		while (rollup_bucket(&r, r.series_id & 1, &bucket))
			;
}

/* Distinct ids only: a block that has one twice is merged into fewer samples. */
static bool has_twins(struct block_reader *b)
{
	struct map seen = { 0 };
	struct block_series s;
	bool twins = false;
	uint32_t ignored;

	block_rewind(b);
	while (!twins && block_next(b, &s)) {
		twins = map_get(&seen, s.head.id, &ignored);
		must(map_put(&seen, s.head.id, 0), "memory");
	}
	map_done(&seen);
	return twins;
}

static void rewrite(struct block_reader *b, const void *blob, size_t n, uint64_t sum)
{
	struct block_codec codec = { 0 };
	struct block_reader again = { 0 };
	struct merge m = { 0 };
	struct thin t = { 0 };
	const void *out;
	size_t out_n;

	if (!has_twins(b) && merge_add(&m, blob, n) == 0 &&
	    merge_end(&m, &codec, &out, &out_n) == 0) {
		must(block_open(&again, out, out_n) == 0, "what was merged can be opened");
		must(digest(&again) == sum && !again.damaged, "merging changes nothing");
	}
	if (thin_block(&t, blob, n, 0, odd_is_counter, &codec, &out, &out_n) == 0) {
		must(block_open(&again, out, out_n) == 0, "what was thinned can be opened");
		digest(&again);
		must(!again.damaged, "what was thinned is whole");
	}
	merge_done(&m);
	thin_done(&t);
	block_codec_done(&codec);
	block_reader_done(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static uint8_t packed[ZSTD_COMPRESSBOUND(1 << 17)];
	struct block_reader b = { 0 };
	const void *blob = data + 1;
	size_t size = n ? n - 1 : 0;

	if (n < 2 || n > 1 << 17)
		return 0;
	if (!(data[0] & 1)) {
		size = ZSTD_compress(packed, sizeof(packed), data + 1, n - 1, 1);
		must(!ZSTD_isError(size), "zstd packs");
		blob = packed;
	}
	if (block_open(&b, blob, size) == 0) {
		uint64_t sum;

		for (size_t i = 1; i < b.ticks.n; i++)
			must(b.ticks.v[i] > b.ticks.v[i - 1], "ticks rise");
		sum = digest(&b);
		if (!b.damaged)
			rewrite(&b, blob, size, sum);
		rollups(&b);
	}
	block_reader_done(&b);
	return 0;
}

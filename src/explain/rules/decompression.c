/* SPDX-License-Identifier: MIT
 *
 * decompression: most of the time of loading goes into unpacking what was stored compressed.
 *
 * Not to be taken for it: unpacking that nobody waits for, and a program that reads an archive and trains
 * nothing.
 *
 * Gain: Amdahl. Stored as it is, nothing is unpacked, and what is read grows: lz4 or zstd at its fastest
 * is some 5 times as fast, a smaller deflate level twice.
 */
#include "explain/loading.h"

#include <math.h>

static const struct loading_stage stage = {
	.share = FACT_LOAD_DECOMPRESS,
	.least = 0.3,
	.what = "unpacking compressed data",
	.fix = "store the data uncompressed, or with a compression made for reading (lz4, zstd -1, "
	       "blosc): unpack "
	       "it once, before the training",
	.edit = "np.save(path, array)  # instead of np.savez_compressed; h5py: compression=None or "
		"\"lzf\"",
	.little = 2,
	.likely = 8,
	.much = INFINITY,
	.confidence = 0.8,
};

static enum answer check(const struct facts *f, struct opinion *o)
{
	return loading_stage_check(&stage, f, o);
}

const struct rule decompression_rule = { .cause = "decompression", .needs_s = 5, .check = check };

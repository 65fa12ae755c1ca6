/* SPDX-License-Identifier: MIT
 *
 * tokenization: most of the time of loading goes into making tokens of text, each epoch anew.
 *
 * Not to be taken for it: tokens that nobody waits for, and a program that tokenises and trains nothing.
 *
 * Gain: Amdahl. Tokens that were made once need none of that time; a tokenizer in native code instead of
 * Python is some 5 times as fast.
 */
#include "explain/loading.h"

#include <math.h>

static const struct loading_stage stage = {
	.share = FACT_LOAD_TOKENIZE,
	.least = 0.3,
	.what = "tokenising text",
	.fix = "tokenise once and keep the numbers (datasets.map(...) with its cache, a .npy or "
	       ".bin of token ids); at "
	       "least use a fast tokenizer, on whole batches",
	.edit =
	    "ds = ds.map(lambda b: tokenizer(b[\"text\"]), batched=True)  # once, cached on disk",
	.little = 2,
	.likely = 10,
	.much = INFINITY,
	.confidence = 0.8,
};

static enum answer check(const struct facts *f, struct opinion *o)
{
	return loading_stage_check(&stage, f, o);
}

const struct rule tokenization_rule = { .cause = "tokenization", .needs_s = 5, .check = check };

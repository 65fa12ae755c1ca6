/* SPDX-License-Identifier: MIT
 *
 * recompiles: the model is traced and compiled while the training should run.
 *
 * Not to be taken for it: the first compilation, which comes before the steady window where steps are known.
 *
 * Gain: the share of time, as what was compiled once is there for good. Compilers try kernels out: a GPU that is
 * busy meanwhile does no work, and new code runs slowly at first. A first compilation in a short run looks the
 * same: record longer.
 */
#include "explain/stall.h"

static const struct stall stall = {
	.share = FACT_DOING_COMPILE,
	.least = 0.03,
	.title = "the model is compiled again and again",
	.what = "tracing and compiling",
	.fix = "give it the same shapes each time (pad, drop the last smaller batch), mark what "
	       "changes as dynamic, and "
	       "keep the cache of compiled code",
	.edit = "DataLoader(..., drop_last=True); torch._dynamo.mark_dynamic(x, 0)",
	.little = 0.3,
	.likely = 1,
	.much = 1,
	.confidence = 0.7,
	.pauses = true,
	.tunes = true,
	.repeats = true,
};

static enum answer check(const struct facts *f, struct opinion *o)
{
	return stall_check(&stall, f, o);
}

const struct rule recompiles_rule = { .cause = "recompiles", .needs_s = 5, .check = check };

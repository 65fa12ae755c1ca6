/* SPDX-License-Identifier: MIT
 *
 * evaluation_share: how much of the time is evaluation. Not a fault: a note, from which one may decide to
 * evaluate less often or with larger batches. How busy the GPU is says nothing against it: evaluation keeps it so.
 */
#include "explain/stall.h"

static const struct stall stall = {
	.share = FACT_DOING_EVALUATE,
	.least = 0.10,
	.title = "evaluation takes a part of the time",
	.what = "evaluation",
	.fix = "evaluate less often, on a part of the data, or with larger batches: without "
	       "gradients they fit",
	.edit = "",
	.little = 0.1,
	.likely = 0.5,
	.much = 0.9,
	.confidence = 0.8,
	.on_gpu = true,
	.note = true,
};

static enum answer check(const struct facts *f, struct opinion *o)
{
	return stall_check(&stall, f, o);
}

const struct rule evaluation_share_rule = { .cause = "evaluation_share",
					    .needs_s = 5,
					    .check = check };

/* SPDX-License-Identifier: MIT
 *
 * checkpoint_stall: the training stands still while a checkpoint is written.
 *
 * Not to be taken for it: a GPU that has work meanwhile, and a model that is loaded once at the start (that is
 * before the steady window).
 *
 * Gain: the share of time, less what a copy of the weights in memory still takes when a thread or process
 * writes it: a twentieth, at many times the speed of any disk.
 */
#include "explain/stall.h"

static const struct stall stall = {
	.share = FACT_DOING_CHECKPOINT,
	.least = 0.02,
	.title = "the training stands still for checkpoints",
	.what = "writing checkpoints",
	.fix = "write them in the background (copy the weights, let a thread or process save "
	       "them), to a local "
	       "disk, and less often",
	.edit = "torch.distributed.checkpoint.async_save(state, checkpoint_id=path)  # or every N "
		"steps only",
	.little = 0.5,
	.likely = 0.95,
	.much = 1,
	.confidence = 0.85,
	.pauses = true,
};

static enum answer check(const struct facts *f, struct opinion *o)
{
	return stall_check(&stall, f, o);
}

const struct rule checkpoint_stall_rule = { .cause = "checkpoint_stall",
					    .needs_s = 5,
					    .check = check };

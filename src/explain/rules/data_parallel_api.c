/* SPDX-License-Identifier: MIT
 *
 * data_parallel_api: one process hands its model out to several GPUs in each step (torch's DataParallel, or the same
 * by hand): copies, threads that share one GIL, and the first GPU collects everything.
 *
 * Not to be taken for it: the same functions in a process that works on one GPU (there is nothing to hand out, or
 * they are the exchange of ranks), and waiting for what the GPUs compute. By hand: names of the program's functions
 * are all there is to go by, and may mean something else (a pipeline), so that is a note, and about copies alone.
 *
 * Gain: what handing out takes, at the least; with a process for each GPU the GIL is no longer shared.
 */
#include "explain/stall.h"

static const struct stall stall = {
	.share = FACT_DOING_DATA_PARALLEL,
	.least = 0.03,
	.title = "one process hands its model out to all GPUs in every step",
	.what = "replicating, scattering and gathering",
	.fix = "one process a GPU: DistributedDataParallel under torchrun",
	.edit = "torchrun --nproc_per_node=N train.py  # and DistributedDataParallel(model)",
	.little = 0.3,
	.likely = 0.8,
	.much = 1,
	.confidence = 0.75,
	.needs_gpu = true,
};

static const struct stall by_hand = {
	.share = FACT_DOING_HAND_OUT,
	.least = 0.03,
	.title = "one process copies to several GPUs, as if it handed its model out",
	.what = "copying in functions that are called as if they replicate, scatter or gather",
	.fix = "if that is the model or its batches: one process a GPU, DistributedDataParallel "
	       "under torchrun",
	.edit = "",
	.little = 0,
	.likely = 0.8,
	.much = 1,
	.confidence = 0.5,
	.needs_gpu = true,
	.note = true,
};

static enum answer check(const struct facts *f, struct opinion *o)
{
	enum answer several = rule_at_least(f, FACT_GPU_DRIVEN, 2, o);
	enum answer frames = stall_check(&stall, f, o);

	if (frames != ANSWER_YES)
		frames = answer_or(frames, stall_check(&by_hand, f, o));
	return answer_and(several, frames);
}

const struct rule data_parallel_api_rule = {
	.cause = "data_parallel_api", .needs_s = 5, .check = check, .about_gpus = true
};

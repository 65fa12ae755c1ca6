/* SPDX-License-Identifier: MIT
 *
 * loop_overhead: between the steps the training thread runs Python of its own (metrics, progress bars, plots)
 * while the GPU has nothing to do.
 *
 * Not to be taken for it: a program that computes on the CPU (no GPU: it may be the work itself), dispatch of
 * the framework (launch_bound), loading (no_workers), logs and checkpoints, and a GPU that is busy meanwhile.
 *
 * Gain: the share of time, down to what the GPU is busy.
 */
#include "explain/stall.h"

static const struct stall stall = {
	.share = FACT_DOING_OWN,
	.least = 0.08,
	.title = "the loop does work of its own between the steps",
	.what = "Python code of the loop",
	.fix = "do it every so many steps, on the GPU (metrics as tensors), or in a thread or "
	       "process of its own",
	.edit = "",
	.little = 0.4,
	.likely = 0.85,
	.much = 1,
	.confidence = 0.65,
	.needs_gpu = true,
};

static enum answer check(const struct facts *f, struct opinion *o)
{
	if (f->v[FACT_DOING_PROGRESS].known && f->v[FACT_DOING_OWN].known &&
	    f->v[FACT_DOING_PROGRESS].value > f->v[FACT_DOING_OWN].value) {
		struct stall bars = stall;

		bars.share = FACT_DOING_PROGRESS;
		bars.what = "drawing progress bars and plots";
		return stall_check(&bars, f, o);
	}
	return stall_check(&stall, f, o);
}

const struct rule loop_overhead_rule = {
	.cause = "loop_overhead", .needs_s = 5, .check = check, .about_gpus = true
};

/* SPDX-License-Identifier: MIT
 *
 * worker_restart: the loader's workers are ended and started anew with each epoch, and the training waits.
 *
 * Not to be taken for it: workers that were started once, at the beginning (before the steady window), and
 * other programs the training starts.
 *
 * Gain: the share of time spent starting and ending them; the first batches of an epoch, which nobody made
 * ahead, come on top.
 */
#include "explain/stall.h"

static const struct stall stall = {
	.share = FACT_DOING_START_WORKERS,
	.least = 0.02,
	.title = "the loader's workers are started anew each epoch",
	.what = "starting and ending workers",
	.fix = "keep the workers from one epoch to the next",
	.edit = "DataLoader(..., persistent_workers=True)",
	.little = 0.5,
	.likely = 1,
	.much = 1,
	.confidence = 0.8,
	.pauses = true,
	.repeats = true,
};

static enum answer check(const struct facts *f, struct opinion *o)
{
	if (f->v[FACT_LOADER_PERSISTENT].known && f->v[FACT_LOADER_PERSISTENT].value > 0)
		return ANSWER_NO; /* once, and for good */
	return stall_check(&stall, f, o);
}

const struct rule worker_restart_rule = { .cause = "worker_restart", .needs_s = 5, .check = check };

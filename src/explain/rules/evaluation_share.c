/* SPDX-License-Identifier: MIT
 *
 * evaluation_share: how much of the time is evaluation. In itself not a fault: a note, from which one may decide to
 * evaluate less often or with larger batches. A finding from three tenths on: with a fifth of the data held out, a
 * pass over it after each pass over the rest takes less than a tenth. How busy the GPU is says nothing against it:
 * evaluation keeps it so.
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
	.likely = 0.75,
	.much = 0.9,
	.confidence = 0.8,
	.on_gpu = true,
	.rather_many = 0.3,
};

/* A program that does nothing else is an evaluation, and there is nothing to do less often. */
static const double nothing_else = 0.9;

/* Who hands out steps ahead waits for all of them where it first asks for a value, and that may be in an evaluation: on a
 * GPU that always has work, nobody can tell from the waiting thread whose work it is. */
static const double full = 0.9, waiting = 0.5;

static bool may_wait_for_steps(const struct facts *f)
{
	return fact_or(f, FACT_GPU_BUSY, 0) >= full && fact_or(f, FACT_TIME_GPU_WAIT, 0) >= waiting;
}

static enum answer check(const struct facts *f, struct opinion *o)
{
	enum answer r = stall_check(&stall, f, o);

	o->finding.note = o->finding.note || fact_or(f, FACT_DOING_EVALUATE, 0) > nothing_else ||
			  may_wait_for_steps(f);
	return r;
}

const struct rule evaluation_share_rule = { .cause = "evaluation_share",
					    .needs_s = 5,
					    .check = check };

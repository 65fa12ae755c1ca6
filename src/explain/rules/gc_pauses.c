/* SPDX-License-Identifier: MIT
 *
 * gc_pauses: Python's collector of garbage stops the training again and again.
 *
 * Not to be taken for it: collections nobody waits for (the GPU is busy: most are over in milliseconds, while it
 * works on what was handed out before), and those of other processes.
 *
 * Gain: the share of time; what was made at the start and stays (gc.freeze) need not be looked through
 * each time, and a collection now and then is enough. A collection that goes through everything also puts out of the caches
 * what the step needs: up to a tenth more is won.
 */
#include "explain/stall.h"

static const struct stall stall = {
	.share = FACT_DOING_GC,
	.least = 0.02,
	.title = "Python collects garbage again and again",
	.what = "collecting garbage",
	.fix = "freeze what stays before the loop, and collect every so many steps instead of "
	       "whenever it likes; "
	       "with many ranks at the same step in all of them",
	.edit = "gc.collect(); gc.freeze(); gc.disable()  # and gc.collect(1) every 100 steps",
	.little = 0.5,
	.likely = 0.97,
	.much = 1.1,
	.confidence = 0.8,
};

static enum answer check(const struct facts *f, struct opinion *o)
{
	return stall_check(&stall, f, o);
}

const struct rule gc_pauses_rule = { .cause = "gc_pauses", .needs_s = 5, .check = check };

/* SPDX-License-Identifier: MIT
 *
 * logging_stall: the training stands still for logs: metrics that are written, flushed or sent in its loop.
 *
 * Not to be taken for it: a print that waits for a value of the device (sync_points), progress bars
 * (loop_overhead), and a GPU that has work meanwhile.
 *
 * Gain: the share of time; a log every so many steps leaves little of it.
 */
#include "explain/stall.h"

static const struct stall stall = {
	.share = FACT_DOING_LOG,
	.least = 0.03,
	.title = "the training stands still for logging",
	.what = "writing logs and metrics",
	.fix = "log every so many steps, without flushing each time, and let a thread send what "
	       "goes over the network",
	.edit = "if step % 50 == 0: log(...)",
	.little = 0.5,
	.likely = 0.9,
	.much = 1,
	.confidence = 0.75,
};

static enum answer check(const struct facts *f, struct opinion *o)
{
	/* What goes over the network is the larger part where there is any. */
	if (f->v[FACT_DOING_UPLOAD].known && f->v[FACT_DOING_LOG].known &&
	    f->v[FACT_DOING_UPLOAD].value > f->v[FACT_DOING_LOG].value) {
		struct stall sent = stall;

		sent.share = FACT_DOING_UPLOAD;
		sent.what = "sending over the network";
		return stall_check(&sent, f, o);
	}
	return stall_check(&stall, f, o);
}

const struct rule logging_stall_rule = { .cause = "logging_stall", .needs_s = 5, .check = check };

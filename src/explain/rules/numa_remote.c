/* SPDX-License-Identifier: MIT
 *
 * numa_remote: the job runs on another NUMA node than its GPU or its memory. Where these are is not recorded.
 * What it could cost are copies to the device and the like: where they take next to no time, neither does it.
 */
#include "explain/loading.h"

static const double copies_least = 0.1; /* of the training thread's time */

static enum answer check(const struct facts *f, struct opinion *o)
{
	enum answer r = answer_and(rule_at_least(f, FACT_GPU_USED, 1, o),
				   rule_at_least(f, FACT_DOING_COPY_IN, copies_least, o));

	/* a GPU that is busy waits for no copy */
	r = answer_and(r, answer_not(rule_at_least(f, FACT_GPU_BUSY, loading_gpu_busy, o)));
	if (r == ANSWER_YES)
		return rule_cannot_tell(o, "on which NUMA node its memory and its GPU are is not "
					   "recorded");
	return r;
}

const struct rule numa_remote_rule = {
	.cause = "numa_remote", .needs_s = 5, .check = check, .about_gpus = true
};

/* SPDX-License-Identifier: MIT
 *
 * not_on_gpu: there is a GPU, the job has a GPU runtime loaded and computes on the CPU, and none of
 * its processes was ever on a GPU.
 *
 * Not to be taken for it: programs without a GPU runtime (nothing to expect), short or quiet ones,
 * and lists of processes that cannot be read or whose pids are not visible. A program that imports a
 * framework and means to use the CPU looks the same, so it is said with care, and how much faster a
 * GPU would be is not known.
 */
#include "explain/rule.h"

#include "base/num.h"

#include <math.h>
#include <stdio.h>

static const double cores_least = 0.5, seconds_least = 20;

static void say(struct finding *x, const struct facts *f, bool masked)
{
	double n = f->v[FACT_GPU_FIT].value;
	const char *by = f->v[FACT_GPU_MASKED].text;
	char a[24];

	if (masked)
		snprintf(x->title, sizeof(x->title),
			 "the job's environment hides %s from it: it computes on the CPU",
			 n > 1.5 ? "all GPUs" : "the GPU");
	else
		snprintf(x->title, sizeof(x->title),
			 "%.0f GPU%s there, and no process of the job ever used %s", n,
			 n > 1.5 ? "s are" : " is", n > 1.5 ? "one" : "it");
	rule_because(x, f, FACT_GPU_USED, "processes of the job on a GPU: none");
	rule_because(x, f, FACT_GPU_CODE, "%s has a GPU runtime loaded", f->v[FACT_GPU_CODE].text);
	rule_because(x, f, FACT_CORES_USED, "it kept %s cores busy",
		     num_cores(f->v[FACT_CORES_USED].value, a, sizeof(a)));
	if (masked && *by)
		rule_because(x, f, FACT_GPU_MASKED, "its environment has %s", by);
	else if (masked)
		rule_because(x, f, FACT_GPU_MASKED,
			     "a variable such as CUDA_VISIBLE_DEVICES hides every GPU");
	snprintf(x->fix, sizeof(x->fix), "%s",
		 masked
		     ? "unset CUDA_VISIBLE_DEVICES (HIP_, ROCR_ likewise) or name a GPU in it; "
		       "if it is meant to run on the CPU, all is well"
		     : "move model and batches to the GPU (model.to('cuda'), "
		       "torch.cuda.is_available() says whether the build can); if it is meant to "
		       "run on the CPU, all is well");
	x->cost = NAN;
	x->confidence = masked ? 0.5 : 0.6;
}

static enum answer check(const struct facts *f, struct opinion *o)
{
	enum answer a;

	if (fact_or(f, FACT_GPU_FIT, 0) < 1)
		return ANSWER_NO;
	a = answer_and(rule_at_least(f, FACT_GPU_CODE, 1, o),
		       answer_not(rule_at_least(f, FACT_GPU_USED, 1, o)));
	a = answer_and(a, answer_and(rule_at_least(f, FACT_CORES_USED, cores_least, o),
				     rule_at_least(f, FACT_GPU_WATCHED, seconds_least, o)));
	if (a == ANSWER_YES)
		say(&o->finding, f, fact_or(f, FACT_GPU_MASKED, 0) > 0.5);
	return a;
}

const struct rule not_on_gpu_rule = {
	.cause = "not_on_gpu", .needs_s = 5, .check = check, .about_gpus = true
};

/* SPDX-License-Identifier: MIT
 *
 * not_on_gpu: there is a GPU, the job computes on the CPU, and none of its processes was ever on a GPU. Either it
 * has a GPU runtime loaded, or it is a training whose time goes into a framework's own code: then the framework
 * was built without one.
 *
 * Not to be taken for it: programs that neither have a GPU runtime nor train with a framework (nothing to expect),
 * short or quiet ones, and lists of processes that cannot be read or whose pids are not visible; without a runtime
 * also trainings whose threads fight for the cores, or that get data most of the time: a GPU is not what they
 * lack first. A program that imports a framework and means to use the CPU looks the same, so it is said with care,
 * and how much faster a GPU would be is not known.
 */
#include "explain/rule.h"

#include "base/num.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const double cores_least = 0.5;
/* Without a runtime: share of the training thread's time in framework code, and seconds its threads wait for a
 * CPU for a second on one. */
static const double dispatch_least = 0.5, delay_most = 0.2;

static void say(struct finding *x, const struct facts *f, bool masked)
{
	double n = f->v[FACT_GPU_FIT].value;
	const char *by = f->v[FACT_GPU_MASKED].text;
	bool runtime = fact_or(f, FACT_GPU_CODE, 0) >= 1;
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
	if (runtime)
		rule_because(x, f, FACT_GPU_CODE, "%s has a GPU runtime loaded",
			     f->v[FACT_GPU_CODE].text);
	else
		rule_because(x, f, FACT_GPU_CODE,
			     "no process of the job has a GPU runtime loaded: its framework was "
			     "built without, or never asked for it");
	if (fact_or(f, FACT_TIME_DISPATCH, 0) >= dispatch_least)
		rule_because(x, f, FACT_TIME_DISPATCH,
			     "framework code on the CPU is %s of the training thread's time",
			     num_percent(f->v[FACT_TIME_DISPATCH].value, a, sizeof(a)));
	rule_because(x, f, FACT_CORES_USED, "it kept %s cores busy",
		     num_cores(f->v[FACT_CORES_USED].value, a, sizeof(a)));
	if (masked && *by)
		rule_because(x, f, FACT_GPU_MASKED, "its environment has %s", by);
	else if (masked)
		rule_because(x, f, FACT_GPU_MASKED,
			     "a variable such as CUDA_VISIBLE_DEVICES hides every GPU");
	snprintf(x->fix, sizeof(x->fix), "%s; if it is meant to run on the CPU, all is well",
		 masked ? "unset CUDA_VISIBLE_DEVICES (HIP_, ROCR_ likewise) or name a GPU in it"
		 : runtime
		     ? "move model and batches to the GPU (model.to('cuda'), "
		       "torch.cuda.is_available() says whether the build can)"
		     : "install a build of the framework that has GPU support "
		       "(torch.version.cuda is None in one that has not), then move model and "
		       "batches to the GPU (model.to('cuda'))");
	x->cost = NAN;
	x->confidence = masked || !runtime ? 0.5 : 0.6;
}

/* Computing, in a framework that has a use for GPUs, is what it does. */
static enum answer computes(const struct facts *f, struct opinion *o)
{
	enum answer a = answer_and(rule_at_least(f, FACT_TRAINING, 1, o),
				   rule_at_least(f, FACT_TIME_DISPATCH, dispatch_least, o));

	if (f->v[FACT_TRAINING].known && strcmp(f->v[FACT_TRAINING].text, "framework") != 0)
		return ANSWER_NO;
	return answer_and(a, answer_not(rule_at_least(f, FACT_THREADS_DELAY, delay_most, o)));
}

static enum answer check(const struct facts *f, struct opinion *o)
{
	enum answer a;

	if (fact_or(f, FACT_GPU_FIT, 0) < 1)
		return ANSWER_NO;
	a = rule_at_least(f, FACT_GPU_CODE, 1, o);
	if (a != ANSWER_YES)
		a = answer_or(a, computes(f, o));
	a = answer_and(a, answer_not(rule_at_least(f, FACT_GPU_USED, 1, o)));
	a = answer_and(a, answer_and(rule_at_least(f, FACT_CORES_USED, cores_least, o),
				     rule_at_least(f, FACT_GPU_SETTLED, 1, o)));
	if (a == ANSWER_YES)
		say(&o->finding, f, fact_or(f, FACT_GPU_MASKED, 0) > 0.5);
	return a;
}

const struct rule not_on_gpu_rule = {
	.cause = "not_on_gpu", .needs_s = 5, .check = check, .about_gpus = true
};

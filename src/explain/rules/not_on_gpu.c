/* SPDX-License-Identifier: MIT
 *
 * not_on_gpu: there is a GPU, the job computes on the CPU, and none of its processes was ever on a GPU. Either it
 * has a GPU runtime loaded, or it is a training whose time goes into a framework's own code beside an idle GPU:
 * then the framework was built without one.
 *
 * Not to be taken for it: programs that neither have a GPU runtime nor train with a framework (nothing to expect),
 * short or quiet ones, and lists of processes that cannot be read or whose pids are not visible; without a runtime
 * also trainings that are kept from the cores by others or a limit, or that get data most of the time: a GPU is not what
 * they lack first. A program that imports a framework and means to use the CPU looks the same, so it is said with care,
 * and how much faster a GPU would be is not known. Whoever installed a build for the CPU often meant it: without a
 * runtime it is a note, unless the job was given a GPU or a line of its own files chooses one.
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
/* With so much of it they are too many, and that comes first. */
static const double far_delay = 1;
/* Of the CPUs it may run on: with these in use its threads wait for each other, and neither for a quota nor for others. */
static const double full_least = 0.85;

/* In the words of each framework: by the names of gpu.fill_grows, the last one is of any other. */
static const struct {
	const char *name, *build, *move;
} fixes[] = {
	{ "torch",
	  "install a build of PyTorch for GPUs (torch.version.cuda is None in one without)",
	  "model.to('cuda'), and the batches; torch.cuda.is_available() says whether it can" },
	{ "tensorflow",
	  "install TensorFlow for GPUs (tensorflow[and-cuda]; tf.test.is_built_with_cuda())",
	  "tf.config.list_physical_devices('GPU') says what TensorFlow sees, its log why not" },
	{ "jax", "install JAX for GPUs (jax[cuda12])",
	  "jax.devices() says what JAX sees, its log why not (JAX_PLATFORMS=cpu keeps it off)" },
	{ "mxnet", "install a build of MXNet for GPUs (mx.context.num_gpus())",
	  "model and batches to mx.gpu(0)" },
	{ "", "install a build of its framework that has GPU support",
	  "move model and batches to the GPU" },
};

static void say_fix(struct finding *x, const struct facts *f, bool masked, bool runtime)
{
	static const char unmask[] =
	    "unset CUDA_VISIBLE_DEVICES (HIP_, ROCR_ likewise) or name a GPU in it";
	const char *name = f->v[FACT_GPU_FILL_GROWS].known ? f->v[FACT_GPU_FILL_GROWS].text : "";
	size_t i = 0;

	while (*fixes[i].name && strcmp(fixes[i].name, name) != 0)
		i++;
	if (masked)
		snprintf(x->fix, sizeof(x->fix),
			 "%s%s%s; if it is meant to run on the CPU, all is well", unmask,
			 runtime ? "" : ", and ", runtime ? "" : fixes[i].build);
	else
		snprintf(x->fix, sizeof(x->fix),
			 "%s%s%s; if it is meant to run on the CPU, all is well",
			 runtime ? "" : fixes[i].build, runtime ? "" : ", then ", fixes[i].move);
}

static void say_runtime(struct finding *x, const struct facts *f, bool runtime)
{
	if (runtime)
		rule_because(x, f, FACT_GPU_CODE, "%s has a GPU runtime loaded",
			     f->v[FACT_GPU_CODE].text);
	else
		rule_because(x, f, FACT_GPU_CODE,
			     "no process of the job has a GPU runtime loaded: its framework was "
			     "built without, or never asked for it");
}

static void say(struct finding *x, const struct facts *f, bool masked)
{
	double n = f->v[FACT_GPU_FIT].value;
	const char *by = f->v[FACT_GPU_MASKED].text;
	bool runtime = f->v[FACT_GPU_CODE].value >= 1;
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
	say_runtime(x, f, runtime);
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
	else if (!runtime && fact_or(f, FACT_GPU_IDLE, 0) >= 1)
		rule_because(x, f, FACT_GPU_IDLE, "GPU %s is given to the job%s%s",
			     f->v[FACT_GPU_IDLE].text, *by ? ": its environment has " : "", by);
	say_fix(x, f, masked, runtime);
	x->note = !runtime && fact_or(f, FACT_GPU_IDLE, 0) < 1 &&
		  (masked || fact_or(f, FACT_GPU_CHOSEN, 0) < 1);
	if (fact_or(f, FACT_GPU_CHOSEN, 0) >= 1) {
		rule_where(x, f, FACT_GPU_CHOSEN);
		rule_because(x, f, FACT_GPU_CHOSEN, "a device is chosen at %s",
			     f->v[FACT_GPU_CHOSEN].text);
	}
	x->cost = NAN;
	x->confidence = masked || !runtime ? 0.5 : 0.6;
}

/* What its threads wait for, if they do, is each other: fewer of them win little. */
static enum answer has_the_cores(const struct facts *f, struct opinion *o)
{
	double cpus;
	enum answer a = answer_not(rule_at_least(f, FACT_THREADS_DELAY, delay_most, o));

	if (a == ANSWER_YES)
		return a;
	if (!fact_value(f, FACT_CORES_AFFINITY, &cpus))
		return rule_at_least(f, FACT_CORES_AFFINITY, 0, o);
	a = answer_or(a, rule_at_least(f, FACT_CORES_USED, full_least * cpus, o));
	return answer_and(a, answer_not(rule_at_least(f, FACT_THREADS_DELAY, far_delay, o)));
}

/* Computing, in a framework that has a use for GPUs, is what it does, and there is one to be had. */
static enum answer computes(const struct facts *f, struct opinion *o)
{
	enum answer a = answer_and(rule_at_least(f, FACT_TRAINING, 1, o),
				   rule_at_least(f, FACT_TIME_DISPATCH, dispatch_least, o));

	if (f->v[FACT_TRAINING].known && strcmp(f->v[FACT_TRAINING].text, "framework") != 0)
		return ANSWER_NO;
	a = answer_and(a, rule_at_least(f, FACT_GPU_FREE, 1, o));
	return answer_and(a, has_the_cores(f, o));
}

static enum answer check(const struct facts *f, struct opinion *o)
{
	enum answer a;

	if (fact_or(f, FACT_GPU_FIT, 0) < 1)
		return ANSWER_NO;
	a = rule_at_least(f, FACT_GPU_CODE, 1, o);
	if (a == ANSWER_NO) /* known: where it is not, neither is which of the two it is */
		a = computes(f, o);
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

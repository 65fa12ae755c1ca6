/* SPDX-License-Identifier: MIT
 *
 * small_batch: the GPU is busy half of the time at most and half of its memory was never used, while the
 * training thread hands out work without end: a larger batch makes more of each hand-out. A note: what it
 * gains, and whether the training bears it, only a try can tell.
 *
 * Or, where the driver counts it: the GPU always has a kernel to run, which occupies a quarter of its units at most. A batch
 * that fills the rest takes little longer. Ranks whose kernels spin for each other look the same, so it is asked of jobs with
 * one GPU only, and kernels for single elements are launch_bound's.
 *
 * Or, without a GPU: a step of a framework takes less than 0.7 ms, and nothing but the framework's code. That is what
 * calls cost, whatever they compute: with many times the batch a step takes little longer. A deep model has more calls in
 * a step; there the native code tells: a fifth of it and more is calling, not computing.
 *
 * Not to be taken for it: a training that waits for data (a larger batch waits longer), and frameworks that
 * take all memory at once (their use says nothing; then it is not said).
 */
#include "explain/loading.h"

#include "base/num.h"

#include <math.h>
#include <stdio.h>

static const double busy_least = 0.01, busy_most = 0.5, fill_most = 0.5;
static const double dispatch_least = 0.3, data_most = 0.1; /* of the training thread's time */

/* Of the time: a GPU that is busy, if with little. */
static const double narrow_busy = 0.7, comm_most = 0.05, others_most = 0.05;
/* What it is filled to by the batch that is advised, and the most that is: beyond that the training itself may change. */
static const double filled_then = 0.8, times_most = 16;
/* A step with k times the batch takes k^grows times as long; 0 at best. */
static const double grows_likely = 0.25, grows_worst = 0.75;

/* A call of a framework costs 2 to 10 us, and a step of the smallest model with its gradients and its optimizer some
 * fifty of them. */
static const double step_most = 0.7e-3;
/* With more calls in a step, if that is what they cost. */
static const double deep_most = 50e-3, glue_least = 0.2, fixed_deep = 0.9;
static const double some_least = 0.05, calls_least = 0.7; /* of the training thread's time */
/* Of a step: what does not grow with the batch. Measured on two programs whose steps were this short, with 64 and 32
 * times the batch: 17 and 18 times as fast, so 95 % and more. */
static const double fixed_likely = 0.9, fixed_least = 0.25;
static const double times_short = 16, times_deep = 4; /* the batch that is advised */

/* A step that is longer, for it has more calls. */
static enum answer many_calls(const struct facts *f, struct opinion *o)
{
	const struct fact *glue = &f->v[FACT_DISPATCH_GLUE];
	enum answer r = answer_and(rule_at_least(f, FACT_TIME_DISPATCH, calls_least, o),
				   answer_not(rule_at_least(f, FACT_STEP_SECONDS, deep_most, o)));

	r = answer_and(r, rule_at_least(f, FACT_DISPATCH_GLUE, glue_least, o));
	if (r == ANSWER_YES && glue->low < glue_least)
		return rule_cannot_tell(o, "too little native code was seen to tell calls from "
					   "arithmetic (level L3)");
	return r;
}

/* Of a step, what does not grow with the batch: in a deep one what calls, and as much again of what they prepare. */
static void gain(struct finding *x, const struct facts *f, bool deep)
{
	const struct fact *glue = &f->v[FACT_DISPATCH_GLUE];
	double least = deep ? glue->low : fixed_least;
	double likely = deep ? fmax(least, fmin(fixed_deep, 2 * glue->value)) : fixed_likely;
	double spared = 1 - 1 / (deep ? times_deep : times_short);

	/* the same samples in fewer steps: only what grows with the batch stays */
	rule_gain_of_time(x, deep ? 0.1 : 1 - spared, 1 - spared * likely, 1 - spared * least);
}

static void say_on_cpu(struct finding *x, const struct facts *f, bool deep)
{
	char a[24];

	rule_where(x, f, FACT_DISPATCH_LINE);
	num_seconds(f->v[FACT_STEP_SECONDS].value, a, sizeof(a));
	snprintf(x->title, sizeof(x->title),
		 "a step takes %s, %s: a larger batch costs little more", a,
		 deep ? "much of it to make its calls" : "which is what its calls cost");
	rule_because(x, f, FACT_STEP_SECONDS, "%s a step", a);
	rule_because(x, f, FACT_TIME_DISPATCH, "%s of the time of %s is framework code",
		     num_percent(f->v[FACT_TIME_DISPATCH].value, a, sizeof(a)), loading_thread(f));
	if (deep)
		rule_because(x, f, FACT_DISPATCH_GLUE,
			     "%s of its native code is calling, not computing",
			     num_percent(f->v[FACT_DISPATCH_GLUE].value, a, sizeof(a)));
	snprintf(
	    x->fix, sizeof(x->fix),
	    "%s times the batch size (the learning rate may have to follow), or compile the step",
	    deep ? "four" : "up to sixteen");
}

static enum answer on_cpu(const struct facts *f, struct opinion *o)
{
	struct finding *x = &o->finding;
	const struct fact *step = &f->v[FACT_STEP_SECONDS];
	bool deep = step->known && step->value >= step_most;
	/* without steps nothing can be said of any framework, however much of the time it has */
	enum answer r = answer_and(rule_at_least(f, FACT_TIME_DISPATCH, some_least, o),
				   rule_at_least(f, FACT_STEP_SECONDS, 0, o));

	if (r == ANSWER_YES)
		r = deep ? many_calls(f, o) : rule_at_least(f, FACT_TIME_DISPATCH, calls_least, o);
	if (r == ANSWER_YES)
		r = loading_is_for_training(f, o);
	if (r != ANSWER_YES)
		return r;
	say_on_cpu(x, f, deep);
	gain(x, f, deep);
	snprintf(x->then, sizeof(x->then), "its own work");
	x->confidence = 0.5;
	return ANSWER_YES;
}

/* Data is no matter, and kernels neither wait for others nor are handed out one by one. */
static enum answer is_alone(const struct facts *f, struct opinion *o)
{
	enum answer r = answer_not(rule_at_least(f, FACT_GPU_WORKING, 2, o));

	r = answer_and(r, answer_not(rule_at_least(f, FACT_GPU_OTHERS_BUSY, others_most, o)));
	r = answer_and(r, answer_not(rule_at_least(f, FACT_GPU_SIBLINGS_BUSY, others_most, o)));
	r = answer_and(r, answer_not(rule_at_least(f, FACT_TIME_COMM_WAIT, comm_most, o)));
	/* a loader that is waited for while the GPU is busy all the same is ahead */
	if (fact_or(f, FACT_GPU_BUSY, 1) < loading_gpu_busy) {
		r = answer_and(r, answer_not(rule_at_least(f, FACT_TIME_DATA_WAIT, data_most, o)));
		r = answer_and(r, answer_not(rule_at_least(f, FACT_TIME_DATA_LOAD, data_most, o)));
	}
	return answer_and(
	    r, answer_not(rule_at_least(f, FACT_DISPATCH_ELEMENTS, loading_elements_least, o)));
}

static void say_narrow(struct finding *x, const struct facts *f, double times)
{
	char a[24], b[24], c[24];

	num_percent(f->v[FACT_GPU_BUSY].value, a, sizeof(a));
	num_percent(f->v[FACT_GPU_FILLED].value, b, sizeof(b));
	num_percent(f->v[FACT_GPU_FILL].value, c, sizeof(c));
	rule_where(x, f, f->v[FACT_LOADER_MADE].known ? FACT_LOADER_MADE : FACT_DISPATCH_LINE);
	snprintf(x->title, sizeof(x->title),
		 "the GPU is busy %s of the time, with %s of its units: a larger batch costs "
		 "little more",
		 a, b);
	rule_because(x, f, FACT_GPU_BUSY,
		     "%s is busy %s of the time: any kernel counts as that, however small",
		     f->v[FACT_GPU_BUSY].text, a);
	rule_because(x, f, FACT_GPU_FILLED, "%s of its multiprocessors have work", b);
	rule_because(x, f, FACT_GPU_FILL, "%s of its memory were in use at most", c);
	rule_because(x, f, FACT_TIME_GPU_WAIT, "%s waits for it %s of its time", loading_thread(f),
		     num_percent(fact_or(f, FACT_TIME_GPU_WAIT, 0), a, sizeof(a)));
	snprintf(x->fix, sizeof(x->fix),
		 "%.0f times the batch size, as far as memory and the training bear it (the "
		 "learning rate may have to follow); else two trainings at once on this GPU",
		 times);
}

/* Of the present time, what loading takes whatever the batch: there are as many samples. */
static double loading_stays(const struct facts *f)
{
	double workers = fact_or(f, FACT_LOADER_WORKERS, 0) >= loading_workers_least
			     ? fact_or(f, FACT_LOADER_BUSY, 0)
			     : 0;

	return fmax(fact_or(f, FACT_TIME_DATA_LOAD, 0), workers);
}

/* Busy all the time, with little: kernels too small for it. */
static enum answer on_narrow(const struct facts *f, struct opinion *o)
{
	struct finding *x = &o->finding;
	double busy = fact_or(f, FACT_GPU_BUSY, 1), narrow, times, stays;
	enum answer r = answer_and(rule_at_least(f, FACT_GPU_BUSY, narrow_busy, o),
				   answer_not(rule_at_least(f, FACT_GPU_FILL, fill_most, o)));

	r = answer_and(r, is_alone(f, o));
	r = answer_and(r,
		       answer_not(rule_at_least(f, FACT_GPU_FILLED, loading_gpu_narrow * busy, o)));
	if (r != ANSWER_YES)
		return r;
	narrow = f->v[FACT_GPU_FILLED].value / busy;
	times = floor(fmin(filled_then / fmax(narrow, 0.01), times_most));
	say_narrow(x, f, times);
	stays = loading_stays(f);
	rule_gain_of_time(x, fmax(stays, 1 / times), fmax(stays, pow(times, grows_likely - 1)),
			  fmax(stays, pow(times, grows_worst - 1)));
	snprintf(x->then, sizeof(x->then), "%s",
		 stays > pow(times, grows_likely - 1) ? "the loader" : "GPU-bound");
	x->confidence = 0.6;
	return ANSWER_YES;
}

/* Idle half of the time, between kernels. */
static enum answer on_idle(const struct facts *f, struct opinion *o)
{
	struct finding *x = &o->finding;
	enum answer r = answer_and(rule_at_least(f, FACT_GPU_BUSY, busy_least, o),
				   answer_not(rule_at_least(f, FACT_GPU_BUSY, busy_most, o)));
	char a[24], b[24];

	r = answer_and(r, answer_not(rule_at_least(f, FACT_GPU_FILL, fill_most, o)));
	r = answer_and(r, rule_at_least(f, FACT_TIME_DISPATCH, dispatch_least, o));
	r = answer_and(r, answer_not(rule_at_least(f, FACT_TIME_DATA_WAIT, data_most, o)));
	r = answer_and(r, answer_not(rule_at_least(f, FACT_TIME_DATA_LOAD, data_most, o)));
	if (r != ANSWER_YES)
		return r;
	rule_where(x, f, FACT_DISPATCH_LINE);
	snprintf(x->title, sizeof(x->title),
		 "a larger batch may fill the GPU: it is busy %s of the time, its memory %s full",
		 num_percent(f->v[FACT_GPU_BUSY].value, a, sizeof(a)),
		 num_percent(f->v[FACT_GPU_FILL].value, b, sizeof(b)));
	rule_because(x, f, FACT_TIME_DISPATCH, "%s hands out work to it %s of its time",
		     loading_thread(f), num_percent(f->v[FACT_TIME_DISPATCH].value, a, sizeof(a)));
	rule_because(x, f, FACT_GPU_BUSY, "%s is busy %s of the time", f->v[FACT_GPU_BUSY].text,
		     num_percent(f->v[FACT_GPU_BUSY].value, a, sizeof(a)));
	rule_because(x, f, FACT_GPU_FILL, "%s of its memory were in use at most",
		     num_percent(f->v[FACT_GPU_FILL].value, b, sizeof(b)));
	rule_because(x, f, FACT_GPU_FILLED, "%s of its units have work",
		     num_percent(fact_or(f, FACT_GPU_FILLED, 0), b, sizeof(b)));
	snprintf(
	    x->fix, sizeof(x->fix),
	    "try twice the batch size (the learning rate may have to follow), first where nothing "
	    "is learnt: in the evaluation");
	x->note = true;
	x->cost = NAN;
	x->confidence = 0.5;
	return ANSWER_YES;
}

static enum answer check(const struct facts *f, struct opinion *o)
{
	enum answer narrow;

	if (fact_or(f, FACT_GPU_BUSY, 1) < busy_least)
		return on_cpu(f, o);
	narrow = on_narrow(f, o);
	return narrow == ANSWER_YES ? narrow : answer_or(narrow, on_idle(f, o));
}

const struct rule small_batch_rule = { .cause = "small_batch", .needs_s = 5, .check = check };

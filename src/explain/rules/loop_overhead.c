/* SPDX-License-Identifier: MIT
 *
 * loop_overhead: between the steps the training thread runs Python of its own (metrics, progress bars, plots)
 * while the GPU has nothing to do.
 *
 * Or, without a GPU, in loops that go over arrays one element at a time, where a library would do it at once.
 *
 * Not to be taken for it: a program that computes on the CPU (no GPU: it may be the work itself), dispatch of
 * the framework (launch_bound), loading (no_workers), logs and checkpoints, and a GPU that is busy meanwhile.
 *
 * Gain: the share of time, down to what the GPU is busy.
 */
#include "explain/stall.h"

#include <stdio.h>

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

static const double gpu_least = 0.01;      /* share of time: less is no work */
static const double dispatch_least = 0.05; /* of the training thread's time */
static const double elements_least = 0.2;  /* of its time, without a GPU */
static const double for_own_least = 0.6;   /* of that work, as sync_points has it */

/* What is computed one element at a time is work, and a library would do it in a small part of the time. */
static enum answer by_elements(const struct facts *f, struct opinion *o)
{
	struct stall loops = stall;

	loops.share = FACT_DOING_ELEMENTS;
	loops.least = elements_least;
	loops.title = "the loop goes over arrays one element at a time, in Python";
	loops.what = "Python code of such loops";
	loops.fix =
	    "compute with whole arrays at once (numpy, torch: no index, no loop), or compile "
	    "the loop (numba, Cython)";
	loops.likely = 0.9;
	loops.needs_gpu = false;
	return stall_check(&loops, f, o);
}

/* Without a GPU Python of its own may be the work itself: only what is written so that nobody can learn from it is none, beside
 * a framework that trains. */
static enum answer on_cpu(const struct facts *f, struct opinion *o)
{
	struct stall watch = stall;
	enum answer elements = by_elements(f, o), a;

	if (elements == ANSWER_YES)
		return elements;
	a = rule_at_least(f, FACT_TIME_DISPATCH, dispatch_least, o);

	watch.share = FACT_DOING_WATCH;
	watch.what = "computing what is only shown";
	watch.fix = "do it every so many steps, or in a thread or process of its own";
	watch.needs_gpu = false;
	if (a == ANSWER_YES)
		a = stall_check(&watch, f, o);
	return answer_or(elements, a);
}

/* Where a value of the device is read for the sake of that work, the wait for it is spared, too: host and device work side
 * by side then. */
static void with_reading(struct finding *x, const struct facts *f)
{
	const struct fact *own = &f->v[FACT_DOING_OWN], *wait = &f->v[FACT_DOING_READ_BACK];

	if (fact_or(f, FACT_READ_FOR_OWN, 0) < for_own_least || !wait->known)
		return;
	rule_gain_of_time(
	    x, stall_then(f, LOADING_BEST, own->high + wait->high),
	    stall_then(f, LOADING_LIKELY, stall.likely * own->value + 0.9 * wait->value),
	    stall_then(f, LOADING_WORST, stall.little * own->low));
	rule_gain_drifts(x, stall_cpu_part(f, own->value));
	snprintf(x->then, sizeof(x->then), "%s", stall_next(f, 1 / x->speedup));
}

static enum answer check(const struct facts *f, struct opinion *o)
{
	enum answer a;

	if (f->v[FACT_GPU_BUSY].known && f->v[FACT_GPU_BUSY].value < gpu_least)
		return on_cpu(f, o);
	if (f->v[FACT_DOING_PROGRESS].known && f->v[FACT_DOING_OWN].known &&
	    f->v[FACT_DOING_PROGRESS].value > f->v[FACT_DOING_OWN].value) {
		struct stall bars = stall;

		bars.share = FACT_DOING_PROGRESS;
		bars.what = "drawing progress bars and plots";
		return stall_check(&bars, f, o);
	}
	a = stall_check(&stall, f, o);
	if (a == ANSWER_YES)
		with_reading(&o->finding, f);
	return a;
}

const struct rule loop_overhead_rule = { .cause = "loop_overhead", .needs_s = 5, .check = check };

/* SPDX-License-Identifier: MIT
 *
 * gpu_bound: every GPU the job works on is busy nearly all the time: nothing the program does beside
 * it could make it much faster. Not a fault: always a note, and when nothing else is wrong explain()
 * names it as the limit.
 *
 * Not to be taken for it: kernels that only wait for other ranks (collectives spin on the GPU: the
 * training thread waits for them, or few of their units have work where there are several), and kernels of other programs or
 * of another training of the same job.
 *
 * A training thread that waits for data or loads it while the GPU is busy is no stall: it is ahead.
 */
#include "explain/loading.h"

#include "base/num.h"

#include <math.h>
#include <stdio.h>

static const double comm_most = 0.20; /* of the training thread's time */
static const double others_most = 0.05;
static const double held_least = 0.05; /* of its busy time: its clock may be what can be fixed */

/* Pauses that a GPU with this little idle time loses by all the same: no rule for them has been silenced by it. Those
 * ask for the busiest GPU, and so does this. */
static bool pauses(const struct facts *f)
{
	double share =
	    fmax(fact_or(f, FACT_DOING_CHECKPOINT, 0), fact_or(f, FACT_DOING_COMPILE, 0));

	share = fmax(share, fact_or(f, FACT_DOING_START_WORKERS, 0));
	return fmin(share, 1 - fact_or(f, FACT_GPU_BUSY, 1)) >= held_least;
}

static enum answer check(const struct facts *f, struct opinion *o)
{
	struct finding *x = &o->finding;
	enum answer a = rule_at_least(f, FACT_GPU_BUSY_LEAST, loading_gpu_busy, o);
	char busy[24], b[24];
	double held;
	/* then launch_bound says what to do about it */
	bool tiny = fact_or(f, FACT_DISPATCH_ELEMENTS, 0) >= loading_elements_least, narrow;

	if (a != ANSWER_YES)
		return a;
	/* How many of its units have work few drivers tell: not knowing is not held against it. */
	narrow = fact_or(f, FACT_GPU_FILLED, 1) < loading_gpu_narrow * fact_or(f, FACT_GPU_BUSY, 1);
	if (narrow && fact_or(f, FACT_GPU_WORKING, 2) > 1)
		return ANSWER_NO;
	a = answer_not(rule_at_least(f, FACT_GPU_OTHERS, 1, o));
	if (a == ANSWER_NO)
		a = answer_not(rule_at_least(f, FACT_GPU_OTHERS_BUSY, others_most, o));
	a = answer_and(a, answer_not(rule_at_least(f, FACT_GPU_SIBLINGS_BUSY, others_most, o)));
	a = answer_and(a, answer_not(rule_at_least(f, FACT_TIME_COMM_WAIT, comm_most, o)));
	if (a != ANSWER_YES)
		return a;
	num_percent(f->v[FACT_GPU_BUSY_LEAST].value, busy, sizeof(busy));
	held = fmax(fact_or(f, FACT_GPU_HELD, 0), fact_or(f, FACT_GPU_HELD_POWER, 0));
	snprintf(x->title, sizeof(x->title), "GPU-bound, %s busy%s", busy,
		 tiny                              ? ", with orders for one element at a time"
		 : narrow                          ? " with a part of its units"
		 : held < held_least && !pauses(f) ? ": nothing to fix here"
						   : "");
	rule_because(x, f, FACT_GPU_BUSY_LEAST, "%s is busy %s of the time",
		     f->v[FACT_GPU_BUSY_LEAST].text, busy);
	if (narrow)
		rule_because(x, f, FACT_GPU_FILLED, "%s of its multiprocessors have work",
			     num_percent(f->v[FACT_GPU_FILLED].value, b, sizeof(b)));
	rule_because(x, f, FACT_TIME_GPU_WAIT, "the training thread waits for it %s of its time",
		     num_percent(fact_or(f, FACT_TIME_GPU_WAIT, 0), b, sizeof(b)));
	snprintf(
	    x->fix, sizeof(x->fix), "%s",
	    tiny ? "fewer, larger kernels: whole tensors instead of a loop"
	    : narrow
		? "larger kernels: most of its units are idle (small_batch)"
		: "nothing: only less work for the GPU would make it faster (mixed precision, a "
		  "compiled model, larger batches)");
	x->cost = 0;
	x->note = true;
	x->confidence = 0.9;
	return ANSWER_YES;
}

const struct rule gpu_bound_rule = {
	.cause = "gpu_bound", .needs_s = 5, .check = check, .about_gpus = true
};

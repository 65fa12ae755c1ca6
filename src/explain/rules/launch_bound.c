/* SPDX-License-Identifier: MIT
 *
 * launch_bound: the training thread is busy telling the GPU what to do, never waits for it, and the GPU is done
 * before the next kernel comes.
 *
 * Not to be taken for it: a training thread that has no CPU when it wants one (cpu_neighbour, too_many_workers,
 * a quota), one that loads or waits for data, and one that waits for values (sync_points).
 *
 * A GPU that is busy all the time may be so with kernels that take no longer than handing them out: where the thread spends
 * its time in a loop of the program that goes over single elements of tensors, both are spared by doing it for all at once.
 *
 * Gain: a compiled model or CUDA graphs spare a good part of the dispatch, fused optimizers a smaller one. Where many small
 * kernels become a few large ones some of the GPU's work goes as well, at best all of it; of loops over elements it goes with
 * the orders.
 */
#include "explain/loading.h"
#include "explain/stall.h"

#include "base/num.h"

#include <math.h>
#include <stdio.h>

static const double dispatch_least = 0.4, wait_most = 0.15, queued_most = 0.1, busy_most = 0.85;
/* Or, of its framework code: queued for a CPU less than that, the orders themselves are what takes the time. */
static const double queued_part = 0.4;
/* Of the orders, what is likely spared, and what the kernels that become fewer leave of the GPU's work. Six programs nobody had
 * tried: 0.56 to all of the orders, and a fifth to all of the GPU's time. */
static const double orders_spared = 0.7, work_left = 0.6;

/* Between pauses, in which nobody gives orders, the GPU is as busy as it is there. */
static double pauses(const struct facts *f)
{
	double share = fact_or(f, FACT_DOING_CHECKPOINT, 0) + fact_or(f, FACT_DOING_LOG, 0) +
		       fact_or(f, FACT_DOING_GC, 0);

	return fmin(fmax(share, 0), 0.9);
}

static enum answer check_orders(const struct facts *f, struct opinion *o)
{
	struct finding *x = &o->finding;
	const struct fact *d = &f->v[FACT_TIME_DISPATCH];
	char a[24], b[24];
	/* who waits for room in the queue hands out work, too */
	double room = fact_or(f, FACT_DISPATCH_HELD, 0);
	enum answer r =
	    answer_and(rule_at_least(f, FACT_TIME_DISPATCH, dispatch_least, o),
		       answer_not(rule_at_least(f, FACT_TIME_GPU_WAIT, wait_most + room, o)));

	if (r == ANSWER_NO && !f->v[FACT_DISPATCH_HELD].known &&
	    fact_or(f, FACT_TIME_GPU_WAIT, 0) >= wait_most &&
	    fact_or(f, FACT_TIME_DISPATCH, 1) >= dispatch_least)
		r = rule_at_least(f, FACT_DISPATCH_HELD, 0, o);

	r = answer_and(r,
		       answer_not(rule_at_least(
			   f, FACT_TIME_QUEUED,
			   fmax(queued_most, queued_part * fact_or(f, FACT_TIME_DISPATCH, 0)), o)));
	r = answer_and(r, answer_and(rule_at_least(f, FACT_GPU_BUSY, 0.02, o),
				     answer_not(rule_at_least(f, FACT_GPU_BUSY,
							      busy_most * (1 - pauses(f)), o))));
	if (r != ANSWER_YES)
		return r;
	num_percent(d->value, a, sizeof(a));
	num_percent(f->v[FACT_GPU_BUSY].value, b, sizeof(b));
	rule_where(x, f, FACT_DISPATCH_LINE);
	snprintf(x->title, sizeof(x->title),
		 "the GPU waits for its orders: the training thread spends %s of its time on "
		 "framework code",
		 a);
	rule_because(x, f, FACT_TIME_DISPATCH, "%s of the time of %s is framework code on the CPU",
		     a, loading_thread(f));
	rule_because(x, f, FACT_GPU_BUSY, "%s is busy %s of the time", f->v[FACT_GPU_BUSY].text, b);
	rule_because(x, f, FACT_TIME_GPU_WAIT, "which is waited for %s of the time",
		     num_percent(fact_or(f, FACT_TIME_GPU_WAIT, 0), a, sizeof(a)));
	if (room >= 0.01)
		rule_because(
		    x, f, FACT_DISPATCH_HELD,
		    "%s of the time in lines that hand out work: for room in its queue, it seems",
		    num_percent(room, a, sizeof(a)));
	snprintf(x->fix, sizeof(x->fix),
		 "fewer, larger kernels: compile the model, CUDA graphs, fused or foreach "
		 "optimizers, larger batches");
	snprintf(x->edit, sizeof(x->edit),
		 "model = torch.compile(model, mode=\"reduce-overhead\"); AdamW(..., fused=True)");
	rule_gain_of_time(
	    x, fmax(1 - d->high, loading_least_left),
	    fmax(1 - d->value * orders_spared, work_left * loading_gpu_floor(f, LOADING_LIKELY)),
	    stall_then(f, LOADING_WORST, d->low * 0.1));
	rule_gain_drifts(x, 1);
	snprintf(x->then, sizeof(x->then), "%s", stall_next(f, 1 / x->speedup));
	x->confidence = 0.7;
	return ANSWER_YES;
}

/* Of what it hands out there: what is spared by one order for all. */
static const double spared[] = {
	[LOADING_BEST] = 0.95, [LOADING_LIKELY] = 0.65, [LOADING_WORST] = 0.25
};

/* Kernels follow each other as fast as they are handed out: so the part of both that is this loop's is the same. */
static double left_without(const struct facts *f, enum loading_case c, double share)
{
	double handing = fact_or(f, FACT_TIME_RUNNING, 1) + fact_or(f, FACT_DISPATCH_HELD, 0);

	handing = fmax(handing, share);

	return fmax(1 - spared[c] * share / handing, loading_least_left);
}

static enum answer check_elements(const struct facts *f, struct opinion *o)
{
	struct finding *x = &o->finding;
	const struct fact *e = &f->v[FACT_DISPATCH_ELEMENTS];
	enum answer r =
	    answer_and(rule_at_least(f, FACT_DISPATCH_ELEMENTS, loading_elements_least, o),
		       rule_at_least(f, FACT_GPU_BUSY, busy_most, o));
	char a[24], b[24];

	r = answer_and(r, answer_and(rule_at_least(f, FACT_TIME_RUNNING, 0, o),
				     rule_at_least(f, FACT_DISPATCH_HELD, 0, o)));
	/* who waits for what was ordered has ordered enough: those kernels are not small */
	r = answer_and(r,
		       answer_not(rule_at_least(f, FACT_TIME_GPU_WAIT,
						wait_most + fact_or(f, FACT_DISPATCH_HELD, 0), o)));
	if (r != ANSWER_YES)
		return r;
	num_percent(e->value, a, sizeof(a));
	num_percent(f->v[FACT_GPU_BUSY].value, b, sizeof(b));
	rule_where(x, f, FACT_DISPATCH_ELEMENTS);
	snprintf(x->title, sizeof(x->title),
		 "the GPU gets its orders for one element at a time: %s of the time%s%s", a,
		 e->place ? ", at " : "", e->text);
	rule_because(x, f, FACT_DISPATCH_ELEMENTS,
		     "%s of the time of %s goes into handing out work in a loop over elements%s%s",
		     a, loading_thread(f), e->place ? ", most at " : "", e->text);
	rule_because(x, f, FACT_GPU_BUSY,
		     "%s is busy %s of the time: any kernel counts as that, however small",
		     f->v[FACT_GPU_BUSY].text, b);
	snprintf(x->fix, sizeof(x->fix),
		 "one order for all elements: whole tensors instead of a loop (broadcasting, "
		 "gather, index_select, torch.vmap), or a compiled function");
	rule_gain_of_time(x, left_without(f, LOADING_BEST, e->high),
			  left_without(f, LOADING_LIKELY, e->value),
			  left_without(f, LOADING_WORST, e->low));
	rule_gain_drifts(x, 1);
	snprintf(x->then, sizeof(x->then), "its own work");
	x->confidence = 0.65;
	return ANSWER_YES;
}

static enum answer check(const struct facts *f, struct opinion *o)
{
	enum answer orders = check_orders(f, o);

	return orders == ANSWER_YES ? orders : answer_or(orders, check_elements(f, o));
}

const struct rule launch_bound_rule = {
	.cause = "launch_bound", .needs_s = 5, .check = check, .about_gpus = true
};

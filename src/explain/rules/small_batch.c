/* SPDX-License-Identifier: MIT
 *
 * small_batch: the GPU is busy half of the time at most and half of its memory was never used, while the
 * training thread hands out work without end: a larger batch makes more of each hand-out. A note: what it
 * gains, and whether the training bears it, only a try can tell.
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

static enum answer check(const struct facts *f, struct opinion *o)
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

const struct rule small_batch_rule = {
	.cause = "small_batch", .needs_s = 5, .check = check, .about_gpus = true
};

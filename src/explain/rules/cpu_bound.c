/* SPDX-License-Identifier: MIT
 *
 * cpu_bound: the job trains on the CPU and its cores are well used: framework code keeps nine tenths of them
 * busy. Not a fault: always a note. (Where nothing is wrong, explain() names it as the limit.)
 *
 * Not to be taken for it: cores that are full of loading, of threads that fight for them, or of a job that has
 * a GPU to feed.
 */
#include "explain/loading.h"

#include "base/num.h"

#include <math.h>
#include <stdio.h>

static const double full_least = 0.9;     /* of the cores it may use */
static const double data_most = 0.1;      /* of the training thread's time */
static const double delay_most = 0.2;     /* seconds of waiting for a CPU for a second on one */
static const double dispatch_least = 0.5; /* of the training thread's time */

static enum answer cores_are_full(const struct facts *f, struct opinion *o)
{
	double used, allowed;

	if (!fact_value(f, FACT_CORES_USED, &used) || !fact_value(f, FACT_CORES_ALLOWED, &allowed))
		return answer_and(rule_at_least(f, FACT_CORES_USED, 0, o),
				  rule_at_least(f, FACT_CORES_ALLOWED, 0, o));
	return used - f->v[FACT_CORES_SPINNING].low >= full_least * allowed ? ANSWER_YES
									    : ANSWER_NO;
}

static enum answer check(const struct facts *f, struct opinion *o)
{
	struct finding *x = &o->finding;
	enum answer r = cores_are_full(f, o);
	char a[24], b[24];

	r = answer_and(r, answer_not(rule_at_least(f, FACT_THREADS_DELAY, delay_most, o)));
	r = answer_and(r, rule_at_least(f, FACT_TIME_DISPATCH, dispatch_least, o));
	r = answer_and(r, answer_not(rule_at_least(f, FACT_TIME_DATA_WAIT, data_most, o)));
	r = answer_and(r, answer_not(rule_at_least(f, FACT_TIME_DATA_LOAD, data_most, o)));
	if (r == ANSWER_YES && fact_or(f, FACT_GPU_COUNT, 0) > 0)
		r = answer_not(rule_at_least(f, FACT_GPU_WORKING, 1, o));
	if (r != ANSWER_YES)
		return r;
	snprintf(x->title, sizeof(x->title),
		 "CPU-bound: it trains on the CPU and uses %s of %s cores",
		 num_cores(f->v[FACT_CORES_USED].value, a, sizeof(a)),
		 num_cores(f->v[FACT_CORES_ALLOWED].value, b, sizeof(b)));
	rule_because(x, f, FACT_CORES_USED, "the job uses %s cores", a);
	rule_because(x, f, FACT_TIME_DISPATCH, "framework code is %s of the time of %s",
		     num_percent(f->v[FACT_TIME_DISPATCH].value, a, sizeof(a)), loading_thread(f));
	snprintf(x->fix, sizeof(x->fix),
		 "nothing: more or faster cores, or a GPU, would make it faster");
	x->note = true;
	x->cost = 0;
	x->confidence = 0.8;
	return ANSWER_YES;
}

const struct rule cpu_bound_rule = { .cause = "cpu_bound", .needs_s = 5, .check = check };

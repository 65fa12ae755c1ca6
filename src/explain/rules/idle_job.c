/* SPDX-License-Identifier: MIT
 *
 * idle_job: the job holds a GPU and does nothing: a notebook nobody sits at, a program that has finished and
 * not ended, one that waits for somebody.
 *
 * Not to be taken for it: a training that waits for data, storage or other ranks, and a machine whose GPU
 * nothing of the job is on.
 *
 * Gain: none on speed: what is lost is the GPU.
 */
#include "explain/loading.h"

#include "base/num.h"

#include <stdio.h>

static const double idle_least = 0.95, busy_most = 0.01, cores_most = 0.05;

static enum answer check(const struct facts *f, struct opinion *o)
{
	struct finding *x = &o->finding;
	enum answer r = answer_and(rule_at_least(f, FACT_GPU_USED, 1, o),
				   answer_not(rule_at_least(f, FACT_GPU_BUSY, busy_most, o)));
	char a[24];

	r = answer_and(r, answer_and(rule_at_least(f, FACT_DOING_IDLE, idle_least, o),
				     answer_not(rule_at_least(f, FACT_CORES_USED, cores_most, o))));
	if (r != ANSWER_YES)
		return r;
	rule_where(x, f, FACT_DOING_IDLE);
	snprintf(x->title, sizeof(x->title), "the job holds a GPU and does nothing");
	rule_because(x, f, FACT_DOING_IDLE,
		     "its main thread sleeps or waits for something to happen %s of the time",
		     num_percent(f->v[FACT_DOING_IDLE].value, a, sizeof(a)));
	rule_because(x, f, FACT_GPU_BUSY, "nothing runs on its GPU");
	rule_because(x, f, FACT_GPU_USED, "it has a context on %.0f GPU%s",
		     f->v[FACT_GPU_USED].value, f->v[FACT_GPU_USED].value > 1.5 ? "s" : "");
	snprintf(x->fix, sizeof(x->fix), "end it, or free its memory, when nobody needs it");
	x->cost = 1;
	x->confidence = 0.85;
	return ANSWER_YES;
}

const struct rule idle_job_rule = {
	.cause = "idle_job", .needs_s = 20, .check = check, .about_gpus = true
};

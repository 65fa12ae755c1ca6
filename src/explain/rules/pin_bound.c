/* SPDX-License-Identifier: MIT
 *
 * pin_bound: the training waits for data, the workers wait for work, and the one thread between them, which
 * copies each batch into pinned memory, does nothing else.
 *
 * Not to be taken for it: a slow batch that holds up others (uneven_samples: the pinning thread rests, too),
 * and workers that have no time (too_few_workers).
 *
 * Gain: a step takes as long as the pinning thread needs for its batch. Without it the copy is the training's:
 * half as long to the same; smaller batches are pinned sooner.
 */
#include "explain/stall.h"

#include "base/num.h"

#include <math.h>
#include <stdio.h>

static const double wait_least = 0.05, pin_least = 0.6, idle_least = 0.3;

static enum answer check(const struct facts *f, struct opinion *o)
{
	struct finding *x = &o->finding;
	double wait = fmax(0, fact_or(f, FACT_TIME_DATA_WAIT, 0) - fact_or(f, FACT_TIME_TAKING, 0));
	char a[24];
	enum answer r;

	r = answer_and(
	    rule_at_least(f, FACT_TIME_DATA_WAIT, wait_least + fact_or(f, FACT_TIME_TAKING, 0), o),
	    rule_at_least(f, FACT_PIN_BUSY, pin_least, o));
	r = answer_and(
	    r, answer_and(rule_at_least(f, FACT_LOADER_IDLE, idle_least, o),
			  answer_not(rule_at_least(f, FACT_GPU_BUSY, loading_gpu_busy, o))));
	if (r != ANSWER_YES)
		return r;
	snprintf(x->title, sizeof(x->title),
		 "the thread that pins batches does not keep up: busy %s of the time",
		 num_percent(f->v[FACT_PIN_BUSY].value, a, sizeof(a)));
	loading_because_held_up(x, f);
	rule_because(x, f, FACT_PIN_BUSY, "the pinning thread is busy %s of the time",
		     num_percent(f->v[FACT_PIN_BUSY].value, a, sizeof(a)));
	rule_because(x, f, FACT_LOADER_IDLE, "the workers have no work %s of the time",
		     num_percent(f->v[FACT_LOADER_IDLE].value, a, sizeof(a)));
	loading_where_made(x, f);
	snprintf(x->fix, sizeof(x->fix),
		 "hand over less: smaller batches, uint8 instead of float32 (convert on the GPU), "
		 "tensors in few large "
		 "pieces; or leave pinning out");
	snprintf(x->edit, sizeof(x->edit), "DataLoader(..., pin_memory=False)");
	rule_gain_of_time(x, stall_then(f, LOADING_BEST, wait),
			  stall_then(f, LOADING_LIKELY, 0.6 * wait),
			  stall_then(f, LOADING_WORST, 0.1 * wait));
	rule_gain_drifts(x, 1);
	snprintf(x->then, sizeof(x->then), "%s",
		 1 / x->speedup > loading_gpu_floor(f, LOADING_LIKELY) + 0.01 ? "the loading"
									      : "GPU-bound");
	x->confidence = 0.65;
	return ANSWER_YES;
}

const struct rule pin_bound_rule = { .cause = "pin_bound", .needs_s = 5, .check = check };

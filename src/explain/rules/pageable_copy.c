/* SPDX-License-Identifier: MIT
 *
 * pageable_copy: batches go to the device from memory that is not pinned: the training thread copies, and
 * nothing else happens meanwhile.
 *
 * Not to be taken for it: copies that the device's work hides (it is busy all the time), and batches that are
 * pinned already.
 *
 * Gain: the time of the copies, down to what the device is busy. Pinning costs something, too: in practice
 * 1.02 to 1.15.
 */
#include "explain/loading.h"
#include "explain/stall.h"

#include "base/num.h"

#include <stdio.h>

static const double copy_least = 0.05;

static enum answer check(const struct facts *f, struct opinion *o)
{
	struct finding *x = &o->finding;
	const struct fact *c = &f->v[FACT_DOING_COPY_IN];
	char a[24];
	enum answer r =
	    answer_and(rule_at_least(f, FACT_DOING_COPY_IN, copy_least, o),
		       answer_not(rule_at_least(f, FACT_GPU_BUSY, loading_gpu_busy, o)));

	r = answer_and(r, rule_at_least(f, FACT_GPU_BUSY, 0.01, o));
	if (r != ANSWER_YES)
		return r;
	if (fact_or(f, FACT_LOADER_PINS, 0) > 0)
		return ANSWER_NO;
	num_percent(c->value, a, sizeof(a));
	rule_where(x, f, FACT_DOING_COPY_IN);
	snprintf(x->title, sizeof(x->title),
		 "batches are copied to the GPU while nothing else happens: %s%s%s", a,
		 c->place ? ", at " : "", c->text);
	rule_because(x, f, FACT_DOING_COPY_IN, "%s of the time of %s is copying to the device%s%s",
		     a, loading_thread(f), c->place ? ", most at " : "", c->text);
	rule_because(x, f, FACT_LOADER_PINS, "batches are not pinned");
	rule_because(x, f, FACT_GPU_BUSY, "%s is busy %s of the time", f->v[FACT_GPU_BUSY].text,
		     num_percent(f->v[FACT_GPU_BUSY].value, a, sizeof(a)));
	snprintf(x->fix, sizeof(x->fix), "pin the batches, and copy without waiting");
	snprintf(x->edit, sizeof(x->edit),
		 "DataLoader(..., pin_memory=True); x = x.to(device, non_blocking=True)");
	rule_gain_of_time(x, stall_then(f, LOADING_BEST, c->high),
			  stall_then(f, LOADING_LIKELY, c->value * 0.8),
			  stall_then(f, LOADING_WORST, c->low * 0.2));
	snprintf(x->then, sizeof(x->then), "%s", stall_next(f, 1 / x->speedup));
	x->confidence = f->v[FACT_LOADER_PINS].known ? 0.8 : 0.6;
	return ANSWER_YES;
}

const struct rule pageable_copy_rule = {
	.cause = "pageable_copy", .needs_s = 5, .check = check, .about_gpus = true
};

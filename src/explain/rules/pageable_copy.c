/* SPDX-License-Identifier: MIT
 *
 * pageable_copy: batches go to the device from memory that is not pinned: the training thread copies, and
 * nothing else happens meanwhile.
 *
 * Not to be taken for it: copies that the device's work hides (it is busy all the time), and batches that are
 * pinned already.
 *
 * Gain: from pinned memory the same bytes take a third of the time (two to four times the bandwidth on PCIe 3 and
 * 4). They are copied ahead of the kernels that use them, in the same queue, so that this third is not hidden
 * unless the program copies one batch ahead: that is the best case. And of a copy that waits for the kernels before it
 * only the time the device is idle is the copy's own: at most all its idle time, at least what the copies are longer than it is
 * busy, likely half-way. In practice 1.02 to 1.15 was seen.
 */
#include "explain/loading.h"

#include "base/num.h"

#include <math.h>
#include <stdio.h>

static const double copy_least = 0.05;
/* What is left of the copies. */
static const double left[] = { [LOADING_BEST] = 0, [LOADING_LIKELY] = 0.35, [LOADING_WORST] = 0.8 };

static double then(const struct facts *f, enum loading_case c, double copies)
{
	double busy = loading_gpu_floor(f, c), own = fmin(copies, 1 - busy);
	double sure = fmax(0, copies - busy);

	if (c == LOADING_LIKELY)
		own = (own + sure) / 2;
	else if (c == LOADING_WORST)
		own = sure;
	return fmax(fmax(1 - own * (1 - left[c]), busy), loading_least_left);
}

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
	rule_gain_of_time(x, then(f, LOADING_BEST, c->high), then(f, LOADING_LIKELY, c->value),
			  then(f, LOADING_WORST, c->low));
	rule_gain_drifts(x, fmin(1, fact_or(f, FACT_TIME_RUNNING, 1) / c->value));
	snprintf(x->then, sizeof(x->then), "%s",
		 1 / x->speedup > loading_gpu_floor(f, LOADING_LIKELY) + 0.01
		     ? "the copies that are left, and its own work"
		     : "GPU-bound");
	x->confidence = f->v[FACT_LOADER_PINS].known ? 0.8 : 0.6;
	return ANSWER_YES;
}

const struct rule pageable_copy_rule = {
	.cause = "pageable_copy", .needs_s = 5, .check = check, .about_gpus = true
};

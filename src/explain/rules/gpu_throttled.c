/* SPDX-License-Identifier: MIT
 *
 * gpu_throttled: a GPU the job keeps busy runs below its clock, because of heat, the power brake or
 * the hardware; or far below it because of its power limit.
 *
 * Not to be taken for it: low clocks of an idle GPU (only busy time counts), and the power limit at
 * high clocks, which is how dense matrix work runs on a healthy GPU. A limit somebody set on purpose
 * looks the same as any other: the finding says what it costs.
 *
 * Gain: with busy share u and clock f, 1/(1-u+u*f/f_ref). f_ref is the clock of the same run while
 * nothing held it, or the highest one. Kernels that wait for memory do not slow down with the clock,
 * so half of the effect is the lower bound; with the highest clock it is the upper one.
 */
#include "explain/rule.h"

#include "base/num.h"

#include <math.h>
#include <stdio.h>

static const double held_least = 0.05;     /* share of busy time */
static const double busy_least = 0.05;     /* share of time: less is not worth a word */
static const double busy_slack = 0.05;     /* what the driver's figure may be off by */
static const double alone_full = 0.9;      /* share of time a GPU is busy that is the limit */
static const double power_clock_far = 0.8; /* of the reference: no longer usual under the limit */
static const double power_clock_low = 0.9; /* ...and worth a note */

static double speedup(double busy, double ratio)
{
	return 1 / (1 - busy + busy * fmin(fmax(ratio, 0.05), 1));
}

static void set_gain(struct finding *x, const struct facts *f, double ref)
{
	double busy = fmin(f->v[FACT_GPU_HELD_BUSY].value, 1);
	double now = f->v[FACT_GPU_HELD_CLOCK].value;
	double top = fmax(fact_or(f, FACT_GPU_TOP_CLOCK, ref), ref);

	x->has_gain = true;
	x->speedup = speedup(busy, now / ref);
	x->low = speedup(busy / 2, now / ref);
	/* The busy share is a mean over the window, starting up included. */
	x->high = speedup(fmin(busy + busy_slack, 1), now / top);
	x->cost = 1 - 1 / x->speedup;
	/* At its full clock the same work takes busy * now / ref of the time that is left. */
	snprintf(x->then, sizeof(x->then), "%s",
		 busy * fmin(now / ref, 1) * x->speedup >= alone_full ? "GPU-bound"
								      : "its own work");
}

static void say(struct finding *x, const struct facts *f, double ref, bool power)
{
	double now = f->v[FACT_GPU_HELD_CLOCK].value;
	const char *gpu = f->v[FACT_GPU_HELD].text, *why = f->v[FACT_GPU_HELD_CLOCK].text;
	enum fact_id held = power ? FACT_GPU_HELD_POWER : FACT_GPU_HELD;
	char a[32], b[32];

	snprintf(x->title, sizeof(x->title), "%.24s is held back: %.0f of %.0f MHz (%.24s)", gpu,
		 fmin(now / 1e6, 1e6), fmin(ref / 1e6, 1e6),
		 *why    ? why
		 : power ? "its power limit"
			 : "its hardware");
	rule_because(x, f, held, "%s held its clocks %s of the time it was busy",
		     power ? "the power limit" : "heat or its hardware",
		     num_percent(f->v[held].value, a, sizeof(a)));
	rule_because(x, f, FACT_GPU_HELD_CLOCK, "its clock was %.0f MHz while it was busy",
		     now / 1e6);
	rule_because(x, f, FACT_GPU_FREE_CLOCK, "it was %.0f MHz while nothing held it",
		     f->v[FACT_GPU_FREE_CLOCK].value / 1e6);
	rule_because(x, f, FACT_GPU_TOP_CLOCK, "its highest is %.0f MHz",
		     f->v[FACT_GPU_TOP_CLOCK].value / 1e6);
	rule_because(x, f, FACT_GPU_HELD_BUSY, "a kernel ran on it %s of the time",
		     num_percent(f->v[FACT_GPU_HELD_BUSY].value, b, sizeof(b)));
	rule_because(x, f, FACT_GPU_HELD_HEAT, "it was up to %.0f C hot",
		     f->v[FACT_GPU_HELD_HEAT].value);
	snprintf(x->fix, sizeof(x->fix), "%s",
		 power ? "raise its power limit if somebody lowered it (nvidia-smi -q -d POWER, "
			 "nvidia-smi -pl WATTS), or use another node; a limit on purpose costs this"
		       : "check fans, air flow and power supply of the node, or move the job to "
			 "another GPU; one slow GPU slows all ranks that wait for it");
}

static enum answer check(const struct facts *f, struct opinion *o)
{
	struct finding *x = &o->finding;
	enum answer held = rule_at_least(f, FACT_GPU_HELD, held_least, o);
	enum answer power = rule_at_least(f, FACT_GPU_HELD_POWER, held_least, o);
	enum answer a = answer_or(held, power);
	double ref, ratio;

	if (a != ANSWER_YES)
		return a;
	if (f->v[FACT_GPU_HELD_BUSY].value < busy_least)
		return ANSWER_NO;
	if (!fact_value(f, FACT_GPU_FREE_CLOCK, &ref) && !fact_value(f, FACT_GPU_TOP_CLOCK, &ref))
		return rule_cannot_tell(o, "%s: its highest clock is not known",
					f->v[FACT_GPU_HELD].text);
	/* Before the run it may have been held already. */
	ratio = f->v[FACT_GPU_HELD_CLOCK].value / fmax(ref, 1);
	if (held != ANSWER_YES) {
		ref = fmax(ref, fact_or(f, FACT_GPU_TOP_CLOCK, ref));
		ratio = f->v[FACT_GPU_HELD_CLOCK].value / fmax(ref, 1);
		if (ratio >= power_clock_low)
			return ANSWER_NO;
		x->note = ratio >= power_clock_far;
	}
	say(x, f, ref, held != ANSWER_YES);
	set_gain(x, f, fmax(ref, 1));
	x->confidence = held == ANSWER_YES ? 0.85 : 0.6;
	return ratio >= 0.99 ? ANSWER_NO : ANSWER_YES;
}

const struct rule gpu_throttled_rule = {
	.cause = "gpu_throttled", .needs_s = 5, .check = check, .about_gpus = true
};

/* SPDX-License-Identifier: MIT
 *
 * idle_gpus: the job works on some of its GPUs and others of its own do nothing.
 *
 * Not to be taken for it: GPUs of the machine that nothing gives to the job. Without a mask in its
 * environment, or a context open on them, they are only mentioned; unless the job fills those it works on, nothing
 * hides the others from it, and nobody was on them: then they are what would make it faster.
 *
 * Gain: n GPUs instead of n-k are n/(n-k) times as fast at best, where the work divides and the input
 * keeps up; nothing at worst (a job that was given more than it needs should give them back).
 */
#include "explain/rule.h"

#include "base/num.h"

#include <math.h>
#include <stdio.h>

/* Share of time a GPU is busy that another one beside it would relieve. */
static const double full_least = 0.85;
/* Of a further one, what is won where the input keeps up: the exchange of gradients costs about a tenth. */
static const double divides = 0.9;
static const double held_most = 0.1; /* of its busy time */

static void spread(struct finding *x, const struct facts *f, double idle, double working)
{
	rule_where(x, f, FACT_GPU_CHOSEN);
	x->has_gain = true;
	x->low = 1;
	x->high = (idle + working) / working;
	/* a GPU that is full, and not for being held back, is what is short */
	x->speedup =
	    fact_or(f, FACT_GPU_BUSY, 0) >= full_least && fact_or(f, FACT_GPU_HELD, 1) <= held_most
		? (working + divides * idle) / working
		: sqrt(x->high);
	x->cost = 1 - 1 / x->speedup;
	snprintf(x->then, sizeof(x->then), "loading, or the exchange");
}

static void own(struct finding *x, const struct facts *f, double idle, double working)
{
	double open = fact_or(f, FACT_GPU_IDLE_OPEN, 0), n = idle + working;

	snprintf(x->title, sizeof(x->title), "%.0f of the job's %.0f GPUs %s nothing: GPU %s", idle,
		 n, idle > 1.5 ? "do" : "does", f->v[FACT_GPU_IDLE].text);
	rule_because(x, f, FACT_GPU_IDLE, "no kernel ran on GPU %s", f->v[FACT_GPU_IDLE].text);
	rule_because(x, f, FACT_GPU_WORKING, "it works on %.0f GPU%s", working,
		     working > 1.5 ? "s" : "");
	if (open > 0)
		rule_because(x, f, FACT_GPU_IDLE_OPEN,
			     "processes of the job have %.0f of them open", open);
	if (f->v[FACT_GPU_MASKED].text[0])
		rule_because(x, f, FACT_GPU_MASKED, "its environment has %s",
			     f->v[FACT_GPU_MASKED].text);
	snprintf(x->fix, sizeof(x->fix),
		 "start a process for each (torchrun --nproc_per_node=%.0f, accelerate, "
		 "DistributedDataParallel), or ask for %.0f GPU%s and leave the rest to others",
		 n, working, working > 1.5 ? "s" : "");
	snprintf(x->edit, sizeof(x->edit), "torchrun --nproc_per_node=%.0f", n);
	spread(x, f, idle, working);
	x->confidence = 0.6;
}

static void unused(struct finding *x, const struct facts *f, double n)
{
	char share[24];

	snprintf(x->title, sizeof(x->title), "%.0f more GPU%s of the machine %s idle: GPU %s", n,
		 n > 1.5 ? "s" : "", n > 1.5 ? "are" : "is", f->v[FACT_GPU_UNUSED].text);
	rule_because(x, f, FACT_GPU_UNUSED, "no kernel ran on GPU %s", f->v[FACT_GPU_UNUSED].text);
	rule_because(x, f, FACT_GPU_WORKING, "the job works on %.0f", f->v[FACT_GPU_WORKING].value);
	snprintf(x->fix, sizeof(x->fix),
		 "if they are yours to use: torchrun --nproc_per_node=%.0f, accelerate, "
		 "DistributedDataParallel",
		 n + f->v[FACT_GPU_WORKING].value);
	x->confidence = 0.5;
	/* one that is held back is not busy for want of others */
	if (fact_or(f, FACT_GPU_BUSY, 0) < full_least || fact_or(f, FACT_GPU_HELD, 1) > held_most ||
	    fact_or(f, FACT_GPU_SPARE, 0) < fmax(1, n)) {
		x->note = true;
		x->cost = NAN;
		return;
	}
	rule_because(x, f, FACT_GPU_SPARE, "nobody was on them, and nothing hides them from it");
	rule_because(x, f, FACT_GPU_BUSY, "%s is busy %s of the time", f->v[FACT_GPU_BUSY].text,
		     num_percent(f->v[FACT_GPU_BUSY].value, share, sizeof(share)));
	spread(x, f, n, f->v[FACT_GPU_WORKING].value);
}

static enum answer check(const struct facts *f, struct opinion *o)
{
	struct finding *x = &o->finding;
	enum answer works = rule_at_least(f, FACT_GPU_WORKING, 1, o);
	enum answer idle = rule_at_least(f, FACT_GPU_IDLE, 1, o);
	enum answer spare = rule_at_least(f, FACT_GPU_UNUSED, 1, o);
	enum answer a = answer_and(works, answer_or(idle, spare));

	/* One GPU cannot be idle beside another. */
	if (a == ANSWER_CANNOT_TELL && fact_or(f, FACT_GPU_UNITS, 2) < 1.5)
		return ANSWER_NO;
	if (a != ANSWER_YES)
		return a;
	if (idle == ANSWER_YES)
		own(x, f, f->v[FACT_GPU_IDLE].value, f->v[FACT_GPU_WORKING].value);
	else
		unused(x, f, f->v[FACT_GPU_UNUSED].value);
	return ANSWER_YES;
}

const struct rule idle_gpus_rule = {
	.cause = "idle_gpus", .needs_s = 5, .check = check, .about_gpus = true
};

/* SPDX-License-Identifier: MIT
 *
 * gpu_oom: the run died for want of GPU memory. The exception that ended it says so, where hooks are in the
 * program; where not, a program that failed while the GPU was full, and had not been from the start, is a weak
 * sign.
 *
 * Not to be taken for it: a framework that takes all memory at its start, an exception of another kind, a
 * program that was stopped or killed by a signal.
 *
 * There is no speed-up to predict: the run can finish.
 */
#include "explain/growing.h"

#include "base/num.h"

#include <stdio.h>
#include <string.h>

static const double full_least = 0.95, rise_least = 0.02;

/* A Python program that fails by an exception, or a library that gives up (SIGABRT). */
static enum answer failed(const struct facts *f, struct opinion *o)
{
	enum answer a = rule_at_least(f, FACT_RUN_FAILED, 1, o);
	const char *how = f->v[FACT_RUN_FAILED].text;

	if (a != ANSWER_YES)
		return a;
	return strncmp(how, "SIG", 3) != 0 || strcmp(how, "SIGABRT") == 0 ? ANSWER_YES : ANSWER_NO;
}

static enum answer was_full(const struct facts *f, struct opinion *o)
{
	return answer_and(rule_at_least(f, FACT_GPU_END_FILL, full_least, o),
			  rule_at_least(f, FACT_GPU_FILL_SWING, rise_least, o));
}

static enum answer check(const struct facts *f, struct opinion *o)
{
	struct finding *x = &o->finding;
	enum answer r = failed(f, o);
	bool said = f->v[FACT_RUN_OUT_OF_MEMORY].known;
	char a[24], b[24];

	if (r != ANSWER_YES)
		return r;
	r = said ? rule_at_least(f, FACT_RUN_OUT_OF_MEMORY, 1, o) : was_full(f, o);
	if (r != ANSWER_YES)
		return r;
	snprintf(x->title, sizeof(x->title), "%sthe run died for want of GPU memory",
		 said ? "" : "it seems that ");
	rule_because(x, f, FACT_RUN_OUT_OF_MEMORY, "the exception that ended it says so");
	rule_because(x, f, FACT_RUN_FAILED, "it ended with %s", f->v[FACT_RUN_FAILED].text);
	rule_because(x, f, FACT_GPU_END_FILL, "%s: %s of its %s were in use in its last seconds",
		     f->v[FACT_GPU_END_FILL].text,
		     num_percent(fact_or(f, FACT_GPU_END_FILL, 0), a, sizeof(a)),
		     num_bytes(fact_or(f, FACT_GPU_FILL_ROOM, 0), b, sizeof(b)));
	if (!said)
		rule_because(x, f, FACT_GPU_FILL_SWING, "and had not been all the time: %s less",
			     num_percent(fact_or(f, FACT_GPU_FILL_SWING, 0), a, sizeof(a)));
	rule_where_ended(x, f);
	/* what grew until then says more than what asked last */
	growing_where(x, f, FACT_KEPT_GPU);
	snprintf(x->fix, sizeof(x->fix),
		 "a smaller batch with gradient accumulation, mixed precision, activation "
		 "checkpointing, no_grad() in the evaluation; PYTORCH_CUDA_ALLOC_CONF="
		 "expandable_segments:True against fragments");
	x->cost = 1;
	x->confidence = said ? 0.97 : 0.5;
	snprintf(x->then, sizeof(x->then), "the run can finish");
	return ANSWER_YES;
}

const struct rule gpu_oom_rule = {
	.cause = "gpu_oom", .needs_s = 0, .check = check, .about_gpus = true
};

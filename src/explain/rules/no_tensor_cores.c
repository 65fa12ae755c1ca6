/* SPDX-License-Identifier: MIT
 *
 * no_tensor_cores: the GPU is busy and its matrix units do nothing: the model computes in FP32. Always a note;
 * only where the driver counts them (GPM: Hopper and newer).
 *
 * Not to be taken for it: work that has no matrix products, of which nothing is seen from here: confidence is
 * low.
 */
#include "explain/rule.h"

#include "base/num.h"

#include <math.h>
#include <stdio.h>

static const double busy_least = 0.5, filled_least = 0.3, tensor_most = 0.01;

static enum answer check(const struct facts *f, struct opinion *o)
{
	struct finding *x = &o->finding;
	enum answer r = rule_at_least(f, FACT_GPU_BUSY, busy_least, o);
	char a[24];

	if (r != ANSWER_YES)
		return r;
	r = answer_not(rule_at_least(f, FACT_GPU_TENSOR, tensor_most, o));
	r = answer_and(r, rule_at_least(f, FACT_GPU_FILLED, filled_least, o));
	if (r != ANSWER_YES)
		return r;
	snprintf(x->title, sizeof(x->title), "%s: its matrix units are not used",
		 f->v[FACT_GPU_BUSY].text);
	rule_because(x, f, FACT_GPU_TENSOR, "they work %s of the time",
		     num_percent(f->v[FACT_GPU_TENSOR].value, a, sizeof(a)));
	rule_because(x, f, FACT_GPU_FILLED, "%s of its multiprocessors have work",
		     num_percent(f->v[FACT_GPU_FILLED].value, a, sizeof(a)));
	snprintf(
	    x->fix, sizeof(x->fix),
	    "mixed precision (torch.autocast, keras mixed_precision, jax bfloat16), or TF32 for "
	    "what stays in FP32; whether it gains, a short run tells");
	snprintf(x->edit, sizeof(x->edit), "torch.set_float32_matmul_precision(\"high\")");
	x->note = true;
	x->cost = NAN;
	x->confidence = 0.5;
	return ANSWER_YES;
}

const struct rule no_tensor_cores_rule = {
	.cause = "no_tensor_cores", .needs_s = 5, .check = check, .about_gpus = true
};

/* SPDX-License-Identifier: MIT
 *
 * gpu_memory_full: the job fills the memory of a GPU, and its use goes up and down there: an
 * allocator that frees its cache and asks again stalls the steps (PyTorch: num_alloc_retries).
 *
 * Not to be taken for it: frameworks that take (nearly) all memory at the start and keep it
 * (TensorFlow, JAX). What stays the same from the first tenth of the run on says nothing, unless the framework is
 * one that takes only what it needs: blocks that are given back and taken again between two readings do not show.
 * How much is lost cannot be seen from outside: a note.
 */
#include "explain/rule.h"

#include "base/num.h"

#include <math.h>
#include <stdio.h>

static const double full_least = 0.95;
static const double swing_least = 0.02;

static enum answer check(const struct facts *f, struct opinion *o)
{
	struct finding *x = &o->finding;
	enum answer a = rule_at_least(f, FACT_GPU_FILL, full_least, o);
	char p[32], b[32], c[32];
	double fill, swing, room;
	bool moves;

	if (a != ANSWER_YES)
		return a;
	fill = f->v[FACT_GPU_FILL].value;
	swing = fact_or(f, FACT_GPU_FILL_SWING, 0);
	room = fact_or(f, FACT_GPU_FILL_ROOM, 0);
	moves = swing >= swing_least;
	if (!moves && fact_or(f, FACT_GPU_FILL_GROWS, 0) < 1)
		return rule_cannot_tell(o,
					"the memory of %s is full from the start, as a framework "
					"that takes all of it at once leaves it",
					f->v[FACT_GPU_FILL].text);
	snprintf(x->title, sizeof(x->title), "%s: its memory is full (%s of %s)",
		 f->v[FACT_GPU_FILL].text, num_bytes(fill * room, b, sizeof(b)),
		 num_bytes(room, c, sizeof(c)));
	rule_because(x, f, FACT_GPU_FILL, "%s of its memory were in use at most",
		     num_percent(fill, p, sizeof(p)));
	if (moves)
		rule_because(x, f, FACT_GPU_FILL_SWING, "its use went up and down by %s",
			     num_bytes(swing * room, b, sizeof(b)));
	else
		rule_because(x, f, FACT_GPU_FILL_GROWS,
			     "its framework takes memory as it needs it and keeps what it has: it "
			     "once needed nearly all");
	snprintf(x->fix, sizeof(x->fix),
		 "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, a slightly smaller batch, or "
		 "batches of few different shapes; torch.cuda.memory_stats()['num_alloc_retries'] "
		 "says whether it matters");
	x->note = true;
	x->cost = NAN;
	x->confidence = moves ? 0.6 : 0.4;
	return ANSWER_YES;
}

const struct rule gpu_memory_full_rule = {
	.cause = "gpu_memory_full", .needs_s = 5, .check = check, .about_gpus = true
};

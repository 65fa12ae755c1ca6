/* SPDX-License-Identifier: MIT
 *
 * gpu_ghost_memory: memory of a GPU is held by something that is gone: a process that ended or is a
 * zombie and is still listed, or memory in use that no listed process has.
 *
 * Not to be taken for it: what the driver keeps for itself (known apart, or cannot tell), processes
 * of other containers (pids that are not visible here: cannot tell). It is about memory, not speed: a
 * note, unless the GPU ran full.
 */
#include "explain/rule.h"

#include "base/num.h"

#include <math.h>
#include <stdio.h>

static const double ghost_least = 0.5 * 1073741824;
static const double full_least = 0.9;

static enum answer check(const struct facts *f, struct opinion *o)
{
	struct finding *x = &o->finding;
	enum answer dead = f->v[FACT_GPU_DEAD].subject ? ANSWER_YES
			   : f->v[FACT_GPU_DEAD].known ? ANSWER_NO
						       : rule_at_least(f, FACT_GPU_DEAD, 0, o);
	enum answer ghost = rule_at_least(f, FACT_GPU_GHOST, ghost_least, o);
	enum answer a = answer_or(dead, ghost);
	char b[32], c[32];

	if (a != ANSWER_YES)
		return a;
	if (dead == ANSWER_YES)
		snprintf(x->title, sizeof(x->title),
			 "%s has ended and still holds %s of GPU memory", f->v[FACT_GPU_DEAD].text,
			 num_bytes(f->v[FACT_GPU_DEAD].value, b, sizeof(b)));
	else
		snprintf(x->title, sizeof(x->title),
			 "%s of the memory of %s are held by no process its driver lists",
			 num_bytes(f->v[FACT_GPU_GHOST].value, b, sizeof(b)),
			 f->v[FACT_GPU_GHOST].text);
	if (dead == ANSWER_YES)
		rule_because(x, f, FACT_GPU_DEAD, "%s is listed with %s, and is no more",
			     f->v[FACT_GPU_DEAD].text,
			     num_bytes(f->v[FACT_GPU_DEAD].value, b, sizeof(b)));
	if (ghost == ANSWER_YES)
		rule_because(x, f, FACT_GPU_GHOST,
			     "in use, less what all its processes and its driver have: %s",
			     num_bytes(f->v[FACT_GPU_GHOST].value, c, sizeof(c)));
	rule_because(x, f, FACT_GPU_GHOST_FILL, "at most %s of its memory were in use",
		     num_percent(f->v[FACT_GPU_GHOST_FILL].value, c, sizeof(c)));
	if (dead == ANSWER_YES)
		snprintf(x->fix, sizeof(x->fix),
			 "end what is left of %s (its parent or children may hold it: fuser -v "
			 "/dev/nvidia*)",
			 f->v[FACT_GPU_DEAD].text);
	else
		snprintf(x->fix, sizeof(x->fix),
			 "find the holder with `sudo fuser -v /dev/nvidia*` (a zombie's child, a "
			 "process in another container) and end it; else reset the GPU when nobody "
			 "uses it (nvidia-smi -r)");
	snprintf(x->then, sizeof(x->then), "that memory is free, for a larger batch");
	x->note = fact_or(f, FACT_GPU_GHOST_FILL, 0) < full_least;
	x->cost = NAN;
	x->confidence = dead == ANSWER_YES ? 0.8 : 0.6;
	return ANSWER_YES;
}

const struct rule gpu_ghost_memory_rule = {
	.cause = "gpu_ghost_memory", .needs_s = 5, .check = check, .about_gpus = true
};

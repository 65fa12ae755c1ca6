/* SPDX-License-Identifier: MIT
 *
 * What mending all findings would gain. Gains of several are not added up: findings about the loading save the
 * same time (the training waits for its data once), so only the best of them counts, and so it is with those about
 * what ranks wait for each other; others save different parts of the training thread's time. What slows down
 * everything (a quota, neighbours) does so to what is left as well. And whatever is saved, the GPU still has its
 * work to do: faster than that is only a GPU that is itself held back.
 */
#include "explain/together.h"

#include "explain/fact.h"
#include "explain/loading.h"

#include <math.h>
#include <string.h>

/* Findings that save the same time, and how those of other kinds go with them. */
enum kind { KIND_LOADING, KIND_RANKS, KIND_MACHINE, KIND_GPU, KIND_OWN, KINDS };

/* Share of the present time that is saved, by kind, in one of the three cases. */
struct saved {
	double of[KINDS];
	double best; /* of one finding alone */
};

static enum kind kind_of(const struct finding *x)
{
	if (strcmp(x->family, "gpu") == 0 || strcmp(x->cause, "gpu_shared") == 0)
		return KIND_GPU;
	/* a job without memory waits for pages of its data, which is what its loading waits for */
	if (strcmp(x->family, "input") == 0 || strcmp(x->cause, "input_straggler") == 0 ||
	    strcmp(x->cause, "memory_pressure") == 0)
		return KIND_LOADING;
	if (strcmp(x->family, "machine") == 0)
		return KIND_MACHINE;
	return strcmp(x->family, "ranks") == 0 ? KIND_RANKS : KIND_OWN;
}

static void add(struct saved *s, enum kind k, double speedup)
{
	double share = speedup > 1 ? 1 - 1 / speedup : 0;

	s->of[k] = k == KIND_OWN ? s->of[k] + share : fmax(s->of[k], share);
	s->best = fmax(s->best, speedup);
}

static double speedup(const struct saved *s, double gpu)
{
	double left = 1 - s->of[KIND_LOADING] - s->of[KIND_RANKS] - s->of[KIND_OWN];

	left = fmax(left, loading_least_left) * (1 - s->of[KIND_MACHINE]) * (1 - s->of[KIND_GPU]);
	gpu = fmax(gpu - s->of[KIND_GPU], 0);
	return fmax(s->best, 1 / fmax(fmax(left, gpu), loading_least_left));
}

void together(struct verdict *v, const struct facts *f)
{
	struct saved low = { .best = 1 }, likely = low, high = low;
	size_t n = 0;

	v->together = v->together_low = v->together_high = NAN;
	for (size_t i = 0; i < v->findings.n; i++) {
		const struct finding *x = &v->findings.v[i];

		if (!x->has_gain)
			continue;
		n++;
		add(&low, kind_of(x), x->low);
		add(&likely, kind_of(x), x->speedup);
		add(&high, kind_of(x), x->high);
	}
	if (n < 2)
		return;
	v->together = speedup(&likely, loading_gpu_floor(f, LOADING_LIKELY));
	v->together_low = fmin(v->together, speedup(&low, loading_gpu_floor(f, LOADING_WORST)));
	v->together_high = fmax(v->together, speedup(&high, loading_gpu_floor(f, LOADING_BEST)));
	v->together = fact_round(v->together);
	v->together_low = fact_round(v->together_low);
	v->together_high = fact_round(v->together_high);
}

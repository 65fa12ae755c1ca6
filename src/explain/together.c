/* SPDX-License-Identifier: MIT
 *
 * What mending all findings would gain. Gains of several are not added up: findings about the loading save the
 * same time (the training waits for its data once), so only the best of them counts; others save different
 * parts of the training thread's time. And whatever is saved, the GPU still has its work to do.
 */
#include "explain/together.h"

#include "explain/fact.h"
#include "explain/loading.h"

#include <math.h>
#include <string.h>

/* Share of the present time that is saved: the three cases of a finding. */
struct saved {
	double low, likely, high;
};

static double share(double speedup)
{
	return speedup > 1 ? 1 - 1 / speedup : 0;
}

static struct saved most(struct saved a, struct saved b)
{
	return (struct saved){ fmax(a.low, b.low), fmax(a.likely, b.likely), fmax(a.high, b.high) };
}

static double speedup(double saved, double busy)
{
	return 1 / fmax(fmax(1 - saved, busy), 0.05);
}

void together(struct verdict *v, const struct facts *f)
{
	struct saved loading = { 0 }, machine = { 0 }, rest = { 0 };
	double best = 1,
	       busy[] = { loading_gpu_floor(f, LOADING_BEST), loading_gpu_floor(f, LOADING_LIKELY),
			  loading_gpu_floor(f, LOADING_WORST) };
	size_t n = 0;

	v->together = v->together_low = v->together_high = NAN;
	for (size_t i = 0; i < v->findings.n; i++) {
		const struct finding *x = &v->findings.v[i];
		struct saved s = { share(x->low), share(x->speedup), share(x->high) };

		if (!x->has_gain)
			continue;
		n++;
		best = fmax(best, x->speedup);
		if (strcmp(x->family, "input") == 0 || strcmp(x->family, "ranks") == 0) {
			loading = most(loading, s);
		} else if (strcmp(x->family, "machine") == 0 || strcmp(x->family, "gpu") == 0) {
			machine = most(machine, s); /* they slow down all the others */
		} else {
			rest.low += s.low;
			rest.likely += s.likely;
			rest.high += s.high;
		}
	}
	if (n < 2)
		return;
	/* Of what the machine leaves. A slow GPU is busy for the same reason: no bound then. */
	if (machine.likely > 0)
		memset(busy, 0, sizeof(busy));
	v->together =
	    fmax(best, speedup(fmin(loading.likely + rest.likely, 0.95), busy[LOADING_LIKELY]) /
			   (1 - machine.likely));
	v->together_low =
	    fmin(v->together,
		 speedup(fmax(loading.low, rest.low), busy[LOADING_WORST]) / (1 - machine.low));
	v->together_high =
	    fmax(v->together, speedup(fmin(loading.high + rest.high, 0.95), busy[LOADING_BEST]) /
				  (1 - machine.high));
	v->together = fact_round(v->together);
	v->together_low = fact_round(v->together_low);
	v->together_high = fact_round(v->together_high);
}

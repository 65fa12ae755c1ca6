/* SPDX-License-Identifier: MIT
 *
 * What bounds a gain from the other side: the GPU's work, the loader's, the cores.
 */
#include "explain/loading.h"

#include "base/num.h"

#include <math.h>

/* How busy a GPU gets, as a share of time, once nothing but its own work holds the training: never all of it,
 * launching, taking a batch and the loop itself show in between. At best all of it, and what a driver says of how
 * busy it is now may be off by 2 %. docs/gain.md has what was measured. */
static const double gpu_filled[] = {
	[LOADING_BEST] = 1.02, [LOADING_LIKELY] = 0.97, [LOADING_WORST] = 0.90
};
static const double gpu_used_least = 0.01; /* share of time: below it there is no work on a GPU */

static double filled(double busy, enum loading_case c)
{
	return busy < gpu_used_least ? fmax(busy, 0) : fmin(1, busy / gpu_filled[c]);
}

double loading_gpu_floor(const struct facts *f, enum loading_case c)
{
	return filled(fact_or(f, FACT_GPU_BUSY, 0), c);
}

double loading_late_gpu_floor(const struct facts *f, enum loading_case c)
{
	bool own = fact_or(f, FACT_GPU_USED, 0) >= fmax(1, fact_or(f, FACT_RANKS, INFINITY));

	return own ? filled(fact_or(f, FACT_GPU_BUSY_LEAST, 0), c) : 0;
}

static const double supply_wait_least =
    0.05; /* of the training's time: below it nobody waits for the loader */

double loading_supply_floor(const struct facts *f, enum loading_case c)
{
	const struct fact *idle = &f->v[FACT_LOADER_IDLE];
	double spare = c == LOADING_BEST    ? idle->high
		       : c == LOADING_WORST ? idle->low
					    : idle->value;

	if (!idle->known || fact_or(f, FACT_LOADER_WORKERS, 0) < loading_workers_least ||
	    fact_or(f, FACT_TIME_DATA_WAIT, 0) < supply_wait_least)
		return 0;
	return fmin(1, fmax(0, 1 - spare));
}

/* Where the cores are the bound it is off by this: who is put off by whom is not modelled. Measured with
 * torch's loader on full cores: 14 to 18 %. */
static const double strain[] = {
	[LOADING_BEST] = 1, [LOADING_LIKELY] = 1.16, [LOADING_WORST] = 1.3
};
/* What a further process gets of a core, against those the job has. */
static const double turn[] = { [LOADING_BEST] = 1, [LOADING_LIKELY] = 0.7, [LOADING_WORST] = 0 };

double loading_cores_spinning(const struct facts *f)
{
	return fact_or(f, FACT_CORES_SPINNING, 0);
}

void loading_because_cores(struct finding *x, const struct facts *f)
{
	char a[24];

	rule_because(x, f, FACT_CORES_FREE, "%s cores are free",
		     num_cores(f->v[FACT_CORES_FREE].value, a, sizeof(a)));
	if (loading_cores_spinning(f) > 0)
		rule_because(
		    x, f, FACT_CORES_SPINNING,
		    "%s more are spun away by threads of a math library that wait for work "
		    "(OPENBLAS_NUM_THREADS, OMP_NUM_THREADS)",
		    num_cores(f->v[FACT_CORES_SPINNING].value, a, sizeof(a)));
}

/* Who yields while it looks for work lets everybody through. */
static double given_up(const struct facts *f, enum loading_case c)
{
	double spun = loading_cores_spinning(f);
	double yields = c == LOADING_WORST ? 0 : fmin(spun, fact_or(f, FACT_CORES_YIELDED, 0));

	return yields + turn[c] * (spun - yields);
}

/* The cores nobody uses; what helping threads spin away they give up to whoever needs it. On a full machine a
 * further process gets its turn all the same: as the training thread does, which has a CPU for a part of the time
 * it wants one. */
static double cores_floor(const struct facts *f, enum loading_case c, double more)
{
	double used, unused, allowed, run = fact_or(f, FACT_TIME_RUNNING, 0);
	double ready = run + fact_or(f, FACT_TIME_QUEUED, 0), share = ready > 0 ? run / ready : 0;

	if (!fact_value(f, FACT_CORES_USED, &used) || !fact_value(f, FACT_CORES_FREE, &unused) ||
	    !fact_value(f, FACT_CORES_ALLOWED, &allowed) || used <= 0)
		return 0;
	unused = fmax(unused, fmin(allowed - used, turn[c] * more * share));
	return (used - fmin(used, given_up(f, c))) / (used + unused) * strain[c];
}

double loading_cores_floor(const struct facts *f, enum loading_case c, double more)
{
	return fmin(1, fmax(loading_least_left, cores_floor(f, c, more)));
}

double loading_floor(const struct facts *f, enum loading_case c, double more)
{
	return fmin(
	    1, fmax(loading_least_left, fmax(loading_gpu_floor(f, c), cores_floor(f, c, more))));
}

const char *loading_then(const struct facts *f, double then, double more, const char *otherwise)
{
	if (then > loading_floor(f, LOADING_LIKELY, more) + 0.01)
		return otherwise;
	return loading_gpu_floor(f, LOADING_LIKELY) >= cores_floor(f, LOADING_LIKELY, more)
		   ? "GPU-bound"
		   : "the cores it may use";
}

double loading_wall_per_cpu(const struct facts *f)
{
	double run = fact_or(f, FACT_TIME_RUNNING, 0);

	return run > 0.01 ? (run + fact_or(f, FACT_TIME_QUEUED, 0)) / run : 1;
}

double loading_played(const struct facts *f, enum loading_case c, double now, double after)
{
	double gpu = fact_or(f, FACT_GPU_BUSY, 0), left = after / now;

	if (!isfinite(left))
		return 1;
	/* The GPU is what it takes; not so where it would be now, and is not: then the what-if knows too little. */
	if (gpu >= gpu_used_least && after <= gpu * 1.01 && now > gpu * 1.02)
		left = 0;
	return fmin(1, fmax(fmax(left, loading_least_left), loading_gpu_floor(f, c)));
}

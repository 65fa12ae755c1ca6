/* SPDX-License-Identifier: MIT
 *
 * The CPU quota of the job's control group. The kernel lets a group with a quota of q cores run
 * q x 100 ms of CPU time in each period of 100 ms; once that is used up, every thread of the group
 * stands still until the period is over.
 */
#include "explain/fact.h"
#include "explain/scene.h"

#include <math.h>

static bool is_absent_as(const struct scene *s, enum metric_id m, const char *why)
{
	double v;

	return !window_last(s->whole, m, s->cg_cpu, &v) &&
	       strcmp(window_why_absent(s->whole, m, s->cg_cpu), why) == 0;
}

/* A quota that is not set has no value and no gap, and the group has no counters for one; what could
 * not be read has a gap that says so. Fewer cores allowed than CPUs: there is one all the same. */
static bool none_set(const struct scene *s, const struct facts *f)
{
	double cpus = fmin(fact_or(f, FACT_CORES_AFFINITY, INFINITY),
			   fact_or(f, FACT_CORES_MACHINE, INFINITY));

	if (!s->cg_cpu || !is_absent_as(s, M_CG_CPU_QUOTA, "not recorded") ||
	    fact_or(f, FACT_CORES_ALLOWED, INFINITY) < cpus - 0.005)
		return false;
	return is_absent_as(s, M_CG_CPU_THROTTLED_N, "not recorded") ||
	       is_absent_as(s, M_CG_CPU_THROTTLED_N, "not supported");
}

static void throttled(const struct scene *s, struct facts *f)
{
	const struct window *w = &s->steady;
	double n, periods, share, half;
	bool has_n = scene_growth(w, M_CG_CPU_THROTTLED_N, s->cg_cpu, &n);
	bool has_periods = scene_growth(w, M_CG_CPU_PERIODS, s->cg_cpu, &periods);

	if (has_n && n == 0) {
		fact_set(f, FACT_QUOTA_THROTTLED, 0);
	} else if (has_n && has_periods && periods > 0) {
		/* Periods are not independent, but they are many: the plain error will do. */
		share = fmin(1, n / periods);
		half = 1.96 * sqrt(share * (1 - share) / periods);
		fact_set_range(f, FACT_QUOTA_THROTTLED, share, fmax(0, share - half),
			       fmin(1, share + half));
	} else if (!has_n && !has_periods && none_set(s, f)) {
		fact_set(f, FACT_QUOTA_THROTTLED, 0);
	} else {
		enum metric_id m = has_n ? M_CG_CPU_PERIODS : M_CG_CPU_THROTTLED_N;

		if (s->cg_cpu)
			fact_absent(f, FACT_QUOTA_THROTTLED, "%s: %s", metrics[m].name,
				    window_why_absent(s->whole, m, s->cg_cpu));
		else
			fact_absent(f, FACT_QUOTA_THROTTLED, "no control group can be seen");
	}
}

/* Share of wall time the group stood still.
 *
 * cgroup.throttled sums the standing time of every CPU's run queue. At most `width` queues stand at
 * once (CPUs it may use, and no more than it has threads), so wall time lost is at least
 * throttled / width. It is at most throttled itself, at most the share of throttled periods, and
 * at most what is left when the CPU time used is run at full width: 1 - used / width. For
 * threads that want to run all the time both ends meet. */
static void lost(const struct scene *s, struct facts *f)
{
	double stood, width, threads, share, low, high;

	if (!fact_value(f, FACT_QUOTA_THROTTLED, &share)) {
		fact_absent_like(f, FACT_QUOTA_LOST, FACT_QUOTA_THROTTLED);
		return;
	}
	if (share == 0) {
		fact_set(f, FACT_QUOTA_LOST, 0);
		return;
	}
	width = fmin(fact_or(f, FACT_CORES_AFFINITY, INFINITY),
		     fact_or(f, FACT_CORES_MACHINE, INFINITY));
	if (window_max(&s->steady, M_JOB_THREADS, ID_JOB, &threads))
		width = fmin(width, fmax(1, threads));
	if (!scene_rate(&s->steady, M_CG_CPU_THROTTLED, s->cg_cpu, &stood) || !isfinite(width)) {
		fact_absent(f, FACT_QUOTA_LOST, "%s: %s", metrics[M_CG_CPU_THROTTLED].name,
			    window_why_absent(s->whole, M_CG_CPU_THROTTLED, s->cg_cpu));
		return;
	}
	high = fmin(share, stood);
	high = fmin(high, fmax(0, 1 - fact_or(f, FACT_CORES_USED, 0) / width));
	low = fmin(stood / width, 0.995);
	high = fmin(fmax(high, low), 0.995);
	fact_set_range(f, FACT_QUOTA_LOST, low, low, high);
}

static void compute(const struct scene *s, struct facts *f)
{
	double v;

	throttled(s, f);
	lost(s, f);
	if (s->cg_cpu && scene_rate(&s->steady, M_CG_CPU, s->cg_cpu, &v))
		fact_set(f, FACT_QUOTA_GROUP_CORES, v);
	else
		fact_absent(f, FACT_QUOTA_GROUP_CORES, "%s: %s", metrics[M_CG_CPU].name,
			    window_why_absent(s->whole, M_CG_CPU, s->cg_cpu));
}

const struct fact_source quota_facts = { "quota", compute };

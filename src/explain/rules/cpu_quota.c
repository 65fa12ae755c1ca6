/* SPDX-License-Identifier: MIT
 *
 * cpu_quota: the job's control group may use fewer cores than the job wants, and is stopped for the
 * rest of every period. Programs do not see it: os.cpu_count() and the affinity count CPUs, so
 * libraries start as many threads as the machine has CPUs, which use the quota up the sooner.
 * Not to be taken for it: a small affinity (nothing is stopped, threads share fewer CPUs).
 *
 * Gain: the time it stood still, down to what cores and GPU leave. Some of it may have been hidden behind waiting that
 * goes on meanwhile, and cores that are all in use slow each other down: that is the worst case.
 */
#include "explain/loading.h"

#include "base/num.h"

#include <math.h>
#include <stdio.h>

static void say_why(struct finding *x, const struct facts *f, double quota)
{
	double used = fact_or(f, FACT_CORES_USED, NAN), machine, group, affinity;
	char a[24], b[24];

	rule_because(x, f, FACT_QUOTA_THROTTLED, "stopped in %s of the quota's periods",
		     num_percent(f->v[FACT_QUOTA_THROTTLED].value, a, sizeof(a)));
	rule_because(x, f, FACT_CORES_USED, "it used %s of the %s cores the quota gives",
		     num_cores(used, a, sizeof(a)), num_cores(quota, b, sizeof(b)));
	rule_because(x, f, FACT_QUOTA_LOST, "it stood still for at least %s of the time",
		     num_percent(f->v[FACT_QUOTA_LOST].value, a, sizeof(a)));
	if (fact_value(f, FACT_CORES_MACHINE, &machine) && machine > quota)
		rule_because(x, f, FACT_CORES_MACHINE,
			     "os.cpu_count() says %s: it does not see a quota",
			     num_cores(machine, a, sizeof(a)));
	if (fact_value(f, FACT_CORES_AFFINITY, &affinity) &&
	    affinity < fact_or(f, FACT_CORES_MACHINE, 0))
		rule_because(x, f, FACT_CORES_AFFINITY, "its affinity is another limit: %s CPUs",
			     num_cores(affinity, a, sizeof(a)));
	if (fact_value(f, FACT_QUOTA_GROUP_CORES, &group) && group - used > 0.1 * quota)
		rule_because(x, f, FACT_QUOTA_GROUP_CORES,
			     "other programs of its control group used %s cores of the quota",
			     num_cores(group - used, a, sizeof(a)));
}

/* How many times faster could it go if nothing stopped it, before it meets the next limit? */
static double room_above(const struct facts *f)
{
	double used, width = fmin(fact_or(f, FACT_CORES_AFFINITY, INFINITY),
				  fact_or(f, FACT_CORES_MACHINE, INFINITY) -
				      fact_or(f, FACT_CORES_OTHERS, 0));

	if (!fact_value(f, FACT_CORES_USED, &used) || used <= 0)
		return INFINITY;
	return width / used;
}

static void say_fix(struct finding *x, const struct facts *f, double quota)
{
	int threads = quota >= 1 ? fact_whole(quota) : 1;
	double wanted = quota / (1 - fmin(fact_or(f, FACT_QUOTA_LOST, 0), 0.9));
	int cores = fact_whole(ceil(fmin(wanted, fact_or(f, FACT_CORES_MACHINE, wanted))));

	if (cores <= quota)
		cores = fact_whole(quota) + 1;
	snprintf(x->fix, sizeof(x->fix),
		 "raise the quota to %d core%s (docker run --cpus=%d, Kubernetes limits.cpu, "
		 "cpu.max), or run at most %d thread%s, workers included",
		 cores, cores == 1 ? "" : "s", cores, threads, threads == 1 ? "" : "s");
	snprintf(x->edit, sizeof(x->edit), "docker run --cpus=%d, or OMP_NUM_THREADS=%d", cores,
		 threads);
}

/* What of the time it stood still is won, and how much longer work takes where all cores are in use. */
static const double won[] = { [LOADING_BEST] = 1, [LOADING_LIKELY] = 1, [LOADING_WORST] = 0.85 };
static const double full[] = { [LOADING_BEST] = 1, [LOADING_LIKELY] = 1, [LOADING_WORST] = 1.3 };

/* A GPU whose orders come in bursts is counted as busy between some of them, too: of six that were given their cores two
 * did 1.1 and 1.3 times what that left. */
static const double busy_by_bursts = 0.8;

static double then(const struct facts *f, enum loading_case c, double lost, double room)
{
	double gpu = fact_or(f, FACT_GPU_USED, 0) >= 1 ? loading_gpu_floor(f, c) : 0;

	if (c == LOADING_BEST)
		gpu *= busy_by_bursts;
	return fmax(fmax(1 - won[c] * lost, full[c] / fmax(room, 1)), gpu);
}

static void gain(struct finding *x, const struct facts *f)
{
	const struct fact *lost = &f->v[FACT_QUOTA_LOST];
	double room = room_above(f), left;

	if (!lost->known)
		return;
	rule_gain_of_time(x, then(f, LOADING_BEST, lost->high, room),
			  then(f, LOADING_LIKELY, lost->value, room),
			  then(f, LOADING_WORST, lost->low, room));
	left = 1 / x->speedup;
	snprintf(x->then, sizeof(x->then), "%s",
		 left > then(f, LOADING_LIKELY, 1, room) + 0.01 ? "its own work"
		 : left <= 1 / fmax(room, 1) + 0.01             ? "all cores it can get are busy"
								: "GPU-bound");
}

static enum answer check(const struct facts *f, struct opinion *o)
{
	enum answer throttled = rule_at_least(f, FACT_QUOTA_THROTTLED, rule_throttled_least, o);
	struct finding *x = &o->finding;
	double quota;
	char a[24], b[24];

	if (throttled != ANSWER_YES)
		return throttled;
	if (!fact_value(f, FACT_CORES_QUOTA, &quota))
		return rule_cannot_tell(
		    o, "it is being stopped by a quota, but which is not known (%s)",
		    f->v[FACT_CORES_QUOTA].why);
	snprintf(x->title, sizeof(x->title),
		 "a CPU quota of %s core%s stops the job in %s of periods",
		 num_cores(quota, a, sizeof(a)), quota == 1 ? "" : "s",
		 num_percent(f->v[FACT_QUOTA_THROTTLED].value, b, sizeof(b)));
	say_why(x, f, quota);
	say_fix(x, f, quota);
	gain(x, f);
	x->confidence = x->n_evidence && f->v[FACT_QUOTA_LOST].known ? 0.95 : 0.8;
	return ANSWER_YES;
}

const struct rule cpu_quota_rule = { .cause = "cpu_quota", .needs_s = 5, .check = check };

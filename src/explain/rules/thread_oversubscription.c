/* SPDX-License-Identifier: MIT
 *
 * thread_oversubscription: the job itself keeps more threads ready to run than it has cores: pools
 * of OpenMP, BLAS or torch threads in each of several processes, each pool as large as the machine.
 *
 * Not to be taken for it: sleeping threads (not ready), as many threads as cores (nobody waits), a
 * quota (also shows as waiting: cpu_quota says it), neighbours (the job has not the cores). Threads
 * that would be too many even without neighbours are named in a note beside them.
 *
 * What it costs cannot be seen from outside: threads that wait for each other at barriers may run
 * many times slower, independent ones as fast. docs/causes/thread_oversubscription.md has
 * measurements: with R ready threads on A cores, one thread per core was 1.0 to R/A times as fast in
 * most loops, so the middle of that on a ratio scale is given, with the range. Where the first thread is seen to spin at barriers
 * (L3) it is known better: that, and what it waits for a CPU, is lost. Many
 * one-threaded processes (make -j) lose only the switching: a note.
 */
#include "explain/loading.h"

#include "base/num.h"

#include <math.h>
#include <stdio.h>

/* Of the CPU time: threads that wait for work by yielding switch often, and lose next to nothing by it. */
static const double switches_most = 0.1;
static const double pool_most =
    0.8; /* of the ready threads: where workers are not what is too many */
static const double ready_least = 1.5;   /* ready threads per allowed core */
static const double delay_least = 0.3;   /* seconds waited per second run */
static const double filled_least = 0.75; /* share of its cores the job itself fills... */
static const double others_most = 0.15;  /* ...or others leave it: nobody else makes it wait */
static const double yields_most = 2.2;   /* ready threads per core, if they wait by yielding */
static const double idle_most = 0.25; /* share of its cores used at which nobody can be waiting */
static const double switch_s = 2e-6;  /* a switch of threads, caches apart */

/* The thread that shares its work out spins at barriers, and it and its helpers wait for a CPU: they hold each other up. */
static const double spins_least = 0.15, spins_delay_least = 0.1; /* of the time */
static const double spins_ready_least = 1.25;                    /* ready threads per core, then */
static const double unspun = 0.9,
		    left_least = 0.05; /* what of it goes away; what is left at least */

static enum answer barriers(const struct facts *f)
{
	const struct fact *spins = &f->v[FACT_MAIN_SPINS], *queued = &f->v[FACT_TIME_QUEUED];

	if ((spins->known && spins->high < spins_least) ||
	    (queued->known && queued->value < spins_delay_least))
		return ANSWER_NO;
	if (!spins->known || !queued->known || spins->low < spins_least)
		return ANSWER_CANNOT_TELL;
	return ANSWER_YES;
}

static bool at_barriers(const struct facts *f)
{
	return barriers(f) == ANSWER_YES;
}

/* Quota, or nothing that stops it? When the CPUs of its affinity are full there can be none below. */
static enum answer stopped(const struct facts *f, double used, struct opinion *o)
{
	double cpus = fmin(fact_or(f, FACT_CORES_AFFINITY, INFINITY),
			   fact_or(f, FACT_CORES_MACHINE, INFINITY));

	if (!f->v[FACT_QUOTA_THROTTLED].known && isfinite(cpus) && used >= 0.9 * cpus)
		return ANSWER_NO;
	return rule_at_least(f, FACT_QUOTA_THROTTLED, rule_throttled_least, o);
}

/* Does the job itself make its threads wait? Surely when it fills its cores or nobody else does much. */
static enum answer undisturbed(const struct facts *f, double used, double allowed,
			       struct opinion *o)
{
	double others;

	if (used >= filled_least * allowed)
		return ANSWER_YES;
	if (!fact_value(f, FACT_CORES_OTHERS, &others))
		return rule_at_least(f, FACT_CORES_OTHERS, 0, o);
	return others <= others_most * allowed ? ANSWER_YES : ANSWER_NO;
}

/* Without the times of threads: cores that lie idle make nobody wait. */
static bool has_idle_cores(const struct facts *f)
{
	double used, others, allowed, machine;

	return fact_value(f, FACT_CORES_USED, &used) && fact_value(f, FACT_CORES_OTHERS, &others) &&
	       fact_value(f, FACT_CORES_ALLOWED, &allowed) &&
	       fact_value(f, FACT_CORES_MACHINE, &machine) && used < idle_most * allowed &&
	       used + others < 0.5 * machine;
}

static void say_why(struct finding *x, const struct facts *f, double ready, double allowed)
{
	double others;
	char a[24];

	rule_because(x, f, FACT_THREADS_READY, "%.1f threads ready to run at a time, for %s cores",
		     ready, num_cores(allowed, a, sizeof(a)));
	rule_because(x, f, FACT_THREADS_DELAY,
		     "they waited %.1f s for a CPU for each second they had one",
		     f->v[FACT_THREADS_DELAY].value);
	if (fact_or(f, FACT_POOL_PROCESSES, 0) > 1.5)
		rule_because(x, f, FACT_POOL_THREADS, "%s and the like: %.1f ready threads each",
			     f->v[FACT_POOL_PROCESSES].text, f->v[FACT_POOL_THREADS].value);
	rule_because(x, f, FACT_THREADS_SWITCHES, "%s switches of threads a second",
		     num_count(f->v[FACT_THREADS_SWITCHES].value, a, sizeof(a)));
	if (at_barriers(f))
		rule_because(x, f, FACT_MAIN_SPINS,
			     "%s spins at barriers %s of the time, until its helpers are there",
			     loading_thread(f),
			     num_percent(f->v[FACT_MAIN_SPINS].value, a, sizeof(a)));
	if (fact_or(f, FACT_MAIN_DELAY, 0) >= 0.01)
		rule_because(x, f, FACT_MAIN_DELAY,
			     "the first thread waited for a CPU %s of the time",
			     num_percent(f->v[FACT_MAIN_DELAY].value, a, sizeof(a)));
	others = fact_or(f, FACT_CORES_OTHERS, 0);
	rule_because(x, f, FACT_CORES_OTHERS, "other programs used %s cores%s",
		     num_cores(others, a, sizeof(a)),
		     others <= others_most * allowed ? ": they are not the reason" : "");
}

static void pools(struct finding *x, const struct facts *f, double ready, double allowed)
{
	double processes = fact_or(f, FACT_POOL_PROCESSES, 1);
	int n = processes > 1.5 ? fact_whole(processes + 0.5) : 1;
	int each = n < allowed ? fact_whole(allowed / n) : 1;
	const struct fact *spins = &f->v[FACT_MAIN_SPINS];
	double delay = fact_or(f, FACT_TIME_QUEUED, 0); /* of the same thread */
	char a[24];

	/* several pools in one process, each as large as it may be: none may be */
	if (n == 1 && at_barriers(f) && ready > allowed)
		each = fact_whole(fmax(1, floor(each * allowed / ready)));

	if (n > 1)
		snprintf(x->title, sizeof(x->title),
			 "%d processes keep %.0f threads ready to run on %s cores", n, ready,
			 num_cores(allowed, a, sizeof(a)));
	else
		snprintf(x->title, sizeof(x->title),
			 "%s keeps %.0f threads ready to run on %s cores",
			 f->v[FACT_POOL_PROCESSES].text, ready, num_cores(allowed, a, sizeof(a)));
	snprintf(x->fix, sizeof(x->fix),
		 "give %s %d thread%s: OMP_NUM_THREADS=%d (OPENBLAS_, MKL_ likewise), "
		 "torch.set_num_threads(%d), cv2.setNumThreads(0)%s",
		 n > 1 ? "each process" : "it", each, each == 1 ? "" : "s", each, each,
		 n > allowed ? ", and start fewer processes than cores"
		 : n == 1 && each > 1
		     ? "; if that is slower, 1: OpenMP and a math library may have "
		       "a pool each"
		     : "");
	snprintf(x->edit, sizeof(x->edit), "OMP_NUM_THREADS=%d", each);
	x->high = ready / allowed;
	x->speedup = sqrt(x->low * x->high);
	if (at_barriers(f)) {
		x->high = fmax(x->high, 1 / fmax(1 - delay - spins->high, left_least));
		x->speedup = fmin(x->high, 1 / fmax(1 - delay - unspun * spins->value, left_least));
	}
}

static void processes_only(struct finding *x, double ready, double allowed)
{
	char a[24];

	snprintf(x->title, sizeof(x->title),
		 "%.0f processes at a time want %s cores; each has one thread, so little is lost",
		 ready, num_cores(allowed, a, sizeof(a)));
	snprintf(x->fix, sizeof(x->fix), "start about %s at a time",
		 num_cores(floor(fmax(1, allowed)), a, sizeof(a)));
	x->speedup = x->low;
	x->high = x->low * 1.04;
	x->note = true;
}

/* Whatever the cores do, the GPU has its work to do. */
static void bounded(struct finding *x, const struct facts *f)
{
	bool on_gpu = fact_or(f, FACT_GPU_USED, 0) >= 1;
	double likely = on_gpu ? 1 / loading_gpu_floor(f, LOADING_LIKELY) : INFINITY;

	x->high = fmax(x->high, x->low);
	if (on_gpu)
		x->high = fmin(x->high, 1 / loading_gpu_floor(f, LOADING_BEST));
	x->speedup = fmin(fmin(x->speedup, x->high), likely);
	x->low = fmin(x->low, x->speedup);
	snprintf(x->then, sizeof(x->then), "%s",
		 x->speedup >= likely ? "GPU-bound" : "the cores it may use");
}

/* Ready threads that have something to do: those that only look for work, and yield, are ready all the time and in nobody's
 * way. */
static double with_work(const struct facts *f, double ready)
{
	double each = 1 + fmax(0, fact_or(f, FACT_THREADS_DELAY, 0));

	return ready - fact_or(f, FACT_CORES_YIELDED, 0) * each;
}

/* May the others go on in spite of them? Not with more than a few; without stacks it is not known who yields. */
static bool may_yield(const struct facts *f, double ready, double allowed)
{
	if (ready > yields_most * allowed || at_barriers(f))
		return false;
	return !f->v[FACT_CORES_YIELDED].known || with_work(f, ready) < ready_least * allowed;
}

/* Is there no thread too many but for those of the loader's workers? What these do is another matter: fewer of them
 * would not make a batch cheaper. */
static bool are_workers(const struct facts *f, double ready, double allowed)
{
	double each = fact_or(f, FACT_LOADER_BUSY, 0) + fact_or(f, FACT_LOADER_QUEUED, 0);
	double loading = fact_or(f, FACT_LOADER_WORKERS, 0) * fmin(1, each);

	/* a pool of threads beside them is too many all the same */
	if (fact_or(f, FACT_POOL_SHARE, 0) >= pool_most)
		return false;
	return loading > 0 && fact_or(f, FACT_LOADER_WORKERS, 0) <= allowed + 0.5 &&
	       ready - loading <= allowed + 0.2;
}

static enum answer check(const struct facts *f, struct opinion *o)
{
	struct finding *x = &o->finding;
	double ready, allowed, used, switches, least;
	enum answer a, alone;

	a = answer_and(rule_at_least(f, FACT_THREADS_READY, 0, o),
		       answer_and(rule_at_least(f, FACT_CORES_ALLOWED, 0.001, o),
				  rule_at_least(f, FACT_CORES_USED, 0, o)));
	if (a != ANSWER_YES)
		return has_idle_cores(f) ? ANSWER_NO : a;
	ready = f->v[FACT_THREADS_READY].value;
	allowed = f->v[FACT_CORES_ALLOWED].value;
	used = f->v[FACT_CORES_USED].value;
	least = at_barriers(f) ? spins_ready_least : ready_least;
	if (ready < (barriers(f) == ANSWER_NO ? ready_least : spins_ready_least) * allowed ||
	    are_workers(f, ready, allowed))
		return ANSWER_NO;
	a = answer_and(rule_at_least(f, FACT_THREADS_DELAY, delay_least, o),
		       answer_not(stopped(f, used, o)));
	alone = undisturbed(f, used, allowed, o);
	a = answer_and(a,
		       answer_or(alone, rule_at_least(f, FACT_THREADS_ALONE, least * allowed, o)));
	if (a == ANSWER_YES && ready < ready_least * allowed && !at_barriers(f))
		a = rule_cannot_tell(o, "whether its threads hold each other up at barriers is not "
					"known: too little native code was seen (level L3)");
	if (a != ANSWER_YES)
		return a;
	say_why(x, f, ready, allowed);
	if (fact_or(f, FACT_POOL_SET, 0) > 0)
		rule_where(x, f, FACT_POOL_SET);
	switches = fmax(0, fact_or(f, FACT_THREADS_SWITCHES, 0)) * switch_s;
	x->low = 1 / (1 - fmin(switches_most, used > 0 ? switches / used : 0));
	if (fact_or(f, FACT_POOL_SHARE, 0) >= 0.5)
		pools(x, f, ready, allowed);
	else
		processes_only(x, ready, allowed);
	/* With neighbours about, fewer threads also means a smaller share of the cores: no promise. */
	bounded(x, f);
	x->has_gain = alone == ANSWER_YES;
	/* Helpers that wait by yielding give way to whoever has work: two for a core may cost much or nothing. */
	x->note |=
	    alone != ANSWER_YES || may_yield(f, ready, allowed) ||
	    (switches >= switches_most * used && ready <= yields_most * allowed && !at_barriers(f));
	x->cost = x->has_gain ? 1 - 1 / x->speedup : (double)NAN;
	x->confidence = f->v[FACT_QUOTA_THROTTLED].known ? 0.8 : 0.7;
	return ANSWER_YES;
}

const struct rule thread_oversubscription_rule = { .cause = "thread_oversubscription",
						   .needs_s = 5,
						   .check = check };

/* SPDX-License-Identifier: MIT
 *
 * The loading as a part of the training's time: whom it holds up, and what a second takes when a part of it becomes faster.
 */
#include "explain/loading.h"

#include "base/num.h"
#include "explain/pipeline.h"

#include <math.h>
#include <stdio.h>

static const double full_least = 0.9; /* of the cores it may use */

double loading_cpu_part(const struct facts *f)
{
	double run, wait, load = fact_or(f, FACT_TIME_DATA_LOAD, 0);

	if (fact_or(f, FACT_LOADER_WORKERS, 0) < loading_workers_least)
		return load > 0 ? fmin(1, fact_or(f, FACT_LOAD_CPU, load) / load) : 1;
	run = fact_or(f, FACT_LOADER_BUSY, 0);
	wait = fact_or(f, FACT_LOADER_STORAGE, 0);
	return run + wait > 0 ? run / (run + wait) : 1;
}

/* The end of a measured interval that makes a case the best or the worst one. */
static double end_of(const struct facts *f, enum fact_id id, enum loading_case c)
{
	const struct fact *x = &f->v[id];

	if (!x->known)
		return 0;
	return c == LOADING_BEST ? x->high : c == LOADING_WORST ? x->low : x->value;
}

static const double held_up_least = 0.05; /* of the critical thread's time */
/* Of it: queued for a CPU behind workers, and that with the waiting for data. */
static const double crowded_least = 0.05, crowded_both = 0.1;

/* Of getting data, what more or faster workers spare: taking it stays with the training. */
static double blocked(const struct facts *f)
{
	return fmax(0, fact_or(f, FACT_TIME_DATA_WAIT, 0) - fact_or(f, FACT_TIME_TAKING, 0));
}

/* On full cores the training is queued behind its workers: what they no longer use it gets. */
static double cores_freed(const struct facts *f, enum loading_case c, double saved)
{
	struct pipeline p;
	double now, after;

	if (fact_or(f, FACT_CORES_USED, 0) <
		full_least * fact_or(f, FACT_CORES_ALLOWED, INFINITY) ||
	    !loading_pipeline(f, c, &p))
		return 1;
	now = pipeline_step(&p);
	p.make_cpu *= 1 - saved;
	after = pipeline_step(&p);
	return isfinite(after / now) ? fmin(1, after / now) : 1;
}

/* Of its time, queued for a CPU behind its workers: as much of the queueing as they have of the CPU time of all others. */
static double behind_workers(const struct facts *f)
{
	double others = fact_or(f, FACT_CORES_USED, 0) - fact_or(f, FACT_TIME_RUNNING, 0) +
			fact_or(f, FACT_CORES_OTHERS, 0);
	double theirs = fact_or(f, FACT_LOAD_CPU, 0);

	if (fact_or(f, FACT_LOADER_WORKERS, 0) < loading_workers_least || !(others > 0) ||
	    fact_or(f, FACT_QUOTA_THROTTLED, 0) >= rule_throttled_least)
		return 0;
	return fact_or(f, FACT_TIME_QUEUED, 0) * fmin(1, theirs / others);
}

/* Does the training want a CPU that its workers have? Where cores are short it is queued, and the more so the less it waits
 * for data. */
static enum answer crowded_out(const struct facts *f, struct opinion *o)
{
	static const enum fact_id asked[] = { FACT_CORES_USED, FACT_CORES_OTHERS, FACT_TIME_RUNNING,
					      FACT_TIME_DATA_WAIT, FACT_LOAD_CPU };
	enum answer a = answer_and(rule_at_least(f, FACT_TIME_QUEUED, crowded_least, o),
				   rule_at_least(f, FACT_LOADER_WORKERS, loading_workers_least, o));

	for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++)
		a = answer_and(a, rule_at_least(f, asked[i], 0, o));
	a = answer_and(a, answer_not(rule_at_least(f, FACT_GPU_BUSY, loading_gpu_busy, o)));
	if (a != ANSWER_YES)
		return a;
	return blocked(f) + behind_workers(f) >= crowded_both && behind_workers(f) >= crowded_least
		   ? ANSWER_YES
		   : ANSWER_NO;
}

/* What CPU time a thread has used up becomes when the other thread of its core is idle, and nobody is kept off a CPU whom
 * others wait for at a barrier. Of five such programs the training's own work took 0.75 to 1 of what it had on full cores. */
static const double relieved[] = { [LOADING_BEST] = 0.7, [LOADING_LIKELY] = 0.85 };

/* Where the training is queued for a CPU because of its workers, and they need less: with room on the cores it is queued
 * behind nobody, its own helping threads included. What is left is what it runs and waits for besides, and the cores it takes. */
static double crowd_gone(const struct facts *f, enum loading_case c, double saved)
{
	double allowed = fact_or(f, FACT_CORES_ALLOWED, 0), own, cores;
	struct opinion unused = { 0 };

	if (c == LOADING_WORST || !(allowed > 0) || crowded_out(f, &unused) != ANSWER_YES)
		return 1;
	own = 1 - blocked(f) - fact_or(f, FACT_TIME_QUEUED, 0);
	cores = (fact_or(f, FACT_CORES_USED, 0) - fact_or(f, FACT_LOAD_CPU, 0) * saved) / allowed;
	own -= fact_or(f, FACT_TIME_RUNNING, 0) * (1 - relieved[c]);
	return fmin(1, fmax(0, fmax(own, cores * relieved[c])));
}

double loading_stage_faster(const struct facts *f, enum loading_case c, double share, double times,
			    double stretch)
{
	double saved = share * (1 - 1 / times), wait = blocked(f);
	double left = 1, busy, load, cpu;
	struct opinion unused = { 0 };

	if (fact_or(f, FACT_LOADER_WORKERS, 0) < loading_workers_least) {
		/* on a CPU in the training thread: what of its time that is */
		load = end_of(f, FACT_TIME_DATA_LOAD, c);
		cpu = loading_cpu_part(f);
		left = 1 - load * cpu * stretch * saved;
	} else if (wait >= held_up_least || crowded_out(f, &unused) == ANSWER_YES) {
		/* the part of a worker's cycle that is on a CPU */
		busy = fact_or(f, FACT_LOADER_BUSY, 0) /
		       fmax(1 - fact_or(f, FACT_LOADER_IDLE, 0), 0.1);
		left = fmax(1 - wait - behind_workers(f), 1 - fmin(1, busy) * saved);
		left = fmin(left, cores_freed(f, c, saved));
		left = fmin(left, fmax(crowd_gone(f, c, saved), 1 - fmin(1, busy) * saved));
	}
	return fmax(fmax(left, loading_least_left), loading_gpu_floor(f, c));
}

enum answer loading_holds_up(const struct facts *f, struct opinion *o)
{
	enum answer waits = rule_at_least(f, FACT_TIME_DATA_WAIT,
					  held_up_least + fact_or(f, FACT_TIME_TAKING, 0), o);
	enum answer loads = rule_at_least(f, FACT_TIME_DATA_LOAD, held_up_least, o);

	return answer_and(answer_or(waits, loads),
			  answer_not(rule_at_least(f, FACT_GPU_BUSY, loading_gpu_busy, o)));
}

enum answer loading_in_the_way(const struct facts *f, struct opinion *o)
{
	return answer_or(loading_holds_up(f, o), crowded_out(f, o));
}

void loading_because_held_up(struct finding *x, const struct facts *f)
{
	struct opinion unused = { 0 };
	char a[24];

	if (fact_or(f, FACT_TIME_DATA_WAIT, 0) >= held_up_least)
		rule_because(x, f, FACT_TIME_DATA_WAIT, "%s waits for the loader %s of its time",
			     loading_thread(f),
			     num_percent(f->v[FACT_TIME_DATA_WAIT].value, a, sizeof(a)));
	if (crowded_out(f, &unused) == ANSWER_YES)
		rule_because(x, f, FACT_TIME_QUEUED,
			     "%s is queued for a CPU, %s of its time for one that its workers have",
			     loading_thread(f), num_percent(behind_workers(f), a, sizeof(a)));
	if (fact_or(f, FACT_TIME_DATA_LOAD, 0) >= held_up_least)
		rule_because(x, f, FACT_TIME_DATA_LOAD, "loading is %s of the time of %s",
			     num_percent(f->v[FACT_TIME_DATA_LOAD].value, a, sizeof(a)),
			     loading_thread(f));
	if (fact_or(f, FACT_GPU_USED, 0) > 0)
		rule_because(x, f, FACT_GPU_BUSY, "%s is busy %s of the time",
			     f->v[FACT_GPU_BUSY].text,
			     num_percent(f->v[FACT_GPU_BUSY].value, a, sizeof(a)));
}

/* How much longer a batch takes for each further worker, how fast a thread is whose core's other one is
 * busy, how much batches differ: nothing of a run tells, so the interval has them. */
static const struct {
	double crowd, pair, cv;
} guesses[] = {
	[LOADING_BEST] = { 0, 1, 0.05 },
	[LOADING_LIKELY] = { 0.01, 0.85, 0.2 },
	[LOADING_WORST] = { 0.06, 0.7, 0.6 },
};

bool loading_pipeline(const struct facts *f, enum loading_case c, struct pipeline *ret)
{
	double workers, busy, storage, wait, run, allowed,
	    others = fact_or(f, FACT_CORES_OTHERS, 0);
	double load = fact_or(f, FACT_TIME_DATA_LOAD, 0), own;

	if (!fact_value(f, FACT_LOADER_WORKERS, &workers) ||
	    !fact_value(f, FACT_TIME_DATA_WAIT, &wait) || !fact_value(f, FACT_TIME_RUNNING, &run) ||
	    !fact_value(f, FACT_CORES_ALLOWED, &allowed))
		return false;
	*ret = (struct pipeline){
		.prefetch = fact_whole(fact_or(f, FACT_LOADER_PREFETCH, 2)),
		.device = fact_or(f, FACT_GPU_BUSY, 0),
		.cv = guesses[c].cv,
		.crowd = guesses[c].crowd,
		.pair = guesses[c].pair,
		.cores = fmax(1, fmin(allowed, fact_or(f, FACT_CORES_MACHINE, allowed) - others))
	};
	workers = fmin(workers, 256); /* more are not played through */
	ret->workers = fact_whole(workers + 0.5);
	if (workers >= loading_workers_least) {
		if (!fact_value(f, FACT_LOADER_BUSY, &busy) ||
		    !fact_value(f, FACT_LOADER_STORAGE, &storage))
			return false;
		ret->make_cpu = workers * busy;
		ret->make_wait = workers * storage;
		load = 0;
	} else {
		ret->workers = 0;
		ret->make_cpu = fmin(load, fact_or(f, FACT_LOAD_CPU, load));
		ret->make_wait = fmax(0, load - ret->make_cpu);
	}
	/* What the training does itself: on a CPU, and waiting for something else than data. */
	own = fmax(0, 1 - blocked(f) - load - fact_or(f, FACT_TIME_QUEUED, 0));
	ret->train_cpu = fmin(own, fmax(0, run - (ret->workers ? 0 : ret->make_cpu)));
	ret->train_wait = own - ret->train_cpu;
	/* While it waits for the device, the device is what it waits for. */
	ret->train_wait = fmax(0, ret->train_wait - fact_or(f, FACT_TIME_GPU_WAIT, 0));
	return true;
}

static void say_stage(const struct loading_stage *g, const struct facts *f, struct finding *x)
{
	const struct fact *share = &f->v[g->share];
	char a[24];

	rule_where(x, f, g->share);
	snprintf(x->title, sizeof(x->title), "loading is mostly %s: %s of its time%s%s", g->what,
		 num_percent(share->value, a, sizeof(a)), share->place ? ", at " : "", share->text);
	rule_because(x, f, g->share, "%s of the time of loading is %s%s%s",
		     num_percent(share->value, a, sizeof(a)), g->what,
		     share->place ? ", most at " : "", share->text);
	rule_because(x, f, FACT_LOAD_CPU, "loading uses %s cores",
		     num_cores(fact_or(f, FACT_LOAD_CPU, 0), a, sizeof(a)));
	loading_because_held_up(x, f);
	snprintf(x->fix, sizeof(x->fix), "%s", g->fix);
	snprintf(x->edit, sizeof(x->edit), "%s", g->edit);
}

enum answer loading_stage_check(const struct loading_stage *g, const struct facts *f,
				struct opinion *o)
{
	struct finding *x = &o->finding;
	const struct fact *share = &f->v[g->share];
	double stretch = loading_wall_per_cpu(f);
	enum answer a = rule_at_least(f, g->share, g->least, o);

	a = answer_and(a, loading_in_the_way(f, o));
	if (a == ANSWER_YES)
		a = loading_is_for_training(f, o);
	if (a == ANSWER_YES)
		a = rule_at_least(f, FACT_LOADER_WORKERS, 0, o);
	if (a != ANSWER_YES)
		return a;
	say_stage(g, f, x);
	rule_gain_of_time(x, loading_stage_faster(f, LOADING_BEST, share->high, g->much, stretch),
			  loading_stage_faster(f, LOADING_LIKELY, share->value, g->likely, stretch),
			  loading_stage_faster(f, LOADING_WORST, share->low, g->little, 1));
	rule_gain_drifts(x, loading_cpu_part(f));
	rule_gain_at_most(x, loading_stage_faster(f, LOADING_BEST, share->high, INFINITY, stretch));
	if (x->speedup > 1)
		snprintf(x->then, sizeof(x->then), "%s",
			 1 / x->speedup > loading_gpu_floor(f, LOADING_LIKELY) + 0.01
			     ? "its own work"
			     : "GPU-bound");
	x->note = loading_of_one_rank(f) || loading_waits_for_few(f);
	x->confidence = g->confidence;
	return ANSWER_YES;
}

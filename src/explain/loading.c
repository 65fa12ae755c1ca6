/* SPDX-License-Identifier: MIT */
#include "explain/loading.h"

#include "base/num.h"
#include "base/text.h"
#include "explain/pipeline.h"
#include "explain/place.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* How busy a GPU gets, as a share of time, once nothing but its own work holds the training: never all of it,
 * launching, taking a batch and the loop itself show in between. At best all of it, and what a driver says of how
 * busy it is now may be off by 2 %. docs/gain.md has what was measured. */
static const double full_least = 0.9; /* of the cores it may use */
static const double gpu_filled[] = {
	[LOADING_BEST] = 1.02, [LOADING_LIKELY] = 0.95, [LOADING_WORST] = 0.90
};
static const double gpu_used_least = 0.01; /* share of time: below it there is no work on a GPU */

double loading_gpu_floor(const struct facts *f, enum loading_case c)
{
	double busy = fact_or(f, FACT_GPU_BUSY, 0);

	return busy < gpu_used_least ? fmax(busy, 0) : fmin(1, busy / gpu_filled[c]);
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
	return (used - fmin(used, turn[c] * loading_cores_spinning(f))) / (used + unused) *
	       strain[c];
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
	if (gpu >= gpu_used_least && after <= gpu * 1.01)
		left = 0; /* the GPU is what it takes */
	return fmin(1, fmax(fmax(left, loading_least_left), loading_gpu_floor(f, c)));
}

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

static const double crew_least = 1.5, spare_least = 0.3, few_least = 0.5;
static const double held_up_least = 0.05; /* of the critical thread's time */

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

double loading_stage_faster(const struct facts *f, enum loading_case c, double share, double times,
			    double stretch)
{
	double saved = share * (1 - 1 / times), wait = blocked(f);
	double left = 1, busy, load, cpu;

	if (fact_or(f, FACT_LOADER_WORKERS, 0) < loading_workers_least) {
		/* on a CPU in the training thread: what of its time that is */
		load = end_of(f, FACT_TIME_DATA_LOAD, c);
		cpu = loading_cpu_part(f);
		left = 1 - load * cpu * stretch * saved;
	} else if (wait >= held_up_least) {
		/* the part of a worker's cycle that is on a CPU */
		busy = fact_or(f, FACT_LOADER_BUSY, 0) /
		       fmax(1 - fact_or(f, FACT_LOADER_IDLE, 0), 0.1);
		left = fmax(1 - wait, 1 - fmin(1, busy) * saved);
		left = fmin(left, cores_freed(f, c, saved));
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

void loading_because_held_up(struct finding *x, const struct facts *f)
{
	char a[24];

	if (fact_or(f, FACT_TIME_DATA_WAIT, 0) >= held_up_least)
		rule_because(x, f, FACT_TIME_DATA_WAIT, "%s waits for the loader %s of its time",
			     loading_thread(f),
			     num_percent(f->v[FACT_TIME_DATA_WAIT].value, a, sizeof(a)));
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

static const double consumer_least = 0.05;   /* of the critical thread's time */
static const double gpu_least = 0.01;        /* of the time a kernel of the job runs */
static const double sure_least = 0.5;        /* of the time of loading */
static const double rank_late_least = 0.05;  /* of the time, as input_straggler has it */
static const double rank_alone_least = 0.5;  /* of what it is late: as much more than the second */
static const double collective_least = 0.05; /* of the time of a rank */
static const double apart_most = 0.1; /* of a step: ends of it in step, as facts/ranks.c has it */

enum answer loading_is_for_training(const struct facts *f, struct opinion *o)
{
	enum answer plain = answer_and(rule_at_least(f, FACT_LOAD_SURE, sure_least, o),
				       rule_at_least(f, FACT_CONSUMER, consumer_least, o));
	enum answer a = answer_or(rule_at_least(f, FACT_TRAINING, 1, o),
				  answer_or(rule_at_least(f, FACT_GPU_BUSY, gpu_least, o), plain));

	if (a == ANSWER_NO && f->v[FACT_LOAD_SURE].value >= sure_least)
		return rule_cannot_tell(o, "nothing but loading was seen: who uses the data is not "
					   "known");
	return a;
}

/* One that is known by its arrays alone may be something else that learns: it is called what it surely is. */
static bool trains(const struct facts *f)
{
	return (fact_or(f, FACT_TRAINING, 0) > 0 &&
		strcmp(f->v[FACT_TRAINING].text, "arrays") != 0) ||
	       fact_or(f, FACT_GPU_BUSY, 0) >= gpu_least;
}

enum answer loading_ranks_in_step(const struct facts *f, struct opinion *o)
{
	const struct fact *apart = &f->v[FACT_RANKS_APART];
	enum answer a;

	if (apart->known)
		return apart->value <= apart_most ? ANSWER_YES : ANSWER_NO;
	/* one that waits for a device may wait for its own */
	a = answer_or(rule_at_least(f, FACT_RANKS_COMM, collective_least, o),
		      rule_at_least(f, FACT_RANKS_NUMBERED, 1, o));
	if (a == ANSWER_NO)
		return rule_cannot_tell(o,
					"whether the processes train together, or each by itself, "
					"is not known: no collective and no number of a rank "
					"was seen");
	return a;
}

bool loading_of_one_rank(const struct facts *f)
{
	const struct fact *late = &f->v[FACT_RANKS_DATA_LATE];
	double own = fact_or(f, FACT_TIME_DATA_LOAD, 0) + fact_or(f, FACT_TIME_DATA_WAIT, 0);
	struct opinion unused = { 0 };

	return late->known && late->low > 0 && late->value >= rank_late_least &&
	       late->value >= 0.5 * own &&
	       fact_or(f, FACT_RANKS_DATA_AWAITED, 0) >= 0.5 * late->value &&
	       fact_or(f, FACT_RANKS_DATA_NEXT, 0) >= rank_alone_least * late->value &&
	       loading_ranks_in_step(f, &unused) == ANSWER_YES;
}

const char *loading_thread(const struct facts *f)
{
	return trains(f) ? "the training thread" : "the main thread";
}

const char *loading_program(const struct facts *f)
{
	return trains(f) ? "the training" : "the program";
}

void loading_because_place(struct finding *x, const struct facts *f, const char *what)
{
	const struct fact *at = &f->v[FACT_LOAD_PLACE];
	const struct place *p = f->book ? stack_book_find_place(f->book, at->place) : NULL;
	char share[24], function[64];

	if (!p)
		return;
	place_function_name(p, function, sizeof(function));
	rule_because(x, f, FACT_LOAD_PLACE, "%s in %s (%s), hottest at %s", what, function,
		     num_percent(at->value, share, sizeof(share)), at->text);
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

	a = answer_and(a, loading_holds_up(f, o));
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
	x->note = loading_waits_for_few(f);
	x->confidence = g->confidence;
	return ANSWER_YES;
}

/* Around the number of workers. */
static const struct {
	const char *framework, *before, *after, *edit, *edit_after;
} words[] = {
	{ "torch", "give the DataLoader ",
	  " (and persistent_workers=True, so that they outlive an epoch)",
	  "DataLoader(..., num_workers=", ", persistent_workers=True)" },
	{ "tf.data", "let tf.data map with ", " in parallel (or AUTOTUNE) and prefetch",
	  "ds.map(f, num_parallel_calls=", ").prefetch(tf.data.AUTOTUNE)" },
	{ "keras", "let the dataset load in ", ", as processes",
	  "PyDataset(workers=", ", use_multiprocessing=True)" },
	{ "gluon", "give gluon's DataLoader ", "", "gluon.data.DataLoader(..., num_workers=", ")" },
	{ "paddle", "give the DataLoader ", "", "paddle.io.DataLoader(..., num_workers=", ")" },
	{ "pool", "give the pool ", ", and ask it for the next batches ahead",
	  "multiprocessing.Pool(", ").imap(load, indices)" },
};

static const double generations_least = 3; /* the first were needed */
static const double start_most = 2;        /* seconds until a worker has its first batch */

bool loading_restarts(const struct facts *f)
{
	return fact_or(f, FACT_LOADER_GENERATIONS, 0) >= generations_least &&
	       fact_or(f, FACT_LOADER_LIFE, INFINITY) * fact_or(f, FACT_TIME_DATA_WAIT, 1) <=
		   start_most;
}

bool loading_waits_for_few(const struct facts *f)
{
	return fact_or(f, FACT_LOADER_WORKERS, 0) >= crew_least &&
	       fact_or(f, FACT_LOADER_IDLE, 0) >= spare_least &&
	       fact_or(f, FACT_LOADER_WAIT_RARE, 0) >= few_least;
}

void loading_where_made(struct finding *x, const struct facts *f)
{
	const struct fact *line = &f->v[FACT_LOADER_LINE];

	if (!f->v[FACT_LOADER_MADE].known) {
		rule_where(x, f, line->place ? FACT_LOADER_LINE : FACT_LOAD_PLACE);
		return;
	}
	rule_where(x, f, FACT_LOADER_MADE);
	if (line->place)
		rule_because(x, f, FACT_LOADER_LINE, "the data is taken at %s", line->text);
}

void loading_fix_workers(struct finding *x, const struct facts *f, int n, bool more)
{
	const char *name = f->v[FACT_LOADER_FRAMEWORK].text, *s = n > 1 ? "s" : "";

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strcmp(words[i].framework, name) != 0)
			continue;
		snprintf(x->fix, sizeof(x->fix), "%s%d worker%s%s", words[i].before, n, s,
			 words[i].after);
		snprintf(x->edit, sizeof(x->edit), "%s%d%s", words[i].edit, n, words[i].edit_after);
		return;
	}
	if (more)
		snprintf(x->fix, sizeof(x->fix), "load in %d worker%s: there are cores for them", n,
			 s);
	else
		snprintf(
		    x->fix, sizeof(x->fix),
		    "load in %d worker process%s that keep%s a few batches ahead "
		    "(multiprocessing.Pool.imap, concurrent.futures, a framework's DataLoader)",
		    n, n > 1 ? "es" : "", n > 1 ? "" : "s");
}

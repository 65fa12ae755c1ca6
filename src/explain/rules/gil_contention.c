/* SPDX-License-Identifier: MIT
 *
 * gil_contention: the training thread is ready and waits for the GIL, because other threads of its
 * process run Python code. Or it waits for data, and the threads that load it wait for the GIL, each for the others.
 *
 * Not to be taken for it: other locks, and threads that wait for the GIL while the training does not
 * (nobody is held up); a wait in which nobody was seen to hold it (threads too short-lived to be looked at,
 * a holder that is itself blocked): that cannot be told.
 *
 * Gain: the time it waits, 1/(1-g); none of it where the GPU is busy meanwhile, and no more than the
 * cores leave, since what the others do must run somewhere. Of loaders: what they use of a CPU now, spread over all
 * cores; a part of it is the handing over of the lock itself.
 */
#include "explain/loading.h"

#include "base/num.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const double wait_least = 0.02; /* of its time; below: not worth a word */

/* Of the time it waits: others must be seen to hold it for this part of it at least. */
static const double holder_least = 0.5;

static const char in_processes[] = "load in processes instead of threads (num_workers of a "
				   "DataLoader, multiprocessing.Pool), or with "
				   "libraries that release the GIL";

/* The hottest line is one matter; where they become processes is another. */
static void because_started(struct finding *x, const struct facts *f)
{
	if (f->v[FACT_LOADER_MADE].known)
		rule_because(x, f, FACT_LOADER_MADE, "the threads that load are started at %s",
			     f->v[FACT_LOADER_MADE].text);
}

static void say(struct finding *x, const struct facts *f)
{
	const struct fact *g = &f->v[FACT_GIL_WAIT], *holder = &f->v[FACT_GIL_HOLDER];
	bool loaders = strcmp(f->v[FACT_LOADER_WORKERS].text, "threads") == 0 &&
		       fact_or(f, FACT_LOADER_WORKERS, 0) >= loading_workers_least;
	char a[24], b[24];

	snprintf(x->title, sizeof(x->title), "%s waits for Python's lock (GIL) %s of its time",
		 loading_thread(f), num_percent(g->value, a, sizeof(a)));
	rule_because(x, f, FACT_GIL_WAIT, "it waits for the GIL %s of its time",
		     num_percent(g->value, a, sizeof(a)));
	rule_because(x, f, FACT_GIL_HOLDER,
		     "other threads of its process hold it %s of the time%s%s",
		     num_percent(holder->value, b, sizeof(b)), holder->place ? ", most at " : "",
		     holder->text);
	rule_because(x, f, FACT_GIL_THREADS, "%.0f threads take turns",
		     fact_or(f, FACT_GIL_THREADS, 0));
	rule_because(x, f, FACT_GIL_WAITERS, "%.2f threads wait for it at a time",
		     fact_or(f, FACT_GIL_WAITERS, 0));
	if (loaders)
		because_started(x, f);
	rule_where(x, f, FACT_GIL_HOLDER);
	snprintf(x->fix, sizeof(x->fix), "%s",
		 loaders ? in_processes
			 : "move what those threads do into a process of its own, or to code that "
			   "releases the GIL; do less of it in each step");
}

/* The training thread waits for data: how many threads load it, what of their time goes into waiting for the GIL, how much of
 * the time somebody holds it, and what is left to load in. */
static const double data_wait_least = 0.15, loaders_least = 1.5, share_least = 0.15,
		    held_least = 0.4, free_least = 0.25;
/* Of the CPU time of loading, and of the time loaders are queued for a CPU: what remains of it without the lock, some of both
 * being the handing over of it. */
static const double kept[] = { [LOADING_BEST] = 0.5, [LOADING_LIKELY] = 0.8, [LOADING_WORST] = 1 },
		    queued[] = { [LOADING_BEST] = 0, [LOADING_LIKELY] = 0.5, [LOADING_WORST] = 1 };

/* A loader's own cycle without the lock; no less than the cores, the GPU and the training itself take. */
static double loaders_left(const struct facts *f, enum loading_case c)
{
	const struct fact *wait = &f->v[FACT_TIME_DATA_WAIT];
	double load = fact_or(f, FACT_LOAD_CPU, 0), busy = fact_or(f, FACT_LOADER_BUSY, 0);
	double others = fmax(0, fact_or(f, FACT_CORES_USED, 0) - load);
	double cores = fmax(0.5, fact_or(f, FACT_CORES_ALLOWED, 1) - others);
	double waits = c == LOADING_BEST    ? wait->high
		       : c == LOADING_WORST ? wait->low
					    : wait->value;
	double cycle = 1 - fact_or(f, FACT_GIL_LOADERS, 0) - (1 - kept[c]) * busy -
		       (1 - queued[c]) * fact_or(f, FACT_LOADER_QUEUED, 0);

	waits = fmax(0, waits - fact_or(f, FACT_TIME_TAKING, 0));
	cycle = fmax(fmax(cycle, load * kept[c] / cores), 1 - waits);
	return fmin(1, fmax(fmax(cycle, loading_gpu_floor(f, c)), loading_least_left));
}

static void say_loaders(struct finding *x, const struct facts *f)
{
	const struct fact *holder = &f->v[FACT_GIL_HOLDER];
	char a[24], b[24];

	snprintf(x->title, sizeof(x->title),
		 "%s waits for data %s of its time, and the threads that load it for Python's lock "
		 "(GIL)",
		 loading_program(f), num_percent(f->v[FACT_TIME_DATA_WAIT].value, a, sizeof(a)));
	rule_because(x, f, FACT_TIME_DATA_WAIT, "%s waits for data %s of its time",
		     loading_thread(f), a);
	rule_because(x, f, FACT_LOADER_WORKERS, "%.0f threads of its own process load it",
		     f->v[FACT_LOADER_WORKERS].value);
	rule_because(x, f, FACT_GIL_LOADERS, "these wait for the GIL %s of their time",
		     num_percent(f->v[FACT_GIL_LOADERS].value, a, sizeof(a)));
	rule_because(x, f, FACT_GIL_HOLDER, "threads of the process hold it %s of the time%s%s",
		     num_percent(holder->value, b, sizeof(b)), holder->place ? ", most at " : "",
		     holder->text);
	loading_because_cores(x, f);
	because_started(x, f);
	rule_where(x, f, FACT_GIL_HOLDER);
	snprintf(x->fix, sizeof(x->fix), "%s", in_processes);
}

/* Nobody holds the training thread itself up, but those it waits for hold up each other. */
static enum answer check_loaders(const struct facts *f, struct opinion *o)
{
	struct finding *x = &o->finding;
	enum answer a = answer_and(rule_at_least(f, FACT_TIME_DATA_WAIT, data_wait_least, o),
				   rule_at_least(f, FACT_LOADER_WORKERS, loaders_least, o));

	if (a == ANSWER_YES && strcmp(f->v[FACT_LOADER_WORKERS].text, "threads") != 0)
		return ANSWER_NO;
	a = answer_and(a, answer_and(rule_at_least(f, FACT_GIL_LOADERS, share_least, o),
				     rule_at_least(f, FACT_GIL_HOLDER, held_least, o)));
	a = answer_and(a, answer_and(rule_at_least(f, FACT_CORES_FREE, free_least, o),
				     rule_at_least(f, FACT_LOAD_CPU, 0, o)));
	a = answer_and(a, answer_not(rule_at_least(f, FACT_GPU_BUSY, loading_gpu_busy, o)));
	if (a == ANSWER_YES)
		a = loading_is_for_training(f, o);
	if (a != ANSWER_YES)
		return a;
	say_loaders(x, f);
	rule_gain_of_time(x, loaders_left(f, LOADING_BEST), loaders_left(f, LOADING_LIKELY),
			  loaders_left(f, LOADING_WORST));
	rule_gain_drifts(x, 1);
	snprintf(x->then, sizeof(x->then), "%s", loading_then(f, 1 / x->speedup, 1, "the loading"));
	x->confidence = 0.75;
	return ANSWER_YES;
}

static enum answer check(const struct facts *f, struct opinion *o)
{
	struct finding *x = &o->finding;
	const struct fact *g = &f->v[FACT_GIL_WAIT];
	enum answer a = rule_at_least(f, FACT_GIL_WAIT, wait_least, o);
	/* whichever of both waits it is that costs more */
	enum answer loaders = fact_or(f, FACT_TIME_DATA_WAIT, 1) > fact_or(f, FACT_GIL_WAIT, 0)
				  ? check_loaders(f, o)
				  : ANSWER_NO;

	if (loaders == ANSWER_YES)
		return loaders;

	if (a == ANSWER_YES)
		a = answer_and(answer_not(rule_at_least(f, FACT_GPU_BUSY, loading_gpu_busy, o)),
			       rule_at_least(f, FACT_CORES_FREE, 0, o));
	if (a == ANSWER_YES)
		a = rule_at_least(f, FACT_GIL_HOLDER, holder_least * g->value, o);
	if (a == ANSWER_NO && g->known && g->value >= wait_least && f->v[FACT_GIL_HOLDER].known &&
	    f->v[FACT_GIL_HOLDER].value < holder_least * g->value)
		return rule_cannot_tell(o,
					"it waits for the GIL, and no thread was seen that holds "
					"it so long");
	if (a != ANSWER_YES)
		return answer_or(a, loaders);
	say(x, f);
	rule_gain_of_time(x, fmax(1 - g->high, loading_floor(f, LOADING_BEST, 1)),
			  fmax(1 - g->value, loading_floor(f, LOADING_LIKELY, 1)),
			  fmax(1 - g->low / 2, loading_floor(f, LOADING_WORST, 1)));
	rule_gain_drifts(x, 1);
	snprintf(x->then, sizeof(x->then), "%s",
		 loading_then(f, 1 / x->speedup, 1, "its own work"));
	x->confidence = 0.8;
	return ANSWER_YES;
}

const struct rule gil_contention_rule = { .cause = "gil_contention", .needs_s = 5, .check = check };

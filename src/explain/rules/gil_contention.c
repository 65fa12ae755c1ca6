/* SPDX-License-Identifier: MIT
 *
 * gil_contention: the training thread is ready and waits for the GIL, because other threads of its
 * process run Python code.
 *
 * Not to be taken for it: other locks, and threads that wait for the GIL while the training does not
 * (nobody is held up); a wait in which nobody was seen to hold it (threads too short-lived to be looked at,
 * a holder that is itself blocked): that cannot be told.
 *
 * Gain: the time it waits, 1/(1-g); none of it where the GPU is busy meanwhile, and no more than the
 * cores leave, since what the others do must run somewhere.
 */
#include "explain/loading.h"

#include "base/num.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const double wait_least = 0.02; /* of its time; below: not worth a word */

/* Of the time it waits: others must be seen to hold it for this part of it at least. */
static const double holder_least = 0.5;

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
	rule_where(x, f, FACT_GIL_HOLDER);
	snprintf(x->fix, sizeof(x->fix), "%s",
		 loaders ? "load in processes instead of threads (num_workers of a DataLoader, "
			   "multiprocessing.Pool), or with libraries that release the GIL"
			 : "move what those threads do into a process of its own, or to code that "
			   "releases the GIL; do less of it in each step");
}

static enum answer check(const struct facts *f, struct opinion *o)
{
	struct finding *x = &o->finding;
	const struct fact *g = &f->v[FACT_GIL_WAIT];
	enum answer a = rule_at_least(f, FACT_GIL_WAIT, wait_least, o);

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
		return a;
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

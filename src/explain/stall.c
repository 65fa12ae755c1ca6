/* SPDX-License-Identifier: MIT */
#include "explain/stall.h"

#include "base/num.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const double gpu_least = 0.01; /* share of time: less is no work */
/* A pause uses up what was handed out before, and then the GPU stands still: what is won is no more than it is
 * idle, and a GPU this busy has less to lose than is worth a finding. */
static const double gpu_full = 0.95;

double stall_then(const struct facts *f, enum loading_case c, double share)
{
	return fmax(fmax(1 - share, loading_gpu_floor(f, c)), loading_least_left);
}

double stall_cpu_part(const struct facts *f, double share)
{
	double idle = 1 - fact_or(f, FACT_TIME_RUNNING, 1) - fact_or(f, FACT_TIME_QUEUED, 0);

	/* waiting that has a name of its own */
	idle -= fact_or(f, FACT_TIME_DATA_WAIT, 0) + fact_or(f, FACT_TIME_GPU_WAIT, 0) +
		fact_or(f, FACT_TIME_COMM_WAIT, 0) + fact_or(f, FACT_TIME_LOCK_WAIT, 0) +
		fact_or(f, FACT_TIME_TRANSFER, 0);
	return share > 0 ? 1 - fmin(fmax(idle, 0), share) / share : 1;
}

/* The same of what keeps the GPU busy itself: that is spared as well. */
static double then(const struct stall *s, const struct facts *f, enum loading_case c, double share)
{
	double left = fmax(1 - share, loading_least_left);

	if (s->on_gpu || s->tunes)
		return left;
	/* Between pauses it runs as it will without them, with the GPU as busy as it is there. */
	if (s->pauses && c == LOADING_LIKELY)
		return fmax(left, fmin(fact_or(f, FACT_GPU_BUSY, 0), 1));
	return fmax(stall_then(f, c, share), s->repeats ? 0 : loading_supply_floor(f, c));
}

const char *stall_next(const struct facts *f, double then)
{
	return then > loading_gpu_floor(f, LOADING_LIKELY) + 0.01 ? "its own work" : "GPU-bound";
}

static bool marks_steps(const struct facts *f)
{
	return strcmp(f->v[FACT_START_SECONDS].text, "steps") == 0;
}

enum answer stall_check(const struct stall *s, const struct facts *f, struct opinion *o)
{
	struct finding *x = &o->finding;
	const struct fact *share = &f->v[s->share];
	char a[24];
	enum answer r = rule_at_least(f, s->share, s->least, o);

	if (s->on_gpu)
		r = answer_and(r, rule_at_least(f, FACT_GPU_BUSY, 0, o));
	else
		r = answer_and(
		    r, answer_not(rule_at_least(f, FACT_GPU_BUSY,
						s->pauses ? gpu_full : loading_gpu_busy, o)));
	if (s->needs_gpu)
		r = answer_and(r, rule_at_least(f, FACT_GPU_BUSY, gpu_least, o));
	/* Servers, tools and tests log, save and evaluate as well. */
	if (r == ANSWER_YES && !marks_steps(f))
		r = loading_is_for_training(f, o);
	if (r != ANSWER_YES)
		return r;
	rule_where(x, f, s->share);
	num_percent(share->value, a, sizeof(a));
	snprintf(x->title, sizeof(x->title), "%s: %s of its time%s%s", s->title, a,
		 share->place ? ", at " : "", share->text);
	rule_because(x, f, s->share, "%s is %s of the time of %s%s%s", s->what, a,
		     loading_thread(f), share->place ? ", most at " : "", share->text);
	if (fact_or(f, FACT_GPU_USED, 0) > 0)
		rule_because(x, f, FACT_GPU_BUSY, "%s is busy %s of the time",
			     f->v[FACT_GPU_BUSY].text,
			     num_percent(f->v[FACT_GPU_BUSY].value, a, sizeof(a)));
	snprintf(x->fix, sizeof(x->fix), "%s", s->fix);
	snprintf(x->edit, sizeof(x->edit), "%s", s->edit);
	rule_gain_of_time(x, then(s, f, LOADING_BEST, share->high * s->much),
			  then(s, f, LOADING_LIKELY, share->value * s->likely),
			  then(s, f, LOADING_WORST, share->low * s->little));
	rule_gain_drifts(x, stall_cpu_part(f, share->value));
	if (x->speedup > 1)
		snprintf(x->then, sizeof(x->then), "%s",
			 s->on_gpu || s->tunes ? "its own work" : stall_next(f, 1 / x->speedup));
	/* Without steps the first time, which is needed, cannot be told from those that are not. */
	x->note = s->note || share->value < s->rather_many || (s->repeats && !marks_steps(f));
	x->confidence = s->confidence;
	return ANSWER_YES;
}

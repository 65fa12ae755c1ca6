/* SPDX-License-Identifier: MIT
 *
 * idle_job: the job holds a GPU and does nothing: a notebook nobody sits at, a program that has finished and
 * not ended, one that waits for somebody. Or it hung: a training that used no CPU and no GPU for its last minute
 * or for most of its time, and waited for something that did not come, until it was stopped or gave up. Or it has
 * trained, and then held its GPU for long without using it: a note, it may have had something to wait for.
 *
 * Not to be taken for it: a training that waits for data, storage or other ranks, and a machine whose GPU
 * nothing of the job is on; for a hang: who sleeps or polls (it waits for its time, or for somebody to serve),
 * and a run that ended well.
 *
 * Gain: none on speed: what is lost is the GPU.
 */
#include "explain/loading.h"

#include "base/num.h"

#include <stdio.h>
#include <string.h>

static const double idle_least = 0.95, busy_most = 0.01, cores_most = 0.05;

static const double watched_least = 20; /* seconds */
static const double hang_least = 60, hang_short = 20,
		    hang_most = 0.5;   /* seconds, share of the run */
static const double waits_least = 0.8; /* of that time */
static const double tail_short = 5, tail_share = 0.3,
		    tail_long = 60; /* seconds and share of the run, or seconds */

static bool marked_steps(const struct facts *f)
{
	return strcmp(f->v[FACT_START_SECONDS].text, "steps") == 0;
}

static enum answer hung(const struct facts *f, struct opinion *o)
{
	enum answer r = answer_or(rule_at_least(f, FACT_HANG, hang_least, o),
				  answer_and(rule_at_least(f, FACT_HANG, hang_short, o),
					     rule_at_least(f, FACT_HANG_SHARE, hang_most, o)));

	if (r != ANSWER_YES)
		return r;
	if (!marked_steps(f))
		r = answer_or(rule_at_least(f, FACT_TRAINING, 1, o),
			      answer_and(rule_at_least(f, FACT_GPU_USED, 1, o),
					 rule_at_least(f, FACT_RUN_FAILED, 1, o)));
	return answer_and(r, rule_at_least(f, FACT_HANG_WAIT, waits_least, o));
}

static void say_hung(struct finding *x, const struct facts *f)
{
	const struct fact *wait = &f->v[FACT_HANG_WAIT];
	char a[32];

	rule_where(x, f, FACT_HANG_WAIT);
	num_seconds(f->v[FACT_HANG].value, a, sizeof(a));
	snprintf(x->title, sizeof(x->title), "the program hung for its last %s: it waited for %s",
		 a, wait->text);
	rule_because(x, f, FACT_HANG, "it used no CPU in its last %s%s", a,
		     fact_or(f, FACT_GPU_USED, 0) >= 1 ? ", and nothing ran on its GPU" : "");
	rule_because(x, f, FACT_HANG_WAIT, "its main thread waited for %s %s of that time",
		     wait->text, num_percent(wait->value, a, sizeof(a)));
	if (fact_or(f, FACT_HANG_OTHERS, 0) >= 1)
		rule_because(x, f, FACT_HANG_OTHERS,
			     "so did %.0f other threads of the job, most for %s",
			     f->v[FACT_HANG_OTHERS].value, f->v[FACT_HANG_OTHERS].text);
	rule_because(x, f, FACT_RUN_FAILED, "it ended with %s", f->v[FACT_RUN_FAILED].text);
	snprintf(
	    x->fix, sizeof(x->fix),
	    "see at that line who should have answered: a worker that died or was forked while a "
	    "lock was held, a rank that left a collective, a queue nobody fills; a timeout "
	    "(DataLoader(timeout=60)) makes it an error that names itself");
	x->cost = 1;
	x->confidence = 0.8;
}

static enum answer holds_a_gpu(const struct facts *f, struct opinion *o)
{
	enum answer r = answer_and(rule_at_least(f, FACT_GPU_USED, 1, o),
				   answer_not(rule_at_least(f, FACT_GPU_BUSY, busy_most, o)));
	double watched;
	char a[24];

	r = answer_and(r, answer_and(rule_at_least(f, FACT_DOING_IDLE, idle_least, o),
				     answer_not(rule_at_least(f, FACT_CORES_USED, cores_most, o))));
	if (r == ANSWER_YES && fact_value(f, FACT_GPU_WATCHED, &watched) && watched < watched_least)
		return rule_cannot_tell(o, "only %s recorded; needs 20 s",
					num_seconds(watched, a, sizeof(a)));
	return r;
}

static void say_idle(struct finding *x, const struct facts *f)
{
	char a[24];

	rule_where(x, f, FACT_DOING_IDLE);
	snprintf(x->title, sizeof(x->title), "the job holds a GPU and does nothing");
	rule_because(x, f, FACT_DOING_IDLE,
		     "its main thread sleeps or waits for something to happen %s of the time",
		     num_percent(f->v[FACT_DOING_IDLE].value, a, sizeof(a)));
	rule_because(x, f, FACT_GPU_BUSY, "nothing runs on its GPU");
	rule_because(x, f, FACT_GPU_USED, "it has a context on %.0f GPU%s",
		     f->v[FACT_GPU_USED].value, f->v[FACT_GPU_USED].value > 1.5 ? "s" : "");
	snprintf(x->fix, sizeof(x->fix), "end it, or free its memory, when nobody needs it");
	x->cost = 1;
	x->confidence = 0.85;
}

/* Who goes on may begin again any moment: that takes longer to tell. */
static enum answer lingers(const struct facts *f, struct opinion *o)
{
	enum answer r = answer_and(rule_at_least(f, FACT_TAIL, tail_short, o),
				   rule_at_least(f, FACT_TAIL_SHARE, tail_share, o));

	r = answer_or(rule_at_least(f, FACT_TAIL, tail_long, o),
		      answer_and(r, rule_at_least(f, FACT_RUN_DONE, 1, o)));
	return r != ANSWER_YES || marked_steps(f) ? r : rule_at_least(f, FACT_TRAINING, 1, o);
}

static void say_lingers(struct finding *x, const struct facts *f)
{
	char a[32], b[24];

	rule_where(x, f, FACT_TAIL);
	num_seconds(f->v[FACT_TAIL].value, a, sizeof(a));
	num_percent(f->v[FACT_TAIL_SHARE].value, b, sizeof(b));
	snprintf(x->title, sizeof(x->title),
		 "the job held a GPU for its last %s (%s of the run) and did nothing", a, b);
	rule_because(x, f, FACT_TAIL,
		     "in its last %s it used no CPU, and nothing ran on its GPU%s%s", a,
		     f->v[FACT_TAIL].place ? "; it was at " : "", f->v[FACT_TAIL].text);
	rule_because(x, f, FACT_GPU_USED, "it has a context on %.0f GPU%s",
		     f->v[FACT_GPU_USED].value, f->v[FACT_GPU_USED].value > 1.5 ? "s" : "");
	snprintf(x->fix, sizeof(x->fix),
		 "end it when the training is over, or free the GPU before what comes behind");
	x->note = true;
	x->cost = f->v[FACT_TAIL_SHARE].value;
	x->confidence = 0.8;
}

static enum answer check(const struct facts *f, struct opinion *o)
{
	struct finding *x = &o->finding;
	enum answer hang = hung(f, o), idle = ANSWER_NO, tail = ANSWER_NO;

	if (hang == ANSWER_YES) {
		say_hung(x, f);
		return hang;
	}
	if (fact_or(f, FACT_GPU_COUNT, 0) > 0) {
		idle = holds_a_gpu(f, o);
		tail = lingers(f, o);
	}
	if (idle == ANSWER_YES)
		say_idle(x, f);
	else if (tail == ANSWER_YES)
		say_lingers(x, f);
	return answer_or(answer_or(hang, idle), tail);
}

const struct rule idle_job_rule = { .cause = "idle_job", .needs_s = 0, .check = check };

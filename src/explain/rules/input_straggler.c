/* SPDX-License-Identifier: MIT
 *
 * input_straggler: one rank gets its data later than the others, and all wait for it in the next collective.
 * Either always the same rank, or each in turn: then all wait about equally and only the steps tell. Steps that
 * tell how long each rank waited for data will do without any stack, if the ranks end them together.
 *
 * Not to be taken for it: a rank that computes longer (compute_straggler), an exchange that takes long for
 * everybody (exposed_communication), ranks that all wait for data alike (too_few_workers), and processes that
 * do not wait for each other at all.
 *
 * Gain: the step then is as long as that of the second latest rank; of ranks that are late in turn, the longest
 * wait of a step comes nearer to the mean with more batches ahead.
 */
#include "explain/loading.h"

#include "base/num.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const double late_least = 0.05, waiting_least = 0.05, uneven_least = 0.05;
/* Of what the rank is late, so much must be seen as waiting of the others. */
static const double awaited_least = 0.5;
/* The same rank in so many of the steps: it is that rank, and no chance. */
static const double same_least = 0.7;

static enum answer one_rank(const struct facts *f, struct opinion *o)
{
	double late = fact_or(f, FACT_RANKS_DATA_LATE, 0);
	enum answer a = rule_at_least(f, FACT_RANKS_DATA_LATE, late_least, o);

	return answer_and(a, rule_at_least(f, FACT_RANKS_DATA_AWAITED, awaited_least * late, o));
}

static enum answer in_turn(const struct facts *f, struct opinion *o)
{
	return answer_and(rule_at_least(f, FACT_RANKS_WAITING, waiting_least, o),
			  rule_at_least(f, FACT_RANKS_DATA_UNEVEN, uneven_least, o));
}

static void fix_rank(struct finding *x, const struct facts *f)
{
	const char *library = f->v[FACT_LOADER_FRAMEWORK].text;

	snprintf(x->fix, sizeof(x->fix),
		 "look what differs on %s: its files or shard (size, storage), its cores, its "
		 "number of loader workers; give it what the others have, or give each rank an "
		 "equal share of the data",
		 f->v[FACT_RANKS_DATA].text);
	if (strcmp(library, "torch") == 0)
		snprintf(x->edit, sizeof(x->edit),
			 "DataLoader(..., sampler=DistributedSampler(dataset), num_workers=N)");
	else if (strcmp(library, "tf.data") == 0)
		snprintf(
		    x->edit, sizeof(x->edit),
		    "ds.shard(num_replicas, replica).map(f, num_parallel_calls=N).prefetch(N)");
}

static void fix_turns(struct finding *x, const struct facts *f)
{
	const char *library = f->v[FACT_LOADER_FRAMEWORK].text;

	snprintf(x->fix, sizeof(x->fix),
		 "have more batches ahead on every rank, so that a slow one does not hold up all: "
		 "more workers or a larger prefetch");
	if (strcmp(library, "torch") == 0)
		snprintf(x->edit, sizeof(x->edit),
			 "DataLoader(..., prefetch_factor=8, num_workers=N)");
	else if (strcmp(library, "tf.data") == 0)
		snprintf(x->edit, sizeof(x->edit), "ds.prefetch(8)");
}

static void say(struct finding *x, const struct facts *f, bool same)
{
	const struct fact *late = &f->v[FACT_RANKS_DATA_LATE];
	const char *who = f->v[FACT_RANKS_DATA].text;
	char a[24], b[24];

	rule_where(x, f, FACT_RANKS_DATA_LATE);
	if (same)
		snprintf(x->title, sizeof(x->title),
			 "%.48s gets its data late and the others wait: %s of the time%s%.48s", who,
			 num_percent(late->value, a, sizeof(a)), late->place ? ", at " : "",
			 late->text);
	else
		snprintf(x->title, sizeof(x->title),
			 "in each step some rank gets its data late and all wait for it: %s of the "
			 "time",
			 num_percent(fact_or(f, FACT_RANKS_DATA_UNEVEN, 0), a, sizeof(a)));
	rule_because(x, f, FACT_RANKS_DATA,
		     "%s waits for data or loads it %s of its time, the "
		     "others %s",
		     who, num_percent(f->v[FACT_RANKS_DATA].value, a, sizeof(a)),
		     num_percent(f->v[FACT_RANKS_DATA].value - late->value, b, sizeof(b)));
	if (same && f->v[FACT_RANKS_WAITING].known)
		rule_because(x, f, FACT_RANKS_DATA_AWAITED,
			     "the others wait in collectives or for the device %s of the time more "
			     "than it does",
			     num_percent(f->v[FACT_RANKS_DATA_AWAITED].value, a, sizeof(a)));
	rule_because(x, f, FACT_RANKS_DATA_UNEVEN,
		     "step by step the longest wait for data is above the mean of the ranks by %s "
		     "of the step",
		     num_percent(fact_or(f, FACT_RANKS_DATA_UNEVEN, 0), a, sizeof(a)));
	rule_because(x, f, FACT_RANKS_DATA_SAME, "the same rank waits longest in %s of the steps",
		     num_percent(fact_or(f, FACT_RANKS_DATA_SAME, 0), a, sizeof(a)));
	if (!f->v[FACT_RANKS_WAITING].known)
		rule_because(x, f, FACT_RANKS_APART,
			     "all ranks end each step within %s of its time: they wait for each "
			     "other",
			     num_percent(fact_or(f, FACT_RANKS_APART, 0), a, sizeof(a)));
	rule_because(x, f, FACT_RANKS, "%.0f ranks here", f->v[FACT_RANKS].value);
}

static double left(const struct facts *f, enum loading_case c, double saved)
{
	return fmax(fmax(1 - fmax(saved, 0), loading_late_gpu_floor(f, c)), loading_least_left);
}

static const char *next_limit(const struct facts *f, double left)
{
	return left <= loading_late_gpu_floor(f, LOADING_LIKELY) + 0.01
		   ? "GPU-bound"
		   : "the next rank's own work";
}

static enum answer check(const struct facts *f, struct opinion *o)
{
	struct finding *x = &o->finding;
	enum answer one = one_rank(f, o);
	enum answer a =
	    answer_and(rule_at_least(f, FACT_RANKS, 2, o), answer_or(one, in_turn(f, o)));
	double uneven = fact_or(f, FACT_RANKS_DATA_UNEVEN, 0), late, next;
	bool same;

	/* Trainings side by side wait for data and devices of their own, and nobody for anybody else. */
	if (a != ANSWER_NO)
		a = answer_and(a, loading_ranks_in_step(f, o));
	if (a != ANSWER_YES)
		return a;
	/* By chance alone some rank has most of it. */
	if (one == ANSWER_YES && f->v[FACT_RANKS_DATA_LATE].low <= 0 && uneven < uneven_least)
		return rule_cannot_tell(o, "too few stacks of the ranks to tell them apart");
	same = one == ANSWER_YES && fact_or(f, FACT_RANKS_DATA_SAME, 1) >= same_least;
	if (one != ANSWER_YES && fact_or(f, FACT_RANKS_DATA_SAME, 0) >= same_least)
		same = true;
	say(x, f, same);
	if (same && one == ANSWER_YES) {
		late = fmin(f->v[FACT_RANKS_DATA_LATE].value, f->v[FACT_RANKS_DATA_AWAITED].value);
		next = fmin(f->v[FACT_RANKS_DATA_NEXT].value, late);
		rule_gain_of_time(
		    x, left(f, LOADING_BEST, fmax(late, f->v[FACT_RANKS_DATA_LATE].high)),
		    left(f, LOADING_LIKELY, next), left(f, LOADING_WORST, 0.5 * next));
		fix_rank(x, f);
	} else {
		rule_gain_of_time(x, left(f, LOADING_BEST, uneven),
				  left(f, LOADING_LIKELY, 0.6 * uneven),
				  left(f, LOADING_WORST, 0.2 * uneven));
		fix_turns(x, f);
	}
	snprintf(x->then, sizeof(x->then), "%s", next_limit(f, 1 / x->speedup));
	x->confidence = same ? 0.8 : 0.65;
	return ANSWER_YES;
}

const struct rule input_straggler_rule = { .cause = "input_straggler",
					   .needs_s = 5,
					   .check = check };

/* SPDX-License-Identifier: MIT
 *
 * compute_straggler: one rank computes longer than the others, and all wait for it in the next collective: longer
 * sequences, a heavier stage, a slower GPU, fewer or shared cores.
 *
 * Not to be taken for it: a rank that gets its data late (input_straggler), a rank that alone writes checkpoints,
 * logs or validates (their own causes), an exchange that takes long for everybody (exposed_communication).
 * Where collectives run on the device, waiting for it and waiting for others are one, and this cannot be told.
 *
 * Gain: with the work shared out evenly each rank has the mean of it, which is what cures of programs nobody had tried have
 * come to; where the rank itself is slow, the step becomes that of the second latest.
 */
#include "explain/loading.h"

#include "base/num.h"

#include <math.h>
#include <stdio.h>

static const double late_least = 0.05, comm_least = 0.05, device_least = 0.05;
/* Of what the rank is late by, this much must be computing. */
static const double work_least = 0.5;
static const double queued_least = 0.02;

/* No rank is seen to wait for others. On the device it may be, and there it cannot be seen. */
static enum answer is_seen(const struct facts *f, struct opinion *o)
{
	enum answer a = rule_at_least(f, FACT_RANKS_COMM, comm_least, o);

	if (a == ANSWER_NO && f->v[FACT_RANKS_WAITING].value >= device_least)
		return rule_cannot_tell(
		    o, "the ranks wait for the device: whether for its work or for other ranks "
		       "does not show in stacks");
	return a;
}

static void say(struct finding *x, const struct facts *f)
{
	const struct fact *late = &f->v[FACT_RANKS_LATE], *work = &f->v[FACT_RANKS_LATE_WORK];
	char a[24];

	rule_where(x, f, FACT_RANKS_LATE_WORK);
	snprintf(x->title, sizeof(x->title),
		 "%.48s computes longer and the others wait: %s of the time%s%.48s", late->text,
		 num_percent(late->value, a, sizeof(a)), work->place ? ", at " : "", work->text);
	rule_because(x, f, FACT_RANKS_LATE,
		     "%s has %s of the time more work of its own than the "
		     "others",
		     late->text, num_percent(late->value, a, sizeof(a)));
	rule_because(x, f, FACT_RANKS_LATE_WORK, "%s of it is computing%s%s",
		     num_percent(fmin(1, work->value / late->value), a, sizeof(a)),
		     work->place ? ", most of it at " : "", work->text);
	rule_because(x, f, FACT_RANKS_COMM, "a rank waits for the others up to %s of its time",
		     num_percent(f->v[FACT_RANKS_COMM].value, a, sizeof(a)));
	if (fact_or(f, FACT_RANKS_LATE_QUEUED, 0) >= queued_least)
		rule_because(x, f, FACT_RANKS_LATE_QUEUED,
			     "it is ready and has no CPU %s of the time more than the others",
			     num_percent(f->v[FACT_RANKS_LATE_QUEUED].value, a, sizeof(a)));
	rule_because(x, f, FACT_RANKS, "%.0f ranks here", f->v[FACT_RANKS].value);
	if (fact_or(f, FACT_RANKS_LATE_QUEUED, 0) >= 0.5 * late->value)
		snprintf(x->fix, sizeof(x->fix),
			 "give %s cores of its own (taskset, --cpus-per-task): it waits for a CPU "
			 "while the others compute",
			 late->text);
	else
		snprintf(x->fix, sizeof(x->fix),
			 "give every rank as much to do (batches of like length: sort or bucket by "
			 "length; split stages evenly); if it is the same with other data, compare "
			 "that rank's GPU clocks and cores");
}

static double left(double saved)
{
	return fmax(1 - fmax(saved, 0), loading_least_left);
}

static enum answer check(const struct facts *f, struct opinion *o)
{
	struct finding *x = &o->finding;
	double late = fact_or(f, FACT_RANKS_LATE, 0), next, mean, n;
	enum answer a = answer_and(rule_at_least(f, FACT_RANKS, 2, o), is_seen(f, o));

	/* Where the waiting is not seen, being late is not either. */
	if (a != ANSWER_YES)
		return a;
	a = answer_and(rule_at_least(f, FACT_RANKS_LATE, late_least, o),
		       rule_at_least(f, FACT_RANKS_LATE_WORK, work_least * late, o));
	if (a != ANSWER_YES)
		return a;
	/* By chance alone some rank is the latest. */
	if (f->v[FACT_RANKS_LATE].low <= 0)
		return rule_cannot_tell(o, "too few stacks of the ranks to tell them apart");
	say(x, f);
	n = f->v[FACT_RANKS].value;
	late = f->v[FACT_RANKS_LATE_WORK].value;
	mean = late * (n - 1) / n;
	next = fmin(late, fact_or(f, FACT_RANKS_LATE_NEXT, 0));
	rule_gain_of_time(x, left(fmax(mean, next)), left(fmin(mean, (mean + next) / 2)),
			  left(0.7 * fmin(mean, next)));
	snprintf(x->then, sizeof(x->then), "the work all ranks have");
	x->confidence = 0.75;
	return ANSWER_YES;
}

const struct rule compute_straggler_rule = { .cause = "compute_straggler",
					     .needs_s = 5,
					     .check = check };

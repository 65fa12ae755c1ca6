/* SPDX-License-Identifier: MIT
 *
 * memory_pressure: the job waits for memory: pages it needs were swapped out or dropped and have to
 * come back from a disk, or it has to free pages before it gets one.
 *
 * Not to be taken for it: page faults on files that are mapped and read for the first time (nothing
 * was taken away from the job), a limit that is full of page cache read once (cheap to free), and
 * pressure elsewhere in the machine.
 *
 * Gain: the time it stood still, as an interval (facts/pressure.c); no more than its GPU leaves.
 */
#include "explain/stall.h"

#include "base/num.h"

#include <math.h>
#include <stdio.h>

static const double full_least = 0.02, some_least = 0.10; /* stall times of its own group */
static const double faults_least = 20;                    /* a second; a healthy job has none */
static const double refaults_least = 100;                 /* pages a second: 0.4 MB/s */
static const double swapped_least = 16e6, swap_in_least = 80e3;
static const double fill_least = 0.95, hits_least = 1;
static const double available_little = 0.05, available_ample = 0.10;
static const double machine_calm = 0.02;

struct signs {
	enum answer stalls, swaps, limit, machine;
	enum answer rereads; /* at its limit, and what was dropped is read again */
};

static enum answer at_most(const struct facts *f, enum fact_id id, double most, struct opinion *o)
{
	return answer_not(rule_at_least(f, id, nextafter(most, INFINITY), o));
}

/* Refaults of its group; where they are not known, those of the machine bound them. */
static enum answer refaults(const struct facts *f, struct opinion *o)
{
	double machine;

	if (!f->v[FACT_PRESSURE_REFAULTS].known && fact_value(f, FACT_MACHINE_REFAULTS, &machine) &&
	    machine < refaults_least)
		return ANSWER_NO;
	return rule_at_least(f, FACT_PRESSURE_REFAULTS, refaults_least, o);
}

static struct signs look(const struct facts *f, struct opinion *o)
{
	enum answer faults = rule_at_least(f, FACT_PRESSURE_FAULTS, faults_least, o);
	struct signs s;

	s.swaps = answer_and(rule_at_least(f, FACT_PRESSURE_SWAPPED, swapped_least, o),
			     rule_at_least(f, FACT_MACHINE_SWAP_IN, swap_in_least, o));
	s.swaps = answer_and(s.swaps, faults);
	s.limit = answer_and(rule_at_least(f, FACT_PRESSURE_FILL, fill_least, o),
			     rule_at_least(f, FACT_PRESSURE_HITS, hits_least, o));
	s.rereads = answer_and(s.limit, refaults(f, o));
	s.limit = answer_and(s.limit, faults);
	s.machine = answer_and(faults, at_most(f, FACT_MACHINE_AVAILABLE, available_little, o));
	s.stalls = answer_or(rule_at_least(f, FACT_PRESSURE_FULL, full_least, o),
			     rule_at_least(f, FACT_PRESSURE_SOME, some_least, o));
	return s;
}

/* Enough is known to say no, though its group's stall times are not: whatever makes a job stall for
 * memory shows as page faults that wait for a disk, as hits of its limit, or as a machine that has
 * run short. */
static bool is_calm(const struct facts *f)
{
	struct opinion unused = { 0 };
	enum answer a = answer_not(rule_at_least(f, FACT_PRESSURE_FAULTS, faults_least, &unused));

	a = answer_and(a, answer_not(rule_at_least(f, FACT_PRESSURE_HITS, hits_least, &unused)));
	a = answer_and(a, rule_at_least(f, FACT_MACHINE_AVAILABLE, available_ample, &unused));
	return a == ANSWER_YES;
}

static void say_why(struct finding *x, const struct facts *f)
{
	char a[32], b[32];

	rule_because(x, f, FACT_PRESSURE_FULL,
		     "all of its tasks stood still for memory %s of the time",
		     num_percent(f->v[FACT_PRESSURE_FULL].value, a, sizeof(a)));
	rule_because(x, f, FACT_PRESSURE_FAULTS, "%s page faults a second waited for a disk",
		     num_count(f->v[FACT_PRESSURE_FAULTS].value, a, sizeof(a)));
	if (fact_or(f, FACT_PRESSURE_SWAPPED, 0) >= swapped_least)
		rule_because(x, f, FACT_PRESSURE_SWAPPED, "%s of it are in swap",
			     num_bytes(f->v[FACT_PRESSURE_SWAPPED].value, a, sizeof(a)));
	if (fact_or(f, FACT_PRESSURE_REFAULTS, 0) >= 1)
		rule_because(x, f, FACT_PRESSURE_REFAULTS,
			     "%s pages a second came back soon after they were dropped",
			     num_count(f->v[FACT_PRESSURE_REFAULTS].value, a, sizeof(a)));
	if (fact_or(f, FACT_PRESSURE_HITS, 0) > 0)
		rule_because(x, f, FACT_PRESSURE_HITS,
			     "it ran into its memory limit %s times a second",
			     num_count(fmax(1, f->v[FACT_PRESSURE_HITS].value), a, sizeof(a)));
	if (f->v[FACT_MEMORY_ALLOWED].known)
		rule_because(x, f, FACT_MEMORY_PEAK, "its peak was %s of %s allowed (%s)",
			     num_bytes(f->v[FACT_MEMORY_PEAK].value, a, sizeof(a)),
			     num_bytes(f->v[FACT_MEMORY_ALLOWED].value, b, sizeof(b)),
			     f->v[FACT_MEMORY_ALLOWED].text);
	rule_because(x, f, FACT_MEMORY_LARGEST, "the largest process is %s: %s",
		     f->v[FACT_MEMORY_LARGEST].text,
		     num_bytes(f->v[FACT_MEMORY_LARGEST].value, a, sizeof(a)));
}

static void say_fix(struct finding *x, const struct facts *f, const struct signs *s)
{
	bool group = s->limit == ANSWER_YES || s->rereads == ANSWER_YES ||
		     strcmp(f->v[FACT_MEMORY_ALLOWED].text, "cgroup") == 0;

	snprintf(
	    x->fix, sizeof(x->fix),
	    "use less memory (fewer loader workers, smaller prefetch_factor and caches, smaller "
	    "batch), or %s",
	    group ? "raise the limit (docker run --memory, Kubernetes limits.memory, memory.max)"
		  : "run where there is more");
}

static void gain(struct finding *x, const struct facts *f)
{
	const struct fact *stall = &f->v[FACT_PRESSURE_STALL];

	if (!stall->known)
		return;
	rule_gain_of_time(x, stall_then(f, LOADING_BEST, stall->high),
			  stall_then(f, LOADING_LIKELY, stall->value),
			  stall_then(f, LOADING_WORST, stall->low));
	snprintf(x->then, sizeof(x->then), "%s", stall_next(f, 1 / x->speedup));
}

static enum answer check(const struct facts *f, struct opinion *o)
{
	struct finding *x = &o->finding;
	struct signs s;
	enum answer a;

	s = look(f, o);
	a = answer_or(answer_or(s.stalls, s.swaps), answer_or(s.limit, s.machine));
	/* Whenever a task of the job stalls, a task of the machine does. Reading a file again is
	 * not always counted as a stall. */
	if (fact_or(f, FACT_MACHINE_PRESSURE, INFINITY) < machine_calm)
		a = ANSWER_NO;
	a = answer_or(a, s.rereads);
	if (a == ANSWER_CANNOT_TELL && is_calm(f))
		return ANSWER_NO;
	if (a != ANSWER_YES)
		return a;
	snprintf(x->title, sizeof(x->title), "the job waits for memory: %s",
		 s.swaps == ANSWER_YES ? "its pages are swapped out and in"
		 : s.rereads == ANSWER_YES
		     ? "its control group is full, and it reads pages again and again"
		 : s.limit == ANSWER_YES   ? "it runs into the limit of its control group"
		 : s.machine == ANSWER_YES ? "the machine has run short of it"
					   : "its control group stalls for it");
	say_why(x, f);
	say_fix(x, f, &s);
	gain(x, f);
	x->confidence = s.stalls == ANSWER_YES ? 0.9 : 0.75;
	return ANSWER_YES;
}

const struct rule memory_pressure_rule = { .cause = "memory_pressure",
					   .needs_s = 5,
					   .check = check };

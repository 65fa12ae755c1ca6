/* SPDX-License-Identifier: MIT
 *
 * A rule asks one question of the facts: is this cause at work? It reads facts and nothing else, and
 * answers no, yes, or cannot tell. To add one: explain/rules/CAUSE.c ending in
 * `const struct rule CAUSE_rule`, a row in all.c, scenarios that say yes, no and blind, and the page
 * docs/causes/CAUSE.md.
 *
 * The answers are ordered so that `and` is the lesser and `or` the greater of two. A condition on a
 * fact that is absent is "cannot tell", so taking a fact away never makes a yes of a no, or a no of
 * a yes, as long as a rule is built from these.
 */
#ifndef SPOTTER_EXPLAIN_RULE_H
#define SPOTTER_EXPLAIN_RULE_H

#include "explain/fact.h"
#include "model/finding.h"

enum answer { ANSWER_NO, ANSWER_CANNOT_TELL, ANSWER_YES };

static inline enum answer answer_and(enum answer a, enum answer b)
{
	return a < b ? a : b;
}

static inline enum answer answer_or(enum answer a, enum answer b)
{
	return a > b ? a : b;
}

static inline enum answer answer_not(enum answer a)
{
	return (enum answer)(ANSWER_YES - a);
}

/* Share of a quota's periods: a group that is stopped in fewer meets it in bursts only. */
static const double rule_throttled_least = 0.05;

/* What a rule fills: the finding when yes, the reason when it cannot tell. Cause and family are
 * filled in by explain(). */
struct opinion {
	struct finding finding;
	char why[160];
};

struct rule {
	const char *cause;
	double needs_s; /* least length of the steady window, 0: any */
	enum answer (*check)(const struct facts *f, struct opinion *o);
	bool about_gpus; /* not asked, and nothing said, on a machine without one */
};

/* all.c; ends with NULL. In the order of tests: what killed the run, then limits that imitate
 * everything else, then the rest. */
extern const struct rule *const rules[];

/* Is the fact at least this? An absent fact: cannot tell, and the first reason is kept in o. */
enum answer rule_at_least(const struct facts *f, enum fact_id id, double least, struct opinion *o);
/* Sets the reason, whatever was noted before. */
enum answer rule_cannot_tell(struct opinion *o, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Evidence from a fact that is known; nothing otherwise. The text is the rule's. */
void rule_because(struct finding *x, const struct facts *f, enum fact_id id, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* Where in the program: the place of a fact, if it has one. */
void rule_where(struct finding *x, const struct facts *f, enum fact_id id);
/* The line of the program that the exception came from which ended it, where a hook heard of one. */
void rule_where_ended(struct finding *x, const struct facts *f);
/* Gain from what a second of now would take, in the best, the likely and the worst case. The three are meant so
 * that in eight of ten programs the gain that comes lies between low and high: docs/gain.md counts. */
void rule_gain_of_time(struct finding *x, double best, double likely, double worst);
/* Behind it: code on a CPU does not take the same time in each run, and in a run that others disturbed it
 * took longer than it will without them: then there is less to win. `cpu`: of what is saved, the part on a CPU. */
void rule_gain_drifts(struct finding *x, double cpu);
/* How fast the code will be that takes the place of the present one is not known: `best` is what a second takes
 * when it costs nothing at all. */
void rule_gain_at_most(struct finding *x, double best);

#endif

/* SPDX-License-Identifier: MIT */
#include "explain/loading.h"

#include "base/num.h"
#include "explain/place.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

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

static const double crew_least = 1.5, spare_least = 0.3, few_least = 0.5, many_least = 6;

bool loading_waits_for_starts(const struct facts *f)
{
	return fact_or(f, FACT_LOADER_GENERATIONS, 0) >= many_least &&
	       fact_or(f, FACT_LOADER_WAIT_RARE, 0) >= few_least;
}

bool loading_waits_for_few(const struct facts *f)
{
	if (loading_waits_for_starts(f))
		return true;
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

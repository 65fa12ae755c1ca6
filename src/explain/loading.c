/* SPDX-License-Identifier: MIT */
#include "explain/loading.h"

#include "base/num.h"
#include "base/text.h"
#include "model/stacks.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static double gpu_floor(const struct facts *f)
{
	return fact_or(f, FACT_GPU_BUSY, 0);
}

/* Where the cores are the bound it is off by this: who is put off by whom is not modelled. Measured with
 * torch's loader on full cores: 14 to 18 %. */
static const double strain[] = {
	[LOADING_BEST] = 1, [LOADING_LIKELY] = 1.1, [LOADING_WORST] = 1.25
};
/* What a further process gets of a core, against those the job has. */
static const double turn[] = { [LOADING_BEST] = 1, [LOADING_LIKELY] = 0.7, [LOADING_WORST] = 0 };

/* The cores nobody uses. On a full machine a further process gets its turn all the same: as the training
 * thread does, which has a CPU for a part of the time it wants one. */
static double cores_floor(const struct facts *f, enum loading_case c, double more)
{
	double used, unused, allowed, run = fact_or(f, FACT_TIME_RUNNING, 0);
	double ready = run + fact_or(f, FACT_TIME_QUEUED, 0), share = ready > 0 ? run / ready : 0;

	if (!fact_value(f, FACT_CORES_USED, &used) || !fact_value(f, FACT_CORES_FREE, &unused) ||
	    !fact_value(f, FACT_CORES_ALLOWED, &allowed) || used <= 0)
		return 0;
	unused = fmax(unused, fmin(allowed - used, turn[c] * more * share));
	return used / (used + unused) * strain[c];
}

double loading_floor(const struct facts *f, enum loading_case c, double more)
{
	return fmin(1, fmax(loading_least_left, fmax(gpu_floor(f), cores_floor(f, c, more))));
}

const char *loading_then(const struct facts *f, double then, double more, const char *otherwise)
{
	if (then > loading_floor(f, LOADING_LIKELY, more) + 0.01)
		return otherwise;
	return gpu_floor(f) >= cores_floor(f, LOADING_LIKELY, more) ? "GPU-bound"
								    : "the cores it may use";
}

double loading_wall_per_cpu(const struct facts *f)
{
	double run = fact_or(f, FACT_TIME_RUNNING, 0);

	return run > 0.01 ? (run + fact_or(f, FACT_TIME_QUEUED, 0)) / run : 1;
}

static const double consumer_least = 0.05; /* of the critical thread's time */
static const double gpu_least = 0.01;      /* of the time a kernel of the job runs */
static const double sure_least = 0.5;      /* of the time of loading */

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

static bool trains(const struct facts *f)
{
	return fact_or(f, FACT_TRAINING, 0) > 0 || fact_or(f, FACT_GPU_BUSY, 0) >= gpu_least;
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
	text_safe_copy(function, sizeof(function), p->function);
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

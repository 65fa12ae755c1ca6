/* SPDX-License-Identifier: MIT */
#include "explain/reading.h"

#include "explain/loading.h"
#include "explain/pipeline.h"

#include <math.h>
#include <stdio.h>

static const double mapped_least = 4;    /* times: fetched from storage against read by calls */
static const double wait_least = 0.2;    /* of the time of loading */
static const double miss_least = 0.02;   /* of what is read */
static const double fetched_least = 1e5; /* bytes a second: less holds nobody up */
static const double again_least = 0.3;   /* of what is fetched */
static const double files_least = 0.3;   /* of the time of loading */
static const double small_most =
    65536; /* bytes of a read call; a file is read by two, one finds its end */

/* the same where storage is waited for: less than a buffer of Python's, which large files are read by */
static const double tiny_most = 6000;

enum answer reading_waits(const struct facts *f, struct opinion *o)
{
	return answer_and(rule_at_least(f, FACT_LOAD_DISK, wait_least, o), loading_holds_up(f, o));
}

enum answer reading_fetches(const struct facts *f, struct opinion *o)
{
	return answer_and(reading_waits(f, o),
			  answer_and(rule_at_least(f, FACT_LOAD_FETCHED, fetched_least, o),
				     rule_at_least(f, FACT_LOAD_MISS, miss_least, o)));
}

enum answer reading_again(const struct facts *f, struct opinion *o)
{
	enum answer a = reading_fetches(f, o);

	if (a == ANSWER_YES)
		a = rule_at_least(f, FACT_DATA_REREAD, again_least, o);
	return a == ANSWER_YES ? loading_is_for_training(f, o) : a;
}

enum answer reading_over_network(const struct facts *f, struct opinion *o)
{
	enum answer files = reading_waits(f, o), sockets;

	if (files == ANSWER_YES)
		files = rule_at_least(f, FACT_DATA_NETWORK, 1, o);
	sockets =
	    answer_and(rule_at_least(f, FACT_LOAD_NETWORK, wait_least, o), loading_holds_up(f, o));
	files = answer_or(files, sockets);
	return files == ANSWER_YES ? loading_is_for_training(f, o) : files;
}

static bool is_mapped(const struct facts *f)
{
	return f->v[FACT_LOAD_READ].known &&
	       f->v[FACT_LOAD_FETCHED].value > mapped_least * f->v[FACT_LOAD_READ].value;
}

enum answer reading_small_files(const struct facts *f, struct opinion *o)
{
	enum answer a =
	    answer_and(rule_at_least(f, FACT_LOAD_FILES, files_least, o), loading_in_the_way(f, o));
	enum answer tiny = reading_fetches(f, o);

	if (a == ANSWER_YES)
		a = answer_not(rule_at_least(f, FACT_LOAD_READ_SIZE, small_most, o));
	/* inodes are kept longer than pages: then it is the reading that waits, file by file; not so where files are
	 * mapped, and what is fetched was asked for by no call */
	if (tiny == ANSWER_YES && is_mapped(f))
		tiny = ANSWER_NO;
	if (tiny == ANSWER_YES)
		tiny = answer_not(rule_at_least(f, FACT_LOAD_READ_SIZE, tiny_most, o));
	a = answer_or(a, tiny);
	return a == ANSWER_YES ? loading_is_for_training(f, o) : a;
}

bool reading_has_a_name(const struct facts *f)
{
	struct opinion o = { 0 };

	return reading_again(f, &o) == ANSWER_YES || reading_over_network(f, &o) == ANSWER_YES ||
	       reading_small_files(f, &o) == ANSWER_YES;
}

/* What a second takes when `left` of that share of the time of loading is left. Waiting goes first. */
static double then(const struct facts *f, enum loading_case c, double share, double left)
{
	double now, after, spared, cpu, played;
	struct opinion unused = { 0 };
	struct pipeline p;

	if (!loading_pipeline(f, c, &p))
		return 1;
	now = pipeline_step(&p);
	cpu = p.make_cpu;
	spared = (1 - left) * fmin(1, share) * (p.make_cpu + p.make_wait);
	p.make_cpu = fmax(0, p.make_cpu - fmax(0, spared - p.make_wait));
	p.make_wait = fmax(0, p.make_wait - spared);
	after = pipeline_step(&p);
	played = loading_played(f, c, now, after);
	/* what the training loads itself is spared, and what it is queued for the sake of it: nothing else */
	if (!p.workers)
		return fmax(played, 1 - spared * loading_wall_per_cpu(f));
	/* a CPU that it waits for is no part of what was played */
	if (loading_in_the_way(f, &unused) == ANSWER_YES && cpu > 0)
		played =
		    fmin(played, loading_stage_faster(f, c, 1 - p.make_cpu / cpu, INFINITY, 1));
	return played;
}

void reading_gain(struct finding *x, const struct facts *f, double share, const double left[3])
{
	rule_gain_of_time(x, then(f, LOADING_BEST, share, left[0]),
			  then(f, LOADING_LIKELY, share, left[1]),
			  then(f, LOADING_WORST, share, left[2]));
	rule_gain_drifts(x, loading_cpu_part(f));
	snprintf(x->then, sizeof(x->then), "%s",
		 1 / x->speedup > loading_gpu_floor(f, LOADING_LIKELY) + 0.01 ? "its own work"
									      : "GPU-bound");
}

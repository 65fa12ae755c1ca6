/* SPDX-License-Identifier: MIT
 *
 * A census of the steps of a run: how many, how fast, of which rank, from where on they are steady;
 * which of them took unusually long; what the scalars did. From what the training said itself; of a run
 * that said nothing it may be seen how often it repeats, and no more.
 *
 * The time of a step is without the evaluation and checkpoints that fell into it (phase_is_aside).
 */
#ifndef SPOTTER_EXPLAIN_STEPS_H
#define SPOTTER_EXPLAIN_STEPS_H

#include "base/vec.h"
#include "model/window.h"

/* Fewer steady steps than this say nothing about the 95th percentile, or where a run is steady. */
enum { STEPS_P95_LEAST = 20, STEPS_STEADY_LEAST = 10, STEPS_SLOWEST = 5, SCALARS_SHOWN = 32 };

/* Steps of one process. Numbers that are not known are NAN. */
struct step_group {
	int32_t rank; /* -1: not known */
	uint32_t entity;
	int64_t pid;   /* 0: not known */
	char node[48]; /* of a run of several machines: which; "" of one; safe to show */
	size_t count;
	/* of steady steps */
	size_t steady;
	double rate_hz; /* by the clock: with what lay between them */
	double median_s, p95_s;
	double data_wait;             /* share of the time of those steps that said it */
	double median_wait;           /* seconds */
	double aside;                 /* share of the wall time in evaluation, checkpoints... */
	double first_loss, last_loss; /* of all steps that had one */
	/* of its first thread in the window, per step; by stacks */
	double own_work_s, comm_wait_s;
};

/* Steps that nobody marked, from what repeats (steps_infer.c): about. NAN: not known. */
struct steps_inferred {
	double rate_hz, median_s;
	double count; /* in the steady window */
};

struct steps {
	char marker[32];                /* who marks them, safe to show: "torch"; "" nobody */
	struct steps_inferred inferred; /* where nobody does: then there are no groups */
	VEC(struct step_group) groups;  /* by rank, then by first step */
	size_t lead;                    /* the one that stands for the run */
	int ranks;                      /* distinct ranks; 0: not known */
	/* Steady stretch of the lead; to = from: none. */
	int64_t from_ns, to_ns;
	uint64_t first, last; /* numbers of its steps */
	size_t warm_up;       /* steps that are not in it */
};

/* "hook": a framework's, put in by Spotter; "mark": the program's own; "inferred"; NULL: no steps. */
const char *steps_source(const struct steps *s);
/* 0 or -ENOMEM; nothing said: groups.n is 0. */
int steps_take(const struct window *whole, struct steps *ret);
/* For a training that said nothing. 0 or -ENOMEM; none, or not sure: all NAN. */
struct scene;
int steps_infer(const struct scene *s, struct steps_inferred *ret);
void steps_done(struct steps *s);
const struct step_group *steps_lead(const struct steps *s);                   /* NULL: no steps */
const struct step_group *steps_group(const struct steps *s, uint32_t entity); /* NULL */
/* Seconds it took; without_aside: less what was evaluation and the like. NAN: makes no sense. */
double step_seconds(const struct window *w, const struct window_step *s, bool without_aside);
/* Is it one of this window, with times that make sense? When it began may not be known. */
bool step_in(const struct window *w, const struct window_step *s);

struct slow_step {
	const struct window_step *step;
	double seconds, times; /* times: of the median of its process */
	char what[240];        /* what differed; "" nothing that was seen */
};
/* The slowest steady steps, slowest first; only such as took half as long again as the median. How
 * many. */
size_t steps_slowest(const struct window *w, const struct steps *s, struct slow_step *ret,
		     size_t max);
/* What differed in this one from the usual step of its process. */
void step_differs(const struct window *w, const struct step_group *g, const struct window_step *s,
		  char *buf, size_t size);

struct scalar_sum {
	char name[64]; /* safe to show */
	int32_t rank;
	size_t n;
	double first, last, least, most; /* of finite values */
	uint64_t last_step;
};
/* "loss" of the steps first, then by first appearance. How many. */
size_t scalars_sum(const struct window *w, const struct steps *s, struct scalar_sum *ret,
		   size_t max);

#endif

/* SPDX-License-Identifier: MIT
 *
 * What Spotter says about a run, as data: findings with their evidence, and what it could not tell.
 * Rules fill it, renderers turn it into text or JSON.
 */
#ifndef SPOTTER_MODEL_FINDING_H
#define SPOTTER_MODEL_FINDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FINDING_EVIDENCE = 8 };

/* One measured fact behind a finding. text is a whole phrase in the user's units; metric, value and
 * unit are the same for machines. */
struct evidence {
	char text[200];
	const char *metric; /* name of a metric or a fact, static */
	double value;
	const char *unit; /* static */
};

enum { FINDING_CALLERS = 3 };

struct finding {
	const char *cause, *family; /* public ids, static: DESIGN "Causes" */
	char title[160];
	double cost;       /* share of the window's wall time, 0..1 */
	double confidence; /* 0..1 */
	struct {
		char file[200], function[100];
		int line;       /* 0: unknown */
		bool guess;     /* nobody saw it: by what the source looks like */
		uint32_t place; /* in the book of stacks it was found in, 0: none */
		/* The lines of the program through which that function is mostly called, innermost first, up to the
		 * loop. */
		struct finding_caller {
			char file[200], function[100];
			int line;
		} callers[FINDING_CALLERS];
		size_t n_callers;
	} where;
	struct evidence evidence[FINDING_EVIDENCE];
	size_t n_evidence;
	char fix[240];  /* what to change, one sentence */
	char edit[240]; /* the edit itself, "" when there is none to name */
	bool has_gain;
	double speedup, low, high; /* 1.05 = 5 % faster */
	double most;    /* if what takes its place cost nothing; 0: that is known well enough */
	char then[100]; /* what limits it afterwards, "" unknown */
	bool note;      /* below 5 % gain, or not about speed */
};

/* Adds a piece of evidence; beyond FINDING_EVIDENCE it is dropped. */
void finding_because(struct finding *f, const char *metric, double value, const char *unit,
		     const char *fmt, ...) __attribute__((format(printf, 5, 6)));

#endif

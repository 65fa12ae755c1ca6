/* SPDX-License-Identifier: MIT
 *
 * Does a series repeat, and how often? For evenly spaced values, by their correlation with themselves
 * some time later. Answers "none" unless it is sure: a period has to come back in both halves, more
 * clearly the fewer times it was seen, and what could as well be two periods is none.
 *
 * What a period must be like to be found (CV: spread of its lengths by their mean): CV up to about 0.1.
 * At 0.2 the correlation is down at 0.45, and lengths that are drawn at random (CV 0.5 and more) have
 * no peak at all.
 */
#ifndef SPOTTER_EXPLAIN_STEPS_PERIOD_H
#define SPOTTER_EXPLAIN_STEPS_PERIOD_H

#include <stdbool.h>
#include <stddef.h>

enum {
	PERIOD_VALUES_MAX = 4096,
	PERIOD_SHORTEST = 4, /* values; see period_alias */
	PERIOD_CYCLES = 16,  /* seen fewer times it is chance */
};

struct period {
	double usual;       /* its length, in values */
	double mean;        /* the same by counting: total time by number of times */
	double correlation; /* with what comes one period later */
	double swing;       /* of its first harmonic: half of top to bottom */
	double cycles;      /* times it was seen... */
	size_t from, to;    /* ...among these values */
};

/* False: none, or not sure. */
bool period_find(const double *x, size_t n, struct period *ret);
/* Does this series repeat with that period as well? */
bool period_agrees(const double *x, size_t n, double length);
/* The largest swing with which something shorter than two values, between 0 and `scale`, could look as if
 * it had this period: what goes on within one value is averaged, but not quite away. */
double period_alias(double length, double scale);

#endif

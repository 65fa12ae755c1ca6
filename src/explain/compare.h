/* SPDX-License-Identifier: MIT
 *
 * What changed between two runs: how fast they are, where the time of a step goes, who uses the CPU, which causes
 * came and went, what was set differently, what they used; and what keeps them from being compared fairly.
 *
 * Rows are ordered by what explains most of the difference.
 */
#ifndef SPOTTER_EXPLAIN_COMPARE_H
#define SPOTTER_EXPLAIN_COMPARE_H

#include "base/vec.h"
#include "explain/verdict.h"

struct buf;

enum { COMPARE_A, COMPARE_B, COMPARE_SIDES };

struct compare_side {
	const struct verdict *verdict; /* borrowed, as all below */
	const struct window *window;   /* the whole run */
};

/* A figure of both. NAN: not known, or not there. */
struct compare_row {
	char name[64];
	const char *words; /* for people, static or the verdict's; NULL: the name */
	const char *unit;  /* "seconds", "ratio", "cores", "bytes", "count" */
	double v[COMPARE_SIDES];
};
typedef VEC(struct compare_row) compare_rows;

enum compare_basis {
	COMPARE_BY_NOTHING,  /* not comparable at all */
	COMPARE_BY_STEPS,    /* the training marked its steps */
	COMPARE_BY_INFERRED, /* steps that were inferred in one or both */
	COMPARE_BY_WALL,     /* the length of the whole runs: right if they do the same */
};

struct compare_speed {
	enum compare_basis basis;
	double seconds[COMPARE_SIDES];
	double ratio;     /* times as fast is B as A */
	double low, high; /* its 95 % interval; NAN: not known */
};

enum compare_change {
	CHANGE_GONE,
	CHANGE_NEW,
	CHANGE_UNKNOWN_A, /* B has it, of A it could not be told */
	CHANGE_UNKNOWN_B,
	CHANGE_OTHER, /* both have it, with another gain or at another line */
	CHANGE_NONE,
};

struct compare_cause {
	const char *cause;
	enum compare_change change;
	const struct finding *x[COMPARE_SIDES]; /* NULL: it has it not */
	const char *why;                        /* it could not be told */
};

/* What was different, as words: what was set, and what makes the comparison less fair. */
struct compare_remark {
	const char *code; /* "machine", "level", "stacks", "steps"... */
	char text[240];
};

struct comparison {
	struct compare_side side[COMPARE_SIDES];
	struct compare_speed speed;
	bool per_step; /* rows of time and cpu are seconds per step; else shares and cores */
	compare_rows time, cpu; /* ledgers */
	compare_rows settings, usage;
	VEC(struct compare_cause) causes;
	VEC(struct compare_remark) remarks;
};

/* 0 or -ENOMEM. */
int compare_runs(const struct compare_side side[COMPARE_SIDES], struct comparison *ret);
void comparison_done(struct comparison *c);
/* B less A; NAN where one is not known. */
double compare_change(const struct compare_row *r);
const char *compare_basis_name(enum compare_basis b);
const char *compare_change_name(enum compare_change c);

/* For people. width 0: 100. */
void compare_text(const struct comparison *c, unsigned width, bool color, struct buf *out);
/* {"schema": "spotter.compare/1", ...} */
void compare_json(const struct comparison *c, struct buf *out);

/* Parts of compare_runs(). 0 or -ENOMEM. */
int compare_causes(struct comparison *c);
int compare_remarks(struct comparison *c);
void compare_speed(struct comparison *c);

#endif

/* SPDX-License-Identifier: MIT
 *
 * Facts: every derived quantity, computed once from a scene, with its interval, or absent with the
 * reason. To add one: a row in facts.def, its lines in explain/facts (a new file is a new row in
 * all.c), and a scenario that needs it.
 */
#ifndef SPOTTER_EXPLAIN_FACT_H
#define SPOTTER_EXPLAIN_FACT_H

#include <stdbool.h>
#include <stdint.h>

struct scene;
struct stack_book;

enum fact_id {
#define FACT(id, ...) FACT_##id,
#include "explain/facts.def"
#undef FACT
	FACTS
};

enum fact_window { FACT_OVER_STEADY, FACT_OVER_WHOLE };

struct fact_info {
	const char *name, *unit;
	int level;
	enum fact_window window;
	const char *help;
};

extern const struct fact_info fact_infos[FACTS];

struct fact {
	bool known;
	double value, low, high; /* low = high = value when it is exact */
	uint32_t subject;        /* entity it is about, 0: none */
	uint32_t place;          /* line of code it is about, in facts.book; 0: none */
	char text[64];           /* name of the subject or of a limit, made safe to show; "" none */
	char why[100];           /* when not known: "thread.run_delay is not supported" */
};

struct facts {
	struct fact v[FACTS];
	const struct stack_book *book; /* of the scene's stacks, borrowed; NULL: none */
};

/* One file of facts: fills its rows. Facts of earlier rows of all.c may be read. */
struct fact_source {
	const char *name;
	void (*compute)(const struct scene *s, struct facts *f);
};

extern const struct fact_source *const fact_sources[]; /* all.c; ends with NULL */

/* Empties f and runs all sources. */
void facts_compute(const struct scene *s, struct facts *f);

/* False when absent; then *ret is left alone. */
bool fact_value(const struct facts *f, enum fact_id id, double *ret);
/* The value, or `otherwise` when absent: for wording, never for a decision. */
double fact_or(const struct facts *f, enum fact_id id, double otherwise);

/* To 12 significant digits: figures that were summed up in another order (in memory, from a file) are
 * then the same to the letter. Everything a verdict shows has gone through it. NAN for what is
 * larger than any figure of a machine (1e24). */
double fact_round(double v);
/* A figure as a small whole number for wording: rounded down, 0 to a million whatever it is. */
int fact_whole(double v);

void fact_set(struct facts *f, enum fact_id id, double value);
/* A value that is not finite is not set; low and high are put in order around it. */
void fact_set_range(struct facts *f, enum fact_id id, double value, double low, double high);
void fact_set_subject(struct facts *f, enum fact_id id, uint32_t subject, const char *text);
/* The line of code it is about; the text becomes "file.py:48". */
void fact_set_place(struct facts *f, enum fact_id id, uint32_t place);
void fact_absent(struct facts *f, enum fact_id id, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Absent for the reason another one is. */
void fact_absent_like(struct facts *f, enum fact_id id, enum fact_id other);

#endif

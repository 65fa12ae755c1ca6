/* SPDX-License-Identifier: MIT
 *
 * Between the scenario's lines (scenario.c) and its words (scenario_words.c, scenario_device.c, scenario_events.c).
 */
#ifndef VGPU_SCENARIO_WORDS_H
#define VGPU_SCENARIO_WORDS_H

#include "scenario.h"

enum { SCENARIO_LINE_WORDS = 32 };

struct scenario_line {
	struct err *err;
	struct scenario *scenario;
	int number,
	    first_device; /* devices first_device..n_devices-1 are meant by indented lines */
	bool indented;
	int n, at;
	char word[SCENARIO_LINE_WORDS][100];
};

/* Sets "line N: what: 'word'" and gives -EINVAL. */
int scenario_wrong(struct scenario_line *l, const char *what, const char *word);
/* One line: 0, or negative with the error set. Words left over are the caller's complaint. */
int scenario_statement(struct scenario_line *l);
/* Statements about one device; the line's cursor stands behind `name`. */
int scenario_device_statement(struct scenario_line *l, const char *name, struct scenario_device *d);
/* The same, those about what happens to it; also the one that complains. */
int scenario_event_statement(struct scenario_line *l, const char *name, struct scenario_device *d);

/* Readers of the next word: 0 or an error that says what was wanted. */
bool scenario_is(struct scenario_line *l, const char *word); /* takes it if it is this one */
int scenario_text(struct scenario_line *l, char *ret, size_t size);
int scenario_size(struct scenario_line *l, uint64_t *ret);
int scenario_ratio(struct scenario_line *l, double *ret);
int scenario_int(struct scenario_line *l, int64_t min, int64_t max, int64_t *ret);
/* The same for figures that are ints. */
int scenario_small(struct scenario_line *l, int64_t min, int64_t max, int *ret);
int scenario_mhz(struct scenario_line *l, uint32_t *ret);
int scenario_time(struct scenario_line *l, int64_t *ret);
/* [from TIME] [for TIME] in any order, at the end of the line. */
int scenario_when(struct scenario_line *l, struct scenario_window *ret);

#endif

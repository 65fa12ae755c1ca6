/* SPDX-License-Identifier: MIT
 *
 * A run with a crew in it: the same frames into a file and into the live history, and what both say of
 * stacks.
 */
#ifndef SPOTTER_TESTS_CREW_RUN_H
#define SPOTTER_TESTS_CREW_RUN_H

#include "../unit.h"

#include "base/clock.h"
#include "crew.h"
#include "model/history.h"
#include "record/reader.h"
#include "record/writer.h"

#define START (5000 * NS_PER_S)

struct set_up {
	char path[256];
	struct crew crew;
	struct frame frame;
	struct history *history;
	struct record_writer *writer;
	int64_t t_ns;
};

/* All slices of a window, copied. */
struct copy {
	VEC(struct stack_slice) slices;
	uint64_t samples;
	int64_t weight_ns;
	size_t stop_after;
};

void run_begin(struct set_up *s, unsigned processes, const struct record_options *o);
void run_end(struct set_up *s);
/* The next frame, with the slice of its second, into the history; the second one also into the file,
 * which must take it. */
void run_frame(struct set_up *s);
void run_second(struct set_up *s);
/* Ends the file; run_end() ends the rest. */
void run_finish(struct set_up *s);
struct record *run_open(const char *path);
void run_sql(const char *path, const char *sql);
/* The one number a query gives. */
double run_number(struct record *r, const char *sql);
/* A window_slice_fn. */
bool copy_add(const struct stack_slice *s, void *arg);
void copy_done(struct copy *c);
void assert_same_book(const struct stack_book *a, const struct stack_book *b);
/* From from_ns on there are so many slices, in the file and in the history, and they are the same. */
void assert_same_as_history(struct set_up *s, struct record *r, int64_t from_ns, size_t expected);

#endif

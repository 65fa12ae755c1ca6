/* SPDX-License-Identifier: MIT
 *
 * What a run has many of, as the rows that reports show: processes, events, settings.
 */
#ifndef SPOTTER_EXPLAIN_ROWS_H
#define SPOTTER_EXPLAIN_ROWS_H

#include "model/window.h"

struct steps;

/* A process of the job over the window. Numbers that are not known are NAN. */
struct process_row {
	const struct entity *entity; /* borrowed from the window */
	double cpu_s, lived_s, rss_peak, read, written;
};

/* The one that used most CPU time first. How many; *ret is to be freed. */
size_t process_rows(const struct window *w, struct process_row **ret);

/* An event, and of how many processes the same was told: how stacks are read is told of each. */
struct event_row {
	const struct window_event *event; /* borrowed from the window */
	size_t times;
};

/* The first max ones in order of time; *ret_left: how many more there were. */
size_t event_rows(const struct window *w, struct event_row *ret, size_t max, size_t *ret_left);

/* What the program that stands for the run set: "dataloader.num_workers", and the values it had in
 * order of their first appearance: "16, 64". */
struct setting_row {
	char name[96], values[96]; /* safe to show */
};

size_t setting_rows(const struct window *w, const struct steps *s, struct setting_row *ret,
		    size_t max);

#endif

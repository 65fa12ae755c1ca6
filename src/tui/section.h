/* SPDX-License-Identifier: MIT
 *
 * Parts that views are put together from. Each draws from the top of its area and returns the rows used.
 */
#ifndef SPOTTER_TUI_SECTION_H
#define SPOTTER_TUI_SECTION_H

#include "tui/ui.h"

/* A line with a title, and something at its right end (may be NULL). */
void section_head(struct canvas *c, struct area a, const char *title, const char *right);

/* CPU, memory, GPUs, IO and waiting, cores: section_use.c */
int section_use(const struct board *b, struct canvas *c, struct area a, int gpus_most);
/* Graphs side by side, all a.rows high: section_graphs.c */
void section_graphs(const struct board *b, struct ui *u, struct canvas *c, struct area a);
/* The two ledgers as bars with their words: section_ledger.c. legend: rows of words each at most. */
int section_ledgers(const struct board *b, struct canvas *c, struct area a, int legend);
/* Where the job's CPU time goes, function by function: section_functions.c */
int section_functions(const struct board *b, struct canvas *c, struct area a);
/* Where the time of the critical thread goes, with the functions of each state. */
int section_waits(const struct board *b, struct canvas *c, struct area a);

#endif

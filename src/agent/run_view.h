/* SPDX-License-Identifier: MIT
 *
 * One run as series, from the record that is being written of it: for a recorder that tells of its own run, where no agent
 * looks at the machine. The same families and labels as the agent's for a run, its ranks and its GPUs, and those of the job
 * as a whole; nothing of the machine. Where each rank has a recorder, what has no rank is told by the first of the machine.
 */
#ifndef SPOTTER_AGENT_RUN_VIEW_H
#define SPOTTER_AGENT_RUN_VIEW_H

#include "agent/environ.h"
#include "agent/records.h"
#include "model/series.h"

/* {0}, with the environment of the program in env. */
struct run_view {
	struct job_env env;
	struct record_news news;
	struct record_cursor cursor;
	struct agent_view view;
	double job[METRICS]; /* newest value of what is measured of the job; NAN: none */
};

/* Reads what is new. judge: with a new verdict, which may take a while. 0, or -errno when it cannot be read (yet). */
int run_view_look(struct run_view *r, const char *path, bool judge);
/* All samples; false when fn stopped the walk. */
bool run_view_each(const struct run_view *r, series_fn fn, void *arg);
void run_view_done(struct run_view *r);

#endif

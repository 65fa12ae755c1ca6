/* SPDX-License-Identifier: MIT
 *
 * Runs and ranks over time: what processes used is added up to counters that only grow, also when workers come and go; a run that
 * ended is kept for a minute, so that its last figures are scraped, and then forgotten. Bounded: of what is too much
 * only the number is kept.
 */
#ifndef SPOTTER_AGENT_JOBS_H
#define SPOTTER_AGENT_JOBS_H

#include "agent/discover.h"
#include "agent/notes.h"
#include "agent/records.h"
#include "agent/view.h"

enum { RUN_LINGER_S = 60, RECORD_WAIT_S = 240 };

struct job_run {
	bool used, seen;
	uid_t uid; /* of the process it was first seen by */
	struct view_run v;
	int64_t gone_ns;  /* its last process; 0: it goes on */
	int64_t ended_ns; /* ...and its record */
	bool recorded;    /* a record of it is not read to its end; as of the last view */
};

struct job_rank {
	bool used, seen;
	struct view_rank v; /* v.run: place in runs below */
	int64_t ended_ns;   /* 0: it goes on */
};

/* Where the figures of a record go, once that is known; it stays so. */
struct job_link {
	uint64_t serial;
	uint32_t entity; /* of the record; 0: the run itself */
	int32_t said;    /* rank as the record has it */
	int run, rank;   /* places; rank -1: the run itself, or one that was forgotten */
};

struct jobs {
	struct job_run runs[VIEW_RUNS_MAX];
	struct job_rank ranks[VIEW_RANKS_MAX];
	VEC(struct job_link) links;
	VEC(struct disc_proc) procs; /* of this tick, as notes are */
	struct disc_ranks found;
	VEC(int) place;      /* of each of found in ranks, -1: no room */
	struct map left_out; /* keys of runs and ranks that were counted as dropped */
	double dropped_runs, dropped_ranks;
	int64_t since_ms; /* wall clock of the first tick */
	int64_t now_ns, wall_ms;
	double boot_wall_s; /* when the machine started, since 1970 */
};

/* A record tells of processes of its recorder's own user; root's may of anybody's. */
bool record_may_tell(const struct record_news *n, const struct note *x);

/* Finds runs and ranks and adds up what their processes used. 0 or -ENOMEM. */
int jobs_tick(struct jobs *j, struct notes *n, const struct world *w, const struct frame *f,
	      int64_t boot_ns, struct records *records);
/* Runs, ranks, ledgers and findings; ranks on GPUs where things has them (`gpu_thing`: entity -> place). */
int jobs_view(struct jobs *j, const struct notes *n, const struct world *w, struct records *records,
	      const struct map *gpu_thing, struct agent_view *v);
void jobs_done(struct jobs *j);

#endif

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
	uid_t uid; /* of its processes: with the id, what makes it this run and no other */
	char said
	    [RUN_ID_SIZE]; /* id as they have it; v.id is longer where another user's run has that already */
	struct view_run v;
	int64_t gone_ns;  /* its last process; 0: it goes on */
	int64_t ended_ns; /* ...and its record */
	bool recorded;    /* a record of it is not read to its end; as of the last view */
};

struct job_rank {
	bool used, seen;
	uint32_t root; /* entity of its first process, as last seen */
	uid_t uid;     /* of that */
	struct view_rank
	    v; /* v.run: place in runs below; v.steps: all that was taken from records so far */
	int64_t ended_ns; /* 0: it goes on */
};

/* Where the figures of a record go, once that is known; it stays so. */
struct job_link {
	uint64_t serial;
	uint32_t entity; /* of the record; 0: the run itself */
	int32_t said;    /* rank as the record has it */
	int run, rank;   /* places; rank -1: the run itself, or one that was forgotten */
	struct view_steps
	    taken; /* of its steps, what was added to the rank's or is another record's to tell */
};

/* The same for the ledgers of a record; its lines keep their places. */
struct job_told {
	uint64_t serial;
	bool seen; /* in this view */
	double taken[VIEW_LEDGER_MAX];
	size_t row[VIEW_LEDGER_MAX]; /* in jobs.ledger, most probably */
};

struct jobs {
	struct job_run runs[VIEW_RUNS_MAX];
	struct job_rank ranks[VIEW_RANKS_MAX];
	VEC(struct job_link) links;
	VEC(struct job_told) told;
	VEC(struct view_ledger) ledger; /* sums; run: place in runs */
	struct map teller; /* pid -> serial of the oldest record that goes on and has steps of it */
	struct map program;          /* pid -> the same of which it is the program */
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

/* jobs_told.c: what records tell, added up once. Sums only ever grow, whatever becomes of the record that told, and of what
 * two recorders watch at a time the older record tells. */
void told_begin(struct jobs *j, const struct notes *n, struct records *records);
/* The record's own row, NULL without memory. */
struct job_told *told_of(struct jobs *j, uint64_t serial);
/* What is new in the steps of a group comes to its rank. */
void told_steps(struct jobs *j, const struct record_news *n, const struct record_group *g,
		struct job_link *l);
/* The same for a line of its ledgers; rank -1: of the run. */
int told_line(struct jobs *j, const struct notes *n, const struct record_news *news, size_t line,
	      int run, int32_t rank);
/* Forgets records that are gone. */
void told_end(struct jobs *j);
void told_forget_run(struct jobs *j, int run);
void told_done(struct jobs *j);

/* Finds runs and ranks and adds up what their processes used. 0 or -ENOMEM. */
int jobs_tick(struct jobs *j, struct notes *n, const struct world *w, const struct frame *f,
	      int64_t boot_ns, struct records *records);
/* Runs, ranks, ledgers and findings; ranks on GPUs where things has them (`gpu_thing`: entity -> place). */
int jobs_view(struct jobs *j, const struct notes *n, const struct world *w, struct records *records,
	      const struct map *gpu_thing, struct agent_view *v);
void jobs_done(struct jobs *j);

#endif

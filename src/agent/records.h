/* SPDX-License-Identifier: MIT
 *
 * Records of trainings that `spotter run` and `attach` are writing now: steps, loss, verdict and ledgers come from there.
 * A thread of its own reads them, as a file may be on storage that hangs; nobody waits for it. A file is opened for a look and
 * closed behind it, so that its recorder finds nobody in its way when it settles it. Looks and verdicts get rarer when
 * they are dear: each may cost a hundredth of the time to the next.
 */
#ifndef SPOTTER_AGENT_RECORDS_H
#define SPOTTER_AGENT_RECORDS_H

#include "agent/view.h"

#include <sys/types.h>

struct err;
struct records;

enum { RECORDS_MAX = VIEW_RUNS_MAX, RECORD_GROUPS_MAX = VIEW_RANKS_MAX };

/* Steps of one process of the run. */
struct record_group {
	uint32_t entity;
	int64_t pid; /* as the recorder sees it; 0: not known yet */
	int32_t rank;
	struct view_steps steps;
	double judged_s; /* of steps.seconds, what comm_wait and own_work are about */
};

struct record_line {
	const char *ledger;
	char state[32];
	int64_t pid; /* of the critical thread; 0: the whole run */
	double seconds;
};

/* What one record has told so far. */
struct record_news {
	uint64_t serial; /* never used again */
	pid_t recorder;
	uid_t uid; /* of the recorder */
	bool
	    offered; /* by a process that may be anybody's: the file must be uid's own, and is read with care */
	char path[4096];
	char id[40], name[96];
	int64_t pid;      /* first process of the run; 0: the file was not read yet */
	bool here;        /* its pids are those of this machine, not of a container's */
	bool ended;       /* and read to its end */
	int64_t since_ms; /* its counters count since then */
	VEC(struct record_group) groups;
	struct record_line ledger[VIEW_LEDGER_MAX];
	size_t n_ledger;
	struct view_finding findings[VIEW_FINDINGS_MAX]; /* without the run */
	size_t n_findings;
};

struct records_options {
	int64_t look_ns;    /* time between two looks at a file, at least */
	int64_t judge_ns;   /* between two verdicts; 0: none */
	bool thread;        /* false: records_look() does it */
	const char *folder; /* only records in it; NULL: any that a recorder has open */
};

int records_open(const struct records_options *o, struct records **ret, struct err *e);
/* Does not wait for a look that hangs. */
void records_close(struct records *r);
/* A recorder that lives, of this user, has this file open. Again for the same: nothing. False: there are too many, or
 * too many of one user other than root and ourselves (half of the places). */
bool records_offer(struct records *r, pid_t recorder, uid_t uid, const char *path, bool here);
/* How many there was no place for, each counted once. */
double records_dropped(struct records *r);
/* Nobody wants to know of it any more. */
void records_forget(struct records *r, uint64_t serial);
/* All of them, under a lock that no file is read under. */
void records_each(struct records *r, void (*fn)(const struct record_news *n, void *arg), void *arg);
/* One look at each of them now, in the calling thread. */
void records_look(struct records *r);

/* One look at one file (record_look.c): adds what is new to n. 0, or -errno when it cannot be read. judge: with
 * a verdict; judge_end: with one when the run has ended. */
struct record_cursor {
	int64_t judge_cpu_ns; /* what the last verdict cost */
	int64_t after;        /* last row of steps */
	int64_t judged_to_ns; /* where the last verdict ended, in the run's time; 0: none yet */
};
int record_look(struct record_news *n, struct record_cursor *c, bool judge, bool judge_end);

#endif

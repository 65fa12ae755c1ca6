/* SPDX-License-Identifier: MIT
 *
 * What can be seen here and what cannot. A check looks at one thing and fills one row: what it found,
 * what it means for a record when it is not as it should be, and the exact command that unlocks it.
 * To add one: a function in doctor_*.c and a row in its table.
 */
#ifndef SPOTTER_CLI_DOCTOR_H
#define SPOTTER_CLI_DOCTOR_H

#include "base/vec.h"
#include "collect/host.h"

#include <stdbool.h>

struct buf;
struct cli;
struct err;

enum doctor_status {
	DOCTOR_OK,
	DOCTOR_LIMITED, /* there, but less than it could be */
	DOCTOR_MISSING,
	DOCTOR_UNKNOWN, /* could not be found out */
};

struct doctor_row {
	const char *id, *label;
	enum doctor_status status;
	char value[240];  /* what was found */
	char effect[240]; /* what it means, "" when all is well */
	char unlock[240]; /* a command, "" when there is nothing to do */
};

/* The observation level (docs/levels.md) that a way of recording reaches here, tried now. */
struct doctor_reach {
	int level;        /* 0..3 */
	char why[560];    /* what is seen, and why not more */
	char unlock[240]; /* what raises it, "" when it is as high as it gets */
};

struct doctor {
	const struct host *host;
	pid_t subject; /* a child of ours to try things on; 0 in a fixture */
	VEC(struct doctor_row) rows;
	struct doctor_reach run, attach;
};

struct doctor_check {
	const char *id, *label;
	bool live_only; /* asks the kernel, not files: not for a fixture */
	void (*look)(const struct doctor *d, struct doctor_row *r);
};

/* Each ends with an empty row. */
extern const struct doctor_check doctor_machine_checks[]; /* what this machine is and counts */
extern const struct doctor_check doctor_gpu_checks[];     /* which GPUs can be read */
extern const struct doctor_check doctor_rights_checks[];  /* what we may do */
extern const struct doctor_check doctor_stacks_checks[];  /* whether stacks may be read */
extern const struct doctor_check doctor_place_checks[];   /* where we may write */

/* What follows from how the two trials went (code 0: well; else their words). */
void doctor_reach_set(struct doctor_reach *ret, const struct err *memory, const struct err *perf);
/* Fills both by trying. d->subject is to be read. */
void doctor_reach(const struct doctor *d, struct doctor_reach *ret_run,
		  struct doctor_reach *ret_attach);

int doctor_look(struct doctor *d, const struct host *host);
void doctor_done(struct doctor *d);

void doctor_set(struct doctor_row *r, enum doctor_status status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void doctor_effect(struct doctor_row *r, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void doctor_unlock(struct doctor_row *r, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Writes a scrubbed copy of what the collectors read here, twice, a second apart, as a fixture that
 * --root reads: DIR/t0 and DIR/t1. *ret_files: how many were written. */
int capture(const char *dir, unsigned *ret_files, struct err *e);

#endif

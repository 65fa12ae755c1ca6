/* SPDX-License-Identifier: MIT
 *
 * Opening a run file that may be anything: checks that it is one, says in a sentence what it is
 * instead, and closes the record of a recorder that died.
 */
#ifndef SPOTTER_RECORD_OPEN_H
#define SPOTTER_RECORD_OPEN_H

#include "model/run.h"
#include "record/alive.h"

struct err;
struct sqlite3;

struct run_file {
	struct sqlite3 *db;
	char remark[200]; /* what a reader should know about this file; "" nothing */
	int64_t *budget;  /* rounds of SQLite's machine that are left, in BUDGET_STEPs; NULL: any */
};

/* Read-only. finalise: a record whose recorder has died is closed first, where that can be done. */
int run_file_open(const char *path, bool finalise, struct run_file *ret, struct err *e);
/* The same for a file of another user, who may change it and its -shm at any moment: SQLite maps the -shm, and whoever
 * has mapped a file that is then cut short is killed (SIGBUS). So it is read as it is, without -wal and -shm, nothing is
 * finalised, and a query that goes on and on (pages that lead in circles) is ended with -EINTR. */
int run_file_open_others(const char *path, struct run_file *ret, struct err *e);
void run_file_close(struct run_file *f);

/* The row of table run. ret must be empty; recorder and the two times may be NULL. */
int run_file_info(struct sqlite3 *db, struct run_info *ret, struct recorder_id *recorder,
		  int64_t *fine_to_ns, int64_t *coarse_to_ns);
/* Seconds since the file or its -wal was written; a large number when that is unknown. */
double run_file_age(const char *path);

/* finalise.c: state "interrupted", things still there end with the last tick, one file without
 * -wal. 0, also when somebody else has done it or a reader still holds the -wal; -errno when it
 * cannot be written. */
int run_file_finalise(const char *path);

#endif

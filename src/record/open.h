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
	bool as_is;       /* read without its -wal: changes after this moment are not seen */
	int64_t *budget;  /* rounds of SQLite's machine that are left, in BUDGET_STEPs; NULL: any */
};

/* How much its owner is trusted with what lies beside it. Whatever is read as it is has a remark where that leaves
 * something out. */
enum run_file_how {
	RUN_FILE_LOOK, /* by ours.h: with its log, or as it is where others could harm us by that */
	RUN_FILE_CLOSE, /* the same, and one whose recorder has died is closed first, where that can be done */
	RUN_FILE_WRITING, /* this process writes it, so it has mapped its -shm anyway: with its log */
	RUN_FILE_ANYBODYS, /* as it is, whoever's it is, for who looks at files of anybody all day: no link in its path is
			    * followed, and a query that goes on and on (pages that lead in circles) ends with -EINTR */
};
/* Read-only. */
int run_file_open(const char *path, enum run_file_how how, struct run_file *ret, struct err *e);
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

/* SPDX-License-Identifier: MIT
 *
 * How SQLite reads a record as it is (DB_READ_AS_IS): through files of our own, as its own way to open one waits for a pipe and
 * follows links in folders, and the owner of the record may exchange it for either between a look at it and the opening. What is
 * read was opened without following any link and without waiting, is a plain file, and says whether it has been written to
 * since. There are no locks: a process that writes a record must not read it this way, as closing it would lose the writer's.
 */
#ifndef SPOTTER_RECORD_AS_IS_H
#define SPOTTER_RECORD_AS_IS_H

#include <stdbool.h>
#include <sys/types.h>

struct sqlite3;

struct as_is_state {
	uid_t owner; /* of the file that was opened, whatever has its name by now */
	bool
	    mixed; /* it was written to since, or may have been: what was read can be of two moments */
};

/* The name to give to sqlite3_open_v2(), NULL without memory. Any thread may ask. */
const char *as_is_vfs(void);
/* 0, or -ENOTSUP for a connection that was opened otherwise. */
int as_is_state(struct sqlite3 *db, struct as_is_state *ret);

#endif

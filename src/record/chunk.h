/* SPDX-License-Identifier: MIT
 *
 * Walks the blobs of one group in a range of time, in order. Used by the reader and, in the loadable
 * extension, by the virtual tables.
 */
#ifndef SPOTTER_RECORD_CHUNK_H
#define SPOTTER_RECORD_CHUNK_H

#include "record/block.h"

struct sqlite3;
struct sqlite3_stmt;

struct chunk_cursor {
	struct sqlite3_stmt *statement;
	struct block_reader block; /* the blob now at hand */
	bool open;
	unsigned damaged; /* blobs of which something was left out */
};

void chunk_cursor_done(struct chunk_cursor *c);
/* level: NULL for blocks of samples, else a level of roll-ups. Blobs that touch [lo, hi). 0 or a
 * code of SQLite's. */
int chunk_begin(struct chunk_cursor *c, struct sqlite3 *db, const char *level, const char *group,
		int64_t lo_ns, int64_t hi_ns);
/* SQLITE_ROW with c->block open, SQLITE_DONE, or a code of SQLite's. */
int chunk_next(struct chunk_cursor *c);
void chunk_end(struct chunk_cursor *c);

#endif

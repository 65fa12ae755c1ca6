/* SPDX-License-Identifier: MIT */
#include "record/chunk.h"

#include "record/sqlite_api.h"

#include <errno.h>

/* No blob spans more than this: a minute of samples, five minutes of roll-ups. The index is on the
 * start, so blobs that began earlier need not be looked at. */
#define LONGEST_NS "300000000000"

#define RANGE \
	" AND t0_ns > ?2 - " LONGEST_NS " - 1 AND t0_ns < ?3 AND t1_ns >= ?2 ORDER BY t0_ns, id"

/* A blob that opened well and then broke off. */
static void note_damage(struct chunk_cursor *c)
{
	c->damaged += c->open && c->block.damaged;
	c->open = false;
}

void chunk_cursor_done(struct chunk_cursor *c)
{
	chunk_end(c);
	block_reader_done(&c->block);
}

int chunk_begin(struct chunk_cursor *c, struct sqlite3 *db, const char *level, const char *group,
		int64_t lo_ns, int64_t hi_ns)
{
	const int64_t most = INT64_MAX / 4;
	int code;

	chunk_end(c);
	code =
	    sqlite3_prepare_v2(db,
			       level ? "SELECT data FROM rollup WHERE grp = ?1 AND level = ?4" RANGE
				     : "SELECT data FROM block WHERE grp = ?1" RANGE,
			       -1, &c->statement, NULL);
	if (code != SQLITE_OK)
		return code;
	sqlite3_bind_text(c->statement, 1, group, -1, SQLITE_TRANSIENT);
	sqlite3_bind_int64(c->statement, 2, lo_ns < -most ? -most : lo_ns > most ? most : lo_ns);
	sqlite3_bind_int64(c->statement, 3, hi_ns < -most ? -most : hi_ns > most ? most : hi_ns);
	if (level)
		sqlite3_bind_text(c->statement, 4, level, -1, SQLITE_TRANSIENT);
	return SQLITE_OK;
}

int chunk_next(struct chunk_cursor *c)
{
	note_damage(c);
	for (;;) {
		int code = sqlite3_step(c->statement), r;
		const void *blob;

		if (code != SQLITE_ROW)
			return code;
		blob = sqlite3_column_blob(c->statement, 0);
		r = block_open(&c->block, blob, (size_t)sqlite3_column_bytes(c->statement, 0));
		if (r == -ENOMEM)
			return SQLITE_NOMEM;
		c->open = r == 0;
		if (r == 0)
			return SQLITE_ROW;
		c->damaged++;
	}
}

void chunk_end(struct chunk_cursor *c)
{
	note_damage(c);
	sqlite3_finalize(c->statement);
	c->statement = NULL;
}

/* SPDX-License-Identifier: MIT
 *
 * SQLite as the rest of record/ wants it: errors as errno, statements in one call.
 */
#ifndef SPOTTER_RECORD_DB_H
#define SPOTTER_RECORD_DB_H

#include <stdbool.h>
#include <stdint.h>

struct buf;
struct sqlite3;
struct sqlite3_stmt;

/* The last error of this connection as -errno, never 0. */
int db_errno(struct sqlite3 *db);
/* All statements of sql: 0 or -errno. */
int db_exec(struct sqlite3 *db, const char *sql);
/* Prepares, or -errno and NULL. */
int db_prepare(struct sqlite3 *db, const char *sql, struct sqlite3_stmt **ret);
/* Runs a statement that gives no rows and makes it ready for the next use: 0 or -errno. */
int db_run(struct sqlite3_stmt *s);
/* The next row: 1, 0 at the end, -errno. */
int db_row(struct sqlite3_stmt *s);
/* The one number this query gives: 0, -ENODATA without a row, -errno. */
int db_number(struct sqlite3 *db, const char *sql, int64_t *ret);

void db_text(struct sqlite3_stmt *s, int at, const char *text); /* not copied; NULL: NULL */
void db_int(struct sqlite3_stmt *s, int at, int64_t v);
void db_int_or_null(struct sqlite3_stmt *s, int at, bool there, int64_t v);
/* Appends text as valid UTF-8 (anything else becomes U+FFFD): every reader of SQL expects that. */
void db_utf8(struct buf *out, const char *text);
/* A text column, "" for NULL. Borrowed until the next step. */
const char *db_column(struct sqlite3_stmt *s, int at);

/* For the cleanup attribute. */
void db_stmt_done(struct sqlite3_stmt **s);
#define auto_stmt __attribute__((cleanup(db_stmt_done))) struct sqlite3_stmt

/* How to open: reading never writes, makes no file and no checkpoint. */
enum db_mode {
	DB_READ,
	DB_READ_AS_IS, /* without its -wal and -shm (immutable), nothing but a plain file, and no link in its path (as_is.h) */
	DB_FINALISE,
};
/* Opens what may be anybody's file: whatever its schema holds, no trigger runs, no view or index
 * calls a function with side effects, no cell is trusted, no value is larger than 64 MB. */
int db_open_hostile(const char *path, enum db_mode mode, struct sqlite3 **ret);
/* The path as SQLite must be given it so that it is always a path ("file:x" would be a URI). */
char *db_path(const char *path);

#endif

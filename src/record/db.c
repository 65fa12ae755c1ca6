/* SPDX-License-Identifier: MIT */
#include "record/db.h"
#include "record/as_is.h"
#include "record/sqlite_api.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/text.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { BUSY_MS = 2000, MAX_VALUE = 64 << 20, MAX_SQL = 1 << 20 };

int db_errno(struct sqlite3 *db)
{
	int code = sqlite3_errcode(db) & 0xff, system_code = sqlite3_system_errno(db);

	switch (code) {
	case SQLITE_FULL:
		return -ENOSPC;
	case SQLITE_NOMEM:
		return -ENOMEM;
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return -EBUSY;
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
		return -EBADMSG;
	case SQLITE_READONLY:
		return -EROFS;
	case SQLITE_INTERRUPT:
		return -EINTR;
	case SQLITE_IOERR:
	case SQLITE_CANTOPEN:
	case SQLITE_PERM:
		return system_code > 0 ? -system_code : -EIO;
	default:
		return -EIO;
	}
}

int db_exec(struct sqlite3 *db, const char *sql)
{
	return sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : db_errno(db);
}

int db_prepare(struct sqlite3 *db, const char *sql, struct sqlite3_stmt **ret)
{
	*ret = NULL;
	return sqlite3_prepare_v2(db, sql, -1, ret, NULL) == SQLITE_OK ? 0 : db_errno(db);
}

int db_run(struct sqlite3_stmt *s)
{
	int r, code = sqlite3_step(s);

	r = code == SQLITE_DONE || code == SQLITE_ROW ? 0 : db_errno(sqlite3_db_handle(s));
	sqlite3_reset(s);
	return r;
}

int db_row(struct sqlite3_stmt *s)
{
	int code = sqlite3_step(s);

	if (code == SQLITE_ROW)
		return 1;
	return code == SQLITE_DONE ? 0 : db_errno(sqlite3_db_handle(s));
}

int db_number(struct sqlite3 *db, const char *sql, int64_t *ret)
{
	auto_stmt *s = NULL;
	int r = db_prepare(db, sql, &s);

	if (r < 0)
		return r;
	r = db_row(s);
	if (r > 0)
		*ret = sqlite3_column_int64(s, 0);
	return r < 0 ? r : r > 0 ? 0 : -ENODATA;
}

void db_text(struct sqlite3_stmt *s, int at, const char *text)
{
	sqlite3_bind_text(s, at, text, -1, SQLITE_STATIC);
}

void db_int(struct sqlite3_stmt *s, int at, int64_t v)
{
	sqlite3_bind_int64(s, at, v);
}

void db_int_or_null(struct sqlite3_stmt *s, int at, bool there, int64_t v)
{
	if (there)
		sqlite3_bind_int64(s, at, v);
	else
		sqlite3_bind_null(s, at);
}

void db_utf8(struct buf *out, const char *text)
{
	size_t n = strlen(text);

	for (size_t i = 0; i < n;) {
		size_t len = text_utf8(text + i, n - i);

		if (len)
			buf_put(out, text + i, len);
		else
			buf_str(out, "\xef\xbf\xbd");
		i += len ? len : 1;
	}
}

const char *db_column(struct sqlite3_stmt *s, int at)
{
	const char *text = (const char *)sqlite3_column_text(s, at);

	return text ? text : "";
}

void db_stmt_done(struct sqlite3_stmt **s)
{
	sqlite3_finalize(*s);
}

char *db_path(const char *path)
{
	struct buf b = { 0 };

	if (strncmp(path, "file:", 5) == 0)
		buf_str(&b, "./");
	buf_str(&b, path);
	if (buf_ok(&b) && b.data)
		return b.data;
	buf_done(&b);
	return strdup(path);
}

/* "file:/tmp/a%20b.spot?immutable=1" */
static char *as_is_uri(const char *path)
{
	struct buf b = { 0 };

	buf_str(&b, "file:");
	for (const char *p = path; *p; p++) {
		if (isalnum((unsigned char)*p) || strchr("/._-", *p))
			buf_char(&b, *p);
		else
			buf_printf(&b, "%%%02x", (unsigned)(unsigned char)*p);
	}
	buf_str(&b, "?immutable=1");
	if (buf_ok(&b))
		return b.data;
	buf_done(&b);
	return NULL;
}

static int harden(struct sqlite3 *db)
{
	sqlite3_busy_timeout(db, BUSY_MS);
	sqlite3_limit(db, SQLITE_LIMIT_LENGTH, MAX_VALUE);
	sqlite3_limit(db, SQLITE_LIMIT_SQL_LENGTH, MAX_SQL);
	sqlite3_limit(db, SQLITE_LIMIT_TRIGGER_DEPTH, 1);
	sqlite3_limit(db, SQLITE_LIMIT_WORKER_THREADS, 0);
	sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
	sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, NULL);
	return db_exec(db, "PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0;"
			   "PRAGMA secure_delete = OFF; PRAGMA temp_store = MEMORY;");
}

/* A file of some kilobytes whose tree leads to the same page again and again has as many rows as it likes, and sorting
 * them takes memory. A day of 8 GPUs and 40 processes needs less than a tenth of this. */
#define HEAP_MOST (INT64_C(256) << 20)

int db_open_hostile(const char *path, enum db_mode mode, struct sqlite3 **ret)
{
	int flags = SQLITE_OPEN_NOMUTEX |
		    (mode == DB_FINALISE ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY);
	bool as_is = mode == DB_READ_AS_IS;
	auto_free char *name = as_is ? as_is_uri(path) : db_path(path);
	const char *vfs = as_is ? as_is_vfs() : NULL;
	struct sqlite3 *db = NULL;
	int r;

	if (!name || (as_is && !vfs))
		return -ENOMEM;
	if (as_is)
		flags |= SQLITE_OPEN_URI | SQLITE_OPEN_NOFOLLOW;
	if (sqlite3_hard_heap_limit64(-1) == 0)
		(void)sqlite3_hard_heap_limit64(HEAP_MOST);
	if (sqlite3_open_v2(name, &db, flags, vfs) != SQLITE_OK) {
		r = db ? db_errno(db) : -ENOMEM;
		sqlite3_close(db);
		return r;
	}
	r = harden(db);
	if (r < 0) {
		sqlite3_close(db);
		return r;
	}
	*ret = db;
	return 0;
}

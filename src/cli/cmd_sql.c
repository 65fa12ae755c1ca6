/* SPDX-License-Identifier: MIT */
#include "cli/command.h"

#include "base/err.h"
#include "base/text.h"
#include "cli/judge.h"
#include "cli/sql_out.h"
#include "record/reader.h"
#include "record/store.h"

#include <errno.h>
#include <limits.h>
#include <sqlite3.h>
#include <string.h>

struct sql_options {
	struct common_options common;
	bool csv;
};

/* The file is opened read-only; this also keeps a query from reaching out to other files and from
 * changing the connection that `samples` reads through. */
static int authorize(void *arg, int action, const char *a, const char *b, const char *c,
		     const char *d)
{
	static const char *const harmless[] = {
		"table_info",   "table_xinfo",    "table_list",     "index_list",    "index_info",
		"user_version", "schema_version", "application_id", "function_list",
	};

	(void)arg;
	(void)c;
	(void)d;
	switch (action) {
	case SQLITE_SELECT:
	case SQLITE_READ:
	case SQLITE_RECURSIVE:
		return SQLITE_OK;
	case SQLITE_UPDATE:
		/* Asked on the way to a virtual table (samples, json_each); the file itself is open
		 * for reading only, and SQLite lets nobody write that table by name. */
		return a && strcmp(a, "sqlite_master") == 0 ? SQLITE_OK : SQLITE_DENY;
	case SQLITE_FUNCTION:
		return b && strcmp(b, "load_extension") == 0 ? SQLITE_DENY : SQLITE_OK;
	case SQLITE_PRAGMA:
		for (size_t i = 0; a && i < sizeof(harmless) / sizeof(harmless[0]); i++)
			if (strcmp(a, harmless[i]) == 0)
				return SQLITE_OK;
		return SQLITE_DENY;
	default:
		return SQLITE_DENY;
	}
}

/* The line of the query on which it went wrong, with a mark under the place. */
static void show_place(const struct cli *cli, const char *sql, int offset)
{
	int start = offset, column = 0;
	char line[160];
	size_t n;

	while (start > 0 && sql[start - 1] != '\n' && offset - start < 100)
		start--;
	n = strcspn(sql + start, "\n");
	n = n < sizeof(line) - 1 ? n : sizeof(line) - 1;
	memcpy(line, sql + start, n);
	line[n] = '\0';
	for (int i = start; i < offset; i++)
		column += ((unsigned char)sql[i] & 0xc0) != 0x80; /* characters, not bytes */
	cli_say(cli, "  %s", line);
	cli_say(cli, "  %*s^", column, "");
}

static int fail_sql(const struct cli *cli, sqlite3 *db, const char *sql, int code)
{
	struct err e = { 0 };
	int offset = -1, status;

#if SQLITE_VERSION_NUMBER >= 3038000
	offset = sqlite3_error_offset(db);
#endif
	if (code == SQLITE_AUTH || code == SQLITE_READONLY) {
		err_set(&e, -EACCES, "a record is only read: %s",
			code == SQLITE_AUTH ? "this statement is not allowed" : sqlite3_errmsg(db));
		err_hint(&e, "use SELECT; to change a copy: sqlite3 FILE.spot");
	} else {
		err_set(&e, -EINVAL, "SQL: %s", sqlite3_errmsg(db));
		if (strstr(e.text, "no such table"))
			err_hint(&e, "tables: spotter sql \"SELECT name FROM sqlite_schema WHERE "
				     "type = 'table'\"");
	}
	status = cli_fail(cli, &e);
	if (offset >= 0 && (size_t)offset <= strlen(sql))
		show_place(cli, sql, offset);
	return status;
}

static int step_rows(struct cli *cli, sqlite3 *db, sqlite3_stmt *stmt, const char *sql,
		     enum sql_format format)
{
	struct sql_out out;
	int code = SQLITE_DONE, status = EXIT_OK;

	if (sql_out_begin(&out, cli, format, stmt) < 0)
		return cli_fail(cli, &(struct err){ .code = -ENOMEM });
	while ((code = sqlite3_step(stmt)) == SQLITE_ROW)
		if (!sql_out_row(&out))
			break;
	if (code == SQLITE_DONE || code == SQLITE_ROW)
		sql_out_end(&out);
	else
		status = fail_sql(cli, db, sql, code);
	sql_out_done(&out);
	return status;
}

/* Blanks, semicolons and comments may follow a statement; a second statement may not. */
static bool is_empty(sqlite3 *db, const char *tail)
{
	sqlite3_stmt *more = NULL;
	bool empty = sqlite3_prepare_v2(db, tail, -1, &more, NULL) == SQLITE_OK && !more;

	sqlite3_finalize(more);
	return empty;
}

static int run_query(struct cli *cli, sqlite3 *db, const char *sql, enum sql_format format)
{
	sqlite3_stmt *stmt = NULL;
	const char *tail = "";
	int code, status;

	sqlite3_set_authorizer(db, authorize, NULL);
	code = sqlite3_prepare_v2(db, sql, -1, &stmt, &tail);
	if (code != SQLITE_OK)
		status = fail_sql(cli, db, sql, code);
	else if (!stmt)
		status = cli_usage(cli, "the query is empty");
	else if (!is_empty(db, tail))
		status = cli_usage(cli, "one statement at a time; a second one starts at '%.40s'",
				   tail + strspn(tail, " \t\n;"));
	else if (!sqlite3_stmt_readonly(stmt) || !sqlite3_column_count(stmt))
		status = fail_sql(cli, db, sql, SQLITE_AUTH);
	else
		status = step_rows(cli, db, stmt, sql, format);
	sqlite3_finalize(stmt);
	sqlite3_set_authorizer(db, NULL, NULL);
	return status;
}

static int run_sql(struct cli *cli, void *options, const struct opt_rest *rest)
{
	const struct sql_options *o = options;
	const char *run = rest->n > 1 ? rest->v[0] : NULL, *sql = rest->v[rest->n - 1];
	enum sql_format format = o->common.json ? SQL_JSON : o->csv ? SQL_CSV : SQL_TABLE;
	char path[PATH_MAX];
	struct record *record;
	struct err e = { 0 };
	bool mixed;
	int status;

	if (o->common.json && o->csv)
		return cli_usage(cli, "--json or --csv, not both");
	if (store_find(run, path, sizeof(path), &e) < 0 || judge_open(cli, path, &record, &e) < 0)
		return cli_fail(cli, &e);
	mixed = record_is_mixed(record); /* which was said */
	status = run_query(cli, record_db(record), sql, format);
	if (!mixed && record_is_mixed(record))
		judge_say_remark(cli, path, record);
	record_close(record);
	return status;
}

static const struct example examples[] = {
	{ "sql 'SELECT * FROM run'", "the last run: who, what, when" },
	{ "sql --csv \"SELECT t, value FROM samples WHERE metric = 'job.rss'\"",
	  "a series, for a plot" },
	{ "sql train.py \"SELECT name FROM sqlite_schema\"", "tables of a run" },
	{ NULL, NULL },
};

static const struct opt opts[] = {
	OPT("csv", 0, OPT_FLAG, NULL, struct sql_options, csv, "print CSV with a header"),
	JSON_OPT,
	COMMON_OPTS,
	OPT_END,
};

const struct command sql_command = {
	.name = "sql",
	.group = "data",
	.summary = "ask a record with SQL",
	.words = "[RUN] 'SELECT ...'",
	.description =
	    "Runs one query over a record (an SQLite file) and prints the rows as a table, as CSV "
	    "or as a JSON array of objects. 'samples' is a table over the compressed series; "
	    "'spotter "
	    "metrics' lists what it may hold. The record is never changed, and other files are not "
	    "reached.",
	.examples = examples,
	.opts = opts,
	.options_size = sizeof(struct sql_options),
	.min_words = 1,
	.max_words = 2,
	.run = run_sql,
};

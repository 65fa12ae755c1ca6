/* SPDX-License-Identifier: MIT
 *
 * Rows of a query as a table, CSV or JSON.
 */
#ifndef SPOTTER_CLI_SQL_OUT_H
#define SPOTTER_CLI_SQL_OUT_H

#include "base/json.h"
#include "cli/table.h"

struct cli;
struct sqlite3_stmt;

enum sql_format { SQL_TABLE, SQL_CSV, SQL_JSON };

struct sql_out {
	struct cli *cli;
	enum sql_format format;
	struct sqlite3_stmt *stmt;
	int columns;
	struct table table;
	struct json json;
	char (*keys)[96]; /* JSON: names of the columns, each once */
	bool begun;
};

/* stmt must have columns. 0 or -ENOMEM. */
int sql_out_begin(struct sql_out *o, struct cli *cli, enum sql_format format,
		  struct sqlite3_stmt *stmt);
/* The row the statement stands on. False when nobody reads any more. */
bool sql_out_row(struct sql_out *o);
void sql_out_end(struct sql_out *o);
void sql_out_done(struct sql_out *o);

#endif

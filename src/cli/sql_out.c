/* SPDX-License-Identifier: MIT */
#include "cli/sql_out.h"

#include "base/auto.h"
#include "base/text.h"
#include "cli/command.h"
#include "sink/sink.h"

#include <errno.h>
#include <math.h>
#include <sqlite3.h>
#include <string.h>
#include <unistd.h>

enum {
	PART = 1000,      /* rows that are measured and printed at once */
	CELL_ON_TTY = 60, /* columns; whole cells in a pipe */
};

static const char *column_name(const struct sql_out *o, int i)
{
	const char *name = sqlite3_column_name(o->stmt, i);

	return name ? name : "";
}

/* JSON objects need each key once: a second "a" becomes "a:2". */
static void name_keys(struct sql_out *o)
{
	for (int i = 0; i < o->columns; i++) {
		unsigned seen = 1;

		text_copy(o->keys[i], sizeof(o->keys[i]), column_name(o, i));
		for (int k = 0; k < i; k++)
			seen += strcmp(column_name(o, k), column_name(o, i)) == 0;
		if (seen > 1)
			snprintf(o->keys[i], sizeof(o->keys[i]), "%.80s:%u", column_name(o, i),
				 seen);
	}
}

int sql_out_begin(struct sql_out *o, struct cli *cli, enum sql_format format,
		  struct sqlite3_stmt *stmt)
{
	*o = (struct sql_out){ .cli = cli, .format = format, .stmt = stmt };
	o->columns = sqlite3_column_count(stmt);
	o->table.bold = cli->color_out;
	o->table.widest = isatty(STDOUT_FILENO) ? CELL_ON_TTY : 0;
	if (format == SQL_JSON) {
		o->keys = calloc((size_t)o->columns + 1, sizeof(*o->keys));
		if (!o->keys)
			return -ENOMEM;
		name_keys(o);
		json_init(&o->json, &cli->out, false);
		buf_char(&cli->out, '[');
	}
	for (int i = 0; format == SQL_CSV && i < o->columns; i++) {
		if (i)
			buf_char(&cli->out, ',');
		csv_field(&cli->out, column_name(o, i), strlen(column_name(o, i)));
	}
	if (format == SQL_CSV)
		buf_char(&cli->out, '\n');
	return 0;
}

/* Numbers are aligned right: known when the first row is there. */
static void begin_table(struct sql_out *o)
{
	for (int i = 0; i < o->columns; i++) {
		int type = sqlite3_column_type(o->stmt, i);

		table_column(&o->table, column_name(o, i),
			     type == SQLITE_INTEGER || type == SQLITE_FLOAT);
	}
	o->begun = true;
}

static void put_blob(struct buf *out, const unsigned char *p, int n)
{
	for (int i = 0; i < n; i++)
		buf_printf(out, "%02x", p[i]);
}

/* Every digit for a program, a readable number for a person. */
static void put_float(const struct sql_out *o, double v, struct buf *out)
{
	if (o->format != SQL_TABLE || (v == trunc(v) && fabs(v) < 1e15))
		csv_number(out, v);
	else
		buf_printf(out, "%.6g", v);
}

static void cell_text(const struct sql_out *o, int i, struct buf *out)
{
	int n = sqlite3_column_bytes(o->stmt, i);

	switch (sqlite3_column_type(o->stmt, i)) {
	case SQLITE_NULL:
		break;
	case SQLITE_FLOAT:
		put_float(o, sqlite3_column_double(o->stmt, i), out);
		break;
	case SQLITE_BLOB:
		if (o->format == SQL_TABLE)
			buf_printf(out, "(%d bytes)", n);
		else
			put_blob(out, sqlite3_column_blob(o->stmt, i), n);
		break;
	default:
		buf_put(out, sqlite3_column_text(o->stmt, i), (size_t)n);
	}
}

static void table_row(struct sql_out *o)
{
	auto_done(buf) struct buf text = { 0 };

	if (!o->begun)
		begin_table(o);
	for (int i = 0; i < o->columns && i < TABLE_COLUMNS; i++) {
		buf_reset(&text);
		cell_text(o, i, &text);
		table_cell(&o->table, buf_text(&text));
	}
	if (table_rows(&o->table) >= PART)
		table_print(&o->table, &o->cli->out);
}

static void csv_row(struct sql_out *o)
{
	auto_done(buf) struct buf text = { 0 };

	for (int i = 0; i < o->columns; i++) {
		if (i)
			buf_char(&o->cli->out, ',');
		buf_reset(&text);
		cell_text(o, i, &text);
		csv_field(&o->cli->out, buf_text(&text), text.len);
	}
	buf_char(&o->cli->out, '\n');
}

static void json_cell(struct sql_out *o, int i)
{
	auto_done(buf) struct buf text = { 0 };
	struct json *j = &o->json;

	switch (sqlite3_column_type(o->stmt, i)) {
	case SQLITE_NULL:
		json_num(j, NAN); /* written as null: the column is there, its value is not */
		break;
	case SQLITE_INTEGER:
		json_int(j, sqlite3_column_int64(o->stmt, i));
		break;
	case SQLITE_FLOAT:
		json_num(j, sqlite3_column_double(o->stmt, i));
		break;
	default:
		cell_text(o, i, &text);
		json_strn(j, buf_text(&text), text.len);
	}
}

static void json_row(struct sql_out *o)
{
	struct buf *out = &o->cli->out;

	buf_str(out, o->begun ? ",\n" : "\n");
	o->begun = true;
	json_init(&o->json, out, false);
	json_begin(&o->json, '{');
	for (int i = 0; i < o->columns; i++) {
		json_key(&o->json, o->keys[i]);
		json_cell(o, i);
	}
	json_end(&o->json, '}');
}

bool sql_out_row(struct sql_out *o)
{
	if (o->format == SQL_TABLE)
		table_row(o);
	else if (o->format == SQL_CSV)
		csv_row(o);
	else
		json_row(o);
	return cli_drain(o->cli);
}

void sql_out_end(struct sql_out *o)
{
	if (o->format == SQL_TABLE && !o->begun)
		begin_table(o);
	if (o->format == SQL_TABLE)
		table_print(&o->table, &o->cli->out);
	if (o->format == SQL_JSON)
		buf_str(&o->cli->out, o->begun ? "\n]\n" : "]\n");
}

void sql_out_done(struct sql_out *o)
{
	table_done(&o->table);
	free(o->keys);
}

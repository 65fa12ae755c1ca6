/* SPDX-License-Identifier: MIT */
#include "cli/table.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/text.h"
#include "cli/command.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* Before the text of a wide row: no text that was made safe begins so. */
#define WIDE '\x1f'

static void forget_rows(struct table *t)
{
	for (size_t i = 0; i < t->cells.n; i++)
		free(t->cells.v[i]);
	t->cells.n = 0;
}

void table_done(struct table *t)
{
	forget_rows(t);
	vec_done(&t->cells);
	for (size_t i = 0; i < t->n_columns; i++)
		free(t->columns[i].name);
	t->n_columns = 0;
}

/* Cuts to `widest` columns, with three dots. */
static void cut(char *s, size_t widest)
{
	size_t n = strlen(s), at = 0, columns = 0;

	if (!widest || widest < 4 || text_width(s) <= widest)
		return;
	while (at < n && columns < widest - 3) {
		size_t len = text_utf8(s + at, n - at);

		at += len ? len : 1;
		columns++;
	}
	if (at + 3 <= n)
		memcpy(s + at, "...", 4);
}

static char *safe_copy(const char *text, size_t widest)
{
	auto_done(buf) struct buf b = { 0 };
	char *s;

	text_safe(&b, text, strlen(text));
	s = strdup(buf_text(&b));
	if (s)
		cut(s, widest);
	return s;
}

void table_column(struct table *t, const char *name, bool right)
{
	if (t->n_columns >= TABLE_COLUMNS)
		return;
	t->columns[t->n_columns].name = safe_copy(name, 0);
	if (!t->columns[t->n_columns].name) {
		t->failed = true;
		return;
	}
	t->columns[t->n_columns++].right = right;
}

void table_cell(struct table *t, const char *text)
{
	char *s = safe_copy(text, t->widest);
	char **at = s ? vec_push(&t->cells) : NULL;

	if (at) {
		*at = s;
		return;
	}
	free(s);
	t->failed = true;
}

void table_cellf(struct table *t, const char *fmt, ...)
{
	auto_done(buf) struct buf b = { 0 };
	va_list ap;

	va_start(ap, fmt);
	buf_vprintf(&b, fmt, ap);
	va_end(ap);
	table_cell(t, buf_text(&b));
}

void table_wide(struct table *t, const char *text, size_t widest)
{
	char *s = safe_copy(text, widest), *wide = s ? malloc(strlen(s) + 2) : NULL;
	char **at = wide ? vec_push(&t->cells) : NULL;

	if (at) {
		wide[0] = WIDE;
		memcpy(wide + 1, s, strlen(s) + 1);
		*at = wide;
	} else {
		free(wide);
		t->failed = true;
	}
	free(s);
	for (size_t i = 1; i < t->n_columns; i++)
		table_cell(t, "");
}

size_t table_rows(const struct table *t)
{
	return t->n_columns ? t->cells.n / t->n_columns : 0;
}

static void measure(struct table *t)
{
	for (size_t c = 0; c < t->n_columns; c++)
		t->columns[c].width = text_width(t->columns[c].name);
	for (size_t i = 0; i < t->cells.n; i++) {
		struct table_column *c = &t->columns[i % t->n_columns];
		size_t w = t->cells.v[i][0] == WIDE ? 0 : text_width(t->cells.v[i]);

		c->width = w > c->width ? w : c->width;
	}
}

static void put_cell(const struct table *t, size_t column, const char *text, struct buf *out)
{
	const struct table_column *c = &t->columns[column];
	size_t w = text_width(text), pad = c->width > w ? c->width - w : 0;
	bool last = column + 1 == t->n_columns;

	if (text[0] == WIDE) {
		buf_str(out, text + 1);
		return;
	}
	if (column)
		buf_str(out, "  ");
	if (c->right)
		buf_printf(out, "%*s", (int)pad, "");
	buf_str(out, text);
	if (!c->right && !last)
		buf_printf(out, "%*s", (int)pad, "");
	if (last)
		buf_char(out, '\n');
}

void table_print(struct table *t, struct buf *out)
{
	if (t->failed)
		out->failed = true;
	if (!t->n_columns || t->failed)
		return;
	if (!t->begun) {
		measure(t);
		buf_str(out, cli_ink(t->bold, INK_BOLD));
		for (size_t c = 0; c < t->n_columns; c++)
			put_cell(t, c, t->columns[c].name, out);
		buf_str(out, cli_ink(t->bold, INK_PLAIN));
		t->begun = true;
	}
	for (size_t i = 0; i < table_rows(t) * t->n_columns; i++)
		put_cell(t, i % t->n_columns, t->cells.v[i], out);
	forget_rows(t);
}

/* SPDX-License-Identifier: MIT */
#include "base/json.h"

#include "base/buf.h"
#include "base/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void json_init(struct json *j, struct buf *out, bool pretty)
{
	*j = (struct json){ .out = out, .pretty = pretty };
}

static void new_line(struct json *j)
{
	if (!j->pretty)
		return;
	buf_char(j->out, '\n');
	for (unsigned i = 0; i < j->depth; i++)
		buf_str(j->out, "  ");
}

/* Before every value or key: the comma and the line it stands on. */
static void lead(struct json *j)
{
	if (j->after_key) {
		j->after_key = false;
		return;
	}
	if (j->comma)
		buf_char(j->out, ',');
	if (j->depth)
		new_line(j);
}

void json_begin(struct json *j, char bracket)
{
	lead(j);
	buf_char(j->out, bracket);
	j->depth++;
	j->comma = false;
}

void json_end(struct json *j, char bracket)
{
	bool empty = !j->comma;

	j->depth--;
	if (!empty)
		new_line(j);
	buf_char(j->out, bracket);
	j->comma = true;
}

static void escape(struct buf *out, const char *s, size_t n)
{
	buf_char(out, '"');
	for (size_t i = 0; i < n;) {
		size_t len = text_utf8(s + i, n - i);
		unsigned char c = (unsigned char)s[i];

		if (!len)
			buf_str(out, "\\ufffd");
		else if (c == '"' || c == '\\')
			buf_printf(out, "\\%c", c);
		else if (c == '\n')
			buf_str(out, "\\n");
		else if (c == '\t')
			buf_str(out, "\\t");
		else if (c < 0x20 || c == 0x7f)
			buf_printf(out, "\\u%04x", c);
		else if (c == 0xc2 &&
			 (unsigned char)s[i + 1] < 0xa0) /* C1: some terminals obey it */
			buf_printf(out, "\\u%04x", (unsigned char)s[i + 1]);
		else
			buf_put(out, s + i, len);
		i += len ? len : 1;
	}
	buf_char(out, '"');
}

void json_key(struct json *j, const char *key)
{
	lead(j);
	escape(j->out, key, strlen(key));
	buf_str(j->out, j->pretty ? ": " : ":");
	j->after_key = true;
}

void json_strn(struct json *j, const char *s, unsigned long n)
{
	lead(j);
	escape(j->out, s, n);
	j->comma = true;
}

void json_str(struct json *j, const char *s)
{
	json_strn(j, s, strlen(s));
}

void json_num(struct json *j, double v)
{
	char text[40];

	lead(j);
	/* Whole numbers as people write them, not 5.9e+08. */
	if (v == rint(v) && fabs(v) < 1e15) {
		buf_printf(j->out, "%.0f", v + 0.0);
		j->comma = true;
		return;
	}
	for (int digits = 6; digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, v);
		if (strtod(text, NULL) == v)
			break;
	}
	buf_str(j->out, isfinite(v) ? text : "null");
	j->comma = true;
}

void json_int(struct json *j, int64_t v)
{
	lead(j);
	buf_printf(j->out, "%lld", (long long)v);
	j->comma = true;
}

void json_bool(struct json *j, bool v)
{
	lead(j);
	buf_str(j->out, v ? "true" : "false");
	j->comma = true;
}

void json_raw(struct json *j, const char *text, unsigned long n)
{
	lead(j);
	buf_put(j->out, text, n);
	j->comma = true;
}

void json_key_str(struct json *j, const char *key, const char *s)
{
	if (!s)
		return;
	json_key(j, key);
	json_str(j, s);
}

void json_key_num(struct json *j, const char *key, double v)
{
	if (!isfinite(v))
		return;
	json_key(j, key);
	json_num(j, v);
}

void json_key_int(struct json *j, const char *key, int64_t v)
{
	json_key(j, key);
	json_int(j, v);
}

void json_key_bool(struct json *j, const char *key, bool v)
{
	json_key(j, key);
	json_bool(j, v);
}

void json_key_begin(struct json *j, const char *key, char bracket)
{
	json_key(j, key);
	json_begin(j, bracket);
}

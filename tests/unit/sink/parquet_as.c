/* SPDX-License-Identifier: MIT
 *
 * Writes tables of known rows as Parquet to standard output, for check_parquet.py to read.
 */
#include "base/buf.h"
#include "base/io.h"
#include "sink/parquet_file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void pour(struct buf *out)
{
	if (!buf_ok(out) || io_write_all(STDOUT_FILENO, buf_text(out), out->len) < 0)
		exit(1);
	buf_reset(out);
}

/* Row i: what check_parquet.py says, too. */
static int put_rows(struct parquet *p, unsigned n, struct buf *out)
{
	char text[64];
	int r = 0;

	for (unsigned i = 0; i < n && r == 0; i++) {
		parquet_int(p, 0, (int64_t)i * 1000 - 5);
		parquet_double(p, 1, i % 3 ? i / 8.0 : NAN);
		if (i % 7 == 0)
			parquet_int(p, 2, INT64_MIN + (int64_t)i);
		snprintf(text, sizeof(text), "w%u", i % 1000);
		parquet_text(p, 3, text);
		parquet_text(p, 4, i % 5 ? "same" : NULL);
		parquet_text(p, 5, "a\n\033[2J\xff\xc3\xa9");
		/* column 6 is never there, column 7 may not be without */
		r = parquet_row(p, out);
		pour(out);
	}
	return r;
}

int main(int argc, char **argv)
{
	static const struct parquet_word words[] = { { "key", "value\n" }, { NULL, NULL } };
	unsigned n = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 0;
	struct parquet p = { 0 };
	struct buf out = { 0 };
	int r;

	parquet_column(&p, "time", PARQUET_TIME, false);
	parquet_column(&p, "double", PARQUET_DOUBLE, true);
	parquet_column(&p, "int", PARQUET_INT, true);
	parquet_column(&p, "word", PARQUET_TEXT, false);
	parquet_column(&p, "same", PARQUET_TEXT, true);
	parquet_column(&p, "same", PARQUET_TEXT, true);
	parquet_column(&p, "", PARQUET_TEXT, true);
	parquet_column(&p, "must\x1b", PARQUET_DOUBLE, false);
	parquet_begin(&p, &out);
	r = put_rows(&p, n, &out);
	if (r == 0)
		r = parquet_end(&p, words, &out);
	pour(&out);
	parquet_done(&p);
	buf_done(&out);
	return r < 0;
}

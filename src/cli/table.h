/* SPDX-License-Identifier: MIT
 *
 * Text in columns for people. Cells come from anywhere and are made safe to show here. Widths are
 * those of the rows there are at the first print; a long result is printed in parts and goes on with
 * the same widths, so it needs no more memory than one part.
 */
#ifndef SPOTTER_CLI_TABLE_H
#define SPOTTER_CLI_TABLE_H

#include "base/vec.h"

#include <stdbool.h>
#include <stddef.h>

struct buf;

enum { TABLE_COLUMNS = 64 };

struct table {
	size_t n_columns;
	struct table_column {
		char *name;
		bool right;
		size_t width;
	} columns[TABLE_COLUMNS];
	VEC(char *) cells; /* row by row */
	bool begun, failed;
	size_t widest; /* cells are cut to this many columns; 0: never */
	bool bold;     /* header in bold */
};

void table_done(struct table *t);
/* All columns before the first cell; more than TABLE_COLUMNS are ignored. */
void table_column(struct table *t, const char *name, bool right);
void table_cell(struct table *t, const char *text);
void table_cellf(struct table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* A row of its own kind: one text across all columns, cut to this many. */
void table_wide(struct table *t, const char *text, size_t widest);
size_t table_rows(const struct table *t);
/* Prints the header, once, and the rows there are, and forgets the rows. */
void table_print(struct table *t, struct buf *out);

#endif

/* SPDX-License-Identifier: MIT
 *
 * Labelled paragraphs of text, wrapped to a width and, when there is only room for so many lines,
 * left out from the least important upwards.
 */
#ifndef SPOTTER_EXPLAIN_PAGE_H
#define SPOTTER_EXPLAIN_PAGE_H

#include "base/vec.h"

#include <stdbool.h>

struct buf;

enum page_ink { PAGE_PLAIN, PAGE_BOLD, PAGE_WARN, PAGE_GOOD, PAGE_DIM };

struct page_line {
	unsigned weight; /* the lightest go first */
	enum page_ink ink;
	char label[9];
	char *text; /* owned, safe to show */
	unsigned rows;
};

struct page {
	VEC(struct page_line) lines;
	unsigned width;
	bool failed; /* out of memory: something is missing */
};

void page_done(struct page *p);
/* A paragraph; its text is made safe to show. label at most 8 columns, "" continues the one above. */
void page_add(struct page *p, unsigned weight, enum page_ink ink, const char *label,
	      const char *fmt, ...) __attribute__((format(printf, 5, 6)));
/* Writes at most max_lines rows (0: all). */
void page_write(struct page *p, unsigned max_lines, bool color, struct buf *out);

#endif

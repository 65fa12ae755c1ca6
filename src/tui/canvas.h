/* SPDX-License-Identifier: MIT
 *
 * A screen as cells: views draw on it, a test reads it, paint.c turns two of them into bytes. It knows
 * no terminal. Text may come from anywhere: what a cell holds is always one character that is safe to
 * show, so nothing a process is called can reach a terminal as a command.
 */
#ifndef SPOTTER_TUI_CANVAS_H
#define SPOTTER_TUI_CANVAS_H

#include "tui/palette.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

/* Largest screen drawn on; of a larger one the left upper part is used. */
enum { CANVAS_ROWS_MAX = 500, CANVAS_COLS_MAX = 1000 };

struct cell {
	uint32_t cp;
	uint16_t look; /* enum tone and its flags */
	uint8_t width; /* columns: 1, 2; 0: the right half of the one before */
};

struct canvas {
	int rows, cols;
	bool ascii; /* glyphs of ours become ASCII, other characters '?' */
	bool mono;  /* there are no colours: parts must differ by their glyphs */
	struct cell *v;
};

/* A part of a canvas. Drawing never leaves the canvas, whatever its numbers. */
struct area {
	int row, col, rows, cols;
};

/* Resizes (clamped to 1..max) and clears: 0 or -ENOMEM, and then it is as it was. {0} is empty. */
int canvas_size(struct canvas *c, int rows, int cols);
void canvas_done(struct canvas *c);
void canvas_clear(struct canvas *c);
/* Makes `to` the same as `from`: 0 or -ENOMEM. */
int canvas_copy(struct canvas *to, const struct canvas *from);
const struct cell *canvas_at(const struct canvas *c, int row, int col); /* NULL: outside */

void canvas_glyph(struct canvas *c, int row, int col, unsigned look, uint32_t cp);
/* At most `room` columns; returns how many were used. What does not fit is cut. */
int canvas_text(struct canvas *c, int row, int col, int room, unsigned look, const char *text);
int canvas_printf(struct canvas *c, int row, int col, int room, unsigned look, const char *fmt, ...)
    __attribute__((format(printf, 6, 7)));
/* Ends at column `end` (exclusive); nothing when it does not fit into `room`. Returns the columns used. */
int canvas_right(struct canvas *c, int row, int end, int room, unsigned look, const char *text);
void canvas_fill(struct canvas *c, struct area a, unsigned look, uint32_t cp);
/* Words broken at blanks over the rows of an area; the last row ends in "..." when there is more.
 * Rows used. */
int canvas_wrap(struct canvas *c, struct area a, unsigned look, const char *text);
/* A frame with a title in its upper edge; returns the area inside. */
struct area canvas_box(struct canvas *c, struct area a, const char *title);

/* Columns a code point takes: 0 (marks on top of another), 1 or 2. */
int glyph_width(uint32_t cp);
/* Bytes of UTF-8 written to buf[4]. */
size_t glyph_utf8(uint32_t cp, char *buf);
/* The code point at the head of text and how many bytes it has; '?' for what must not be shown. */
uint32_t glyph_take(const char *text, size_t n, size_t *ret_len);

/* For tests and for people: rows of text without blanks at their ends. In a colour mode each change of
 * look stands as {SGR numbers} before its text. */
void canvas_dump(const struct canvas *c, enum color_mode mode, struct buf *out);

#endif

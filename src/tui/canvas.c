/* SPDX-License-Identifier: MIT */
#include "tui/canvas.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct cell blank = { .cp = ' ', .width = 1 };

int canvas_size(struct canvas *c, int rows, int cols)
{
	struct cell *v;

	rows = rows < 1 ? 1 : rows > CANVAS_ROWS_MAX ? CANVAS_ROWS_MAX : rows;
	cols = cols < 1 ? 1 : cols > CANVAS_COLS_MAX ? CANVAS_COLS_MAX : cols;
	v = realloc(c->v, (size_t)rows * (size_t)cols * sizeof(*v));
	if (!v)
		return -ENOMEM;
	c->v = v;
	c->rows = rows;
	c->cols = cols;
	canvas_clear(c);
	return 0;
}

void canvas_done(struct canvas *c)
{
	free(c->v);
	*c = (struct canvas){ 0 };
}

void canvas_clear(struct canvas *c)
{
	for (int i = 0; i < c->rows * c->cols; i++)
		c->v[i] = blank;
}

int canvas_copy(struct canvas *to, const struct canvas *from)
{
	if (to->rows != from->rows || to->cols != from->cols) {
		int r = canvas_size(to, from->rows, from->cols);

		if (r < 0)
			return r;
	}
	memcpy(to->v, from->v, (size_t)from->rows * (size_t)from->cols * sizeof(*to->v));
	return 0;
}

const struct cell *canvas_at(const struct canvas *c, int row, int col)
{
	if (row < 0 || col < 0 || row >= c->rows || col >= c->cols)
		return NULL;
	return &c->v[row * c->cols + col];
}

int glyph_width(uint32_t cp)
{
	/* Marks that stand on the character before, joiners, variation selectors; Arabic, Hebrew and
	 * Indic marks only coarsely: the painter says again where it is behind any of them. */
	static const struct {
		uint32_t from, to;
	} none[] = {
		{ 0x0300, 0x036f }, { 0x0483, 0x0489 }, { 0x0591, 0x05bd }, { 0x0610, 0x061a },
		{ 0x064b, 0x065f }, { 0x0900, 0x0902 }, { 0x093c, 0x093c }, { 0x0941, 0x0948 },
		{ 0x094d, 0x094d }, { 0x0e34, 0x0e3a }, { 0x0e47, 0x0e4e }, { 0x1ab0, 0x1aff },
		{ 0x1dc0, 0x1dff }, { 0x200b, 0x200f }, { 0x2060, 0x2064 }, { 0x20d0, 0x20ff },
		{ 0xfe00, 0xfe0f }, { 0xfe20, 0xfe2f }, { 0xfeff, 0xfeff }, { 0xe0000, 0xe01ef },
	};
	char text[5] = { 0 };

	if (cp < 0x300)
		return 1;
	for (size_t i = 0; i < ARRAY_LEN(none); i++)
		if (cp >= none[i].from && cp <= none[i].to)
			return 0;
	glyph_utf8(cp, text);
	return text_width(text) > 1 ? 2 : 1;
}

size_t glyph_utf8(uint32_t cp, char *buf)
{
	if (cp < 0x80) {
		buf[0] = (char)cp;
		return 1;
	}
	if (cp < 0x800) {
		buf[0] = (char)(0xc0 | cp >> 6);
		buf[1] = (char)(0x80 | (cp & 0x3f));
		return 2;
	}
	if (cp < 0x10000) {
		buf[0] = (char)(0xe0 | cp >> 12);
		buf[1] = (char)(0x80 | (cp >> 6 & 0x3f));
		buf[2] = (char)(0x80 | (cp & 0x3f));
		return 3;
	}
	buf[0] = (char)(0xf0 | cp >> 18);
	buf[1] = (char)(0x80 | (cp >> 12 & 0x3f));
	buf[2] = (char)(0x80 | (cp >> 6 & 0x3f));
	buf[3] = (char)(0x80 | (cp & 0x3f));
	return 4;
}

/* What base/text leaves as it is is safe; the code point is read from its answer. */
uint32_t glyph_take(const char *text, size_t n, size_t *ret_len)
{
	static const unsigned char lead[] = { 0, 0x7f, 0x1f, 0x0f, 0x07 };
	size_t len = text_utf8(text, n);
	char one[5] = { 0 }, safe[5];
	uint32_t cp;

	*ret_len = len ? len : 1;
	if (!len)
		return '?';
	memcpy(one, text, len);
	text_safe_copy(safe, sizeof(safe), one);
	if (strcmp(one, safe) != 0)
		return '?';
	cp = (unsigned char)one[0] & lead[len];
	for (size_t i = 1; i < len; i++)
		cp = cp << 6 | ((unsigned char)one[i] & 0x3f);
	return cp;
}

/* Glyphs of ours where only ASCII can be shown. */
static uint32_t ascii_of(uint32_t cp)
{
	static const struct {
		uint32_t cp;
		char ascii;
	} table[] = {
		{ 0x2500, '-' }, { 0x2502, '|' }, { 0x2501, '=' }, { 0x2578, '-' }, { 0x250c, '+' },
		{ 0x2510, '+' }, { 0x2514, '+' }, { 0x2518, '+' }, { 0x251c, '|' }, { 0x2524, '|' },
		{ 0x256d, '+' }, { 0x256e, '+' }, { 0x256f, '+' }, { 0x2570, '+' }, { 0x2581, '.' },
		{ 0x2582, ':' }, { 0x2583, '-' }, { 0x2584, '=' }, { 0x2585, '+' }, { 0x2586, '*' },
		{ 0x2587, '#' }, { 0x2588, '#' }, { 0x2589, '#' }, { 0x258a, '#' }, { 0x258b, '#' },
		{ 0x258c, '=' }, { 0x258d, '-' }, { 0x258e, '-' }, { 0x258f, '-' }, { 0x2591, '.' },
		{ 0x2592, '+' }, { 0x2593, '%' }, { 0x25b2, '^' }, { 0x25bc, 'v' }, { 0x25cf, '*' },
		{ 0x25b6, '>' }, { 0x2713, '*' }, { 0x2026, '~' }, { 0x00b7, '.' }, { 0x25a0, '#' },
		{ 0x23f8, '=' }, { 0x2191, '^' }, { 0x2193, 'v' }, { 0x2190, '<' }, { 0x2192, '>' },
		{ 0x2594, '-' },
	};

	if (cp < 0x80)
		return cp;
	if (cp >= 0x2800 && cp <= 0x28ff) /* braille: by how many of its eight dots are set */
		return (unsigned char)" ...::||#"[__builtin_popcount(cp & 0xff)];
	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		if (table[i].cp == cp)
			return (unsigned char)table[i].ascii;
	return '?';
}

/* A wide character that loses a half to another is no longer there. */
static void unpair(struct canvas *c, int row, int col)
{
	struct cell *at = &c->v[row * c->cols + col];

	if (at->width == 0 && col > 0)
		at[-1] = (struct cell){ .cp = ' ', .look = at[-1].look, .width = 1 };
	if (at->width == 2 && col + 1 < c->cols)
		at[1] = (struct cell){ .cp = ' ', .look = at[1].look, .width = 1 };
}

void canvas_glyph(struct canvas *c, int row, int col, unsigned look, uint32_t cp)
{
	struct cell *at = (struct cell *)canvas_at(c, row, col);
	int width;

	if (!at)
		return;
	if (c->ascii)
		cp = ascii_of(cp);
	width = glyph_width(cp);
	if (!width || (width == 2 && col + 1 >= c->cols)) {
		cp = '?';
		width = 1;
	}
	unpair(c, row, col);
	*at = (struct cell){ .cp = cp, .look = (uint16_t)look, .width = (uint8_t)width };
	if (width == 2) {
		unpair(c, row, col + 1);
		at[1] = (struct cell){ .cp = ' ', .look = (uint16_t)look, .width = 0 };
	}
}

int canvas_text(struct canvas *c, int row, int col, int room, unsigned look, const char *text)
{
	size_t n = strlen(text), len;
	int used = 0;

	for (size_t i = 0; i < n; i += len) {
		uint32_t cp = glyph_take(text + i, n - i, &len);
		int width = c->ascii && cp >= 0x80 ? 1 : glyph_width(cp);

		if (!width)
			continue;
		if (used + width > room)
			break;
		canvas_glyph(c, row, col + used, look, cp);
		used += width;
	}
	return used;
}

int canvas_printf(struct canvas *c, int row, int col, int room, unsigned look, const char *fmt, ...)
{
	char text[1200];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return canvas_text(c, row, col, room, look, text);
}

int canvas_right(struct canvas *c, int row, int end, int room, unsigned look, const char *text)
{
	int width = (int)text_width(text);

	return width <= room ? canvas_text(c, row, end - width, width, look, text) : 0;
}

void canvas_fill(struct canvas *c, struct area a, unsigned look, uint32_t cp)
{
	for (int r = a.row; r < a.row + a.rows && r < c->rows; r++)
		for (int k = a.col; k < a.col + a.cols && k < c->cols; k++)
			canvas_glyph(c, r, k, look, cp);
}

int canvas_wrap(struct canvas *c, struct area a, unsigned look, const char *text)
{
	int row = 0, col = 0;

	while (*text && row < a.rows) {
		size_t n = strcspn(text, " \n");
		char word[256];
		int width;

		text_copy(word, n + 1 < sizeof(word) ? n + 1 : sizeof(word), text);
		width = (int)text_width(word);
		if (col && col + 1 + width > a.cols) {
			if (row + 1 == a.rows) {
				canvas_text(c, a.row + row,
					    a.col + (col > a.cols - 3 ? a.cols - 3 : col), 3, look,
					    "...");
				return a.rows;
			}
			row++;
			col = 0;
		}
		if (col)
			canvas_glyph(c, a.row + row, a.col + col++, look, ' ');
		col += canvas_text(c, a.row + row, a.col + col, a.cols - col, look, word);
		text += n;
		if (*text == '\n') {
			row++;
			col = 0;
		}
		text += *text != '\0';
	}
	return row + (col > 0) < a.rows ? row + (col > 0) : a.rows;
}

struct area canvas_box(struct canvas *c, struct area a, const char *title)
{
	int right = a.col + a.cols - 1, low = a.row + a.rows - 1;

	for (int k = a.col + 1; k < right; k++) {
		canvas_glyph(c, a.row, k, TONE_FRAME, 0x2500);
		canvas_glyph(c, low, k, TONE_FRAME, 0x2500);
	}
	for (int r = a.row + 1; r < low; r++) {
		canvas_glyph(c, r, a.col, TONE_FRAME, 0x2502);
		canvas_glyph(c, r, right, TONE_FRAME, 0x2502);
	}
	canvas_glyph(c, a.row, a.col, TONE_FRAME, 0x256d);
	canvas_glyph(c, a.row, right, TONE_FRAME, 0x256e);
	canvas_glyph(c, low, a.col, TONE_FRAME, 0x2570);
	canvas_glyph(c, low, right, TONE_FRAME, 0x256f);
	if (title && *title && a.cols > 6) {
		int used =
		    canvas_text(c, a.row, a.col + 3, a.cols - 6, TONE_TITLE | LOOK_BOLD, title);

		canvas_glyph(c, a.row, a.col + 2, TONE_FRAME, ' ');
		canvas_glyph(c, a.row, a.col + 3 + used, TONE_FRAME, ' ');
	}
	return (struct area){ a.row + 1, a.col + 1, a.rows - 2, a.cols - 2 };
}

void canvas_dump(const struct canvas *c, enum color_mode mode, struct buf *out)
{
	for (int r = 0; r < c->rows; r++) {
		const struct cell *row = &c->v[r * c->cols];
		char was[64] = "0", sgr[64], utf8[4];
		bool reverse, was_reverse = false;
		int end = c->cols;

		while (end > 0 && row[end - 1].cp == ' ' && !(row[end - 1].look & LOOK_REVERSE))
			end--;
		for (int k = 0; k < end; k++) {
			if (!row[k].width)
				continue;
			palette_sgr(row[k].look, mode, sgr, sizeof(sgr));
			reverse = row[k].look & LOOK_REVERSE;
			/* A blank looks the same in every tone. */
			if (row[k].cp == ' ' && !reverse && !was_reverse)
				memcpy(sgr, was, sizeof(sgr));
			was_reverse = reverse;
			if (strcmp(sgr, was) != 0)
				buf_printf(out, "{%s}", sgr);
			memcpy(was, sgr, sizeof(was));
			buf_put(out, utf8, glyph_utf8(row[k].cp, utf8));
		}
		buf_char(out, '\n');
	}
}

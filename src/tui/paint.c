/* SPDX-License-Identifier: MIT */
#include "tui/paint.h"

#include "base/buf.h"

/* Where the terminal's cursor stands and how it writes; -1: not known. */
struct pen {
	int row, col;
	int look;
};

static bool is_blank(const struct cell *c)
{
	return c->cp == ' ' && c->width == 1 && !(c->look & LOOK_REVERSE);
}

static bool same(const struct cell *a, const struct cell *b)
{
	/* A blank looks the same in every tone. */
	if (is_blank(a) && is_blank(b))
		return true;
	return a->cp == b->cp && a->look == b->look && a->width == b->width;
}

/* Widths of these are the same for every terminal: ASCII, and the lines, blocks and dots of ours. */
static bool is_sure(uint32_t cp)
{
	return cp < 0x80 || (cp >= 0x2500 && cp <= 0x259f) || (cp >= 0x2800 && cp <= 0x28ff);
}

static void put_cell(struct pen *p, int row, int col, const struct cell *c, enum color_mode mode,
		     struct buf *out)
{
	char text[64];
	int look = c->look;

	if (is_blank(c) && p->look >= 0 && !(p->look & LOOK_REVERSE))
		look = p->look;
	if (p->row != row || p->col != col)
		buf_printf(out, "\033[%d;%dH", row + 1, col + 1);
	if (p->look != look)
		buf_printf(out, "\033[%sm", palette_sgr((unsigned)look, mode, text, sizeof(text)));
	buf_put(out, text, glyph_utf8(c->cp, text));
	p->row = row;
	/* The terminal's idea of a width may be another than ours: say again where we are. */
	p->col = is_sure(c->cp) ? col + c->width : -1;
	p->look = look;
}

void paint(const struct canvas *was, const struct canvas *is, enum color_mode mode, struct buf *out)
{
	struct pen p = { -1, -1, -1 };
	bool all = !was || !was->v || was->rows != is->rows || was->cols != is->cols;

	if (all)
		buf_str(out, "\033[0m\033[2J");
	for (int r = 0; r < is->rows; r++) {
		for (int k = 0; k < is->cols; k++) {
			const struct cell *c = &is->v[r * is->cols + k];
			static const struct cell blank = { .cp = ' ', .width = 1 };

			/* The right half of a wide one comes with its left. */
			if (!c->width || same(c, all ? &blank : &was->v[r * is->cols + k]))
				continue;
			put_cell(&p, r, k, c, mode, out);
		}
	}
	if (out->len && p.look > 0)
		buf_str(out, "\033[0m");
}

/* SPDX-License-Identifier: MIT */
#include "tui/graph.h"

#include <math.h>

/* A braille cell is 2 x 4 dots; bit of the dot in each column, from below. */
static const uint8_t dots[2][4] = { { 0x40, 0x04, 0x02, 0x01 }, { 0x80, 0x20, 0x10, 0x08 } };

/* How many of `most` dots; something above nothing shows as one. NAN: -1. */
static int dots_of(double v, double full, int most)
{
	int n;

	if (!(v == v))
		return -1;
	if (!(full > 0) || !(v > 0))
		return 0;
	n = (int)lround(fmin(v / full, 1) * most);
	return n ? n : 1;
}

static uint8_t column_bits(int high, int below, int side)
{
	uint8_t bits = 0;

	for (int d = 0; d < 4; d++)
		if (high > below + d)
			bits |= dots[side][d];
	return bits;
}

void graph_area(struct canvas *c, struct area a, unsigned look, const float *v, size_t n,
		double full, int cursor)
{
	long first = (long)n - 2L * a.cols;

	for (int k = 0; k < a.cols; k++) {
		long at = first + 2L * k;
		int high[2] = { -1, -1 };
		bool here = cursor >= 0 && (cursor == at || cursor == at + 1);

		for (int s = 0; s < 2; s++)
			if (at + s >= 0)
				high[s] = dots_of(v[at + s], full, a.rows * 4);
		for (int r = 0; r < a.rows; r++) {
			int below = (a.rows - 1 - r) * 4;
			uint8_t bits =
			    column_bits(high[0], below, 0) | column_bits(high[1], below, 1);
			unsigned tone = look == TONE_LOAD0
					    ? palette_load((below + 2.0) / (a.rows * 4.0))
					    : look;

			/* Known to be nothing is a line, not known is none. */
			if (!bits && r == a.rows - 1 && (high[0] == 0 || high[1] == 0)) {
				bits = (high[0] == 0 ? dots[0][0] : 0) |
				       (high[1] == 0 ? dots[1][0] : 0);
				tone = TONE_FRAME;
			}
			if (here)
				canvas_glyph(c, a.row + r, a.col + k, tone | LOOK_REVERSE,
					     bits ? 0x2800 + bits : ' ');
			else if (bits)
				canvas_glyph(c, a.row + r, a.col + k, tone, 0x2800u + bits);
		}
	}
}

void graph_meter(struct canvas *c, int row, int col, int cols, unsigned look, double share)
{
	int halves;

	if (!(share == share))
		halves = 0;
	else
		halves = (int)lround(fmax(0, fmin(share, 1)) * cols * 2);
	/* Something above nothing shows. */
	if (!halves && share > 0)
		halves = 1;
	for (int k = 0; k < cols; k++, halves -= 2) {
		if (halves >= 2)
			canvas_glyph(c, row, col + k, look, 0x2501);
		else if (halves == 1)
			canvas_glyph(c, row, col + k, look, 0x2578);
		else
			canvas_glyph(c, row, col + k, TONE_FRAME, 0x00b7);
	}
}

void graph_level(struct canvas *c, int row, int col, double share)
{
	int step;

	if (!(share == share)) {
		canvas_glyph(c, row, col, TONE_DIM, '?');
		return;
	}
	step = (int)lround(fmax(0, fmin(share, 1)) * 8);
	if (step)
		canvas_glyph(c, row, col, palette_load(share), 0x2580u + (unsigned)step);
	else
		canvas_glyph(c, row, col, TONE_FRAME, c->ascii ? '_' : 0x2581);
}

uint32_t graph_part_mark(const struct canvas *c, size_t i)
{
	return c->mono ? graph_part_glyph(c, i) : c->ascii ? '#' : 0x25a0;
}

uint32_t graph_part_glyph(const struct canvas *c, size_t i)
{
	static const uint32_t shades[] = { 0x2588, 0x2592, 0x2593, 0x2591 };

	if (!c->mono)
		return c->ascii ? '#' : 0x2588;
	/* Without colours letters tell the parts apart, with the same letter in the words beside. */
	if (c->ascii)
		return 'a' + (uint32_t)(i % 26);
	return i < 4 ? shades[i] : 'a' + (uint32_t)((i - 4) % 26);
}

void graph_parts(struct canvas *c, int row, int col, int cols, const struct part *v, size_t n)
{
	double sum = 0;
	int at = 0;

	for (size_t i = 0; i < n && at < cols; i++) {
		int to;

		sum += v[i].share > 0 ? v[i].share : 0;
		to = (int)lround(fmin(sum, 1) * cols);
		for (; at < to; at++)
			canvas_glyph(c, row, col + at, v[i].tone, graph_part_glyph(c, i));
	}
	for (; at < cols; at++)
		canvas_glyph(c, row, col + at, TONE_FRAME, 0x00b7);
}

double graph_max(const float *v, size_t n, size_t last)
{
	double most = 0;

	for (size_t i = n > last ? n - last : 0; i < n; i++)
		if (v[i] > most)
			most = v[i];
	return most;
}

/* 1, 2 or 5 times a power of ten: the scale does not jump at every point. */
double graph_round_up(double v)
{
	double ten;

	if (!(v > 0))
		return 1;
	ten = pow(10, floor(log10(v)));
	return v <= ten ? ten : v <= 2 * ten ? 2 * ten : v <= 5 * ten ? 5 * ten : 10 * ten;
}

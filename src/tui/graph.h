/* SPDX-License-Identifier: MIT
 *
 * Pictures made of characters: graphs of braille dots, meters, bars of parts.
 */
#ifndef SPOTTER_TUI_GRAPH_H
#define SPOTTER_TUI_GRAPH_H

#include "tui/canvas.h"

/* The last 2 x a.cols of n values, newest at the right, filled from below; NAN: nothing known there.
 * `full` is the value at the upper edge. look TONE_LOAD0: coloured by height. cursor: place in v to
 * mark, -1 none. */
void graph_area(struct canvas *c, struct area a, unsigned look, const float *v, size_t n,
		double full, int cursor);
/* "#####....": a share of `cols` columns. */
void graph_meter(struct canvas *c, int row, int col, int cols, unsigned look, double share);
/* One column: how much of it is used, as a bar that stands. NAN: a dot. */
void graph_level(struct canvas *c, int row, int col, double share);

struct part {
	double share; /* of the whole bar */
	unsigned tone;
};
/* Parts side by side; every part with a share of half a column has one. */
void graph_parts(struct canvas *c, int row, int col, int cols, const struct part *v, size_t n);
/* The glyph a part is drawn with, and what stands for it before its words. i: its place in the bar. */
uint32_t graph_part_glyph(const struct canvas *c, size_t i);
uint32_t graph_part_mark(const struct canvas *c, size_t i);

/* The largest of the last n values, 0 when none is known; a round number at or above it. */
double graph_max(const float *v, size_t n, size_t last);
double graph_round_up(double v);

#endif

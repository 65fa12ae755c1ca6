/* SPDX-License-Identifier: MIT
 *
 * What led up to now, side by side.
 */
#include "tui/section.h"

#include "base/num.h"
#include "tui/graph.h"
#include "tui/words.h"

#include <math.h>
#include <stdio.h>

enum { GRAPH_COLS_LEAST = 36, GRAPHS_MAX = 6 };

void section_head(struct canvas *c, struct area a, const char *title, const char *right)
{
	int used;

	for (int k = 0; k < a.cols; k++)
		canvas_glyph(c, a.row, a.col + k, TONE_FRAME, 0x2500);
	canvas_glyph(c, a.row, a.col + 1, TONE_FRAME, ' ');
	used = canvas_text(c, a.row, a.col + 2, a.cols - 4, TONE_TITLE | LOOK_BOLD, title);
	canvas_glyph(c, a.row, a.col + 2 + used, TONE_FRAME, ' ');
	if (right && *right) {
		used =
		    canvas_right(c, a.row, a.col + a.cols - 2, a.cols - used - 7, TONE_DIM, right);
		if (used) {
			canvas_glyph(c, a.row, a.col + a.cols - 2, TONE_FRAME, ' ');
			canvas_glyph(c, a.row, a.col + a.cols - 3 - used, TONE_FRAME, ' ');
		}
	}
}

struct graph {
	enum line_id line;
	const char *title;
	unsigned look;
	double full;  /* NAN: the largest there is */
	char top[32]; /* what the upper edge means */
};

/* The scale is what may be used, where anything says so. */
static void set_scale(const struct board *b, struct graph *g, size_t points)
{
	const struct snap_job *j = &b->snap.job;
	bool at_most = b->lines[g->line].at_most;
	double most = graph_max(b->lines[g->line].v, LINE_POINTS, points);
	double limit = NAN;

	if (g->line == LINE_CPU)
		limit = b->job ? j->cores_allowed : b->snap.machine.cpus;
	else if (g->line == LINE_ALL_GPUS)
		limit = 1;
	else if (g->line == LINE_MEMORY)
		limit = !b->job   ? b->snap.machine.memory_total
			: at_most ? NAN /* it may stand above the limit, which is of another sum */
				  : j->memory_allowed;
	/* A small part of what is allowed would be a flat line: then the graph is about itself. */
	if (g->line == LINE_MEMORY && most < limit / 4)
		limit = NAN;
	/* Ticks are not exact: a little more than all is all. */
	g->full = !(limit > 0) ? graph_round_up(most) : most > 1.1 * limit ? most : limit;
	if (g->line == LINE_CPU)
		snprintf(g->top, sizeof(g->top), "%.4g cores", g->full);
	else if (g->line == LINE_ALL_GPUS)
		snprintf(g->top, sizeof(g->top), "100 %%");
	else if (g->line == LINE_LOSS)
		snprintf(g->top, sizeof(g->top), "%.4g", g->full);
	else if (g->line == LINE_STEPS)
		snprintf(g->top, sizeof(g->top), "%.4g/s", g->full);
	else
		num_bytes(g->full, g->top, sizeof(g->top));
}

static size_t choose(const struct board *b, struct graph *v)
{
	const struct graph all[GRAPHS_MAX] = {
		{ LINE_CPU, "CPU", TONE_LOAD0, NAN, "" },
		{ LINE_ALL_GPUS, "GPU busy", TONE_GPU, NAN, "" },
		{ LINE_STEPS, "steps/s", TONE_STEP, NAN, "" },
		{ LINE_LOSS, "loss", TONE_KEY, NAN, "" },
		{ LINE_MEMORY, "memory", TONE_MEMORY, NAN, "" },
		{ LINE_READ, "disks read/s", TONE_DISK, NAN, "" },
	};
	size_t n = 0;

	for (size_t i = 0; i < GRAPHS_MAX; i++)
		if (b->lines[all[i].line].any || all[i].line == LINE_CPU ||
		    all[i].line == LINE_MEMORY)
			v[n++] = all[i];
	/* Shared pages are counted for each process. */
	for (size_t i = 0; i < n; i++)
		if (b->lines[v[i].line].at_most)
			v[i].title = "memory at most";
	return n;
}

static int cursor_of(const struct board *b, const struct ui *u)
{
	int64_t back = (b->right_ns - b->at_ns) / b->step_ns;

	/* At the right edge there is nothing to mark. */
	if (!u->at_ns || back < 0 || back >= LINE_POINTS)
		return -1;
	return LINE_POINTS - 1 - (int)back;
}

void section_graphs(const struct board *b, struct ui *u, struct canvas *c, struct area a)
{
	struct graph v[GRAPHS_MAX];
	size_t n = choose(b, v), fit = (size_t)(a.cols / GRAPH_COLS_LEAST);
	int wide;

	n = n > fit ? fit : n;
	if (!n || a.rows < 2)
		return;
	wide = (a.cols - ((int)n - 1)) / (int)n;
	u->graph_cols = wide;
	for (size_t i = 0; i < n; i++) {
		struct area one = { a.row, a.col + (int)i * (wide + 1), a.rows, wide };
		char span[32], right[80];

		if (i + 1 == n) /* what is left over is the last one's */
			one.cols = a.col + a.cols - one.col;
		set_scale(b, &v[i], 2 * (size_t)one.cols);
		words_span(2 * one.cols * (double)b->step_ns / 1e9, span, sizeof(span));
		snprintf(right, sizeof(right), "%s, %s", v[i].top, span);
		section_head(c, (struct area){ one.row, one.col, 1, one.cols }, v[i].title, right);
		graph_area(c, (struct area){ one.row + 1, one.col, one.rows - 1, one.cols },
			   v[i].look, b->lines[v[i].line].v, LINE_POINTS, v[i].full,
			   cursor_of(b, u));
	}
}

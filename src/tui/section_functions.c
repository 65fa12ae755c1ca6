/* SPDX-License-Identifier: MIT
 *
 * The hottest functions, from the ledgers.
 */
#include "tui/section.h"

#include "base/num.h"
#include "base/text.h"
#include "explain/render.h"
#include "tui/graph.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HOT_MAX = 64, FUNCTION_LEAST = 16 };

struct hot {
	double cores;
	const struct ledger_top *top;
	const char *role;
};

static int hotter(const void *a, const void *b)
{
	const struct hot *x = a, *y = b;

	return x->cores < y->cores   ? 1
	       : x->cores > y->cores ? -1
				     : strcmp(x->top->function, y->top->function);
}

static size_t find_hot(const struct verdict *v, struct hot *ret)
{
	size_t n = 0;

	for (size_t i = 0; i < v->cpu.n; i++) {
		const struct ledger_line *l = &v->cpu.v[i];

		for (size_t k = 0; k < l->n_top && n < HOT_MAX; k++)
			ret[n++] = (struct hot){ l->cores * l->top[k].share, &l->top[k], l->role };
	}
	if (n)
		qsort(ret, n, sizeof(*ret), hotter);
	return n;
}

/* "decode  loader.py:41": the end of a path tells more than its beginning, and where it is more than what
 * it is called in full. */
static void put_place(struct canvas *c, int row, int at, int end, const struct ledger_top *t)
{
	const char *base = strrchr(t->file, '/'), *name = t->function[0] ? t->function : "?";
	char where[sizeof(t->file) + 24];
	int room, width;

	snprintf(where, sizeof(where), "%s", base ? base + 1 : t->file);
	if (t->line > 0 && where[0]) {
		size_t n = strlen(where);

		snprintf(where + n, sizeof(where) - n, ":%d", t->line);
	}
	width = (int)text_width(where);
	room = end - at - (width ? width + 2 : 0);
	if (room < FUNCTION_LEAST)
		room = end - at < FUNCTION_LEAST ? end - at : FUNCTION_LEAST;
	if ((int)text_width(name) > room) {
		at += canvas_text(c, row, at, room - 1, TONE_PLAIN, name);
		canvas_glyph(c, row, at, TONE_DIM, 0x2026);
		at += 3;
	} else {
		at += canvas_text(c, row, at, room, TONE_PLAIN, name) + 2;
	}
	if (at < end)
		canvas_text(c, row, at, end - at, TONE_DIM, where);
}

/* Why there is none, in words. */
static int say_none(const struct board *b, struct canvas *c, struct area a)
{
	char text[600];

	if (!b->job)
		snprintf(text, sizeof(text),
			 "Functions are those of a job: choose a process and press "
			 "Enter, or 'spotter top PID'.");
	else if (!b->judged)
		snprintf(text, sizeof(text), "Looking: stacks are counted for some seconds first.");
	else
		snprintf(text, sizeof(text), "No stacks were read. %s", b->verdict.level_why);
	return canvas_wrap(c, a, TONE_DIM, text);
}

int section_functions(const struct board *b, struct canvas *c, struct area a)
{
	struct hot hot[HOT_MAX];
	size_t n = b->judged ? find_hot(&b->verdict, hot) : 0;
	int row = 0;

	if (!n)
		return say_none(b, c, a);
	for (; (size_t)row < n && row < a.rows; row++) {
		const struct hot *h = &hot[row];
		double share = h->cores / b->verdict.cpu_cores;
		char role[32];
		int at = a.col + 6;

		canvas_printf(c, a.row + row, a.col, 5, LOOK_BOLD, "%5.2f", h->cores);
		graph_meter(c, a.row + row, at, 8, palette_load(share), share);
		at += 9;
		snprintf(role, sizeof(role), "%s", h->role);
		for (char *s = role; *s; s++)
			*s = *s == '_' ? ' ' : *s;
		if (a.cols >= 64) {
			canvas_text(c, a.row + row, at, 13, TONE_KEY, role);
			at += 14;
		}
		put_place(c, a.row + row, at, a.col + a.cols, h->top);
	}
	return row;
}

int section_waits(const struct board *b, struct canvas *c, struct area a)
{
	const struct ledger_line *lines[TIME_LINES_MAX];
	size_t n = b->judged ? time_ledger_sorted(&b->verdict, lines, TIME_LINES_MAX) : 0;
	int row = 0;
	char x[24];

	if (!n)
		return say_none(b, c, a);
	for (size_t i = 0; i < n && row < a.rows; i++) {
		const struct ledger_line *l = lines[i];

		canvas_printf(c, a.row + row, a.col, 6, LOOK_BOLD, "%6s",
			      num_percent(l->share, x, sizeof(x)));
		graph_meter(c, a.row + row, a.col + 7, 8, TONE_CPU, l->share);
		canvas_text(c, a.row + row, a.col + 16, a.cols - 16, TONE_TITLE | LOOK_BOLD,
			    time_state_words(&b->verdict, l->role));
		row++;
		for (size_t k = 0; k < l->n_top && row < a.rows; k++, row++) {
			canvas_printf(c, a.row + row, a.col + 8, 6, TONE_DIM, "%6s",
				      num_percent(l->top[k].share, x, sizeof(x)));
			put_place(c, a.row + row, a.col + 16, a.col + a.cols, &l->top[k]);
		}
	}
	return row;
}

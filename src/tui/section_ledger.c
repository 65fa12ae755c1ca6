/* SPDX-License-Identifier: MIT
 *
 * The two ledgers as bars: where the wall time of the critical thread went, and who used the CPU time.
 */
#include "tui/section.h"

#include "base/num.h"
#include "base/text.h"
#include "explain/render.h"
#include "tui/graph.h"
#include "tui/words.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { PARTS_MAX = TIME_LINES_MAX + 1, LABEL = 8, COLS_BRIEF = 100 };

/* A colour belongs to a state or role, whatever its size: the eye finds it again. */
static unsigned tone_of(const char *name)
{
	static const struct {
		const char *name;
		unsigned part;
	} table[] = {
		{ "data_wait", 0 },
		{ "data_load", 1 },
		{ "transfer", 2 },
		{ "dispatch", 3 },
		{ "python", 4 },
		{ "gpu_wait", 5 },
		{ "comm_wait", 6 },
		{ "io", 7 },
		{ "cpu_queue", 8 },
		{ "memory_stall", 7 },
		{ "lock_wait", 2 },
		{ "idle", 10 },
		{ "other", 10 },
		{ "main", 4 },
		{ "loader_worker", 0 },
		{ "pin_thread", 2 },
		{ "blas_threads", 3 },
		{ "comm_threads", 6 },
		{ "spin_wait", 5 },
		{ "framework_threads", 9 },
		{ "tokenizer_threads", 1 },
		{ "child", 8 },
		{ "kernel_side", 7 },
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (strcmp(table[i].name, name) == 0)
			return TONE_PART0 + table[i].part;
	return TONE_PART0 + 11;
}

struct ledger_bar {
	struct part parts[PARTS_MAX];
	char words[PARTS_MAX][64];
	size_t n;
};

static void put(struct ledger_bar *l, double share, unsigned tone, const char *words)
{
	if (l->n == PARTS_MAX || !(share > 0.0005))
		return;
	l->parts[l->n] = (struct part){ share, tone };
	text_copy(l->words[l->n++], sizeof(l->words[0]), words);
}

/* In few columns by the names of the states themselves. */
static void time_bar(const struct verdict *v, bool brief, struct ledger_bar *l)
{
	const struct ledger_line *lines[TIME_LINES_MAX];
	size_t n = time_ledger_sorted(v, lines, TIME_LINES_MAX);
	char text[64], x[24];

	for (size_t i = 0; i < n; i++) {
		snprintf(text, sizeof(text), "%s %s", num_percent(lines[i]->share, x, sizeof(x)),
			 brief ? lines[i]->role : time_state_words(v, lines[i]->role));
		for (char *t = text; *t; t++)
			*t = *t == '_' ? ' ' : *t;
		put(l, lines[i]->share, tone_of(lines[i]->role), text);
	}
	if (isfinite(v->time_unaccounted)) {
		snprintf(text, sizeof(text), "%s unaccounted",
			 num_percent(v->time_unaccounted, x, sizeof(x)));
		put(l, v->time_unaccounted, TONE_PART0 + 11, text);
	}
}

/* "loader_worker" as people say it, with how many there are. */
static void role_words(const struct ledger_line *l, char *buf, size_t size)
{
	size_t n = (size_t)snprintf(buf, size, "%.2f %s", l->cores, l->role);

	for (char *s = buf; *s; s++)
		*s = *s == '_' ? ' ' : *s;
	if (n < size && strcmp(l->role, "loader_worker") == 0 && l->processes > 1)
		snprintf(buf + n, size - n, "s (%d)", l->processes);
}

static void cpu_bar(const struct verdict *v, struct ledger_bar *l)
{
	size_t order[PARTS_MAX], n = 0;
	char text[64];

	for (size_t i = 0; i < v->cpu.n && n < PARTS_MAX; i++) {
		size_t at = n++;

		for (; at > 0 && v->cpu.v[order[at - 1]].share < v->cpu.v[i].share; at--)
			order[at] = order[at - 1];
		order[at] = i;
	}
	for (size_t i = 0; i < n; i++) {
		role_words(&v->cpu.v[order[i]], text, sizeof(text));
		put(l, v->cpu.v[order[i]].share, tone_of(v->cpu.v[order[i]].role), text);
	}
	if (isfinite(v->cpu_unaccounted)) {
		snprintf(text, sizeof(text), "%.2f unaccounted", v->cpu_unaccounted * v->cpu_cores);
		put(l, v->cpu_unaccounted, TONE_PART0 + 11, text);
	}
}

static int draw_words(struct canvas *c, struct area a, const struct ledger_bar *l)
{
	int row = 0, at = 0;

	for (size_t i = 0; i < l->n; i++) {
		int width = 2 + (int)text_width(l->words[i]);

		if (at && at + width > a.cols) {
			if (++row == a.rows)
				return a.rows;
			at = 0;
		}
		canvas_glyph(c, a.row + row, a.col + at, l->parts[i].tone, graph_part_mark(c, i));
		canvas_text(c, a.row + row, a.col + at + 2, a.cols - at - 2, TONE_PLAIN,
			    l->words[i]);
		at += width + 2;
	}
	return row + 1;
}

static int draw_bar(struct canvas *c, struct area a, const char *label, const struct ledger_bar *l,
		    int legend)
{
	canvas_text(c, a.row, a.col + 1, LABEL - 1, TONE_TITLE | LOOK_BOLD, label);
	graph_parts(c, a.row, a.col + LABEL, a.cols - LABEL - 1, l->parts, l->n);
	return 1 + draw_words(
		       c, (struct area){ a.row + 1, a.col + LABEL, legend, a.cols - LABEL - 1 }, l);
}

int section_ledgers(const struct board *b, struct canvas *c, struct area a, int legend)
{
	const struct verdict *v = &b->verdict;
	struct ledger_bar time = { 0 }, cpu = { 0 };
	char title[200], thread[128], length[32];
	int row = a.row;

	if (!b->judged || a.rows < 2 * (1 + legend))
		return 0;
	time_bar(v, a.cols < COLS_BRIEF, &time);
	cpu_bar(v, &cpu);
	if (!time.n && !cpu.n)
		return 0;
	if (legend > 1) {
		snprintf(title, sizeof(title), "where the time went: %s, and the CPU",
			 time.n ? time_ledger_thread(v, thread, sizeof(thread)) : "not known");
		words_span((double)(v->to_ns - v->from_ns) / 1e9, length, sizeof(length));
		section_head(c, (struct area){ row++, a.col, 1, a.cols }, title, length);
	}
	if (time.n)
		row += draw_bar(c, (struct area){ row, a.col, 1, a.cols }, "Time", &time, legend);
	if (cpu.n)
		row += draw_bar(c, (struct area){ row, a.col, 1, a.cols }, "CPU by", &cpu, legend);
	return row - a.row;
}

/* SPDX-License-Identifier: MIT
 *
 * Everything at a glance: what is used, how it came to that, where the time goes, who does it.
 */
#include "tui/view.h"

#include "tui/section.h"
#include "tui/tasks.h"

enum { ROWS_TALL = 34, COLS_WIDE = 120, TASKS_LEAST = 4, LEDGER_ROWS = 6, LIST_STEP = 8 };

/* Graphs take what a short list of processes leaves, in steps, so that a process more does not move all. */
static int graph_rows(const struct board *b, const struct ui *u, struct area a, int used)
{
	int list = (int)b->snap.processes.n + (u->threads ? (int)b->snap.threads.n : 0);
	int rest =
	    a.rows - used - (b->job ? LEDGER_ROWS : 0) - (list + LIST_STEP) / LIST_STEP * LIST_STEP;

	return rest < a.rows / 5 ? a.rows / 5 : rest > a.rows / 3 ? a.rows / 3 : rest;
}

static void draw(const struct board *b, struct ui *u, struct canvas *c, struct area a)
{
	bool tall = a.rows >= ROWS_TALL;
	int row = a.row, end = a.row + a.rows, graphs = 5;
	struct area rest;

	row += section_use(b, c, a, tall ? 8 : 2);
	if (tall)
		graphs = graph_rows(b, u, a, row - a.row);
	/* What is too much for a small screen: graphs get lower first, then they go. */
	if (!tall && end - row < graphs + TASKS_LEAST + 4)
		graphs = end - row - TASKS_LEAST - 4;
	if (graphs >= 3) {
		section_graphs(b, u, c, (struct area){ row, a.col, graphs, a.cols });
		row += graphs;
	}
	if (b->job)
		row += section_ledgers(b, c,
				       (struct area){ row, a.col, end - row - TASKS_LEAST, a.cols },
				       tall ? 2 : 1);
	rest = (struct area){ row, a.col, end - row, a.cols };
	if (tall && b->job && a.cols >= COLS_WIDE) {
		int side = a.cols * 2 / 5;

		rest.cols = a.cols - side - 1;
		section_head(c, (struct area){ row, a.col, 1, rest.cols }, "processes", NULL);
		section_head(c, (struct area){ row, rest.cols + 1, 1, side }, "hottest functions",
			     "cores");
		section_functions(b, c,
				  (struct area){ row + 1, rest.cols + 2, end - row - 1, side - 1 });
		rest.row++;
		rest.rows--;
	}
	tasks_draw(b, u, c, rest);
}

const struct view overview_view = {
	.key = 'o',
	.name = "overview",
	.says = "everything at a glance",
	.draw = draw,
};

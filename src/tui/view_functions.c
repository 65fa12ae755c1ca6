/* SPDX-License-Identifier: MIT
 *
 * The job's ledgers down to functions: what used the CPU, and what the critical thread did.
 */
#include "tui/view.h"

#include "explain/render.h"
#include "tui/section.h"

#include <stdio.h>

enum { COLS_WIDE = 120 };

static void draw(const struct board *b, struct ui *u, struct canvas *c, struct area a)
{
	struct area left = a, right = a;
	char title[200], thread[128];
	int used = section_ledgers(b, c, a, a.rows >= 24 ? 2 : 1);

	(void)u;
	left.row += used;
	left.rows -= used;
	right = left;
	if (a.cols >= COLS_WIDE) {
		left.cols = a.cols / 2;
		right.col = left.cols + 1;
		right.cols = a.cols - right.col;
	} else {
		left.rows = left.rows / 2;
		right.row = left.row + left.rows;
		right.rows = a.row + a.rows - right.row;
	}
	section_head(c, (struct area){ left.row, left.col, 1, left.cols }, "hottest functions",
		     "cores, share of the job's CPU time");
	section_functions(
	    b, c, (struct area){ left.row + 1, left.col + 1, left.rows - 1, left.cols - 2 });
	if (b->judged && b->verdict.time_tid)
		snprintf(title, sizeof(title), "time of the %s",
			 time_ledger_thread(&b->verdict, thread, sizeof(thread)));
	else
		snprintf(title, sizeof(title), "time of the critical thread");
	section_head(c, (struct area){ right.row, right.col, 1, right.cols }, title, "share");
	section_waits(
	    b, c, (struct area){ right.row + 1, right.col + 1, right.rows - 1, right.cols - 2 });
}

const struct view functions_view = {
	.key = 'f',
	.name = "functions",
	.says = "both ledgers down to the functions",
	.draw = draw,
};

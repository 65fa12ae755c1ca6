/* SPDX-License-Identifier: MIT
 *
 * Processes and threads with all the room there is.
 */
#include "tui/view.h"

#include "tui/section.h"
#include "tui/tasks.h"

#include <math.h>
#include <stdio.h>

static void draw(const struct board *b, struct ui *u, struct canvas *c, struct area a)
{
	const struct snap_job *j = &b->snap.job;
	char title[96], right[64];

	if (b->job && isfinite(j->processes) && isfinite(j->threads))
		snprintf(title, sizeof(title), "%.0f process%s, %.0f thread%s", j->processes,
			 j->processes == 1 ? "" : "es", j->threads, j->threads == 1 ? "" : "s");
	else
		snprintf(title, sizeof(title), "%zu processes", b->snap.processes.n);
	snprintf(right, sizeof(right), "by %s%s", task_sort_name(u->sort),
		 u->tree && !u->filter[0] ? ", as a tree" : "");
	section_head(c, (struct area){ a.row, a.col, 1, a.cols }, title, right);
	tasks_draw(b, u, c, (struct area){ a.row + 1, a.col, a.rows - 1, a.cols });
}

const struct view processes_view = {
	.key = 'p',
	.name = "processes",
	.says = "processes and threads with all the room there is",
	.draw = draw,
};

/* SPDX-License-Identifier: MIT
 *
 * Processes (and their threads) as rows: in the order, and of those, that the user asked for.
 */
#ifndef SPOTTER_TUI_TASKS_H
#define SPOTTER_TUI_TASKS_H

#include "tui/ui.h"

struct task_row {
	const struct snap_task *task;
	int depth;
	bool thread;
};

struct task_rows {
	VEC(struct task_row) v;
};

/* 0 or -ENOMEM. */
int tasks_order(const struct board *b, const struct ui *u, struct task_rows *ret);
/* The table with its head, at most a.rows rows; keeps u's selection within it. */
void tasks_draw(const struct board *b, struct ui *u, struct canvas *c, struct area a);

#endif

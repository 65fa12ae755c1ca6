/* SPDX-License-Identifier: MIT
 *
 * A view is one file view_NAME.c and one row in views.c: it draws the board on a part of the canvas.
 */
#ifndef SPOTTER_TUI_VIEW_H
#define SPOTTER_TUI_VIEW_H

#include "tui/ui.h"

struct view {
	char key;
	const char *name;
	const char *says; /* for the help: "processes as a tree" */
	void (*draw)(const struct board *b, struct ui *u, struct canvas *c, struct area a);
	/* Keys of its own, before all others. May be NULL. */
	bool (*on_key)(struct ui *u, const struct board *b, uint32_t key);
};

/* In the order of Tab; ends with NULL. The first is where it starts. */
extern const struct view *const views[];
const struct view *view_by_key(uint32_t key); /* NULL */

extern const struct view overview_view, processes_view, functions_view, why_view, help_view;

/* The whole screen: the head, the view, the line of keys. */
void screen_draw(const struct board *b, struct ui *u, struct canvas *c);

#endif

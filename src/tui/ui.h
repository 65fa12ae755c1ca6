/* SPDX-License-Identifier: MIT
 *
 * What the user has chosen: which view, how it is sorted and filtered, which moment. Keys change it, views
 * read it; neither knows a terminal.
 */
#ifndef SPOTTER_TUI_UI_H
#define SPOTTER_TUI_UI_H

#include "tui/board.h"
#include "tui/canvas.h"

/* Keys that are no character; others are code points. */
enum ui_key {
	UI_NONE = 0,
	UI_TAB = '\t',
	UI_ENTER = '\r',
	UI_ESCAPE = 0x1b,
	UI_UP = 0x200000,
	UI_DOWN,
	UI_LEFT,
	UI_RIGHT,
	UI_PAGE_UP,
	UI_PAGE_DOWN,
	UI_HOME,
	UI_END,
	UI_BACKSPACE,
	UI_REDRAW,
};

enum task_sort { SORT_CPU, SORT_MEMORY, SORT_IO, SORT_PID, SORT_NAME, SORTS };
const char *task_sort_name(enum task_sort s); /* "cores" */

enum { UI_FILTER_MAX = 48 };

struct view;

struct ui {
	const struct view *view, *back; /* back: where Escape leads from help */
	enum task_sort sort;
	bool tree, threads;
	bool typing; /* the filter */
	char filter[UI_FILTER_MAX * 4];
	int selected, scroll; /* row of the list, and the first one shown */
	int listed;           /* rows of the list as drawn last */
	int page;             /* rows of the list that fitted */
	int text_scroll;      /* of the view that is text */

	bool paused;
	bool playing;     /* a record, from the cursor on */
	int64_t at_ns;    /* 0: follow */
	int64_t right_ns; /* 0: follow */
	unsigned zoom;    /* place in the table of steps */
	int64_t tick_ns;  /* the shortest step there is */
	int64_t least_ns; /* the shortest interval that all sources were read in */
	int graph_cols;   /* columns of one graph as drawn last */

	uint32_t chosen; /* entity of the selected process as drawn last, 0 none */
	int64_t chosen_pid;
	bool can_open;    /* Enter on a process makes it the job */
	int64_t open_pid; /* ...and did so */
	bool can_leave;   /* there is a machine to go back to */
	bool leave;
	bool quit, redraw;
};

void ui_init(struct ui *u, int64_t tick_ns);
/* False: the key means nothing here. */
bool ui_key(struct ui *u, const struct board *b, uint32_t key);
/* One step further in a record that is played. */
void ui_play(struct ui *u, const struct board *b);
/* Length of a point of the graphs. */
int64_t ui_step_ns(const struct ui *u);
/* The step with which a whole run fits into the graphs. */
void ui_zoom_to(struct ui *u, int64_t length_ns);
/* Where and when to look, from first to last. */
void ui_when(const struct ui *u, int64_t first_ns, int64_t last_ns, struct board_when *ret);

#endif

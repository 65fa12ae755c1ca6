/* SPDX-License-Identifier: MIT
 *
 * All keys, and what the figures mean.
 */
#include "tui/view.h"

#include "tui/section.h"

static const struct {
	const char *key, *says;
} rows[] = {
	{ "", "VIEWS" },
	{ "o p f w ?", "overview, processes, functions, why, help; Tab: the next" },
	{ "", "LIST" },
	{ "up down j k", "choose a row; Page Up, Page Down" },
	{ "s S", "sort by the next column, by the one before" },
	{ "/", "filter by name, command or number; Escape drops it" },
	{ "t", "as a tree, or the largest first" },
	{ "H", "threads of each process (of a job)" },
	{ "Enter", "watch the chosen process with its children" },
	{ "m", "back to the machine" },
	{ "", "TIME" },
	{ "Space", "stop, go on (looking goes on meanwhile); a record: play" },
	{ "left right", "back and forth in time; < > ten at once" },
	{ "Home End", "to the beginning, to the end (or now)" },
	{ "+ -", "a point of the graphs is shorter, longer" },
	{ "", "FIGURES" },
	{ "cores", "1.00: one CPU all of the time; top and htop say 100 %" },
	{ "allowed", "the least of affinity, quota and machine: the limit" },
	{ "busy", "GPU: share of time some kernel ran, not how full it was" },
	{ "Waits", "share of time some task stood still for want of it (PSI)" },
	{ "Time", "where the time of the critical thread went, by stacks" },
	{ "CPU by", "who used the CPU time the kernel charged to the job" },
	{ "", "" },
	{ "q Ctrl-C", "quit; what was watched goes on" },
};

static void draw(const struct board *b, struct ui *u, struct canvas *c, struct area a)
{
	int n = (int)(sizeof(rows) / sizeof(rows[0])), row = 1;

	(void)b;
	section_head(c, (struct area){ a.row, a.col, 1, a.cols }, "help",
		     "? or Escape: back, down: more");
	if (u->text_scroll > n - a.rows + 1)
		u->text_scroll = n > a.rows - 1 ? n - a.rows + 1 : 0;
	u->page = a.rows - 1;
	for (int i = u->text_scroll; i < n && row < a.rows; i++, row++) {
		bool head = !rows[i].key[0];

		canvas_text(c, a.row + row, a.col + 1, 12, TONE_KEY | LOOK_BOLD, rows[i].key);
		canvas_text(c, a.row + row, a.col + (head ? 1 : 15), a.cols - 16,
			    head ? TONE_TITLE | LOOK_BOLD : TONE_PLAIN, rows[i].says);
	}
}

const struct view help_view = {
	.key = '?',
	.name = "help",
	.says = "all keys",
	.draw = draw,
};

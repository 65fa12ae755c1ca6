/* SPDX-License-Identifier: MIT
 *
 * The verdict in full, as `spotter why` says it.
 */
#include "tui/view.h"

#include "base/text.h"
#include "tui/section.h"

#include <string.h>

enum { LABEL_MOST = 8 };

/* "Finding the GPU waits": the label in the first columns stands out. */
static void draw_line(struct canvas *c, struct area a, const char *line)
{
	int label = line[0] == ' ' ? 0 : (int)strcspn(line, " ");

	if (label > LABEL_MOST)
		label = 0;
	canvas_text(c, a.row, a.col, a.cols, TONE_PLAIN, line);
	canvas_text(c, a.row, a.col, label < a.cols ? label : a.cols, TONE_TITLE | LOOK_BOLD, line);
}

static void draw(const struct board *b, struct ui *u, struct canvas *c, struct area a)
{
	const char *s = b->judged ? buf_text(&b->why) : "There is no verdict yet.\n";
	int lines = 0, skip, row = 1;

	section_head(c, (struct area){ a.row, a.col, 1, a.cols }, "why",
		     "as 'spotter why' says it");
	if (!b->job)
		s = "A verdict is about a job: choose a process and press Enter, or 'spotter top "
		    "PID'.\n";
	for (const char *p = s; *p; p++)
		lines += *p == '\n';
	if (u->text_scroll > lines - a.rows + 2)
		u->text_scroll = lines > a.rows - 2 ? lines - a.rows + 2 : 0;
	skip = u->text_scroll;
	u->page = a.rows - 1;
	while (*s && row < a.rows) {
		size_t n = strcspn(s, "\n");
		char line[400];

		if (skip-- <= 0) {
			text_copy(line, n + 1 < sizeof(line) ? n + 1 : sizeof(line), s);
			draw_line(c, (struct area){ a.row + row++, a.col + 1, 1, a.cols - 2 },
				  line);
		}
		s += n + (s[n] != '\0');
	}
}

const struct view why_view = {
	.key = 'w',
	.name = "why",
	.says = "the verdict in full",
	.draw = draw,
};

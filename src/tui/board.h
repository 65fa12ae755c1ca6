/* SPDX-License-Identifier: MIT
 *
 * Everything that views show, as data: the interval at the cursor, graphs that lead up to it, the
 * verdict. Taken from a window, be it of a record or of what runs now; a test may fill it by hand.
 */
#ifndef SPOTTER_TUI_BOARD_H
#define SPOTTER_TUI_BOARD_H

#include "base/buf.h"
#include "explain/verdict.h"
#include "tui/line.h"
#include "tui/snapshot.h"

struct board {
	bool job;    /* of a tree of processes; else the whole machine */
	bool live;   /* it goes on */
	bool replay; /* of a record */
	bool ended;  /* what was looked at has ended */
	const struct run_info *run;
	int64_t first_ns, last_ns; /* all that is known */
	int64_t at_ns;             /* end of the interval shown */
	int64_t right_ns, step_ns; /* of the graphs */

	struct snapshot snap;
	struct line lines[LINE_IDS];
	struct {
		double count, rate, loss; /* of the first rank up to the cursor; NAN */
	} steps;

	char event
	    [200]; /* what happened last, in the minute before the cursor; safe to show; "" nothing */
	double event_ago; /* seconds */

	bool judged;          /* verdict is one */
	int64_t judged_at_ns; /* the end of what it is about */
	struct verdict verdict;
	struct buf why; /* the verdict in full, as text of this width */
	unsigned why_width;
};

struct board_when {
	int64_t at_ns, interval_ns;
	int64_t right_ns, step_ns;
	bool same_lines; /* right and step are as before, and nothing new came */
};

/* w: all that is known. 0 or -errno, and then what was there stays. */
int board_take(struct board *b, const struct window *w, const struct board_when *when);
/* A verdict over the window. It may take a second for a day's record. */
int board_judge(struct board *b, const struct window *w);
/* Its text in lines of at most so many columns; what it had before stays when it is the same. */
void board_why(struct board *b, unsigned width);
void board_done(struct board *b);

/* "rank 0", "loader worker", "" of a process or thread. */
const char *board_role(const struct board *b, const struct entity *e, char *buf, size_t size);

#endif

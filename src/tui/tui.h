/* SPDX-License-Identifier: MIT
 *
 * `spotter top` on a terminal: a source of windows goes in, the user looks at it until he has seen enough.
 */
#ifndef SPOTTER_TUI_TUI_H
#define SPOTTER_TUI_TUI_H

#include "model/window.h"

struct err;
struct tui;

struct tui_options {
	bool color, ascii;
};

/* What is looked at. */
struct tui_source {
	void *arg;
	bool job;    /* a tree of processes; else the machine */
	bool replay; /* a record */
	bool live;   /* there will be more; tick may change it */
	bool ended;  /* it went on, and does no more; tick may change it */
	bool can_open,
	    can_leave; /* another process may be chosen; there is something to go back to */
	int64_t every_ns;
	/* Takes what is new: 0 or -errno. Not called when it is not live. */
	int (*tick)(struct tui_source *s);
	/* All that is known. Borrowed until the next tick. */
	struct window (*window)(struct tui_source *s);
};

struct tui_end {
	int64_t open_pid; /* the user chose this process; 0 no */
	bool leave;       /* back to where he came from */
};

/* Takes the terminal. Signals that end or stop a program are blocked from here on, and read. */
int tui_open(const struct tui_options *o, struct tui **ret, struct err *e);
/* Until the user, or a signal, ends it: 0 or -errno. */
int tui_watch(struct tui *t, struct tui_source *s, struct tui_end *ret);
void tui_close(struct tui *t);

#endif

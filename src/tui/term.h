/* SPDX-License-Identifier: MIT
 *
 * The terminal: puts a canvas on it and reads keys. The only file that knows ncurses, which does what
 * differs between terminals: the way in and out, keys, their descriptions. What is on the screen is painted
 * by paint.c, so that what a test sees is what is shown.
 */
#ifndef SPOTTER_TUI_TERM_H
#define SPOTTER_TUI_TERM_H

#include "tui/canvas.h"

struct err;
struct term;

struct term_options {
	bool color; /* wanted, by the user and the environment */
	bool ascii; /* even where the locale has more */
};

/* Standard input and output must be a terminal. The screen is taken over; term_close(), a crash or
 * term_pause() gives it back as it was. */
int term_open(const struct term_options *o, struct term **ret, struct err *e);
void term_close(struct term *t);
void term_size(const struct term *t, int *ret_rows, int *ret_cols);
/* How canvases for it are to be drawn. */
void term_prepare(const struct term *t, struct canvas *c);
/* Only what has changed goes out. 0 or -errno. */
int term_show(struct term *t, const struct canvas *c);
/* The whole of it again the next time. */
void term_forget(struct term *t);
/* The next key (ui_key, or a code point), UI_NONE when there is none; never waits. */
uint32_t term_key(struct term *t);
/* Gives the terminal back for a while (Ctrl-Z), and takes it again. */
void term_pause(struct term *t);
void term_resume(struct term *t);
/* The terminal has another size now. */
void term_resized(struct term *t);

#endif

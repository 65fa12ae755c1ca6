/* SPDX-License-Identifier: MIT
 *
 * The title of a terminal's window (OSC 2), for `run --status`: set once a second, put back at the end
 * (xterm's stack of titles, CSI 22;2t and 23;2t). Nothing is drawn in the window.
 *
 * The terminal is opened anew, so that O_NONBLOCK is ours alone and not the program's; one that takes
 * nothing (Ctrl-S, a full line) gets nothing, and nobody waits. What went out in part is finished
 * before anything else: the rest of a sequence, left out, would swallow what the program prints.
 */
#ifndef SPOTTER_CLI_TITLE_H
#define SPOTTER_CLI_TITLE_H

#include "engine/glance.h"

#include <stdbool.h>
#include <stddef.h>

enum { TITLE_MAX = 160 }; /* bytes of text */

struct title {
	int fd; /* -1: none */
	bool pushed;
	char left[TITLE_MAX + 32]; /* not taken yet */
	size_t n_left;
};

/* The terminal behind a descriptor, if its title can be set: it is one, and TERM is none that would
 * print the sequence (dumb, the console's linux). False: there is none, or no name for it. */
bool title_terminal(int fd, char *path, size_t size);
/* A title that cannot be set is no failure. */
void title_open(struct title *t, const char *path);
/* Text from outside is made safe. In the background nothing is set. */
void title_set(struct title *t, const char *text);
/* Puts the title back that was there. */
void title_close(struct title *t);
/* The same, after somebody who has set it died. */
void title_restore(const char *path);

/* "train.py, 2 min 10 s, step 412, 0.31 s a step, loss 0.42, 3.1 cores"; what is not known is left
 * out. before: a glance about a second older. */
void title_text(const char *name, int64_t running_ns, const struct glance *before,
		const struct glance *now, char *out, size_t size);

#endif

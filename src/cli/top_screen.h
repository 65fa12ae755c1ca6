/* SPDX-License-Identifier: MIT
 *
 * `top` on a terminal: what is looked at (the machine, a process with its children, a record) as a source
 * for src/tui.
 */
#ifndef SPOTTER_CLI_TOP_SCREEN_H
#define SPOTTER_CLI_TOP_SCREEN_H

#include <stdbool.h>
#include <stdint.h>

struct cli;

struct top_screen {
	const char *word; /* PID, RUN or NULL: the machine */
	const char *nvml;
	int64_t every_ns;
	bool color, ascii;
};

/* Exit status; -1: there is no screen to be had here (said why), lines may be. */
int top_screen(struct cli *cli, const struct top_screen *o);

#endif

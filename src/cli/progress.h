/* SPDX-License-Identifier: MIT
 *
 * A line on standard error that says how far long work has come. It is drawn after a second, redrawn
 * in place, and gone at the end. Nothing is drawn where nobody looks: standard error is no terminal,
 * the terminal cannot go back in a line (TERM=dumb or none), this is in the background, or --quiet.
 *
 *	exporting  [==========>              ]  41 %
 *	reading    [        <=>              ]
 */
#ifndef SPOTTER_CLI_PROGRESS_H
#define SPOTTER_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct buf;

/* {0} draws nothing. */
struct progress {
	const char *what; /* borrowed, one word */
	bool on, shown;
	unsigned columns, beat, calls;
	int64_t begun_ns, told_ns;
};

void progress_begin(struct progress *p, const char *what, bool quiet);
/* 0..1 of the work is done. Cheap enough for every sample. */
void progress_share(struct progress *p, double share);
/* Something was done, and nobody knows how much there is. */
void progress_pulse(struct progress *p);
/* Wipes the line. */
void progress_end(struct progress *p);

/* The line itself, without what returns to its begin. share: NAN not known. columns: 0 not known. */
void progress_line(const char *what, double share, unsigned beat, unsigned columns,
		   struct buf *out);

#endif

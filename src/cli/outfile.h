/* SPDX-License-Identifier: MIT
 *
 * A file that appears whole or not at all: written without a name (or under a temporary one) and
 * given its own only at the end, so an interrupted export leaves nothing that looks like a result.
 */
#ifndef SPOTTER_CLI_OUTFILE_H
#define SPOTTER_CLI_OUTFILE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

struct err;

struct outfile {
	int fd;                                        /* to write to; -1 when not open */
	char path[PATH_MAX], temporary[PATH_MAX + 16]; /* temporary "": none, or not needed */
	bool replace;                                  /* an existing file may be overwritten */
	bool direct;                                   /* a pipe or device: written in place */
	bool named;                                    /* temporary exists under its name */
};

/* Refuses an existing file unless replace, before any work is done. */
int outfile_open(struct outfile *o, const char *path, bool replace, struct err *e);
/* Gives it its name. Refuses again if one has appeared meanwhile. */
int outfile_commit(struct outfile *o, struct err *e);
/* Do both paths lead to the same file? False when one leads to none. */
bool outfile_is_same(const char *a, const char *b);
/* Closes; what was not committed is gone. */
void outfile_done(struct outfile *o);

#endif

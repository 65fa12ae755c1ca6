/* SPDX-License-Identifier: MIT
 *
 * What the program of `run` gets into its environment so that it can say what it is doing (and nobody else
 * does: the supervisor and the recorder keep theirs):
 *
 *	SPOTTER_MARKS   folder for rings (mark/ring.h)
 *	SPOTTER_LIB     libspotter.so
 *	SPOTTER_PYTHON  the folder that holds the Python package
 *	PYTHONPATH      a folder with nothing but our sitecustomize in front of what was there
 *	SPOTTER_RUN     id of the run
 *	SPOTTER_EXE     this program
 *
 * What is not there is not set; the rest works without it.
 */
#ifndef SPOTTER_CLI_HOOKS_H
#define SPOTTER_CLI_HOOKS_H

#include <limits.h>
#include <stddef.h>

enum { HOOKS_VARIABLES = 6 };

struct hooks {
	char folder[PATH_MAX]; /* SPOTTER_MARKS, "" none */
	char *env[HOOKS_VARIABLES + 1];
	size_t n;
};

/* Makes the folder. exe: path of this program, NULL: found out. */
void hooks_prepare(struct hooks *h, const char *exe, const char *run_id);
/* The same without the folder: what the environment would be. */
void hooks_environment(struct hooks *h, const char *exe, const char *run_id);
/* Frees the texts; the folder stays. */
void hooks_done(struct hooks *h);

#endif

/* SPDX-License-Identifier: MIT
 *
 * Which descriptors S and R hold. The program's pipes must not stay open in either of them: a
 * reader at the other end waits for the last writer to go.
 */
#ifndef SPOTTER_LAUNCH_DESCRIPTORS_H
#define SPOTTER_LAUNCH_DESCRIPTORS_H

#include <stdbool.h>
#include <stddef.h>

/* Fills 0, 1 and 2 where they are closed, with close-on-exec places: what we open next must not
 * become somebody's standard output, and the program shall find them closed as we did. */
int descriptors_plug(void);

/* Closes everything but 0, 1, 2 and those of keep (negative ones are skipped). */
void descriptors_close_others(const int *keep, size_t n);

/* /dev/null as standard input and output, and as standard error unless keep_stderr. */
void descriptors_silence(bool keep_stderr);

#endif

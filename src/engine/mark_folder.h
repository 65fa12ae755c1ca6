/* SPDX-License-Identifier: MIT
 *
 * The folder in which the program's processes leave their rings (mark/ring.h): made before the program is
 * started, held (a shared lock) by the recorder that reads it, removed with it. A folder that nobody holds is
 * what a killed recorder has left; the next one sweeps it away.
 */
#ifndef SPOTTER_ENGINE_MARK_FOLDER_H
#define SPOTTER_ENGINE_MARK_FOLDER_H

#include <stdbool.h>
#include <stddef.h>

/* A new one of mode 0700 in /dev/shm, else in $TMPDIR: 0, or -errno and "". */
int mark_folder_make(char *path, size_t size);
/* Opens it and holds it until that descriptor is closed: descriptor or -errno. */
int mark_folder_hold(const char *path);
/* Removes it with the rings in it; what has no name of ours stays, and so does the folder then. */
void mark_folder_remove(const char *path);
/* The same of all folders of this user in /dev/shm and $TMPDIR that nobody has held for a minute. */
void mark_folder_sweep(void);
/* The same in that folder, of those older than age_s. */
void mark_folder_sweep_in(const char *parent, double age_s);

/* "4242-1187.ring": its two numbers. */
bool mark_folder_parse(const char *file, long *ret_pid, unsigned long long *ret_ticks);

#endif

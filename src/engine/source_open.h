/* SPDX-License-Identifier: MIT
 *
 * Opening a source file that a watched process names. The name is the program's own affair: it may be anything,
 * and lead anywhere by links. A recorder that may do more than the program (root) would tell its user what that
 * user cannot read. So the file is opened with the rights of the process, inside of its root.
 */
#ifndef SPOTTER_ENGINE_SOURCE_OPEN_H
#define SPOTTER_ENGINE_SOURCE_OPEN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

/* Names of files that are looked at: longer ones are not. */
enum { SOURCE_PATH_BYTES = 1024 };

/* Is it named as Python source? "<string>" is no file, and "/etc/shadow" is none of ours. */
bool source_is_named(const char *file);

/* A plain file of at most max bytes that is no newer than the process (wall clock, ns), for reading: descriptor, or -1.
 * For a thread of its own: it has the rights of the process for a moment, and storage may hang. */
int source_open_as(pid_t pid, const char *file, int64_t started_ns, off_t max, struct stat *ret);

#endif

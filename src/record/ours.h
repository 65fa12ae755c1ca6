/* SPDX-License-Identifier: MIT
 *
 * Whether a record can be trusted with what lies beside it. SQLite looks there for a journal, a log and shared
 * memory: whoever else may put or change them can have files removed, or end us with a shortened mapping. It makes
 * them, too, where they are not, also for a reader. All who open a record ask here (open.c does it for them).
 */
#ifndef SPOTTER_RECORD_OURS_H
#define SPOTTER_RECORD_OURS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Is it a file of ours, in a folder that only we can write, and can nobody swap a folder above it? The path is absolute
 * and has no links in it (realpath). */
bool run_file_is_ours(const char *full);

/* May it be read with its log? That maps the -shm, so file, -wal, -shm and folder must be ours or root's, and nobody
 * else may be able to put others in their place; root also looks at all folders above. The path as above. */
bool run_file_is_safe(const char *full);

/* The path without links in it, as realpath() gives it, into PATH_MAX bytes. 0 or -errno; root, who can read anything,
 * follows no link that another user made: -EPERM. */
int run_file_resolve(const char *path, char *ret);

/* Does a map of users have this one? "         0     100000      65536\n" is first inside, first outside, how many; true also
 * for what is no such map. */
bool run_file_map_has(const char *map, size_t n, uint64_t uid);

#endif

/* SPDX-License-Identifier: MIT
 *
 * Whether a record can be trusted with what lies beside it. SQLite looks there for a journal, a log and shared
 * memory: whoever else may put or change them can have files removed, or end us with a shortened mapping.
 */
#ifndef SPOTTER_RECORD_OURS_H
#define SPOTTER_RECORD_OURS_H

#include <stdbool.h>

/* Is it a file of ours, in a folder that only we can write, and can nobody swap a folder above it? The path is absolute
 * and has no links in it (realpath). */
bool run_file_is_ours(const char *full);

#endif

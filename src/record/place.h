/* SPDX-License-Identifier: MIT
 *
 * Folders, for store.c and place.c.
 */
#ifndef SPOTTER_RECORD_PLACE_H
#define SPOTTER_RECORD_PLACE_H

#include <stdbool.h>
#include <stddef.h>

/* Does this type of file system (statfs f_type) live on another machine, or behind a program? SQLite's
 * log needs shared memory, which such file systems do not have. */
bool place_is_network(long type);
/* mkdir -p with mode 0700: 0 or -errno. */
int place_make(const char *folder);

#endif

/* SPDX-License-Identifier: MIT
 *
 * Who writes a run file, and whether it still does. A pid alone is not enough: it is used again, it
 * means another process in another container, and none after a reboot.
 */
#ifndef SPOTTER_RECORD_ALIVE_H
#define SPOTTER_RECORD_ALIVE_H

#include <stdbool.h>
#include <stdint.h>

struct recorder_id {
	int64_t pid;
	int64_t start;     /* ticks since boot, field 22 of /proc/PID/stat; 0: unknown */
	int64_t pid_space; /* inode of its pid namespace; 0: unknown */
	char boot_id[40];  /* "" unknown */
};

/* The calling process. What cannot be read stays unknown. */
void recorder_self(struct recorder_id *ret);
/* changed_s: how long ago the file or its -wal was written. A recorder writes each second, so that
 * decides where the pid cannot be looked at: another machine, another container. */
bool recorder_alive(const struct recorder_id *id, double changed_s);

#endif

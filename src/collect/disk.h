/* SPDX-License-Identifier: MIT
 *
 * /proc/diskstats as numbers; see disk.c.
 */
#ifndef SPOTTER_COLLECT_DISK_H
#define SPOTTER_COLLECT_DISK_H

#include "base/scan.h"
#include "collect/collector.h"

enum { DISK_NAME_BYTES = 32 }; /* the kernel's limit, with the NUL */

enum disk_column {
	DISK_READS,
	DISK_READS_MERGED,
	DISK_SECTORS_READ, /* of 512 bytes whatever the device's are */
	DISK_READ_MS,
	DISK_WRITES,
	DISK_WRITES_MERGED,
	DISK_SECTORS_WRITTEN,
	DISK_WRITE_MS,
	DISK_IN_FLIGHT,
	DISK_BUSY_MS,
	DISK_QUEUE_MS,
	DISK_COLUMNS
};

struct disk {
	unsigned major, minor;
	char name[DISK_NAME_BYTES];
	int64_t value[DISK_COLUMNS];
};

/* The next device of the text; false behind the last. Lines that make no sense are passed over. */
bool disk_next(struct scan *s, struct disk *ret);
/* Whether a device with this name can be a disk at all: not loop0, ram1, zram0, sr0, fd0. */
bool disk_name_counts(const char *name);

extern const struct collector disk_collector;

#endif

/* SPDX-License-Identifier: MIT
 *
 * A file of the kernel that has no fixed length (one line a CPU, a disk, a mount), read whole into
 * memory that grows only when the file outgrows it: once warm a read allocates nothing. The kernel
 * hands such files out in pieces that end at a record, some of them short, so only an answer of 0
 * bytes is the end.
 */
#ifndef SPOTTER_COLLECT_WHOLE_H
#define SPOTTER_COLLECT_WHOLE_H

#include "base/scan.h"
#include "collect/host.h"

struct whole {
	char *text; /* n bytes and a NUL; NULL before the first read */
	size_t n, cap;
	struct host_file file;
};

/* Zeroed memory is not an empty one (descriptor 0 is somebody's): call this first. */
void whole_init(struct whole *w);
void whole_done(struct whole *w);
/* 0 with the file in text/n, or -errno (then text is what it was, n is 0). -EFBIG past 16 MiB. */
int whole_read(const struct host *h, struct whole *w, const char *path);

/* scan_line() that takes only lines with their newline: the end of a file that was cut somewhere
 * may hold half a number, which reads as a whole one. */
bool whole_line(struct scan *s, struct scan *ret_line);

#endif

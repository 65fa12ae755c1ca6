/* SPDX-License-Identifier: MIT
 *
 * What is still to be sent, oldest first: requests as they will go out, in append-only files of a folder of our own,
 * or in memory where there is no folder. It never grows past its bound: the oldest go first, and are counted. What a
 * crash left half-written at the end of a file is cut off. Not for several threads.
 *
 * Nothing is synced: what a process that dies has put is there when the next one opens the folder, what a machine
 * that loses power put last may be gone.
 */
#ifndef SPOTTER_PUSH_SPOOL_H
#define SPOTTER_PUSH_SPOOL_H

#include <stddef.h>
#include <stdint.h>

struct buf;
struct err;
struct spool;

enum {
	SPOOL_BYTES_MIN = 1 << 20,  /* the least bound */
	SPOOL_RECORD_MAX = 4 << 20, /* a request; never more than a quarter of the bound, either */
};

struct spool_stats {
	uint64_t bytes, records, samples; /* that wait */
	/* Since it was opened, with what opening found: */
	uint64_t full_records,
	    full_samples; /* dropped, the oldest first, to stay within the bound */
	uint64_t disk_records, disk_samples; /* the disk did not take (or give) them */
	uint64_t damaged; /* times that the rest of a file was cut off as it made no sense */
	int error;        /* the last failure of the disk, -errno; 0 none */
};

/* folder NULL: in memory. One that is not there is made (0700), one that another process uses is -EBUSY. */
int spool_open(const char *folder, uint64_t max_bytes, struct spool **ret, struct err *e);
/* What waits in a folder stays there. */
void spool_close(struct spool *q);

/* Behind all others. 0, or -errno with the samples counted as dropped: never fatal. */
int spool_put(struct spool *q, const void *p, size_t n, uint32_t samples);
/* The oldest, in place of what `out` held. 0, or -ENOENT when none waits. */
int spool_head(struct spool *q, struct buf *out, uint32_t *ret_samples);
/* It is done with. Only right after spool_head(). */
void spool_pop(struct spool *q);
void spool_stats(const struct spool *q, struct spool_stats *ret);

/* Length of the whole records at the begin of a file's bytes; how many records, how many samples. Pure: for tests. */
size_t spool_scan(const void *p, size_t n, uint32_t *ret_records, uint64_t *ret_samples);

#endif

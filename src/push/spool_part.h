/* SPDX-License-Identifier: MIT
 *
 * The inside of a queue, for its two files: spool.c (records come and go) and spool_folder.c (what a folder holds).
 */
#ifndef SPOTTER_PUSH_SPOOL_PART_H
#define SPOTTER_PUSH_SPOOL_PART_H

#include "base/buf.h"
#include "push/spool.h"

#include <stdbool.h>

enum {
	SPOOL_SEGMENTS = 8,       /* the bound in files, so that an eighth of it goes at a time */
	SPOOL_SEGMENTS_MAX = 64,  /* found ones may be smaller */
	SPOOL_MAGIC = 0x31515053, /* "SPQ1" */
};

/* In front of each record; little-endian as is every machine we run on. */
struct spool_header {
	uint32_t magic, length, samples;
	uint32_t crc; /* crc32c of length, samples and payload */
};

struct spool_segment {
	uint64_t number; /* of its name: 16 hex digits */
	int fd;
	uint64_t size, read; /* whole records up to size; those up to read are done with */
	uint32_t records;    /* behind read */
	uint64_t samples;
};

struct spool {
	int folder, lock, position; /* -1: in memory */
	uint64_t max_bytes, bytes, next_number;
	struct spool_segment segments[SPOOL_SEGMENTS_MAX]; /* oldest first */
	size_t n;
	uint64_t head_bytes; /* of the record spool_head() gave out; 0: none */
	uint32_t head_samples;
	struct buf scratch;
	struct spool_stats stats;
};

uint32_t spool_crc(const struct spool_header *h, const void *payload);
/* Reads a record of the segment at this offset into q->scratch: 0, -EBADMSG when it is none, or -errno. */
int spool_read(struct spool *q, const struct spool_segment *s, uint64_t at,
	       struct spool_header *ret);
/* Closes the oldest file and removes it. */
void spool_remove_first(struct spool *q);

/* Takes the folder and what it holds; opens a new file in it; notes what is done with. */
int spool_folder_open(struct spool *q, const char *path, struct err *e);
int spool_folder_create(struct spool *q, uint64_t number);
void spool_folder_remove(struct spool *q, uint64_t number);
void spool_folder_note(struct spool *q, uint64_t number, uint64_t read);

#endif

/* SPDX-License-Identifier: MIT
 *
 * Marks of a program on their way to the recorder: a ring in a file of shared memory, one a process.
 * Whoever writes never waits and never asks who reads: it takes the next number, fills that slot and
 * writes the number behind it. Whoever reads never writes (the program's memory is not ours): it follows
 * the numbers, and a slot that holds a later number than the one it looked for was overwritten, and is
 * counted as lost.
 *
 * The file is $SPOTTER_MARKS/PID-TICKS.ring (a folder of mode 0700 that the recorder made; TICKS: start of
 * the process, from /proc/PID/stat), allocated before it is mapped: a full /dev/shm means no ring, never a
 * SIGBUS. A reader takes nothing in it for granted.
 *
 *	header  4096 bytes
 *	names   RING_NAMES x 64 bytes: filled in order, never changed
 *	slots   RING_SLOTS x 64 bytes
 *
 * Numbers are little-endian, as is every machine we run on.
 */
#ifndef SPOTTER_MARK_RING_H
#define SPOTTER_MARK_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RING_MAGIC   0x31474e4952544f50ull /* "POTRING1" */
#define RING_VERSION 1u

enum {
	RING_HEADER = 4096,
	RING_NAME_BYTES = 64,
	RING_NAMES = 1024,
	RING_SLOTS = 4096, /* a power of two; 4 s of 1000 steps a second */
	RING_BYTES = RING_HEADER + RING_NAMES * RING_NAME_BYTES + RING_SLOTS * 64,
};

enum mark_kind {
	MARK_NONE,
	MARK_STEP,        /* number, value: loss or NAN */
	MARK_SCALAR,      /* name, value */
	MARK_PHASE_BEGIN, /* name */
	MARK_PHASE_END,   /* name */
	MARK_DATA_WAIT,   /* number: ns waited, ending now */
	MARK_MICRO_STEP,  /* a batch that did not end a step (gradient accumulation) */
	MARK_EPOCH,       /* number */
	MARK_SETTING,     /* name "dataloader.num_workers", value: what the program set */
	MARK_SOURCE,      /* name: who marks steps: "torch", "keras", "api"...; once */
	MARK_KINDS,
};

/* One cache line. */
struct ring_slot {
	_Atomic uint64_t turn; /* 2n+1 while mark n is written, 2n+2 when it is there */
	int64_t t_ns;          /* CLOCK_MONOTONIC */
	uint64_t number;
	double value;
	uint32_t kind, name; /* name: place in names + 1, 0: none */
	uint32_t check; /* of all the above: a writer that slept for a whole lap is found out */
	uint32_t spare[5];
};

/* What `check` holds for mark n: so that whatever is mixed from two marks fits neither. */
static inline uint32_t ring_check(uint64_t n, const struct ring_slot *s)
{
	const uint64_t odd = 0x9e3779b97f4a7c15ull; /* 2^64 / golden ratio */
	uint64_t value, x = (n + 1) * odd;

	__builtin_memcpy(&value, &s->value, sizeof(value));
	x = (x ^ x >> 29 ^ (uint64_t)s->t_ns) * odd;
	x = (x ^ x >> 31 ^ s->number) * odd;
	x = (x ^ x >> 30 ^ value) * odd;
	x = (x ^ x >> 29 ^ ((uint64_t)s->kind << 32 | s->name)) * odd;
	return (uint32_t)(x >> 32);
}

struct ring_header {
	uint64_t magic;
	uint32_t version, slots, names, bytes;
	int32_t pid, rank, world; /* rank, world: -1 not known */
	_Atomic uint32_t unnamed; /* marks left out because there was no room for their name */
	_Atomic uint64_t head;    /* number of the next mark */
	_Atomic uint32_t named;   /* names that were given out; may pass RING_NAMES by a few */
	_Atomic uint32_t ended;   /* 1: the process said goodbye */
};

/* Writing (libspotter). */
struct ring;
/* The ring of this process in the folder, which must be ours with mode 0700; NULL: none (any reason). One
 * that is there already is taken up where it stands: of this process before an exec, or of another copy
 * of the library in it. */
struct ring *ring_create(const char *folder);
/* Lets go of it, whoever may be writing: in the child after a fork. Leaves some address space behind. */
void ring_forget(struct ring *r);
/* The process ends: says so. Marks of other threads may still come. */
void ring_end(struct ring *r);
/* Both. */
void ring_close(struct ring *r);
/* 0: no room, or not a name. */
uint32_t ring_name(struct ring *r, const char *name);
void ring_put(struct ring *r, enum mark_kind kind, uint32_t name, uint64_t number, double value,
	      int64_t t_ns);

/* Reading (the recorder). */
struct ring_reader;
struct mark {
	enum mark_kind kind;
	int64_t t_ns;
	uint64_t number;
	double value;
	const char *name; /* "" none; good until the reader is closed; anything but NUL */
};
/* 0; -EINVAL: no ring, or of another version; -errno. */
int ring_open(struct ring_reader **ret, int folder_fd, const char *file);
/* The same of a descriptor, which is the reader's from then on, whatever the answer. */
int ring_open_fd(struct ring_reader **ret, int fd);
void ring_reader_close(struct ring_reader *r);
/* As of the last ring_next(): rank and world checked, the rest as the program left it. */
const struct ring_header *ring_head(const struct ring_reader *r);
/* The next mark: 1, 0 none now. *lost grows by those that were overwritten before they were read. */
int ring_next(struct ring_reader *r, struct mark *ret, uint64_t *lost);

#endif

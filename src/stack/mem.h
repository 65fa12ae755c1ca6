/* SPDX-License-Identifier: MIT
 *
 * Reading the memory of another process, without its knowing: process_vm_readv, many pieces a call,
 * in the order given; where a seccomp filter refuses that call, pread on /proc/PID/mem. Nothing here
 * stops, signals or writes to anybody. Reading needs the same right as attaching a debugger; who does
 * not have it is told which of the several locks is shut.
 *
 * The source is pluggable: tests and fuzz targets feed images of memory.
 */
#ifndef SPOTTER_STACK_MEM_H
#define SPOTTER_STACK_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct err;

/* n bytes at address `at` of the target go to `to`. `failed` is set by the reader: not mapped. */
struct mem_piece {
	uint64_t at;
	void *to;
	uint32_t n;
	bool failed;
};

enum mem_refusal {
	MEM_OK,
	MEM_GONE,         /* no such process (any more) */
	MEM_OTHER_USER,   /* its user or group ids are not ours, and we lack CAP_SYS_PTRACE */
	MEM_NOT_DUMPABLE, /* it, or its file's mode, asked not to be looked into */
	MEM_YAMA,         /* kernel.yama.ptrace_scope allows ancestors, root or nobody only */
	MEM_SECCOMP,      /* a filter on us refuses both ways */
	MEM_UNKNOWN,
};

struct mem {
	pid_t pid;
	int fd;       /* /proc/PID/mem, -1 while process_vm_readv works */
	bool by_file; /* process_vm_readv is refused: pread on fd */
	/* How pieces are read when there is no process: 0 or -errno, and sets `failed`. */
	int (*source)(void *arg, struct mem_piece *pieces, size_t n);
	void *arg;
	bool timed;            /* the source is of something that goes on while it is read */
	uint64_t calls, bytes; /* system calls made for reading, bytes asked for */
};

/* A process; reads nothing yet. Close with mem_close(). */
void mem_open(struct mem *m, pid_t pid);
void mem_open_source(struct mem *m, int (*source)(void *, struct mem_piece *, size_t), void *arg);
void mem_close(struct mem *m);

/* Reads the pieces in order, one call per 1024 of them when all are mapped. A piece that cannot be
 * read whole is marked and the others are read. 0; -ESRCH: gone; -EPERM: not allowed (see
 * mem_refusal()). */
int mem_read_pieces(struct mem *m, struct mem_piece *pieces, size_t n);
/* One piece: 0, -EFAULT when not mapped, or as above. */
int mem_read(struct mem *m, uint64_t at, void *to, size_t n);
int mem_read_u64(struct mem *m, uint64_t at, uint64_t *ret);

/* Why a process may not be read; the words for it go to `e` (which may be NULL). */
enum mem_refusal mem_refusal(const struct mem *m, struct err *e);

#endif

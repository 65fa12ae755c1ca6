/* SPDX-License-Identifier: MIT
 *
 * The system calls in which threads wait, as a table.
 */
#ifndef SPOTTER_STACK_WAIT_CALLS_H
#define SPOTTER_STACK_WAIT_CALLS_H

#include <stddef.h>
#include <stdint.h>

/* How the arguments tell what is waited for. */
enum call_shape {
	CALL_FD,       /* the first argument is a descriptor */
	CALL_FILE,     /* a path or all of storage */
	CALL_FILELOCK, /* first argument a descriptor, waits for a lock on it */
	CALL_FUTEX,    /* the first argument is the address, the second the operation */
	CALL_FUTEX2,   /* futex_wait(): the address, without the operation's flags */
	CALL_SEMAPHORE,
	CALL_POLL,   /* array, count */
	CALL_SELECT, /* count, three bitmaps */
	CALL_EPOLL,  /* the first argument is the epoll's descriptor */
	CALL_SLEEP,
	CALL_WAIT4,  /* pid first */
	CALL_WAITID, /* kind of id, id */
	CALL_QUEUE,
	CALL_MEMORY,  /* the kernel's management of memory */
	CALL_RESTART, /* any of the above that a signal has interrupted */
	CALL_OTHER,
};

enum call_machine { CALL_X86_64, CALL_AARCH64 };

struct call_row {
	const char *name;
	int16_t nr[2]; /* by call_machine; -1: that machine has none */
	enum call_shape shape;
};

extern const struct call_row call_rows[];
extern const size_t call_rows_n;

#if defined(__aarch64__)
#define CALL_MACHINE_HERE CALL_AARCH64
#else
#define CALL_MACHINE_HERE CALL_X86_64
#endif

/* NULL: not in the table. */
const struct call_row *call_find(enum call_machine machine, int64_t nr);

#endif

/* SPDX-License-Identifier: MIT
 *
 * What a thread is doing at a moment: the word that a look at it (stack/wait) finds, that a record keeps
 * by name, and that ledgers read.
 */
#ifndef SPOTTER_MODEL_WAIT_KIND_H
#define SPOTTER_MODEL_WAIT_KIND_H

enum wait_kind {
	WAIT_UNKNOWN,    /* it may not be looked at, or nothing told what it waits for */
	WAIT_RUNNING,    /* on a CPU */
	WAIT_RUNNABLE,   /* queued for a CPU */
	WAIT_GIL,        /* a futex inside the GIL of its interpreter */
	WAIT_LOCK,       /* any other futex, a semaphore, a lock on a file */
	WAIT_PIPE,       /* a pipe or FIFO; wait_state.peer: whose */
	WAIT_QUEUE,      /* a message queue of the kernel */
	WAIT_FILE,       /* a call on a file, not in the disk's hands */
	WAIT_SOCKET,     /* any socket, also between two processes of this machine */
	WAIT_POLL,       /* several descriptors, or one by poll(); wait_state.on: what they are */
	WAIT_SLEEP,      /* for a time only */
	WAIT_CHILD,      /* the end of a process */
	WAIT_GPU_DRIVER, /* a call on the device of a GPU */
	WAIT_DISK,       /* a file, in uninterruptible sleep: storage */
	WAIT_PAGE_FAULT, /* memory that is not there yet, or the kernel's management of it */
	WAIT_TERMINAL,
	WAIT_STOPPED, /* by a signal or a debugger */
	WAIT_OTHER,   /* a system call that is none of these; wait_state.call */
	WAIT_KINDS,
};

/* "gil", "pipe"...; "unknown" for what is none. */
const char *wait_kind_name(enum wait_kind kind);
/* WAIT_UNKNOWN for a name this version does not know. */
enum wait_kind wait_kind_by_name(const char *name);

#endif

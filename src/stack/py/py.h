/* SPDX-License-Identifier: MIT
 *
 * The Python stacks of another process, from outside, without pausing it: CPython 3.8 to 3.14.
 *
 * A running interpreter overwrites its frames in place, so a stack that is read while it runs may be
 * stitched together from two. Here all that a sample needs is read twice in one call, and a stack
 * counts only where both readings agree down to the thread's first frame ("double collect"), no frame
 * denies that it has called the next, and nothing kept the reading from going on in the middle, or,
 * where that is not sure, a third one agrees as well. Where they do not agree after a few tries the outer
 * frames that do are given, marked partial. A frame that is not proven is never given.
 *
 * C functions have no frame: what they do shows as the line that called them. A pid is taken as it is:
 * whoever samples over hours makes sure that it is still the same process (by its start time).
 *
 * One thread at a time may use a py_process. In steady state a sample is one process_vm_readv and
 * allocates nothing.
 */
#ifndef SPOTTER_STACK_PY_PY_H
#define SPOTTER_STACK_PY_PY_H

#include "base/vec.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct err;
struct mem;
struct py_process;

#define PY_OFFSET_UNKNOWN INT32_MIN /* which line of the function is not known */

enum py_status {
	PY_COMPLETE,
	PY_PARTIAL,  /* the outermost frames; what they call at the moment is not known */
	PY_EMPTY,    /* the thread runs no Python code */
	PY_UNPROVEN, /* nothing could be proven: no frames */
};

struct py_frame {
	uint32_t code;  /* for py_code() */
	int32_t offset; /* of the instruction, bytes from the start of the code, for py_line() */
};

struct py_thread {
	pid_t tid; /* as we see it, whatever namespace it lives in; 0: not known */
	uint32_t interpreter;
	bool holds_gil; /* when the sample began */
	enum py_status status;
	uint32_t first, n; /* its frames in py_stacks.frames, innermost first */
};

/* Filled by py_sample(), owned by the caller: {0} at first, kept for the next sample, py_stacks_done()
 * at the end. */
struct py_stacks {
	VEC(struct py_thread) threads;
	VEC(struct py_frame) frames;
	bool collecting; /* a garbage collection was under way */
};

void py_stacks_done(struct py_stacks *s);

/* Text of a function, UTF-8; may hold anything but NUL. The pointers stay good until the next
 * py_sample(). */
struct py_function {
	const char *name; /* qualified from 3.11 on ("Trainer.step"), the bare name before */
	const char *file;
	int32_t first_line;
};

struct py_range {
	uint64_t start, end;
};

/* Since attaching. */
struct py_counts {
	uint64_t samples;
	uint64_t complete, partial, empty, unproven; /* thread stacks, by status */
	uint64_t retries;                            /* readings that had to be done again */
	uint64_t late;  /* those that took so long that they proved nothing */
	uint64_t calls; /* system calls for reading memory */
	uint64_t bytes;
	uint64_t reused; /* addresses of code found to hold other code than before */
};

/* Finds the interpreter, its version and its threads, and tests that what is read makes sense.
 * `like`: a process that may have the same layout and addresses (the parent of a forked one), or NULL.
 * -ENOENT: no Python in it. -EAGAIN: it is not that far yet, try again later. -ENOTSUP: a version or
 * build that we cannot read. -ESRCH, -EPERM: gone, not allowed; the words say by whom. */
int py_attach(struct py_process **ret, pid_t pid, const struct py_process *like, struct err *e);
/* The same for memory that is no process: `maps` is the text of its /proc/PID/maps. The memory stays
 * the caller's. */
int py_attach_memory(struct py_process **ret, struct mem *m, const char *maps, size_t maps_n,
		     struct err *e);
void py_detach(struct py_process *p);

/* All threads of all interpreters; where they come and go too fast for that, those of last time, unproven.
 * 0; -ESRCH: the process has ended; -ESTALE: it is no longer the one
 * that was attached to (execve, or its interpreter has ended): detach, and attach anew; -EPERM. */
int py_sample(struct py_process *p, struct py_stacks *out);

/* Of a frame of the last sample: functions that were not seen for long are forgotten when there are too
 * many, and get another number when they are met again. NULL: no such function. */
const struct py_function *py_code(const struct py_process *p, uint32_t code,
				  struct py_function *ret);
/* The source line of an instruction; 0: it has none, or it is not known. */
int32_t py_line(const struct py_process *p, uint32_t code, int32_t offset);

/* PY_VERSION_HEX; before 3.11 only the minor version is known (0x030a0000). */
uint32_t py_version(const struct py_process *p);
/* Where interpreter i's GIL is: who waits on a futex in there waits for the GIL. False: no such. */
bool py_gil(const struct py_process *p, uint32_t interpreter, struct py_range *ret);
struct py_counts py_counts(const struct py_process *p);

#endif

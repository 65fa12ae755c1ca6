/* SPDX-License-Identifier: MIT
 *
 * Where in native code a thread of another process is, from outside and without pausing it: library
 * and symbol.
 *
 * A thread that waits has its program counter and stack pointer in /proc/PID/task/TID/syscall; its
 * callers follow from the unwind tables (.eh_frame), which are part of what is mapped. Files are opened
 * only for names that they do not export (.symtab), by a thread of its own. A thread that runs is only
 * seen by a sampled instruction pointer (perf_event_open, CPU clock, user space only), where that is
 * permitted; its callers by the registers and the copy of its stack that the kernel takes at that moment.
 *
 * A frame is told only when it is proven by an unwind rule; nothing is guessed by looking for addresses
 * that look like code.
 *
 * One thread at a time may use these. Seeing the same place again allocates nothing.
 */
#ifndef SPOTTER_STACK_NATIVE_NATIVE_H
#define SPOTTER_STACK_NATIVE_NATIVE_H

#include "stack/mem.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct err;
struct native_process;
struct native_shared;
struct native_perf;

enum { NATIVE_FRAMES_MAX = 64 };

/* A place in native code. The pointers stay good until native_close(). */
struct native_place {
	const char *symbol; /* "cuStreamSynchronize"; "" no symbol covers the address */
	const char *file;   /* path of what is mapped there, "[vdso]", or "" for anonymous memory */
	bool libc;          /* of the C library, libpthread or the vdso: what waits, not what for */
	bool pending; /* it is not exported: the file is asked, and some ms later it may be known */
};

/* What processes that map the same files have in common: symbols and unwind rules of an image are read
 * once, for all of them. 8 MB of symbols at most, and some 4 of rules and names. -ENOMEM. Is closed
 * behind the processes. */
int native_shared_open(struct native_shared **ret);
void native_shared_close(struct native_shared *s);

struct native_counts {
	uint64_t built;   /* tables of symbols that were read, again as well */
	uint64_t dropped; /* to make room; read again when they are needed */
	size_t tables;    /* of an image each, also of processes that have ended */
	size_t bytes;     /* of symbols now */
};
struct native_counts native_shared_counts(const struct native_shared *s);

/* -ENOMEM. Reads nothing yet. shared may be NULL: then it has its own. */
int native_open(struct native_process **ret, struct native_shared *shared, pid_t pid);
void native_close(struct native_process *p);

/* What code or image an address is in; false: none that we know. Mappings are read again when an unknown
 * address turns up: a few times a second, less often the longer reading takes and the longer nothing is
 * found (half a minute at most). now_ns is any steady clock. Of a return address ask for the byte before
 * it: behind the call may be another function already. */
bool native_place(struct native_process *p, uint64_t address, int64_t now_ns,
		  struct native_place *ret);

/* Return addresses of a waiting thread from its pc and sp, innermost (pc itself) first: how many. Each
 * is proven by the unwind tables; the walk ends where they, or the registers we know, end. It must be
 * checked by the caller that the thread did not run meanwhile (schedstat unchanged, pc and sp equal). */
size_t native_unwind(struct native_process *p, uint64_t pc, uint64_t sp, int64_t now_ns,
		     uint64_t *addresses, size_t max);

/* The last native_unwind() came to the outermost function. */
bool native_unwound(const struct native_process *p);

/* A running thread at one moment: its registers, and what was on its stack. */
struct native_sample {
	uint64_t pc, sp;
	int64_t ns;             /* CLOCK_MONOTONIC */
	uint64_t registers[33]; /* by the numbers of unwind rules */
	uint64_t known;         /* bit per register; 0: no callers can be had from it */
	const uint8_t *stack;   /* from sp upwards */
	size_t stack_n;
};

/* As native_unwind(), of a thread that ran: its stack is read from the copy only. Each return address
 * also has a call before it that leads to the function within; the walk ends at the first doubt.
 * *ret_whole: it came to the outermost function. */
size_t native_unwind_sample(struct native_process *p, const struct native_sample *sample,
			    int64_t now_ns, uint64_t *addresses, size_t max, bool *ret_whole);

/* Sampled instruction pointers of threads, at this rate of their CPU time; hz 0: on demand only, see
 * native_perf_arm(). Opening never fails for want
 * of rights only: see native_perf_refusal(). -ENOMEM. threads: most that are watched at a time. */
int native_perf_open(struct native_perf **ret, double hz, size_t threads);
void native_perf_close(struct native_perf *p);
/* Begins to watch a thread (no matter if it is watched already; no longer for its callers). 0; -EPERM: not permitted (then nothing
 * is); -EACCES: not this one, which is another user's; -ENOSPC: as many as we may; -ESRCH. */
int native_perf_watch(struct native_perf *p, pid_t tid);
/* Begins to watch a thread so that its callers can be had: on demand only, and of a few threads at a
 * time, as each takes 36 KB of the memory that a user may lock: who was asked longest ago makes room.
 * Where the kernel refuses that it is watched as by native_perf_watch(): what that says is returned, and
 * native_perf_no_callers() tells. */
int native_perf_watch_callers(struct native_perf *p, pid_t tid);
/* Why callers of running threads are not had though sampling them is permitted; false: they are, or it
 * has not been tried. */
bool native_perf_no_callers(const struct native_perf *p, struct err *e);
/* Also of threads that have ended: their number may be used again. */
void native_perf_forget(struct native_perf *p, pid_t tid);
/* The newest sample of a thread that has not been given before: user-space call chain as far as frame
 * pointers reach, innermost first (at least 1), and when (CLOCK_MONOTONIC). 0: none new. Only the first
 * is proven: the kernel follows rbp whether or not the code keeps frame pointers (most does not), so
 * that the others may be anything. */
size_t native_perf_newest(struct native_perf *p, pid_t tid, uint64_t *addresses, size_t max,
			  int64_t *ret_ns);
/* The newest sample, as above, of a thread however it is watched. The stack is good until the next call. */
bool native_perf_sample(struct native_perf *p, pid_t tid, struct native_sample *ret);
/* On demand: from arming to disarming the thread is sampled every 20 us of its CPU time, and at no other
 * time. Each costs an interrupt of the CPU the thread is on (some us, in a virtual machine 20). A thread
 * that does not run gives no sample. One that is watched for its callers is sampled once, after 200 us
 * of its CPU time, and need not be disarmed then. */
void native_perf_arm(struct native_perf *p, pid_t tid);
void native_perf_disarm(struct native_perf *p, pid_t tid);
/* Why not, and the command that changes it; false: it is permitted, or has not been tried. */
bool native_perf_refused(const struct native_perf *p, struct err *e);
/* Tries once, on ourselves: 0, or -errno and the words. For doctor. */
int native_perf_try(struct err *e);

#endif

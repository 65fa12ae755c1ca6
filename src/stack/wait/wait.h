/* SPDX-License-Identifier: MIT
 *
 * What a thread of another process is doing: running, queued for a CPU, or waiting, and for what. From
 * outside and without pausing it.
 *
 * The kernel says which system call a sleeping thread is in and with what arguments
 * (/proc/PID/task/TID/syscall, by the right to attach a debugger, as for reading memory). Where that
 * is refused, what is left is the state letter and the kernel function it sleeps in (stat, wchan):
 * `by` says which of the two an answer rests on.
 *
 * One thread at a time may use a wait_process. Once a thread has been seen, seeing it again allocates
 * nothing.
 */
#ifndef SPOTTER_STACK_WAIT_WAIT_H
#define SPOTTER_STACK_WAIT_WAIT_H

#include "model/wait_kind.h"
#include "stack/mem.h"
#include "stack/py/py.h"

enum wait_by {
	WAIT_BY_NOTHING,
	WAIT_BY_STATE,  /* letter and kernel function */
	WAIT_BY_SYSCALL /* the call with its arguments */
};

#define WAIT_WHAT_SIZE 96

struct wait_state {
	enum wait_kind kind;
	enum wait_kind
	    on; /* WAIT_POLL: what its descriptors are, by the first 16; WAIT_OTHER: they differ */
	enum wait_by by;
	char letter;      /* of /proc/PID/stat; 0: was not asked for */
	int32_t nr;       /* of the system call; -1: in none, or not known */
	const char *call; /* its name, NULL: in none, or not in our table */
	int32_t fd;       /* -1: none */
	pid_t
	    peer; /* WAIT_PIPE, also by poll: the one process at the other end; 0: not known, or several */
	uint32_t peers;  /* how many have the other end open */
	uint64_t pc, sp; /* in user space; 0: not known (a running thread's are never) */
	bool has_sched;
	uint64_t run_ns, queue_ns; /* on and queued for a CPU, since the thread began */
	uint64_t slices;           /* how often it was put on a CPU; 0: not known */
	/* WAIT_RUNNABLE: it has not waited for anything since the last look, so it was taken off the CPU in
	 * the middle of what it does (by us, it may be: who looks needs a CPU). Otherwise it may have been
	 * woken just now, and stand where it waited. */
	bool preempted;
	char
	    what[WAIT_WHAT_SIZE]; /* "pipe from pid 4711", "/data/a.tar", "TCP socket"; may be "" */
};

struct wait_job;
struct wait_process;

/* What the processes of a job share: who has which pipe open, and how many descriptors all of them may
 * keep (three or so a thread; threads above that cost an open() a look). -ENOMEM. */
int wait_job_open(struct wait_job **ret, size_t descriptors);
/* Behind all its wait_close(). */
void wait_job_close(struct wait_job *j);
/* The processes among which the other ends of pipes are looked for: copied, at most WAIT_JOB_MAX. */
#define WAIT_JOB_MAX 256
void wait_job_set(struct wait_job *j, const pid_t *pids, size_t n);

/* -ENOMEM. A refusal is no error: see wait_state.by and wait_refusal(). */
int wait_open(struct wait_process **ret, struct wait_job *j, pid_t pid);
void wait_close(struct wait_process *p);

/* The ranges of the GILs of this process, from py_gil(): copied, at most WAIT_GILS_MAX. */
#define WAIT_GILS_MAX 16
void wait_set_gils(struct wait_process *p, const struct py_range *gils, size_t n);

/* One thread, now (now_ns: any steady clock). 0; -ESRCH: it has ended; -ENOMEM. Running and runnable look alike at the moment
 * itself but for one thing: one that runs was put on a CPU once more often than it was taken off. Where
 * the kernel does not count (no schedstats), what its accounts say since the last look decides: then the
 * first look always says running, and one label between two looks is the larger share. */
int wait_see(struct wait_process *p, pid_t tid, int64_t now_ns, struct wait_state *ret);
/* Has the thread, which waited when it was last seen, not been on a CPU since? Then it waits for the same
 * still, or was woken a moment ago and is queued. A third of the price of wait_see(), and no lock is taken
 * that its scheduler needs. False also when it is not known. */
bool wait_stands(struct wait_process *p, pid_t tid);
/* Drops threads that have not been looked at since the last call of this. */
void wait_sweep(struct wait_process *p);

/* Why system calls may not be looked at, and what to do. MEM_OK: they may. */
enum mem_refusal wait_refusal(const struct wait_process *p, struct err *e);

#endif

/* SPDX-License-Identifier: MIT
 *
 * The parts of a wait_process, for the files of this folder.
 */
#ifndef SPOTTER_STACK_WAIT_PROCESS_H
#define SPOTTER_STACK_WAIT_PROCESS_H

#include "base/map.h"
#include "stack/wait/parse.h"

#define WAIT_PIPES_MAX 4096 /* ends of pipes known of a job */
#define WAIT_FDS       64   /* descriptors of a process remembered, a power of two */

enum wait_file {
	WAIT_F_SYSCALL,
	WAIT_F_SCHED,
	WAIT_F_STAT,
	WAIT_F_WCHAN,
	WAIT_F_STATUS,
	WAIT_FILES
};

struct wait_thread {
	pid_t tid; /* 0: a free place */
	int fd[WAIT_FILES];
	bool seen;             /* since the last sweep */
	int64_t refused_ns;    /* when the system call was refused last; 0: it was not */
	struct wait_call call; /* at the last look */
	bool known;            /* there was a look before */
	enum wait_kind cpu;    /* running or runnable at the last look; else WAIT_UNKNOWN */
	int64_t moved_ns;      /* when it was last seen off the CPU, or its account to have moved */
	uint64_t run, queue;   /* its accounts at the last look */
	uint64_t slices;       /* how often it had been put on a CPU then; 0: not known */
	uint64_t left;         /* how often it had left a CPU by itself, at the last look... */
	bool left_known;       /* ...if that was asked */
};

/* What a descriptor of the target is. */
struct wait_fd {
	int32_t fd;
	bool used;
	bool reads, writes; /* what it was opened for */
	enum wait_kind kind;
	int64_t checked_ns;
	uint64_t inode;
	char link[WAIT_WHAT_SIZE]; /* a longer one is cut */
	char protocol[24];         /* of a socket: "TCP", "UNIX-STREAM"; "": not known */
};

struct wait_pipe {
	uint64_t inode;
	pid_t pid;
	bool reads, writes;
};

struct wait_job {
	size_t descriptors; /* that may be kept still */
	bool lazy_ticks; /* a CPU without timer ticks keeps its accounts up to date once a second */
	pid_t pids[WAIT_JOB_MAX];
	size_t pids_n;
	bool pids_new; /* since the pipes were listed */
	int64_t listed_ns, again_ns;
	bool cut; /* not all could be listed */
	struct wait_pipe pipes[WAIT_PIPES_MAX];
	size_t pipes_n;
};

struct wait_process {
	pid_t pid;
	struct wait_job *job;
	struct mem mem;
	bool stopped; /* its first thread was, at the last look */
	struct py_range gils[WAIT_GILS_MAX];
	size_t gils_n;
	struct map by_tid;
	VEC(struct wait_thread) threads;
	struct wait_fd fds[WAIT_FDS];
};

/* What fd is; NULL: closed, or may not be asked. max_age: how old what we know of it may be, ns. */
const struct wait_fd *wait_fd_get(struct wait_process *p, int64_t fd, int64_t now_ns,
				  int64_t max_age);
/* kind, peer and words of a wait on that descriptor. */
void wait_fd_tell(struct wait_process *p, const struct wait_fd *f, int64_t now_ns,
		  struct wait_state *ret);
/* A wait for several descriptors. */
void wait_poll_tell(struct wait_process *p, const struct wait_call *c, int shape, int64_t now_ns,
		    int64_t max_age, struct wait_state *ret);
/* How many other processes have the other end of a pipe; *ret_pid: which, when it is one. */
uint32_t wait_job_peers(struct wait_job *j, const struct wait_fd *f, pid_t self, int64_t now_ns,
			pid_t *ret_pid);

#endif

/* SPDX-License-Identifier: MIT
 *
 * R's side: it forks the program, lets go of everything that is the program's, runs the body it was
 * given, and meanwhile waits for the program and for orphans that fall to it.
 *
 * Signals: everything but faults is blocked before the body starts, and stays blocked in the threads
 * it starts (they inherit the mask) and in helpers it forks. What is sent to the process group
 * stays pending, so nothing but SIGKILL ends R by accident, and S can see that it came (relay.h).
 */
#ifndef SPOTTER_LAUNCH_RECORDER_H
#define SPOTTER_LAUNCH_RECORDER_H

#include "base/buf.h"
#include "launch/launch.h"
#include "launch/witness.h"

struct program;

enum { LAUNCH_WORDS_MAX = 64 << 10 }; /* bytes */

struct launch_run {
	const struct launch *l;
	pid_t program;
	pid_t supervisor;
	int supervisor_fd; /* pidfd of S, or -1 */
	int death_signal;  /* PR_SET_PDEATHSIG as S found it: what the program gets if S dies */
	int channel;       /* -1 once S is gone */
	int children;      /* signalfd: SIGCHLD */
	int exec_fd;       /* closes when the program has been exec'ed; -1 then */
	int exec_error;
	struct witness witness;
	bool stopped; /* the program is, and R has stopped S */
	bool retry;   /* S, stopped, had no room for the status */
	bool told;    /* S knows the status, or is gone */
	bool exited;  /* and the program has been reaped */
	bool leave;   /* S has had enough of waiting for orphans */
	bool ended;
	struct launch_end end;
	struct buf words; /* said before the program's end */
};

/* In R, right after the fork from S, with the supervisor's end of the channel still open. */
void recorder_main(const struct launch *l, const struct program *p, pid_t supervisor, int channel)
    __attribute__((noreturn));

/* One round of waiting, until something happened or timeout_ns passed (-1: none). */
void recorder_poll(struct launch_run *run, int64_t timeout_ns);
/* Passes a stop or a continuation of the program on to S. */
void recorder_stops(struct launch_run *run);
/* Sends what has been said so far; waits at most a second for S to take it. */
void recorder_speak(struct launch_run *run);

#endif

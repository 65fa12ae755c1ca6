/* SPDX-License-Identifier: MIT
 *
 * Starting the program without being felt. S, the supervisor (the process the user started), forks
 * R, the recorder; R forks and execs the program. Both are subreapers: if R dies, the program falls
 * to S and goes on untouched, and S still returns its status.
 *
 *	S supervisor --- R recorder --- the program (its tree)
 *
 * All stay in one process group and session. Before exec the program gets back everything as the
 * supervisor found it: signal mask and dispositions, descriptors, rlimits, environment (plus what
 * `env` adds), working folder, priority. This folder knows nothing of recording.
 */
#ifndef SPOTTER_LAUNCH_LAUNCH_H
#define SPOTTER_LAUNCH_LAUNCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

struct err;
struct launch_run; /* R's side, opaque */

struct launch {
	char *const *argv; /* argv[0] is looked up in PATH as execvp does */
	char *const *env;  /* "NAME=value" to add or replace, NULL-terminated; NULL: nothing */
	bool wait_orphans; /* --wait: the run ends when the last descendant has ended */
	/* The recorder's body, called in R with the program's pid once it has been exec'ed (or
	 * right after fork). Must return soon after launch_wait() said the program ended. What it
	 * writes with launch_say() is shown by S on stderr after the program has ended. */
	void (*record)(struct launch_run *run, void *arg);
	/* Called in R, inside launch_wait(), when the program has ended and before it is reaped: the
	 * last look at its counters while the zombie still has them. NULL: nothing. */
	void (*ended)(struct launch_run *run, void *arg);
	void *arg;
	/* S waits at most this long after the program's end for R's words; then goes without. */
	int64_t patience_ns;
	/* Written when launch() gives 0, unless NULL: 0 when R's body has returned in time;
	 * -ETIMEDOUT when it was still at it; else the status R died with, as waitpid gives it. */
	int *ret_recorder;
};

struct launch_end {
	int status;          /* as waitpid gives it */
	struct rusage usage; /* of the program and all descendants that were waited for */
	bool orphans_left;   /* descendants still alive when the run ended */
};

/* S's side, called by `spotter run` while it has one thread. Forks R and the program, relays
 * signals, shows R's words, and gives 0 with the status as waitpid would give it; -errno when the
 * program could not be started: -ENOENT not found (exit 127), -EACCES/-ENOEXEC not executable (126),
 * others Spotter's own (125).
 *
 * After 0 this process has let go of everything but stderr (stdin and stdout are /dev/null, all
 * other descriptors closed, so that readers of the program's pipes see its end), and signals stay
 * blocked, so that none can take the place of the program's status: show nothing but on stderr, and
 * end with launch_exit(). After an error signals are as they were, but stdin and stdout may be gone
 * as well. */
int launch(const struct launch *l, int *ret_status, struct err *e);

/* Ends this process as the program ended: same code, or the same signal raised on itself with core
 * dumps off. Never returns. */
void launch_exit(int status) __attribute__((noreturn));

/* R's side, for its main thread alone. In R stdio is /dev/null, every descriptor S had is closed
 * (open what you need in `record`), and all signals but faults are blocked; so they are in threads
 * and helpers it starts, and must stay. A helper process of R's own is cloned with exit signal 0 and
 * waited for with __WCLONE: one made by fork() would be taken for an orphan of the program. */
pid_t launch_pid(const struct launch_run *run);
/* Blocks until the program ended (and with wait_orphans all descendants) or until timeout_ns passed
 * (-1: none). 1 with *ret filled when it ended, 0 on timeout. Reaps orphans meanwhile, passes stops
 * on, and tells S the status: who calls it rarely makes S wait (it looks for itself after 1 s). */
int launch_wait(struct launch_run *run, int64_t timeout_ns, struct launch_end *ret);
/* CPU time of all descendants that R itself has reaped so far, and of those they had waited for
 * (orphans of the tree, at the end the program too), in ns. From any thread; about 1 us. */
int64_t launch_reaped_cpu_ns(const struct launch_run *run);
/* Words for the user, shown by S after the program's end; nothing is shown if S is gone. 64 KB in
 * all, the rest is cut. */
void launch_say(struct launch_run *run, const char *text, size_t n);

#endif

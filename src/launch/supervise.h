/* SPDX-License-Identifier: MIT
 *
 * S's loop: one thread that sleeps in poll() on its signals, the channel from R and the program's
 * pidfd, and has nothing else to do.
 */
#ifndef SPOTTER_LAUNCH_SUPERVISE_H
#define SPOTTER_LAUNCH_SUPERVISE_H

#include "base/buf.h"
#include "launch/launch.h"
#include "launch/relay.h"

struct program;

struct supervisor {
	const struct launch *l;
	const struct program *program;
	struct relay relay; /* the program, R and the channel between */
	int signals;        /* signalfd; -1 until the program is there to pass them on to */
	bool started;       /* the program's pid is known */
	bool exited;        /* and its status */
	bool ended;         /* with wait_orphans: all have ended */
	bool left;          /* somebody made S stop waiting for orphans */
	bool done;          /* R has said all it had to */
	int status;
	int exec_error;      /* errno of the program's exec */
	int broken;          /* errno of what kept R from starting it */
	int recorder_end;    /* R's status when it died before it was done */
	int64_t silent_ns;   /* since when the program is known to have ended, R saying nothing */
	int64_t deadline_ns; /* for R's words; 0: not yet counting */
	struct buf words;
};

/* Until the program has ended and R has had its say: 0, or -errno when the program could not be
 * started (then R and the program are gone). */
int supervise(struct supervisor *s, struct err *e);
/* Our own failure to start it: the sentence, and a code that does not speak of the command. */
int supervise_failure(int error, struct err *e);

#endif

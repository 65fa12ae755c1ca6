/* SPDX-License-Identifier: MIT
 *
 * R as the witness of signals to the process group (relay.h): they stay pending in R until S has them
 * cleared, or until they are so old that S cannot be about to ask any more. An old one left lying
 * would make the next signal to S alone look like one to the group, and be lost.
 */
#ifndef SPOTTER_LAUNCH_WITNESS_H
#define SPOTTER_LAUNCH_WITNESS_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

enum { WITNESS_SIGNALS = 64 };

struct witness {
	sigset_t signals; /* those that are watched: all that S relays */
	int fd;           /* signalfd, never read: readable when there is one */
	bool pending;     /* there is; then the descriptor says nothing new */
	int64_t since_ns[WITNESS_SIGNALS + 1];
};

/* All are blocked already. 0 or -errno. */
int witness_open(struct witness *w);
void witness_clear(struct witness *w, int sig);
/* Looks what is there, and forgets what is old. How long until it shall be called again, in ns; -1
 * when the descriptor becomes readable. */
int64_t witness_look(struct witness *w, int64_t now_ns);
/* S is stopped and cannot ask: what is there stays, and does not get old meanwhile. */
void witness_rest(struct witness *w);

#endif

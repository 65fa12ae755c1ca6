/* SPDX-License-Identifier: MIT
 *
 * Which of the signals that reach S the program shall get from it. A terminal, `kill -- -PGID`, and
 * job control send to the whole process group, which the program is in: passing it on would be a
 * second one. `kill PID`, a batch system, or an alarm reach S alone.
 *
 * The sender does not say which it was, but R knows: it sits in the same group with everything
 * blocked, so what came to the group stays pending in R until S has it cleared. S reads that in
 * /proc/PID/status (about 7 us), whether R gets to run or not:
 *
 *	State:	S (sleeping)
 *	...
 *	ShdPnd:	0000000000004000
 */
#ifndef SPOTTER_LAUNCH_RELAY_H
#define SPOTTER_LAUNCH_RELAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct signalfd_siginfo;

enum relay_seen {
	RELAY_UNKNOWN, /* R is gone, or has not yet forgotten an earlier one */
	RELAY_ALONE,   /* R has not got it */
	RELAY_GROUP,   /* R has got it too */
};

/* All that the decision is made of. */
struct relay_case {
	int sig, code; /* si_code */
	pid_t from;    /* si_pid */
	pid_t recorder;
	bool same_group;     /* the program is still in S's process group */
	bool session_leader; /* S is: a terminal that goes away tells only the leader */
	enum relay_seen seen;
};

bool relay_wanted(const struct relay_case *c);

/* From R's /proc/PID/status: the state letter and what is pending for the process. */
bool relay_parse(const char *text, size_t n, char *ret_state, uint64_t *ret_pending);

struct relay {
	pid_t program;       /* 0: nobody to relay to */
	int pidfd;           /* of the program; -1: Linux before 5.3, then by pid */
	pid_t recorder;      /* 0: gone */
	int recorder_status; /* its /proc/PID/status, or -1 */
	int channel;         /* to R, or -1 */
	uint64_t clearing;   /* what R has been asked to forget and has not yet; bit n-1 */
};

/* Passes it on to the program if that is right. */
void relay_signal(struct relay *r, const struct signalfd_siginfo *si);
/* R has answered CHANNEL_CLEARED. */
void relay_cleared(struct relay *r, int sig);
bool relay_is_clearing(const struct relay *r, int sig);

#endif

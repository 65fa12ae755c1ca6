/* SPDX-License-Identifier: MIT
 *
 * Looking at what runs now, without a record: the sampler into the live history, for `top` and for
 * `why PID`. Ctrl-C ends the waiting, not the program, so that what was seen is still shown.
 */
#ifndef SPOTTER_CLI_LIVE_H
#define SPOTTER_CLI_LIVE_H

#include "engine/sampler.h"
#include "model/history.h"

struct err;

struct live {
	struct host host;
	struct sampler *sampler;
	struct history *history;
	struct frame frame;
	struct run_info run;
	pid_t pid;     /* 0: the whole machine */
	int64_t start; /* of it, in ticks after boot */
};

struct live_options {
	const char *root; /* fixture, NULL: this machine */
	pid_t pid;        /* root of the tree to look at, 0: every process */
	double hz;
	double stacks_hz;        /* looks at stacks a second; 0: none */
	double stacks_budget;    /* share of one core they may cost; 0: a look's, which is short */
	unsigned points;         /* ticks to remember */
	const char *const *only; /* collectors, NULL: all */
	const char *nvml;        /* GPU library, NULL: the usual one */
};

/* SIGINT, SIGTERM and SIGHUP are for live_wait() from now on, of whoever does not call live_open() before anybody can know
 * that he is there. */
void live_hold_signals(void);
/* Blocks SIGINT, SIGTERM and SIGHUP, which live_wait() then reports. */
int live_open(struct live *l, const struct live_options *o, struct err *e);
/* One tick. 0, -ESRCH when the process looked at has ended, -errno when nothing could be read. */
int live_tick(struct live *l);
/* Until this monotonic time; false when the user (or the system) asked to stop. */
bool live_wait(int64_t until_ns);
/* A last tick that leaves nothing out, before the window is explained. */
void live_last(struct live *l);
/* Everything from this time on; 0: all that is remembered. */
struct window live_window(struct live *l, int64_t from_ns);
void live_close(struct live *l);

#endif

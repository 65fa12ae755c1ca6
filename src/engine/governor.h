/* SPDX-License-Identifier: MIT
 *
 * Spotter's own budget. Fed with the recorder's CPU time, it says how often to sample: the asked
 * rate, else 5, 2 or 1 a second, and how thrifty rare readings must be. Pure: time and cost come in
 * as numbers, so its behaviour is tested without a clock.
 *
 * It goes down one step when the mean over the last few seconds is over budget, and up one when it
 * would stay well under it at the higher rate, but only after a quiet time that doubles with every
 * fall, so it does not swing.
 */
#ifndef SPOTTER_ENGINE_GOVERNOR_H
#define SPOTTER_ENGINE_GOVERNOR_H

#include <stdbool.h>
#include <stdint.h>

struct governor {
	double budget;        /* share of one core, 0.01 = 1 % */
	double hz[4];         /* descending: asked, 5, 2, 1 */
	unsigned n_hz, at;    /* at: index into hz */
	int64_t since_ns;     /* start of the measured stretch */
	int64_t since_cpu_ns; /* CPU time at it */
	int64_t calm_ns;      /* how long to stay down before going up */
	int64_t moved_ns;     /* when the rate changed last */
	double share;         /* last measured share of one core; -1: not yet */
};

void governor_init(struct governor *g, double hz, double budget, int64_t now_ns, int64_t cpu_ns);
/* True when the rate changed. Call about once a second. */
bool governor_feed(struct governor *g, int64_t now_ns, int64_t cpu_ns);
double governor_hz(const struct governor *g);
/* 1, 2, 4, 8 with the steps down. */
unsigned governor_thrift(const struct governor *g);

#endif

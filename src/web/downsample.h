/* SPDX-License-Identifier: MIT
 *
 * A series of any length as a few hundred stretches of equal length: what it was in each on average, at
 * least and at most. A gauge holds its value until the next one; of a counter it is the rate.
 */
#ifndef SPOTTER_WEB_DOWNSAMPLE_H
#define SPOTTER_WEB_DOWNSAMPLE_H

#include "model/window.h"

struct stretch {
	double weight, sum; /* weight 0: nothing is known of it */
	double min, max;
	uint32_t n; /* values that are in it */
};

struct stretches {
	int64_t from_ns, step_ns;
	size_t n;
	struct stretch *v; /* owned */
};

/* 0, -EINVAL or -ENOMEM; n of them from from_ns to to_ns or a little behind. */
int stretches_make(struct stretches *s, int64_t from_ns, int64_t to_ns, size_t n);
void stretches_done(struct stretches *s);
/* A value that held in [from, to). */
void stretches_hold(struct stretches *s, int64_t from_ns, int64_t to_ns, double mean, double min,
		    double max);
/* A value of a moment: all of them weigh the same. */
void stretches_put(struct stretches *s, int64_t t_ns, double value);
/* Forgets those that lie in [from, to): nothing was read then, so nothing held. */
void stretches_blank(struct stretches *s, int64_t from_ns, int64_t to_ns);
double stretch_mean(const struct stretch *s); /* NAN: not known */

/* Points of one series on their way into stretches. */
struct feed {
	struct stretches out;
	bool counter;
	bool
	    sparse; /* samples are kept only when the value changed: growth is of the last moment */
	bool any;
	int64_t before_ns;
	double before;
};

/* from_zero: it began with 0 at from_ns (window_from_zero). */
void feed_begin(struct feed *f, bool from_zero, int64_t from_ns);
void feed_point(struct feed *f, const struct point *p);
/* end: of the window, or of the thing measured if that is earlier. */
void feed_end(struct feed *f, int64_t end_ns);

#endif

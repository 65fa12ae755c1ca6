/* SPDX-License-Identifier: MIT */
#include "web/downsample.h"

#include "base/clock.h"

#include <math.h>
#include <stdlib.h>

/* Sparse counters are looked at once a second or more often. */
#define SPARSE_MOMENT_NS (11 * NS_PER_S / 10)

int stretches_make(struct stretches *s, int64_t from_ns, int64_t to_ns, size_t n)
{
	*s = (struct stretches){ .from_ns = from_ns };
	if (!n || to_ns <= from_ns || n > (size_t)(to_ns - from_ns))
		return -EINVAL;
	s->step_ns = (to_ns - from_ns + (int64_t)n - 1) / (int64_t)n;
	s->v = calloc(n, sizeof(*s->v));
	if (!s->v)
		return -ENOMEM;
	s->n = n;
	return 0;
}

void stretches_done(struct stretches *s)
{
	free(s->v);
	*s = (struct stretches){ 0 };
}

static void add(struct stretch *x, double weight, double mean, double min, double max)
{
	if (!x->n || min < x->min)
		x->min = min;
	if (!x->n || max > x->max)
		x->max = max;
	x->n++;
	x->weight += weight;
	x->sum += weight * mean;
}

void stretches_hold(struct stretches *s, int64_t from_ns, int64_t to_ns, double mean, double min,
		    double max)
{
	int64_t end = s->from_ns + s->step_ns * (int64_t)s->n;

	if (from_ns < s->from_ns)
		from_ns = s->from_ns;
	if (to_ns > end)
		to_ns = end;
	while (from_ns < to_ns) {
		size_t i = (size_t)((from_ns - s->from_ns) / s->step_ns);
		int64_t next = s->from_ns + s->step_ns * (int64_t)(i + 1);

		if (next > to_ns)
			next = to_ns;
		add(&s->v[i], (double)(next - from_ns), mean, min, max);
		from_ns = next;
	}
}

void stretches_put(struct stretches *s, int64_t t_ns, double value)
{
	int64_t end = s->from_ns + s->step_ns * (int64_t)s->n;

	if (t_ns >= s->from_ns && t_ns < end)
		add(&s->v[(t_ns - s->from_ns) / s->step_ns], 1, value, value, value);
}

void stretches_blank(struct stretches *s, int64_t from_ns, int64_t to_ns)
{
	for (size_t i = 0; i < s->n; i++) {
		int64_t begin = s->from_ns + s->step_ns * (int64_t)i;

		if (begin >= from_ns && begin + s->step_ns <= to_ns)
			s->v[i] = (struct stretch){ 0 };
	}
}

double stretch_mean(const struct stretch *s)
{
	return s->weight > 0 ? s->sum / s->weight : NAN;
}

void feed_begin(struct feed *f, bool from_zero, int64_t from_ns)
{
	f->any = f->counter && from_zero;
	f->before_ns = from_ns;
	f->before = 0;
}

/* When it grew by this much: during the roll-up, or since the sample before. */
static void grow(struct feed *f, const struct point *p, int64_t from_ns)
{
	double growth = counter_growth(f->before, p->last), rate;

	if (f->sparse && p->from_ns >= p->t_ns && from_ns < p->t_ns - SPARSE_MOMENT_NS)
		from_ns = p->t_ns - SPARSE_MOMENT_NS;
	if (from_ns > f->before_ns)
		stretches_hold(&f->out, f->before_ns, from_ns, 0, 0, 0);
	if (p->t_ns <= from_ns || growth < 0)
		return;
	rate = growth / ((double)(p->t_ns - from_ns) / 1e9);
	stretches_hold(&f->out, from_ns, p->t_ns, rate, rate, rate);
}

void feed_point(struct feed *f, const struct point *p)
{
	bool rollup = p->from_ns < p->t_ns;
	/* A damaged record may have any time in it. */
	int64_t from = rollup ? p->from_ns : p->t_ns;

	if (f->any && from < f->before_ns)
		from = f->before_ns;
	if (f->counter && f->any) {
		grow(f, p, rollup ? from : f->before_ns);
	} else if (!f->counter) {
		if (f->any)
			stretches_hold(&f->out, f->before_ns, from, f->before, f->before,
				       f->before);
		if (rollup)
			stretches_hold(&f->out, from, p->t_ns, p->value, p->min, p->max);
	}
	f->any = true;
	f->before_ns = p->t_ns;
	f->before = p->last;
}

void feed_end(struct feed *f, int64_t end_ns)
{
	double v = f->counter ? 0 : f->before;

	/* Of a counter that is read all the time nothing is known behind its last reading. */
	if (f->any && (!f->counter || f->sparse))
		stretches_hold(&f->out, f->before_ns, end_ns, v, v, v);
}

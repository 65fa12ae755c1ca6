/* SPDX-License-Identifier: MIT
 *
 * Memory that grows unevenly says when, and stacks say what ran then. Stacks are counted a second at a time, and a step
 * is shorter: so this tells loops apart that take turns by the second (training and evaluation), not lines of one loop. A
 * loop that runs all the time says nothing, and is left alone.
 */
#include "explain/facts/kept.h"

#include <math.h>

enum { READINGS_MAX = 1 << 17, STRETCHES_LEAST = 3 };

static const int64_t second_ns = 1000000000;

static const double in_least = 0.7, out_most = 0.3; /* of a second: the loop ran, or did not */
static const double share_least = 0.05, share_most = 0.95; /* of all the time: it takes turns */
static const double uneven_least = 3;                      /* times as fast */
static const double bytes_least = 8 << 20;                 /* in all */

struct sums {
	double in_bytes, in_s, out_bytes, out_s;
	int in, out;
};

struct reading {
	int64_t t_ns;
	double bytes;
};

struct watch {
	const struct kept_nodes *nodes;
	const struct kept_lines *c;
	uint8_t asked[KEPT_LINES_MAX]; /* lines whose loop runs now and then: which, and how many */
	size_t n_asked;
	VEC(struct reading) readings; /* of the memory of the process, in order of time */
	size_t at;                    /* the last one before the slice */
	struct sums sums[KEPT_LINES_MAX];
};

static bool note(const struct point *p, void *arg)
{
	struct watch *x = arg;
	struct reading *r = x->readings.n < READINGS_MAX ? vec_push(&x->readings) : NULL;

	if (r)
		*r = (struct reading){ p->t_ns, p->last };
	return r != NULL;
}

/* What it had at this time, by the last reading before; slices come in order of time. */
static double had(struct watch *x, int64_t t_ns)
{
	while (x->at + 1 < x->readings.n && x->readings.v[x->at + 1].t_ns <= t_ns)
		x->at++;
	return x->at < x->readings.n && x->readings.v[x->at].t_ns <= t_ns
		   ? x->readings.v[x->at].bytes
		   : NAN;
}

static bool take(const struct stack_slice *slice, void *arg)
{
	struct watch *x = arg;
	double seconds = (double)(slice->to_ns - slice->from_ns) / 1e9;
	double before = had(x, slice->from_ns), bytes = had(x, slice->to_ns) - before;

	if (!(seconds > 0.2 && seconds < 5) || !isfinite(bytes))
		return true;
	/* what is given back is not held against what was taken elsewhere */
	bytes = fmax(bytes, 0);
	for (size_t a = 0; a < x->n_asked; a++) {
		size_t i = x->asked[a];
		uint64_t bit = UINT64_C(1) << i;
		double in = 0, all = 0, share;

		for (size_t k = 0; k < slice->n; k++) {
			const struct stack_row *r = &slice->rows[k];

			if (r->entity != x->c->v[i].thread || r->weight_ns <= 0)
				continue;
			all += (double)r->weight_ns;
			in += kept_node_of(x->nodes, r->node)->in & bit ? (double)r->weight_ns : 0;
		}
		share = all > 0 ? in / all : NAN;
		if (share >= in_least) {
			x->sums[i].in_bytes += bytes;
			x->sums[i].in_s += seconds;
			x->sums[i].in++;
		} else if (share <= out_most) {
			x->sums[i].out_bytes += bytes;
			x->sums[i].out_s += seconds;
			x->sums[i].out++;
		}
	}
	return true;
}

void kept_when(const struct scene *s, uint32_t process, const struct kept_nodes *nodes,
	       struct kept_lines *c)
{
	struct watch x = { .nodes = nodes, .c = c };
	const struct window *w = &s->steady;

	for (size_t i = 0; i < c->n; i++)
		if (c->v[i].share > share_least && c->v[i].share < share_most)
			x.asked[x.n_asked++] = (uint8_t)i;
	if (x.n_asked)
		w->ops->each(w->src, M_PROC_RSS, process, w->from_ns, w->to_ns, second_ns, note,
			     &x);
	if (x.readings.n)
		(void)window_stacks(w, take, &x);
	vec_done(&x.readings);
	for (size_t i = 0; i < c->n; i++) {
		const struct sums *m = &x.sums[i];
		double in = m->in_bytes / m->in_s, out = m->out_bytes / m->out_s;

		if (m->in < STRETCHES_LEAST || m->out < STRETCHES_LEAST ||
		    m->in_bytes + m->out_bytes < bytes_least)
			continue;
		if (in > uneven_least * out)
			c->v[i].bonus = 2;
		else if (out > uneven_least * in)
			c->v[i].bonus = -4;
	}
}

/* SPDX-License-Identifier: MIT
 *
 * How many times as fast the one run is as the other, and how sure that is.
 */
#include "explain/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Steps are like their neighbours (epochs, warming up, others on the machine), so it is stretches of them whose
 * spread tells how sure the mean is. */
enum { STRETCHES = 20, STRETCHES_LEAST = 5, STEPS_OF_STRETCH = 2 };
/* 95 % of Student's t for the few degrees of freedom there are. */
static const double sure = 2.2;

struct walk {
	double sum, squares; /* of the stretches' seconds per step */
	size_t n;
};

/* Half the 95 % interval of the time of a step, as a share of it; NAN: too few. */
static double error_of(const struct compare_side *s)
{
	const struct steps *st = &s->verdict->steps;
	const struct step_group *g = steps_lead(st);
	size_t n = 0, of, in = 0;
	const struct window_step *x =
	    s->window->ops->steps ? s->window->ops->steps(s->window->src, &n) : NULL;
	struct walk w = { 0 };
	int64_t begin = 0;
	double mean, variance;

	if (!g || !x || g->steady < STRETCHES_LEAST * STEPS_OF_STRETCH)
		return NAN;
	of = g->steady / STRETCHES > STEPS_OF_STRETCH ? g->steady / STRETCHES : STEPS_OF_STRETCH;
	for (size_t i = 0; i < n; i++) {
		double seconds;

		if (x[i].entity != g->entity || !step_in(s->window, &x[i]) ||
		    x[i].begin_ns < st->from_ns || x[i].end_ns > st->to_ns ||
		    x[i].begin_ns >= x[i].end_ns)
			continue;
		if (!in)
			begin = x[i].begin_ns;
		if (++in < of)
			continue;
		in = 0;
		seconds = ((double)x[i].end_ns - (double)begin) / 1e9 / (double)of;
		w.sum += seconds;
		w.squares += seconds * seconds;
		w.n++;
	}
	if (w.n < STRETCHES_LEAST)
		return NAN;
	mean = w.sum / (double)w.n;
	variance = (w.squares - w.sum * mean) / (double)(w.n - 1);
	return mean > 0 ? sure * sqrt(fmax(variance, 0) / (double)w.n) / mean : NAN;
}

static double step_seconds_of(const struct verdict *v, bool *inferred)
{
	const struct step_group *g = steps_lead(&v->steps);
	double rate = g ? g->rate_hz : v->steps.inferred.rate_hz;

	*inferred = !g;
	return rate > 0 && isfinite(rate) ? 1 / rate : NAN;
}

/* The whole of a run that ended by itself, and well. */
static double wall_of(const struct verdict *v)
{
	const struct run_info *r = v->run;

	if (r->attached || r->state != RUN_ENDED || !r->has_exit || r->exit_signal ||
	    r->exit_code != 0 || r->ended_mono_ns <= r->started_mono_ns || r->started_mono_ns < 0)
		return NAN;
	return (double)(r->ended_mono_ns - r->started_mono_ns) / 1e9;
}

/* The same program with other arguments may do other work, but another program surely does. */
static bool is_same_program(const struct run_info *a, const struct run_info *b)
{
	for (size_t i = 0; i < 2; i++) {
		const char *x = a->argv ? a->argv[i] : NULL, *y = b->argv ? b->argv[i] : NULL;

		if (!x || !y)
			return !x && !y;
		if (strcmp(x, y) != 0)
			return false;
	}
	return true;
}

void compare_speed(struct comparison *c)
{
	struct compare_speed *s = &c->speed;
	double wide = 0;
	bool inferred[COMPARE_SIDES] = { 0 };

	*s = (struct compare_speed){ .ratio = NAN, .low = NAN, .high = NAN };
	for (int k = 0; k < COMPARE_SIDES; k++)
		s->seconds[k] = step_seconds_of(c->side[k].verdict, &inferred[k]);
	if (isfinite(s->seconds[COMPARE_A]) && isfinite(s->seconds[COMPARE_B])) {
		bool guess = inferred[COMPARE_A] || inferred[COMPARE_B];

		s->basis = guess ? COMPARE_BY_INFERRED : COMPARE_BY_STEPS;
	} else {
		for (int k = 0; k < COMPARE_SIDES; k++)
			s->seconds[k] = wall_of(c->side[k].verdict);
		if (!isfinite(s->seconds[COMPARE_A]) || !isfinite(s->seconds[COMPARE_B]) ||
		    !is_same_program(c->side[COMPARE_A].verdict->run,
				     c->side[COMPARE_B].verdict->run))
			return;
		s->basis = COMPARE_BY_WALL;
	}
	s->ratio = s->seconds[COMPARE_A] / s->seconds[COMPARE_B];
	if (s->basis != COMPARE_BY_STEPS)
		return;
	for (int k = 0; k < COMPARE_SIDES; k++) {
		double e = error_of(&c->side[k]);

		wide += e * e;
	}
	if (isfinite(wide)) {
		s->low = s->ratio * exp(-sqrt(wide));
		s->high = s->ratio * exp(sqrt(wide));
	}
}

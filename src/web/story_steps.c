/* SPDX-License-Identifier: MIT
 *
 * Steps, scalars and the slowest steps, as a page lists and draws them. Of many steps those are given
 * that took longest and those that took the median of their neighbours: real ones, no means.
 */
#include "base/auto.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/text.h"
#include "base/vec.h"
#include "explain/step_story.h"
#include "explain/verdict.h"
#include "web/story.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS_MOST = 600, SCALAR_NUMBERS = 12000, SCALARS_SHOWN_HERE = 16, SCALAR_LEAST = 50 };
enum { DIGITS = 4, TIME_DIGITS = 6 };

struct picked {
	VEC(const struct window_step *) v;
};

static double seconds_of(const struct window_step *s)
{
	double seconds = ((double)s->end_ns - (double)s->begin_ns) / 1e9;

	return seconds > 0 ? seconds : NAN;
}

static int by_seconds(const void *a, const void *b)
{
	double x = seconds_of(*(const struct window_step *const *)a);
	double y = seconds_of(*(const struct window_step *const *)b);

	/* those not known first */
	x = isnan(x) ? -1 : x;
	y = isnan(y) ? -1 : y;
	return x < y ? -1 : x > y;
}

/* Two of each group of neighbours, in order of time. */
static void thin(struct picked *p, size_t most)
{
	size_t n = p->v.n, groups = most / 2, kept = 0;

	if (n <= most)
		return;
	for (size_t g = 0; g < groups; g++) {
		size_t first = g * n / groups, size = (g + 1) * n / groups - first;
		const struct window_step **v = p->v.v + first, *median, *longest;

		qsort(v, size, sizeof(*v), by_seconds);
		median = v[(size - 1) / 2];
		longest = v[size - 1];
		p->v.v[kept++] = median->end_ns <= longest->end_ns ? median : longest;
		if (median != longest)
			p->v.v[kept++] = median->end_ns <= longest->end_ns ? longest : median;
	}
	p->v.n = kept;
}

static void put_steps(const struct story *s, const struct picked *p, struct json *j)
{
	int64_t start = s->timeline.start_ns;
	bool any_wait = false;

	json_key_begin(j, "t", '[');
	for (size_t i = 0; i < p->v.n; i++)
		story_number(j, ((double)p->v.v[i]->end_ns - (double)start) / 1e9, TIME_DIGITS);
	json_end(j, ']');
	json_key_begin(j, "step", '[');
	for (size_t i = 0; i < p->v.n; i++)
		/* beyond this a number of JSON is another one */
		json_int(j, (int64_t)(p->v.v[i]->number & ((UINT64_C(1) << 53) - 1)));
	json_end(j, ']');
	json_key_begin(j, "seconds", '[');
	for (size_t i = 0; i < p->v.n; i++) {
		story_number(j, seconds_of(p->v.v[i]), DIGITS);
		any_wait |= isfinite(p->v.v[i]->data_wait);
	}
	json_end(j, ']');
	json_key_begin(j, "wait", '[');
	for (size_t i = 0; any_wait && i < p->v.n; i++)
		story_number(j, p->v.v[i]->data_wait, DIGITS);
	json_end(j, ']');
}

/* Values of one scalar: of steps (the loss they were marked with), or told by themselves. */
struct values {
	VEC(struct value {
		int64_t t_ns;
		double v;
	})
	v;
};

static int by_time(const void *a, const void *b)
{
	const struct value *x = a, *y = b;

	return x->t_ns < y->t_ns ? -1 : x->t_ns > y->t_ns;
}

static bool put_value(struct values *to, int64_t t_ns, double v)
{
	struct value *x;

	if (!isfinite(v))
		return true;
	x = vec_push(&to->v);
	if (x)
		*x = (struct value){ t_ns, v };
	return x;
}

static bool collect(const struct story *s, const struct step_group *lead, const char *name,
		    struct values *ret)
{
	const struct window *w = s->window;
	size_t n = 0, steps = 0;
	const struct window_scalar *x = w->ops->scalars ? w->ops->scalars(w->src, &n) : NULL;
	const struct window_step *y = w->ops->steps ? w->ops->steps(w->src, &steps) : NULL;
	const char *looked_at = NULL;
	bool ok = true, is_it = false;
	char safe[64];

	for (size_t i = 0; ok && strcmp(name, "loss") == 0 && i < steps; i++)
		if (y[i].entity == lead->entity)
			ok = put_value(ret, y[i].end_ns, y[i].loss);
	for (size_t i = 0; ok && i < n; i++) {
		if (x[i].entity != lead->entity || !x[i].name)
			continue;
		if (x[i].name != looked_at)
			is_it = strcmp(text_safe_copy(safe, sizeof(safe), x[i].name), name) == 0;
		looked_at = x[i].name;
		if (is_it)
			ok = put_value(ret, x[i].t_ns, x[i].value);
	}
	if (ret->v.n)
		qsort(ret->v.v, ret->v.n, sizeof(*ret->v.v), by_time);
	return ok;
}

static void put_scalar(const struct story *s, const struct step_group *lead, const char *name,
		       size_t most, struct json *j)
{
	struct values x = { 0 };
	size_t n;

	if (!collect(s, lead, name, &x))
		j->out->failed = true;
	n = x.v.n < most ? x.v.n : most;
	json_begin(j, '{');
	json_key_str(j, "name", name);
	for (int what = 0; what < 2; what++) {
		json_key_begin(j, what ? "v" : "t", '[');
		/* the last of each group: how it ended is never left out */
		for (size_t i = 0; i < n; i++) {
			const struct value *v = &x.v.v[(i + 1) * x.v.n / n - 1];

			if (what)
				story_number(j, v->v, DIGITS);
			else
				story_number(j,
					     ((double)v->t_ns - (double)s->timeline.start_ns) / 1e9,
					     TIME_DIGITS);
		}
		json_end(j, ']');
	}
	json_end(j, '}');
	vec_done(&x.v);
}

static void put_scalars(const struct story *s, const struct step_group *lead, struct json *j)
{
	auto_free struct scalar_sum *sums = calloc(SCALARS_SHOWN_HERE, sizeof(*sums));
	size_t n = sums ? scalars_sum(s->window, &s->verdict->steps, sums, SCALARS_SHOWN_HERE) : 0;
	size_t most = n ? (size_t)SCALAR_NUMBERS / (2 * n) >> s->level : 0;

	if (most > STEPS_MOST)
		most = STEPS_MOST;
	if (most < SCALAR_LEAST)
		most = SCALAR_LEAST;
	json_key_begin(j, "scalars", '[');
	for (size_t i = 0; i < n; i++)
		put_scalar(s, lead, sums[i].name, most, j);
	json_end(j, ']');
}

/* "a; b" as a list. */
static void put_differed(struct json *j, const char *what)
{
	json_key_begin(j, "differed", '[');
	while (*what) {
		const char *end = strstr(what, "; ");
		size_t n = end ? (size_t)(end - what) : strlen(what);

		json_strn(j, what, n);
		what += n + (end ? 2 : 0);
	}
	json_end(j, ']');
}

static void put_slowest(const struct story *s, struct json *j)
{
	const struct steps *steps = &s->verdict->steps;
	struct slow_step slow[STEPS_SLOWEST];
	size_t n = steps_slowest(s->window, steps, slow, STEPS_SLOWEST);

	json_key_begin(j, "slow_steps", '[');
	for (size_t i = 0; i < n; i++) {
		const struct window_step *x = slow[i].step;
		double t = ((double)x->begin_ns - (double)s->timeline.start_ns) / 1e9;

		slow_step_state(s->window, steps, &slow[i]);
		json_begin(j, '{');
		json_key_int(j, "step", (int64_t)(x->number & ((UINT64_C(1) << 53) - 1)));
		if (x->rank >= 0)
			json_key_int(j, "rank", x->rank);
		json_key(j, "t");
		story_number(j, t, TIME_DIGITS);
		story_key_number(j, "seconds", slow[i].seconds);
		story_key_number(j, "usual_s", slow[i].seconds / slow[i].times);
		put_differed(j, slow[i].what);
		json_end(j, '}');
	}
	json_end(j, ']');
}

void story_steps(const struct story *s, struct json *j)
{
	const struct step_group *lead = steps_lead(&s->verdict->steps);
	const struct window *w = s->window;
	struct picked p = { 0 };
	size_t n = 0;
	const struct window_step *x = w->ops->steps ? w->ops->steps(w->src, &n) : NULL;

	for (size_t i = 0; lead && i < n; i++) {
		const struct window_step **slot;

		if (x[i].entity != lead->entity || !step_in(w, &x[i]))
			continue;
		slot = vec_push(&p.v);
		if (slot)
			*slot = &x[i];
		else
			j->out->failed = true;
	}
	if (p.v.n) {
		json_key_begin(j, "steps", '{');
		json_key_int(j, "count", (int64_t)p.v.n);
		thin(&p, STEPS_MOST >> s->level);
		put_steps(s, &p, j);
		put_scalars(s, lead, j);
		json_end(j, '}');
	}
	vec_done(&p.v);
	put_slowest(s, j);
}

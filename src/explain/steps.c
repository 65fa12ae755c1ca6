/* SPDX-License-Identifier: MIT */
#include "explain/steps.h"

#include "base/auto.h"
#include "base/map.h"
#include "base/text.h"
#include "model/node.h"
#include "model/step_usage.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Steps over which the rolling median goes, and how near to the later ones it has to come. Compiling,
 * allocating and filling caches make the first steps 2 to 100 times as long; below a quarter nobody
 * would call it warming up. */
enum { ROLL = 5 };
/* Each is a walk over all steps: a record that tells of thousands of processes is not a job's. */
enum { MEASURED_MAX = 64 };
static const double settled = 1.25;

typedef VEC(double) doubles;

/* Time that is not a step's, in order, without overlap. */
struct stretch {
	int64_t from_ns, to_ns;
};
typedef VEC(struct stretch) stretches;

static int by_value(const void *x, const void *y)
{
	double a = *(const double *)x, b = *(const double *)y;

	return a < b ? -1 : a > b;
}

static int by_begin(const void *x, const void *y)
{
	const struct stretch *a = x, *b = y;

	return a->from_ns < b->from_ns ? -1 : a->from_ns > b->from_ns;
}

/* Sorts v. Nearest rank. */
static double quantile(double *v, size_t n, double q)
{
	size_t at;

	if (!n)
		return NAN;
	qsort(v, n, sizeof(*v), by_value);
	if (q == 0.5)
		return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
	at = (size_t)ceil(q * (double)n);
	return v[at ? at - 1 : 0];
}

bool step_in(const struct window *w, const struct window_step *s)
{
	return s->end_ns > w->from_ns && s->end_ns <= w->to_ns && s->begin_ns <= s->end_ns &&
	       s->begin_ns >= 0;
}

/* Those of which the beginning is known. */
static bool is_timed(const struct window *w, const struct window_step *s)
{
	return step_in(w, s) && s->begin_ns < s->end_ns;
}

static const struct window_step *all_steps(const struct window *w, size_t *n)
{
	*n = 0;
	return w->ops->steps ? w->ops->steps(w->src, n) : NULL;
}

static const struct window_phase *all_phases(const struct window *w, size_t *n)
{
	*n = 0;
	return w->ops->phases ? w->ops->phases(w->src, n) : NULL;
}

/* What lay aside in a process. */
static int aside_of(const struct window *w, uint32_t entity, stretches *ret)
{
	size_t n, kept = 0;
	const struct window_phase *p = all_phases(w, &n);

	for (size_t i = 0; i < n; i++) {
		int64_t to = p[i].end_ns ? p[i].end_ns : w->to_ns;
		struct stretch *x;

		if (p[i].entity != entity || !phase_is_aside(p[i].name) || to <= p[i].begin_ns)
			continue;
		x = vec_push(ret);
		if (!x)
			return -ENOMEM;
		*x = (struct stretch){ p[i].begin_ns, to };
	}
	if (ret->n)
		qsort(ret->v, ret->n, sizeof(*ret->v), by_begin);
	for (size_t i = 1; i < ret->n; i++) {
		if (ret->v[i].from_ns > ret->v[kept].to_ns)
			ret->v[++kept] = ret->v[i];
		else if (ret->v[i].to_ns > ret->v[kept].to_ns)
			ret->v[kept].to_ns = ret->v[i].to_ns;
	}
	ret->n = ret->n ? kept + 1 : 0;
	return 0;
}

/* Seconds of [from, to] that lie in them; those before *at are over for good. */
static double seconds_in(const stretches *x, size_t *at, int64_t from, int64_t to)
{
	double sum = 0;

	while (*at < x->n && x->v[*at].to_ns <= from)
		(*at)++;
	for (size_t i = *at; i < x->n && x->v[i].from_ns < to; i++) {
		int64_t a = x->v[i].from_ns > from ? x->v[i].from_ns : from;
		int64_t b = x->v[i].to_ns < to ? x->v[i].to_ns : to;

		sum += b > a ? (double)(b - a) / 1e9 : 0;
	}
	return sum;
}

double step_seconds(const struct window *w, const struct window_step *s, bool without_aside)
{
	double seconds = ((double)s->end_ns - (double)s->begin_ns) / 1e9;
	stretches aside = { 0 };
	size_t at = 0;

	if (!is_timed(w, s))
		return NAN;
	if (without_aside && aside_of(w, s->entity, &aside) == 0)
		seconds -= seconds_in(&aside, &at, s->begin_ns, s->end_ns);
	vec_done(&aside);
	return seconds;
}

/* Steps to leave out: the first, which holds whatever a run does once, and those behind it until they
 * take as long as the later half does. */
static size_t warm_up(const double *d, size_t n)
{
	auto_free double *half = NULL;
	double usual, roll[ROLL];
	size_t most = n / 5 > 1 ? n / 5 : 1;

	if (n <= 2 * ROLL)
		return n > 1;
	half = malloc((n - n / 2) * sizeof(*half));
	if (!half)
		return 1;
	memcpy(half, d + n / 2, (n - n / 2) * sizeof(*half));
	usual = quantile(half, n - n / 2, 0.5);
	for (size_t i = 1; i <= most; i++) {
		double median;

		memcpy(roll, d + i, sizeof(roll));
		median = quantile(roll, ROLL, 0.5);
		if (median > usual * settled || median < usual / settled)
			continue;
		/* Two of the five may still be long. */
		while (i < most && d[i] > usual * settled)
			i++;
		return i;
	}
	return 1;
}

/* One walk over the steps of a process. */
struct walk {
	doubles own, waits;      /* of steps from from_ns on */
	double waited, waitable; /* seconds */
	int64_t begin_ns, end_ns;
	uint64_t first, last; /* numbers */
};

static void walk_done(struct walk *k)
{
	vec_done(&k->own);
	vec_done(&k->waits);
}

static int walk(const struct window *w, uint32_t entity, int64_t from_ns, const stretches *aside,
		struct walk *k)
{
	size_t n, at = 0;
	const struct window_step *s = all_steps(w, &n);

	for (size_t i = 0; i < n; i++) {
		double seconds, *slot;

		if (s[i].entity != entity || !is_timed(w, &s[i]) || s[i].begin_ns < from_ns)
			continue;
		slot = vec_push(&k->own);
		if (!slot)
			return -ENOMEM;
		seconds = (double)(s[i].end_ns - s[i].begin_ns) / 1e9;
		*slot = seconds - seconds_in(aside, &at, s[i].begin_ns, s[i].end_ns);
		if (k->own.n == 1) {
			k->begin_ns = s[i].begin_ns;
			k->first = s[i].number;
		}
		k->end_ns = s[i].end_ns;
		k->last = s[i].number;
		if (!(s[i].data_wait >= 0) || !isfinite(s[i].data_wait))
			continue;
		slot = vec_push(&k->waits);
		if (!slot)
			return -ENOMEM;
		*slot = s[i].data_wait;
		k->waited += fmin(s[i].data_wait, seconds);
		k->waitable += seconds;
	}
	return 0;
}

/* Where the steps of the lead become steady. */
static int64_t steady_from(const struct window *w, uint32_t entity, const double *own, size_t n)
{
	size_t all, seen = 0, skipped = warm_up(own, n);
	const struct window_step *s = all_steps(w, &all);

	for (size_t i = 0; i < all; i++)
		if (s[i].entity == entity && is_timed(w, &s[i]) && seen++ == skipped)
			return s[i].begin_ns;
	return 0;
}

static int measure(const struct window *w, struct steps *s, struct step_group *g, bool lead)
{
	stretches aside = { 0 };
	struct walk k = { 0 };
	size_t at = 0;
	double wall;
	int r = aside_of(w, g->entity, &aside);

	if (r == 0 && lead) {
		r = walk(w, g->entity, 0, &aside, &k);
		if (r == 0)
			s->from_ns = steady_from(w, g->entity, k.own.v, k.own.n);
		walk_done(&k);
		k = (struct walk){ 0 };
	}
	if (r == 0)
		r = walk(w, g->entity, s->from_ns, &aside, &k);
	if (r == 0 && k.own.n) {
		wall = (double)(k.end_ns - k.begin_ns) / 1e9;
		g->steady = k.own.n;
		/* One step is no rate. */
		g->rate_hz = k.own.n > 1 ? (double)k.own.n / wall : NAN;
		g->aside = seconds_in(&aside, &at, k.begin_ns, k.end_ns) / wall;
		g->median_s = quantile(k.own.v, k.own.n, 0.5);
		if (k.own.n >= STEPS_P95_LEAST)
			g->p95_s = quantile(k.own.v, k.own.n, 0.95);
		g->data_wait = k.waitable > 0 ? k.waited / k.waitable : NAN;
		g->median_wait = quantile(k.waits.v, k.waits.n, 0.5);
	}
	if (r == 0 && lead && k.own.n) {
		s->warm_up = g->count - k.own.n;
		s->from_ns = k.begin_ns;
		s->to_ns = k.end_ns;
		s->first = k.first;
		s->last = k.last;
	}
	walk_done(&k);
	vec_done(&aside);
	return r;
}

static int by_rank(const void *x, const void *y)
{
	const struct step_group *a = x, *b = y;

	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	return a->entity < b->entity ? -1 : a->entity > b->entity;
}

static int find_groups(const struct window *w, struct steps *s)
{
	const struct entity_table *t = window_entities(w);
	struct map by_entity = { 0 };
	size_t n;
	const struct window_step *x = all_steps(w, &n);
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++) {
		const struct entity *e;
		struct step_group *g;
		uint32_t at;

		if (!step_in(w, &x[i]))
			continue;
		if (!map_get(&by_entity, x[i].entity, &at)) {
			g = vec_push(&s->groups);
			if (!g || !map_put(&by_entity, x[i].entity, (uint32_t)s->groups.n - 1)) {
				r = -ENOMEM;
				break;
			}
			e = entity_find(t, x[i].entity);
			*g = (struct step_group){ .rank = x[i].rank,
						  .entity = x[i].entity,
						  .pid = e ? node_own_key(e->key) : 0,
						  .rate_hz = NAN,
						  .median_s = NAN,
						  .p95_s = NAN,
						  .data_wait = NAN,
						  .median_wait = NAN,
						  .aside = NAN,
						  .first_loss = NAN,
						  .last_loss = NAN,
						  .own_work_s = NAN,
						  .comm_wait_s = NAN };
			at = (uint32_t)s->groups.n - 1;
			if (e)
				text_safe_copy(g->node, sizeof(g->node), node_name(t, e));
		}
		g = &s->groups.v[at];
		g->count++;
		if (isfinite(x[i].loss)) {
			g->first_loss = isfinite(g->first_loss) ? g->first_loss : x[i].loss;
			g->last_loss = x[i].loss;
		}
	}
	map_done(&by_entity);
	return r;
}

/* The lowest rank that did about as much as any: a process that made a few steps (a sanity check, a
 * search for the batch size) does not stand for the run. */
static void find_lead(struct steps *s)
{
	size_t most = 0;

	for (size_t i = 0; i < s->groups.n; i++) {
		most = s->groups.v[i].count > most ? s->groups.v[i].count : most;
		s->ranks += s->groups.v[i].rank >= 0 &&
			    (!i || s->groups.v[i].rank != s->groups.v[i - 1].rank);
	}
	for (size_t i = s->groups.n; i-- > 0;)
		if (s->groups.v[i].count >= most - most / 4)
			s->lead = i;
}

int steps_take(const struct window *whole, struct steps *ret)
{
	const char *marker = whole->ops->step_source ? whole->ops->step_source(whole->src) : NULL;
	int r;

	*ret = (struct steps){ .inferred = { NAN, NAN, NAN } };
	r = find_groups(whole, ret);
	if (r < 0 || !ret->groups.n)
		return r;
	text_safe_copy(ret->marker, sizeof(ret->marker), marker ? marker : "");
	qsort(ret->groups.v, ret->groups.n, sizeof(*ret->groups.v), by_rank);
	find_lead(ret);
	r = measure(whole, ret, &ret->groups.v[ret->lead], true);
	for (size_t i = 0; i < ret->groups.n && i < MEASURED_MAX && r == 0; i++)
		if (i != ret->lead)
			r = measure(whole, ret, &ret->groups.v[i], false);
	return r;
}

const char *steps_source(const struct steps *s)
{
	if (!s->groups.n)
		return s->inferred.rate_hz > 0 ? "inferred" : NULL;
	/* Hooks sign with their framework. Nobody signed: a ring without a name is the library's. */
	return !s->marker[0] || strcmp(s->marker, "api") == 0 ? "mark" : "hook";
}

void steps_done(struct steps *s)
{
	vec_done(&s->groups);
}

const struct step_group *steps_lead(const struct steps *s)
{
	return s->groups.n ? &s->groups.v[s->lead] : NULL;
}

const struct step_group *steps_group(const struct steps *s, uint32_t entity)
{
	for (size_t i = 0; i < s->groups.n; i++)
		if (s->groups.v[i].entity == entity)
			return &s->groups.v[i];
	return NULL;
}

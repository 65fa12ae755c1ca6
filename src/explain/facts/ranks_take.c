/* SPDX-License-Identifier: MIT */
#include "explain/facts/ranks.h"

#include "explain/ledger/topics.h"
#include "model/node.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Fewer samples say nothing about a share, however far ranks are apart: half its 95 % interval is 20 points then.
 * From here on the intervals say who differs. */
static const uint32_t samples_least = 20;
static const double unknown_most = 0.5;
/* Of its time: who waits for events or children longer does nothing else. */
static const double idle_most = 0.9;
/* Of the window: one that was there for less came late or died. */
static const double there_least = 0.8;
/* Steps all ranks tell of: fewer say nothing about who is late. */
static const size_t steps_least = 10;
/* More than any step of a window: a record is foreign. */
enum { STEPS_MOST = 1 << 20 };

static const struct window_step *all_steps(const struct scene *s, size_t *n)
{
	*n = 0;
	return s->whole->ops->steps ? s->whole->ops->steps(s->whole->src, n) : NULL;
}

/* Process -> number of its rank + 1, by what it says itself. */
static bool numbers(const struct scene *s, struct map *ret)
{
	size_t n;
	const struct window_step *x = all_steps(s, &n);
	uint32_t last = 0;

	for (size_t i = 0; i < n; i++) {
		if (x[i].rank < 0 || !x[i].entity || x[i].entity == last)
			continue;
		last = x[i].entity;
		if (!map_put(ret, last, (uint32_t)x[i].rank + 1))
			return false;
	}
	return true;
}

static void weigh(const struct activity *a, struct rank *r)
{
	static const uint32_t aside = TOPIC_BIT(TOPIC_CHECKPOINT) | TOPIC_BIT(TOPIC_LOG) |
				      TOPIC_BIT(TOPIC_UPLOAD) | TOPIC_BIT(TOPIC_PROGRESS) |
				      TOPIC_BIT(TOPIC_EVALUATE) | TOPIC_BIT(TOPIC_COMPILE);
	const struct act_thread *t = r->t;
	double seen = 0, known = 0, beside = 0;

	for (int k = 0; k < TIME_STATES; k++)
		seen += t->state[k];
	for (size_t k = t->row; k < t->row + t->n_rows; k++) {
		const struct act_row *x = &a->rows.v[k];

		if (x->unknown)
			continue;
		known += x->seconds;
		if (x->topics & aside && x->state != TIME_COMM_WAIT && x->state != TIME_DATA_WAIT &&
		    x->state != TIME_DATA_LOAD)
			beside += x->seconds;
	}
	if (!(seen > 0))
		return;
	r->comm = t->state[TIME_COMM_WAIT] / seen;
	r->device = t->state[TIME_GPU_WAIT] / seen;
	r->own = 1 - r->comm;
	r->data = (t->state[TIME_DATA_WAIT] + t->state[TIME_DATA_LOAD]) / seen;
	r->aside = known > 0 ? beside / known : 0;
	r->queued = t->state[TIME_CPU_QUEUE] / seen;
	r->error = activity_error(r->own, t->samples);
}

static bool is_well_seen(const struct scene *s, const struct act_thread *t)
{
	return t->samples >= samples_least && t->alive >= there_least * s->seconds &&
	       t->unaccounted <= unknown_most * t->alive;
}

/* A launcher that sleeps while its ranks train is none. */
static bool only_waits(const struct act_thread *t)
{
	return t->state[TIME_IDLE] >= idle_most * t->alive;
}

static int by_number(const void *x, const void *y)
{
	const struct rank *a = x, *b = y;

	if (a->number != b->number)
		return a->number < b->number ? -1 : 1;
	return a->process < b->process ? -1 : a->process > b->process;
}

const char *rank_name(const struct rank *r, char *buf, size_t size)
{
	if (r->number >= 0)
		snprintf(buf, size, "rank %d (pid %.56s)", r->number, r->pid);
	else
		snprintf(buf, size, "process %s", r->pid);
	return buf;
}

int ranks_take(const struct scene *s, struct ranks *ret)
{
	const struct activity *a = &s->activity;
	struct map known = { 0 };
	int r = numbers(s, &known) ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < a->threads.n; i++) {
		const struct act_thread *t = &a->threads.v[i];
		const struct entity *e = entity_find(window_entities(s->whole), t->process);
		uint32_t number = 0;
		bool says = map_get(&known, t->process, &number) && t->first &&
			    t->role != ROLE_LOADER_WORKER;
		struct rank *x;
		char name[80];

		if (!e || !(t->role == ROLE_MAIN || says) ||
		    (!says && known.n > 1 && only_waits(t)))
			continue;
		x = vec_push(&ret->v);
		if (!x) {
			r = -ENOMEM;
			break;
		}
		*x = (struct rank){ .t = t, .process = t->process, .number = (int32_t)number - 1 };
		node_pid_text(window_entities(s->whole), e, x->pid, sizeof(x->pid));
		weigh(a, x);
		if (!is_well_seen(s, t) && !ret->why_not[0])
			snprintf(ret->why_not, sizeof(ret->why_not),
				 "too little is known of what %.64s does",
				 rank_name(x, name, sizeof(name)));
	}
	map_done(&known);
	if (ret->v.n > 1)
		qsort(ret->v.v, ret->v.n, sizeof(*ret->v.v), by_number);
	return r;
}

int ranks_take_marked(const struct scene *s, struct ranks *ret)
{
	struct map known = { 0 };
	size_t n;
	const struct window_step *x = all_steps(s, &n);
	uint32_t last = 0, at;
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++) {
		const struct entity *e;
		struct rank *k;

		if (x[i].rank < 0 || !x[i].entity || x[i].entity == last)
			continue;
		last = x[i].entity;
		e = entity_find(window_entities(s->whole), last);
		if (!e || map_get(&known, last, &at))
			continue;
		k = vec_push(&ret->v);
		if (!k || !map_put(&known, last, (uint32_t)i))
			r = -ENOMEM;
		else
			*k = (struct rank){ .process = last, .number = x[i].rank };
		if (r == 0)
			node_pid_text(window_entities(s->whole), e, k->pid, sizeof(k->pid));
	}
	map_done(&known);
	if (ret->v.n > 1)
		qsort(ret->v.v, ret->v.n, sizeof(*ret->v.v), by_number);
	return r;
}

void ranks_done(struct ranks *r)
{
	vec_done(&r->v);
}

/* A step of all ranks. */
struct common {
	size_t n, longest; /* ranks that told of it; which waited longest */
	double sum, most, seconds;
	int64_t first_ns, last_ns; /* ends of it */
};
typedef VEC(struct common) commons;

/* Of one rank. */
struct tally {
	size_t longest;       /* common steps in which it waited longest */
	double wait, seconds; /* of all of its steps */
};

static int add_step(commons *all, struct map *by_number_of_step, const struct window_step *x,
		    size_t rank, struct tally *of_rank)
{
	double seconds = ((double)x->end_ns - (double)x->begin_ns) / 1e9,
	       wait = fmin(x->data_wait, seconds);
	struct common *c;
	uint32_t at;

	if (!map_get(by_number_of_step, x->number, &at)) {
		at = (uint32_t)all->n;
		c = at < STEPS_MOST ? vec_push(all) : NULL;
		if (!c || !map_put(by_number_of_step, x->number, at))
			return -ENOMEM;
		*c = (struct common){ .most = -1, .first_ns = x->end_ns, .last_ns = x->end_ns };
	}
	c = &all->v[at];
	c->n++;
	c->first_ns = x->end_ns < c->first_ns ? x->end_ns : c->first_ns;
	c->last_ns = x->end_ns > c->last_ns ? x->end_ns : c->last_ns;
	c->sum += wait;
	c->seconds += seconds;
	of_rank->wait += wait;
	of_rank->seconds += seconds;
	if (wait > c->most) {
		c->most = wait;
		c->longest = rank;
	}
	return 0;
}

static void sum_up(const commons *all, size_t ranks, struct tally *tally, struct ranks_steps *ret)
{
	double over = 0, seconds = 0, apart = 0, n = (double)ranks;
	size_t most = 0, steps = 0;

	for (size_t i = 0; i < all->n; i++) {
		const struct common *c = &all->v[i];

		if (c->n != ranks)
			continue;
		over += c->most - c->sum / n;
		seconds += c->seconds / n;
		apart += ((double)c->last_ns - (double)c->first_ns) / 1e9;
		steps++;
		if (++tally[c->longest].longest > most)
			most = tally[c->longest].longest;
	}
	if (steps < steps_least || !(seconds > 0))
		return;
	ret->uneven = over / seconds;
	ret->same = (double)most / (double)steps;
	ret->apart = apart / seconds;
}

/* Who waits for data the largest part of its time? */
static void compare(const struct ranks *r, const struct tally *tally, struct ranks_steps *ret)
{
	double sum = 0;

	ret->next = ret->most = -1;
	for (size_t i = 0; i < r->v.n; i++) {
		double share = tally[i].seconds > 0 ? tally[i].wait / tally[i].seconds : 0;

		sum += share;
		if (share > ret->most) {
			ret->next = ret->most;
			ret->most = share;
			ret->top = &r->v.v[i];
		} else if (share > ret->next) {
			ret->next = share;
		}
	}
	ret->others = r->v.n > 1 ? (sum - ret->most) / (double)(r->v.n - 1) : 0;
}

int ranks_by_step(const struct scene *s, const struct ranks *r, struct ranks_steps *ret)
{
	struct map of_step = { 0 }, of_process = { 0 };
	commons all = { 0 };
	size_t n;
	struct tally *tally = calloc(r->v.n + 1, sizeof(*tally));
	const struct window_step *x = all_steps(s, &n);
	int e = tally ? 0 : -ENOMEM;

	*ret = (struct ranks_steps){ .uneven = NAN, .same = NAN };
	for (size_t i = 0; e == 0 && i < r->v.n; i++)
		if (!map_put(&of_process, r->v.v[i].process, (uint32_t)i))
			e = -ENOMEM;
	for (size_t i = 0; e == 0 && i < n; i++) {
		uint32_t at;

		if (x[i].begin_ns >= s->steady.from_ns && x[i].end_ns <= s->steady.to_ns &&
		    x[i].end_ns > x[i].begin_ns && x[i].data_wait >= 0 &&
		    map_get(&of_process, x[i].entity, &at))
			e = add_step(&all, &of_step, &x[i], at, &tally[at]);
	}
	if (e == 0)
		sum_up(&all, r->v.n, tally, ret);
	if (e == 0 && isfinite(ret->uneven))
		compare(r, tally, ret);
	vec_done(&all);
	map_done(&of_step);
	map_done(&of_process);
	free(tally);
	return e;
}

/* SPDX-License-Identifier: MIT */
#include "record/join_part.h"

#include "base/clock.h"
#include "base/num.h"
#include "base/text.h"
#include "record/series.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* Fewer steps in common say nothing about clocks. */
enum { STEPS_LEAST = 10 };
/* Of a step: ranks whose ends of it differ by more do not wait for each other. */
static const double together_most = 0.25;

struct part_steps {
	const struct window_step *v;
	size_t n;
	uint32_t who; /* process of the lowest rank; 0: nobody */
};

static struct part_steps steps_of(const struct join_part *p)
{
	struct window w = record_window(p->record, 0, 0);
	struct part_steps s = { 0 };
	int32_t rank = INT32_MAX;

	s.v = w.ops->steps(w.src, &s.n);
	for (size_t i = 0; i < s.n; i++)
		if (s.v[i].rank >= 0 && s.v[i].rank < rank) {
			rank = s.v[i].rank;
			s.who = s.v[i].entity;
		}
	return s;
}

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

typedef VEC(int64_t) times;

static int64_t at_share(const times *t, double share)
{
	return t->v[(size_t)(share * (double)(t->n - 1))];
}

static bool is_time(const struct window_step *s)
{
	return join_time_sane(s->begin_ns) && join_time_sane(s->end_ns);
}

/* Ends of steps with the same number: theirs less ours, by the wall clocks. */
static int differences(const struct part_steps *ours, int64_t our_rel,
		       const struct part_steps *theirs, int64_t their_rel, times *ret,
		       times *lengths)
{
	struct map ends = { 0 };
	int r = 0;

	for (size_t i = 0; i < ours->n && r == 0; i++)
		if (ours->v[i].entity == ours->who && is_time(&ours->v[i]) &&
		    !map_put(&ends, ours->v[i].number, (uint32_t)i))
			r = -ENOMEM;
	for (size_t i = 0; i < theirs->n && r == 0; i++) {
		const struct window_step *x = &theirs->v[i], *y;
		int64_t *slot, *length;
		uint32_t at;

		if (x->entity != theirs->who || !is_time(x) || !map_get(&ends, x->number, &at))
			continue;
		y = &ours->v[at];
		slot = vec_push(ret);
		length = vec_push(lengths);
		if (!slot || !length) {
			r = -ENOMEM;
			break;
		}
		*slot = (x->end_ns + their_rel) - (y->end_ns + our_rel);
		*length = y->end_ns - y->begin_ns;
	}
	map_done(&ends);
	return r;
}

static void judge(struct join_clock *c, times *t, times *lengths)
{
	int64_t spread;
	double step;

	if (t->n < STEPS_LEAST)
		return;
	qsort(t->v, t->n, sizeof(*t->v), by_value);
	qsort(lengths->v, lengths->n, sizeof(*lengths->v), by_value);
	spread = (at_share(t, 0.75) - at_share(t, 0.25)) / 2;
	step = (double)at_share(lengths, 0.5);
	if ((double)spread > together_most * step || llabs(at_share(t, 0.5)) > 4 * JOIN_TIME_MOST)
		return;
	c->by = JOIN_BY_STEPS;
	c->offset_ns = at_share(t, 0.5);
	c->spread_ns = spread;
	c->steps = t->n;
}

static int one_clock(struct join *j, size_t clock)
{
	const struct join_clock *first = &j->clocks.v[0];
	struct join_clock *c = &j->clocks.v[clock];
	struct part_steps ours = steps_of(&j->parts.v[0]), theirs = { 0 };
	times t = { 0 }, lengths = { 0 };
	int r = 0;

	c->by = JOIN_BY_WALL;
	for (size_t i = 0; i < j->parts.n && !theirs.who; i++)
		if (j->machines.v[j->parts.v[i].machine].clock == clock)
			theirs = steps_of(&j->parts.v[i]);
	if (ours.who && theirs.who)
		r = differences(&ours, first->rel_ns, &theirs, c->rel_ns, &t, &lengths);
	if (r == 0)
		judge(c, &t, &lengths);
	vec_done(&t);
	vec_done(&lengths);
	return r;
}

int join_clocks(struct join *j)
{
	int r = 0;

	for (size_t i = 1; i < j->clocks.n && r == 0; i++)
		r = one_clock(j, i);
	return r;
}

void join_shifts(struct join *j)
{
	int64_t first = INT64_MAX, last = INT64_MIN;

	for (size_t i = 0; i < j->parts.n; i++) {
		struct join_part *p = &j->parts.v[i];
		const struct join_clock *c = &j->clocks.v[j->machines.v[p->machine].clock];
		int64_t begin;

		p->shift_ns = c->rel_ns - c->offset_ns;
		begin = join_time(p, record_run(p->record)->started_mono_ns);
		first = begin < first ? begin : first;
	}
	for (size_t i = 0; i < j->parts.n; i++) {
		struct join_part *p = &j->parts.v[i];
		int64_t end;

		p->shift_ns += JOIN_BEGIN_NS - first;
		/* in steps of the file's own, so that no two samples of a record become one */
		p->shift_ns -= p->shift_ns % SERIES_TICK_NS;
		end = join_time(p, record_run(p->record)->ended_mono_ns);
		last = end > last ? end : last;
	}
	j->run.started_wall_ns += first;
	j->run.started_mono_ns = JOIN_BEGIN_NS;
	j->run.ended_mono_ns = last;
}

const char *join_clock_text(const struct join *j, size_t machine, char *buf, size_t size)
{
	const struct join_machine *m = &j->machines.v[machine];
	const struct join_clock *c = &j->clocks.v[m->clock];
	char name[80], first[80], off[32], within[32];

	buf[0] = '\0';
	if (machine == 0)
		return buf;
	text_safe_copy(name, sizeof(name), m->name);
	text_safe_copy(first, sizeof(first), j->machines.v[0].name);
	if (m->clock == 0)
		snprintf(buf, size, "%s: the same clock as %s", name, first);
	else if (c->by == JOIN_BY_STEPS)
		snprintf(buf, size,
			 "%s: clock %s %s %s's, by %zu steps that end together (within %s)", name,
			 num_seconds((double)llabs(c->offset_ns) / 1e9, off, sizeof(off)),
			 c->offset_ns < 0 ? "behind" : "ahead of", first, c->steps,
			 num_seconds((double)c->spread_ns / 1e9, within, sizeof(within)));
	else
		snprintf(buf, size,
			 "%s: put beside %s by the wall clocks: no steps in common that end "
			 "together",
			 name, first);
	return buf;
}

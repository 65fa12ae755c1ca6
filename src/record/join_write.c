/* SPDX-License-Identifier: MIT
 *
 * Frames of the joined run: births, samples, events and gaps of all records in order of time, as a
 * recorder that had seen all machines would have made them.
 */
#include "record/join_part.h"

#include "base/clock.h"
#include "record/series.h"
#include "record/writer.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	TELL_EVERY = 4096,
	LATE_S = 5,        /* the last look at a program may come behind its end */
	SAMPLES_SHARE = 70 /* % of the work, the rest are stacks */
};

/* What happens once, in the order in which it does at the same time. */
enum moment_kind {
	MOMENT_BORN,
	MOMENT_EVENT,
	MOMENT_GAP,
	MOMENT_GAP_END,
	MOMENT_GONE,
	MOMENT_OVER
};

struct moment {
	int64_t t_ns;
	enum moment_kind kind;
	uint32_t part, index;
};

struct join_reader {
	struct record_walk *walk;
	struct record_sample next;
	int64_t t_ns; /* of next, in the joined run */
};

struct joiner {
	struct join *j;
	struct record_writer *w;
	struct frame frame;
	struct join_sums sums;
	struct join_reader *readers;
	VEC(size_t) heap; /* parts with a next sample, the earliest first */
	VEC(struct moment) moments;
	size_t next_moment;
	struct map born; /* what was told of: a file may have it twice */
	int64_t begin_ns, end_ns;
};

static int add_moment(struct joiner *x, size_t part, enum moment_kind kind, size_t index,
		      int64_t t_ns)
{
	struct moment *m;
	int64_t t;

	if (!join_time_sane(t_ns) || index > UINT32_MAX)
		return 0;
	/* as coarse as samples are: who is born at a tick has values of that tick */
	t = join_time(&x->j->parts.v[part], series_time(t_ns));
	m = vec_push(&x->moments);
	if (!m)
		return -ENOMEM;
	/* What was there before the run began is born with it. */
	t = t < x->begin_ns ? x->begin_ns : t > x->end_ns ? x->end_ns : t;
	*m = (struct moment){
		.t_ns = t, .kind = kind, .part = (uint32_t)part, .index = (uint32_t)index
	};
	return 0;
}

static int by_moment(const void *a, const void *b)
{
	const struct moment *x = a, *y = b;

	if (x->t_ns != y->t_ns)
		return x->t_ns < y->t_ns ? -1 : 1;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	if (x->part != y->part)
		return x->part < y->part ? -1 : 1;
	return x->index < y->index ? -1 : x->index > y->index;
}

static int find_moments(struct joiner *x, size_t part)
{
	struct window w = record_window(x->j->parts.v[part].record, 0, 0);
	const struct entity_table *t = window_entities(&w);
	size_t n_events = 0, n_gaps = 0;
	const struct window_event *events = w.ops->events(w.src, &n_events);
	const struct window_gap *gaps = w.ops->gaps(w.src, &n_gaps);
	int r = 0;

	for (size_t i = 0; i < t->rows.n && r == 0; i++) {
		const struct entity *e = &t->rows.v[i];

		if (!join_is_kept(x->j, part, e))
			continue;
		r = add_moment(x, part, MOMENT_BORN, i, e->born_ns);
		if (r == 0 && e->gone_ns)
			r = add_moment(x, part, MOMENT_GONE, i, e->gone_ns);
	}
	for (size_t i = 0; i < n_events && r == 0; i++)
		r = add_moment(x, part, MOMENT_EVENT, i, events[i].t_ns);
	for (size_t i = 0; i < n_gaps && r == 0; i++) {
		r = add_moment(x, part, MOMENT_GAP, i, gaps[i].from_ns);
		if (r == 0 && gaps[i].to_ns)
			r = add_moment(x, part, MOMENT_GAP_END, i, gaps[i].to_ns);
	}
	/* a little later: those that end together leave no sum of the rest behind */
	return r < 0
		   ? r
		   : add_moment(x, part, MOMENT_OVER, 0, window_run(&w)->ended_mono_ns + NS_PER_S);
}

static int flush_frame(struct joiner *x, bool last)
{
	int r;

	join_sum_put(x->j, &x->sums, &x->frame, last);
	r = x->frame.failed ? -ENOMEM : record_frame(x->w, &x->frame);
	return r;
}

/* The frame of this time; the one before it goes out. */
static int frame_at(struct joiner *x, int64_t t_ns)
{
	int r;

	if (series_time(t_ns) <= series_time(x->frame.mono_ns))
		return 0;
	r = flush_frame(x, false);
	frame_begin(&x->frame, t_ns, x->j->run.started_wall_ns + (t_ns - JOIN_BEGIN_NS));
	return r;
}

static void put_born(struct joiner *x, const struct moment *m, const struct entity *e)
{
	const struct join_part *p = &x->j->parts.v[m->part];
	struct life life = {
		.change = LIFE_BORN,
		.id = join_id(p, e->id),
		.parent = e->parent ? join_id(p, e->parent) : 0,
		.kind = e->kind,
		.key = join_key(x->j, m->part, e),
		.start_ns = e->start_ns,
	};
	uint32_t at;

	if (map_get(&x->born, life.id, &at) || !map_put(&x->born, life.id, 1))
		return;
	frame_life(&x->frame, &life,
		   e->kind == ENTITY_HOST ? x->j->machines.v[p->machine].name : e->name, e->detail);
}

static bool is_whole(uint32_t entity)
{
	return entity == ID_HOST || entity == ID_JOB || entity == ID_SELF;
}

static void put_gap(struct joiner *x, const struct moment *m, const struct window_gap *g)
{
	enum gap_why why = m->kind == MOMENT_GAP_END ? GAP_OVER : g->why;
	uint32_t id = join_id(&x->j->parts.v[m->part], g->entity);

	if (id || !g->entity)
		frame_gap(&x->frame, g->metric, id, why);
	/* What the first machine does not tell, the sum does not either: rules ask why. */
	if (m->part == 0 && is_whole(g->entity))
		frame_gap(&x->frame, g->metric, g->entity, why);
}

static void put_moment(struct joiner *x, const struct moment *m)
{
	struct window w = record_window(x->j->parts.v[m->part].record, 0, 0);
	const struct join_part *p = &x->j->parts.v[m->part];
	const struct window_event *event;
	const struct entity *e;
	size_t n;

	switch (m->kind) {
	case MOMENT_BORN:
		put_born(x, m, &window_entities(&w)->rows.v[m->index]);
		break;
	case MOMENT_GONE:
		e = &window_entities(&w)->rows.v[m->index];
		frame_life(
		    &x->frame,
		    &(struct life){ .change = LIFE_GONE, .id = join_id(p, e->id), .kind = e->kind },
		    e->name, NULL);
		break;
	case MOMENT_EVENT:
		event = &w.ops->events(w.src, &n)[m->index];
		frame_event(&x->frame, event->kind, join_id(p, event->entity), event->value, "%s",
			    event->text ? event->text : "");
		break;
	case MOMENT_OVER:
		join_sum_end(x->j, &x->sums, m->part);
		break;
	default:
		put_gap(x, m, &w.ops->gaps(w.src, &n)[m->index]);
		break;
	}
}

static bool is_earlier(const struct joiner *x, size_t a, size_t b)
{
	int64_t s = x->readers[a].t_ns, t = x->readers[b].t_ns;

	return s != t ? s < t : a < b;
}

static void swap(struct joiner *x, size_t a, size_t b)
{
	size_t part = x->heap.v[a];

	x->heap.v[a] = x->heap.v[b];
	x->heap.v[b] = part;
}

/* The first of the heap has changed its time. */
static void sift(struct joiner *x)
{
	size_t at = 0;

	for (;;) {
		size_t least = at;

		for (size_t k = 2 * at + 1; k <= 2 * at + 2 && k < x->heap.n; k++)
			if (is_earlier(x, x->heap.v[k], x->heap.v[least]))
				least = k;
		if (least == at)
			return;
		swap(x, at, least);
		at = least;
	}
}

/* The next sample of a part that lies within the run: 1, 0 at the end, -errno. */
static int advance(struct joiner *x, size_t part)
{
	struct join_reader *r = &x->readers[part];
	int got;

	while ((got = record_walk_next(r->walk, &r->next)) > 0) {
		if (!join_time_sane(r->next.t_ns))
			continue;
		r->t_ns = join_time(&x->j->parts.v[part], r->next.t_ns);
		if (r->t_ns >= x->begin_ns - SERIES_TICK_NS &&
		    r->t_ns <= x->end_ns + LATE_S * NS_PER_S)
			return 1;
	}
	return got;
}

static int open_readers(struct joiner *x)
{
	struct join *j = x->j;
	int r = 0;

	x->readers = calloc(j->parts.n, sizeof(*x->readers));
	if (!x->readers || !vec_reserve(&x->heap, j->parts.n))
		return -ENOMEM;
	for (size_t i = 0; i < j->parts.n && r >= 0; i++) {
		r = record_walk_open(j->parts.v[i].record, &x->readers[i].walk);
		if (r >= 0)
			r = advance(x, i);
		if (r <= 0)
			continue;
		/* at the end of the heap, and up */
		x->heap.v[x->heap.n++] = i;
		for (size_t at = x->heap.n - 1;
		     at > 0 && is_earlier(x, x->heap.v[at], x->heap.v[(at - 1) / 2]);
		     at = (at - 1) / 2)
			swap(x, at, (at - 1) / 2);
	}
	return r < 0 ? r : 0;
}

static void put_sample(struct joiner *x, size_t part)
{
	const struct record_sample *s = &x->readers[part].next;
	const struct join_part *p = &x->j->parts.v[part];
	const struct join_machine *m = &x->j->machines.v[p->machine];
	uint32_t id = join_id(p, s->entity);
	double raw;

	if (s->metric == M_NONE || !isfinite(s->value))
		return;
	raw = s->value / metrics[s->metric].scale;
	if (!(fabs(raw) < 9e18))
		return;
	if (is_whole(s->entity) &&
	    (s->entity != ID_HOST || (m->part == part && m->same == p->machine)))
		join_sum_take(x->j, &x->sums, part, s->metric, llround(raw));
	/* the machine's own readings are those of its first record */
	if (id && (!join_is_of_machine(metrics[s->metric].entity) || m->part == part))
		frame_put(&x->frame, s->metric, id, llround(raw));
}

static int put_next_sample(struct joiner *x)
{
	size_t part = x->heap.v[0];
	int r = frame_at(x, x->readers[part].t_ns);

	if (r < 0)
		return r;
	put_sample(x, part);
	r = advance(x, part);
	if (r == 0)
		x->heap.v[0] = x->heap.v[--x->heap.n];
	if (r >= 0)
		sift(x);
	return r < 0 ? r : 0;
}

/* The first frame: what stands for all machines, and what has no sum. */
static void put_wholes(struct joiner *x)
{
	static const struct life wholes[] = {
		{ .change = LIFE_BORN, .id = ID_HOST, .kind = ENTITY_HOST },
		{ .change = LIFE_BORN, .id = ID_JOB, .parent = ID_HOST, .kind = ENTITY_JOB },
		{ .change = LIFE_BORN, .id = ID_SELF, .parent = ID_HOST, .kind = ENTITY_SELF },
	};
	static const char *const names[] = { "machines", "job", "spotter" };
	struct frame *f = &x->frame;

	frame_begin(f, x->begin_ns, x->j->run.started_wall_ns);
	for (size_t i = 0; i < 3; i++)
		frame_life(f, &wholes[i], names[i], NULL);
	for (int m = 1; m < METRICS; m++)
		if (metrics[m].entity == ENTITY_HOST && !join_has_sum((enum metric_id)m))
			frame_gap(f, (enum metric_id)m, ID_HOST, GAP_NOT_SUPPORTED);
	for (size_t i = 0; i < x->j->notes.n; i++)
		frame_event(f, EVENT_NOTE, ID_SELF, 0, "%s", x->j->notes.v[i].text);
}

static int put_all(struct joiner *x, void (*tell)(void *arg, double share), void *arg)
{
	double length = (double)(x->end_ns - x->begin_ns) + 1;
	unsigned n = 0;
	int r = 0;

	put_wholes(x);
	while (r == 0 && (x->heap.n || x->next_moment < x->moments.n)) {
		int64_t sample = x->heap.n ? x->readers[x->heap.v[0]].t_ns : INT64_MAX;
		const struct moment *m =
		    x->next_moment < x->moments.n ? &x->moments.v[x->next_moment] : NULL;

		/* Who is born at a time has a value at that time; who ends had one. */
		if (m && (m->t_ns < sample || (m->t_ns == sample && m->kind == MOMENT_BORN))) {
			r = frame_at(x, m->t_ns);
			put_moment(x, m);
			x->next_moment++;
		} else {
			r = put_next_sample(x);
		}
		if (tell && ++n % TELL_EVERY == 0)
			tell(arg, SAMPLES_SHARE / 100.0 * (double)(x->frame.mono_ns - x->begin_ns) /
				      length);
	}
	return r < 0 ? r : flush_frame(x, true);
}

static int prepare(struct joiner *x)
{
	int r = join_give_ids(x->j);

	for (size_t i = 0; i < x->j->parts.n && r == 0; i++)
		r = find_moments(x, i);
	if (r == 0 && x->moments.n)
		qsort(x->moments.v, x->moments.n, sizeof(*x->moments.v), by_moment);
	return r < 0 ? r : open_readers(x);
}

int join_write(struct join *j, struct record_writer *w, void (*tell)(void *arg, double share),
	       void *arg)
{
	struct joiner *x = calloc(1, sizeof(*x));
	int r;

	if (!x)
		return -ENOMEM;
	x->j = j;
	x->w = w;
	x->begin_ns = j->run.started_mono_ns;
	x->end_ns = j->run.ended_mono_ns;
	r = prepare(x);
	if (r == 0)
		r = put_all(x, tell, arg);
	for (size_t i = 0; x->readers && i < j->parts.n; i++)
		record_walk_close(x->readers[i].walk);
	free(x->readers);
	vec_done(&x->heap);
	vec_done(&x->moments);
	map_done(&x->born);
	frame_done(&x->frame);
	free(x);
	if (r == 0)
		r = join_stacks(j, w, tell, arg);
	if (r == 0)
		r = join_said(j, w);
	if (r == 0)
		r = join_nodes(j, w);
	return r == 0 ? record_flush(w) : r;
}

/* SPDX-License-Identifier: MIT */
#include "model/history.h"

#include "base/auto.h"
#include "model/history_marks.h"
#include "model/history_stacks.h"

#include <errno.h>

/* Events and gaps are few; more than this many means something churns, and the oldest go. */
enum { EVENTS_MAX = 1024, GAPS_MAX = 1024, RING_START = 8 };

struct ring_point {
	int64_t t_ns, raw;
};

/* Grows by doubling up to the history's length, so that a thread that slept since its start costs
 * a few points, not the whole ring. */
struct ring {
	uint32_t entity;
	uint16_t metric;
	bool used;
	uint32_t head, n, cap; /* head: index of the oldest */
	struct ring_point *v;
};

struct history {
	struct run_info run;
	unsigned points;
	struct entity_table entities;
	VEC(struct ring) rings;
	VEC(uint32_t) vacant; /* rings to be used again */
	struct map by_key;
	int64_t *ticks; /* ring of the last `points` ticks */
	unsigned tick_head, n_ticks;
	bool dropped; /* the first tick of the run is no longer kept */
	unsigned since_forget;
	VEC(struct window_event) events; /* text owned */
	VEC(struct window_gap) gaps;
	struct history_stacks stacks;
	struct history_marks marks;
};

static uint64_t key_of(unsigned metric, uint32_t entity)
{
	return (uint64_t)metric << 32 | entity;
}

struct history *history_new(const struct run_info *run, unsigned points)
{
	struct history *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	h->points = points < 2 ? 2 : points;
	h->ticks = calloc(h->points, sizeof(*h->ticks));
	if (!h->ticks || run_info_copy(&h->run, run) < 0) {
		history_free(h);
		return NULL;
	}
	return h;
}

void history_free(struct history *h)
{
	if (!h)
		return;
	for (size_t i = 0; i < h->rings.n; i++)
		free(h->rings.v[i].v);
	vec_done(&h->rings);
	vec_done(&h->vacant);
	for (size_t i = 0; i < h->events.n; i++)
		free((char *)h->events.v[i].text);
	vec_done(&h->events);
	vec_done(&h->gaps);
	history_stacks_done(&h->stacks);
	history_marks_done(&h->marks);
	map_done(&h->by_key);
	entity_table_done(&h->entities);
	run_info_done(&h->run);
	free(h->ticks);
	free(h);
}

struct run_info *history_run(struct history *h)
{
	return &h->run;
}

static int64_t first_kept(const struct history *h)
{
	return h->n_ticks ? h->ticks[h->tick_head] : 0;
}

int64_t history_last_ns(const struct history *h)
{
	return h->n_ticks ? h->ticks[(h->tick_head + h->n_ticks - 1) % h->points] : 0;
}

static const struct ring_point *ring_at(const struct ring *r, uint32_t i)
{
	return &r->v[(r->head + i) % r->cap];
}

/* Room for one more point: a longer ring, or the oldest point's place. */
static int ring_room(struct ring *r, uint32_t most)
{
	uint32_t cap = r->cap ? r->cap * 2 : RING_START;
	struct ring_point *v;

	if (r->n < r->cap)
		return 0;
	if (r->cap >= most) {
		r->head = (r->head + 1) % r->cap;
		r->n--;
		return 0;
	}
	if (cap > most)
		cap = most;
	v = calloc(cap, sizeof(*v));
	if (!v)
		return -ENOMEM;
	for (uint32_t i = 0; i < r->n; i++)
		v[i] = *ring_at(r, i);
	free(r->v);
	r->v = v;
	r->cap = cap;
	r->head = 0;
	return 0;
}

static struct ring *ring_find(const struct history *h, unsigned metric, uint32_t entity)
{
	uint32_t at;

	return map_get(&h->by_key, key_of(metric, entity), &at) ? &h->rings.v[at] : NULL;
}

static struct ring *ring_new(struct history *h, unsigned metric, uint32_t entity)
{
	uint32_t at = (uint32_t)h->rings.n;
	struct ring *r;

	if (h->vacant.n)
		at = h->vacant.v[h->vacant.n - 1];
	else if (!vec_push(&h->rings))
		return NULL;
	r = &h->rings.v[at];
	if (!map_put(&h->by_key, key_of(metric, entity), at)) {
		if (!h->vacant.n)
			h->rings.n--;
		return NULL;
	}
	if (h->vacant.n)
		h->vacant.n--;
	*r = (struct ring){ .entity = entity, .metric = (uint16_t)metric, .used = true };
	return r;
}

static int add_sample(struct history *h, int64_t t_ns, const struct sample *s)
{
	struct ring *r;
	int ret;

	if (s->metric == M_NONE || s->metric >= METRICS)
		return 0;
	r = ring_find(h, s->metric, s->entity);
	if (!r)
		r = ring_new(h, s->metric, s->entity);
	if (!r)
		return -ENOMEM;
	/* Said twice in a tick: the later reading counts. */
	if (r->n && ring_at(r, r->n - 1)->t_ns == t_ns) {
		r->v[(r->head + r->n - 1) % r->cap].raw = s->raw;
		return 0;
	}
	/* One more than the ticks kept: the value that held when the first of them came. */
	ret = ring_room(r, h->points + 1);
	if (ret < 0)
		return ret;
	r->v[(r->head + r->n++) % r->cap] = (struct ring_point){ t_ns, s->raw };
	return 0;
}

/* Closed gaps that ended before the first kept tick go first, then the oldest. */
static void thin_gaps(struct history *h)
{
	size_t kept = 0;

	for (size_t i = 0; i < h->gaps.n; i++)
		if (!h->gaps.v[i].to_ns || h->gaps.v[i].to_ns >= first_kept(h))
			h->gaps.v[kept++] = h->gaps.v[i];
	h->gaps.n = kept;
	if (kept < GAPS_MAX)
		return;
	kept = GAPS_MAX / 2;
	memmove(h->gaps.v, h->gaps.v + h->gaps.n - kept, kept * sizeof(*h->gaps.v));
	h->gaps.n = kept;
}

static int add_gap(struct history *h, int64_t t_ns, const struct gap *g)
{
	struct window_gap *w;

	if (g->metric == M_NONE || g->metric >= METRICS)
		return 0;
	for (size_t i = 0; i < h->gaps.n; i++) {
		w = &h->gaps.v[i];
		if (w->metric == g->metric && w->entity == g->entity && !w->to_ns)
			w->to_ns = t_ns;
	}
	if (g->why == GAP_OVER)
		return 0;
	if (h->gaps.n >= GAPS_MAX)
		thin_gaps(h);
	w = vec_push(&h->gaps);
	if (!w)
		return -ENOMEM;
	*w = (struct window_gap){
		.metric = g->metric, .entity = g->entity, .why = g->why, .from_ns = t_ns
	};
	return 0;
}

static int add_event(struct history *h, const struct frame *f, const struct event *e)
{
	auto_free char *text = strdup(frame_text(f, e->text));
	struct window_event *w;

	if (!text)
		return -ENOMEM;
	if (h->events.n >= EVENTS_MAX) {
		size_t kept = EVENTS_MAX / 2, gone = h->events.n - kept;

		for (size_t i = 0; i < gone; i++)
			free((char *)h->events.v[i].text);
		memmove(h->events.v, h->events.v + gone, kept * sizeof(*h->events.v));
		h->events.n = kept;
	}
	w = vec_push(&h->events);
	if (!w)
		return -ENOMEM;
	*w = (struct window_event){ .t_ns = f->mono_ns,
				    .kind = e->kind,
				    .entity = e->entity,
				    .value = e->value,
				    .text = steal_ptr(&text) };
	return 0;
}

static void add_tick(struct history *h, int64_t t_ns)
{
	if (h->n_ticks == h->points) {
		h->tick_head = (h->tick_head + 1) % h->points;
		h->n_ticks--;
		h->dropped = true;
	}
	h->ticks[(h->tick_head + h->n_ticks++) % h->points] = t_ns;
}

/* Entities that ended before the first kept tick have no value in any window that can be asked
 * for. Looked for now and then: a pass costs one look at each ring. */
static void forget(struct history *h)
{
	int64_t before = first_kept(h);

	for (uint32_t i = 0; i < h->rings.n; i++) {
		struct ring *r = &h->rings.v[i];
		const struct entity *e = r->used ? entity_find(&h->entities, r->entity) : NULL;

		if (!e || !e->gone_ns || e->gone_ns >= before)
			continue;
		/* Without memory for the note it stays until the next pass. */
		if (!vec_push(&h->vacant))
			break;
		h->vacant.v[h->vacant.n - 1] = i;
		map_del(&h->by_key, key_of(r->metric, r->entity));
		free(r->v);
		*r = (struct ring){ 0 };
	}
	for (size_t i = 0; i < h->rings.n; i++) {
		const struct ring *r = &h->rings.v[i];
		const struct entity *e = r->used ? entity_find(&h->entities, r->entity) : NULL;

		/* A ring left over for want of memory still needs its row to be found. */
		if (e && e->gone_ns && e->gone_ns < before)
			return;
	}
	entity_table_forget(&h->entities, before);
}

int history_frame(struct history *h, const struct frame *f)
{
	int r;

	if (h->n_ticks && f->mono_ns <= history_last_ns(h))
		return -EINVAL;
	r = entity_table_frame(&h->entities, f);
	for (size_t i = 0; r >= 0 && i < f->samples.n; i++)
		r = add_sample(h, f->mono_ns, &f->samples.v[i]);
	for (size_t i = 0; r >= 0 && i < f->gaps.n; i++)
		r = add_gap(h, f->mono_ns, &f->gaps.v[i]);
	for (size_t i = 0; r >= 0 && i < f->events.n; i++)
		r = add_event(h, f, &f->events.v[i]);
	if (r >= 0)
		r = history_stacks_frame(&h->stacks, f);
	if (r >= 0)
		r = history_marks_frame(&h->marks, f);
	add_tick(h, f->mono_ns);
	if (h->dropped) {
		history_stacks_forget(&h->stacks, first_kept(h));
		history_marks_forget(&h->marks, first_kept(h));
	}
	if (++h->since_forget > h->points / 8 + 8) {
		h->since_forget = 0;
		forget(h);
	}
	return r < 0 ? r : 0;
}

/* Number of points at or before t (before it when not `with`). */
static uint32_t ring_count(const struct ring *r, int64_t t, bool with)
{
	uint32_t lo = 0, hi = r->n;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		int64_t at = ring_at(r, mid)->t_ns;

		if (at < t || (with && at == t))
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static int stat_of(void *src, enum metric_id m, uint32_t entity, int64_t from, int64_t to,
		   struct series_stat *ret)
{
	const struct history *h = src;
	const struct ring *r = ring_find(h, m, entity);
	const struct entity *e = entity_find(&h->entities, entity);
	bool from_zero = window_from_zero(&h->entities, &h->run, m, entity, from);
	struct stat_builder b;
	uint32_t first, last;

	if (!r || (e && e->gone_ns && e->gone_ns <= from))
		return -ENODATA;
	first = ring_count(r, from, !from_zero);
	last = ring_count(r, to, true);
	stat_begin(&b, m, from_zero);
	if (first > 0 && first <= last && !from_zero)
		stat_before(&b, from, metric_value(m, ring_at(r, first - 1)->raw));
	for (uint32_t i = first; i < last; i++)
		stat_add(&b, ring_at(r, i)->t_ns, metric_value(m, ring_at(r, i)->raw));
	return stat_finish(&b, e && e->gone_ns && e->gone_ns < to ? e->gone_ns : to, ret);
}

static int each_point(void *src, enum metric_id m, uint32_t entity, int64_t from, int64_t to,
		      int64_t step_ns, window_point_fn fn, void *arg)
{
	const struct history *h = src;
	const struct ring *r = ring_find(h, m, entity);

	(void)step_ns; /* raw points are all there is */
	if (!r)
		return -ENODATA;
	for (uint32_t i = ring_count(r, from, false); i < ring_count(r, to, true); i++) {
		double v = metric_value(m, ring_at(r, i)->raw);
		int64_t t = ring_at(r, i)->t_ns;

		if (!fn(&(struct point){ t, v, v, v, t, v }, arg))
			break;
	}
	return 0;
}

static const struct entity_table *entities_of(void *src)
{
	return &((struct history *)src)->entities;
}

static const struct run_info *run_of(void *src)
{
	return &((struct history *)src)->run;
}

static const struct window_event *events_of(void *src, size_t *ret_n)
{
	const struct history *h = src;

	*ret_n = h->events.n;
	return h->events.v;
}

static const struct window_gap *gaps_of(void *src, size_t *ret_n)
{
	const struct history *h = src;

	*ret_n = h->gaps.n;
	return h->gaps.v;
}

static int stacks_of(void *src, int64_t from, int64_t to, window_slice_fn fn, void *arg)
{
	return history_stacks_each(&((struct history *)src)->stacks, from, to, fn, arg);
}

static const struct stack_book *book_of(void *src)
{
	return &((struct history *)src)->stacks.book;
}

static const struct window_step *steps_of(void *src, size_t *ret_n)
{
	return history_steps(&((struct history *)src)->marks, ret_n);
}

static const struct window_phase *phases_of(void *src, size_t *ret_n)
{
	struct history *h = src;

	return history_phases(&h->marks, &h->entities, &h->run, ret_n);
}

static const struct window_scalar *scalars_of(void *src, size_t *ret_n)
{
	return history_scalars(&((struct history *)src)->marks, ret_n);
}

static const struct window_scalar *settings_of(void *src, size_t *ret_n)
{
	return history_settings(&((struct history *)src)->marks, ret_n);
}

static const char *source_of(void *src)
{
	return ((struct history *)src)->marks.source;
}

struct window history_window(struct history *h, int64_t from_ns)
{
	static const struct window_ops ops = {
		.stat = stat_of,
		.each = each_point,
		.entities = entities_of,
		.run = run_of,
		.events = events_of,
		.gaps = gaps_of,
		.stacks = stacks_of,
		.book = book_of,
		.steps = steps_of,
		.phases = phases_of,
		.scalars = scalars_of,
		.settings = settings_of,
		.step_source = source_of,
	};
	int64_t from = first_kept(h), start = h->run.started_mono_ns;

	/* A job of ours counts from its start, which was a moment before the first tick. */
	if (!h->dropped && !h->run.attached && start && start < from)
		from = start;
	if (from_ns > from)
		from = from_ns;
	return (struct window){ &ops, h, from, history_last_ns(h) };
}

/* SPDX-License-Identifier: MIT
 *
 * The samples themselves: of one series for a chart, or of all for an export.
 */
#include "record/read.h"

#include "base/clock.h"
#include "record/db.h"
#include "record/sqlite_api.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MINUTE_NS (60 * NS_PER_S)

/* Series of one group, found by their ids in the file. */
struct walk {
	struct record *r;
	struct map at; /* id in the file -> place in metrics, keys */
	VEC(const struct file_metric *) metrics;
	VEC(size_t) keys; /* number of the one who asked */
	int64_t from_ns, to_ns;
	window_points_fn fn;
	void *arg;
	bool stopped, any;
};

static void walk_done(struct walk *w)
{
	map_done(&w->at);
	vec_done(&w->metrics);
	vec_done(&w->keys);
}

static int want(struct walk *w, const struct file_metric *m, uint32_t entity, size_t key)
{
	const struct file_metric **metric = vec_push(&w->metrics);
	size_t *slot = vec_push(&w->keys);

	if (!metric || !slot ||
	    !map_put(&w->at, (uint64_t)m->id << 32 | entity, (uint32_t)(w->keys.n - 1)))
		return -ENOMEM;
	*metric = m;
	*slot = key;
	return 0;
}

static void give(struct walk *w, uint32_t at, const struct point *p)
{
	w->any = true;
	if (p->t_ns >= w->from_ns && p->t_ns <= w->to_ns)
		w->stopped = !w->fn(w->keys.v[at], p, w->arg);
}

static void walk_block(struct walk *w, const struct piece *piece)
{
	struct block_reader *block = &w->r->chunk.block;
	struct block_series s;
	struct block_cursor c;
	uint32_t at;
	int i;

	while (!w->stopped && block_next(block, &s)) {
		if (!map_get(&w->at, s.head.id, &at))
			continue;
		block_samples(block, &s, &c);
		while (!w->stopped && (i = block_sample(&c)) >= 0) {
			double v = (double)c.raw * w->metrics.v[at]->scale;
			int64_t t = block->ticks.v[i];

			if (t >= piece->lo_ns && t < piece->hi_ns)
				give(w, at, &(struct point){ t, v, v, v, t, v });
		}
	}
}

/* A bucket is a point at its last moment: a counter's value then, a gauge's mean. */
static void walk_rollups(struct walk *w, const struct piece *piece, int64_t span_ns)
{
	struct rollup_reader reader;
	struct bucket b;
	uint32_t at;

	rollup_begin(&reader, &w->r->chunk.block, span_ns);
	while (!w->stopped && rollup_series(&reader)) {
		const struct file_metric *m;

		if (!map_get(&w->at, reader.series_id, &at))
			continue;
		m = w->metrics.v[at];
		while (!w->stopped && rollup_bucket(&reader, m->counter, &b)) {
			double v = m->counter ? (double)b.last : b.mean;

			if (b.t1_ns > piece->lo_ns && b.t1_ns <= piece->hi_ns)
				give(w, at,
				     &(struct point){ b.t1_ns - 1, v * m->scale,
						      (double)b.min * m->scale,
						      (double)b.max * m->scale, b.t0_ns,
						      (double)b.last * m->scale });
		}
	}
}

static int walk_piece(struct walk *w, const char *group, const struct piece *piece)
{
	struct record *r = w->r;
	const char *level = piece->source == PIECE_FINE     ? ROLLUP_FINE
			    : piece->source == PIECE_COARSE ? ROLLUP_COARSE
							    : NULL;
	int code = chunk_begin(&r->chunk, r->file.db, level, group, piece->lo_ns, piece->hi_ns);

	if (code == SQLITE_OK)
		code = SQLITE_ROW;
	while (code == SQLITE_ROW && !w->stopped) {
		code = chunk_next(&r->chunk);
		if (code != SQLITE_ROW)
			break;
		if (piece->source == PIECE_RAW)
			walk_block(w, piece);
		else
			walk_rollups(w, piece,
				     piece->source == PIECE_FINE ? ROLLUP_FINE_NS
								 : ROLLUP_COARSE_NS);
	}
	chunk_end(&r->chunk);
	return code == SQLITE_DONE || w->stopped ? 0 : db_errno(r->file.db);
}

static int walk_all(struct walk *w, int64_t step_ns)
{
	const struct file_metric *first = w->metrics.v[0];
	struct plan plan = { 0 };
	int ret = 0;

	plan_range(w->r, first->kind, w->from_ns, w->to_ns + 1, step_ns, &plan);
	for (size_t i = 0; i < plan.n && ret >= 0 && !w->stopped; i++)
		ret = walk_piece(w, first->group, &plan.v[i]);
	return ret;
}

static const struct file_metric *metric_of(const struct record *r, enum metric_id m)
{
	uint32_t at = m > M_NONE && m < METRICS ? r->metric_of[m] : 0;

	return at ? &r->metrics.v[at - 1] : NULL;
}

struct one_fn {
	window_point_fn fn;
	void *arg;
};

static bool call_one(size_t key, const struct point *p, void *arg)
{
	const struct one_fn *one = arg;

	(void)key;
	return one->fn(p, one->arg);
}

int points_each(struct record *r, enum metric_id m, uint32_t entity, int64_t from, int64_t to,
		int64_t step_ns, window_point_fn fn, void *arg)
{
	struct one_fn one = { fn, arg };

	return points_of(r, &(struct series_key){ m, entity }, 1, from, to, step_ns, call_one,
			 &one);
}

int points_of(struct record *r, const struct series_key *keys, size_t n, int64_t from, int64_t to,
	      int64_t step_ns, window_points_fn fn, void *arg)
{
	bool any = false, stopped = false;
	int ret = 0;

	/* By groups, as a block holds the series of one. */
	for (int kind = 0; kind < ENTITY_KINDS && ret >= 0 && !stopped; kind++) {
		struct walk w = { .r = r, .from_ns = from, .to_ns = to, .fn = fn, .arg = arg };

		for (size_t i = 0; i < n && ret >= 0; i++) {
			const struct file_metric *m = metric_of(r, keys[i].metric);

			if (m && (int)m->kind == kind)
				ret = want(&w, m, keys[i].entity, i);
		}
		if (ret >= 0 && w.keys.n)
			ret = walk_all(&w, step_ns);
		any |= w.any;
		stopped = w.stopped;
		walk_done(&w);
	}
	return ret < 0 ? ret : any ? 0 : -ENODATA;
}

/* One sample of a minute, to be sorted by time. */
struct flat {
	int64_t t_ns, raw;
	uint32_t metric; /* place in r->metrics */
	uint32_t entity;
};

struct flats {
	VEC(struct flat) rows;
};

static int by_time(const void *a, const void *b)
{
	const struct flat *x = a, *y = b;

	if (x->t_ns != y->t_ns)
		return x->t_ns < y->t_ns ? -1 : 1;
	if (x->metric != y->metric)
		return x->metric < y->metric ? -1 : 1;
	return x->entity < y->entity ? -1 : x->entity > y->entity;
}

static int flatten(struct record *r, struct flats *out)
{
	struct block_reader *block = &r->chunk.block;
	struct block_series s;
	struct block_cursor c;
	int i;

	while (block_next(block, &s)) {
		const struct file_metric *m = file_metric(r, s.head.id >> 32);

		if (!m)
			continue;
		block_samples(block, &s, &c);
		while ((i = block_sample(&c)) >= 0) {
			struct flat *f = vec_push(&out->rows);

			if (!f)
				return -ENOMEM;
			*f = (struct flat){ .t_ns = block->ticks.v[i],
					    .raw = c.raw,
					    .metric = (uint32_t)(m - r->metrics.v),
					    .entity = (uint32_t)s.head.id };
		}
	}
	return 0;
}

/* All blocks of a group that start in [lo, hi). Blocks never cross a minute. */
static int flatten_group(struct record *r, const char *group, int64_t lo, int64_t hi,
			 struct flats *out)
{
	int code = chunk_begin(&r->chunk, r->file.db, NULL, group, lo, hi), ret = 0;

	if (code == SQLITE_OK)
		code = SQLITE_ROW;
	while (code == SQLITE_ROW && ret >= 0) {
		code = chunk_next(&r->chunk);
		/* A made-up block that began earlier would be given twice. */
		if (code == SQLITE_ROW && r->chunk.block.ticks.n &&
		    r->chunk.block.ticks.v[0] >= lo && r->chunk.block.ticks.v[0] < hi)
			ret = flatten(r, out);
	}
	chunk_end(&r->chunk);
	if (ret < 0)
		return ret;
	return code == SQLITE_DONE ? 0 : db_errno(r->file.db);
}

/* Start of the next block at or after t: 0, -ENODATA, -errno. */
static int next_block(struct record *r, struct sqlite3_stmt *s, const char *group, int64_t t,
		      int64_t *ret)
{
	int got;

	(void)r;
	db_text(s, 1, group);
	db_int(s, 2, t);
	got = db_row(s);
	if (got > 0 && sqlite3_column_type(s, 0) == SQLITE_NULL)
		got = 0;
	if (got > 0)
		*ret = sqlite3_column_int64(s, 0);
	sqlite3_reset(s);
	return got < 0 ? got : got ? 0 : -ENODATA;
}

/* First of the metrics with this group: each group is walked once. */
static bool leads_group(const struct record *r, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (strcmp(r->metrics.v[k].group, r->metrics.v[i].group) == 0)
			return false;
	return true;
}

static int each_minute(struct record *r, const char *const *groups, size_t n, int64_t t,
		       struct flats *out, int64_t *ret_next)
{
	auto_stmt *s = NULL;
	int64_t first = INT64_MAX, at;
	int ret = db_prepare(r->file.db,
			     "SELECT min(t0_ns) FROM block WHERE grp = ?1 AND t0_ns >= ?2", &s);

	for (size_t i = 0; i < n && ret >= 0; i++) {
		ret = next_block(r, s, groups[i], t, &at);
		if (ret == 0 && at < first)
			first = at;
		if (ret == -ENODATA)
			ret = 0;
	}
	if (ret < 0 || first == INT64_MAX)
		return ret < 0 ? ret : -ENODATA;
	if (first > INT64_MAX / 4)
		return -EBADMSG;
	/* The end of the minute, counted from the start of the run as the writer does. */
	at = first - r->run.started_mono_ns;
	at = at >= 0 ? at / MINUTE_NS : -((-at + MINUTE_NS - 1) / MINUTE_NS);
	*ret_next = r->run.started_mono_ns + (at + 1) * MINUTE_NS;
	for (size_t i = 0; i < n && ret >= 0; i++)
		ret = flatten_group(r, groups[i], first, *ret_next, out);
	return ret;
}

struct record_walk {
	struct record *r;
	VEC(const char *) groups;
	struct flats flats;
	size_t at;       /* of flats */
	int64_t next_ns; /* where the next minute is looked for */
};

int record_walk_open(struct record *r, struct record_walk **ret)
{
	struct record_walk *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	w->r = r;
	w->next_ns = -(INT64_MAX / 4);
	for (size_t i = 0; i < r->metrics.n; i++) {
		const char **group;

		if (!leads_group(r, i))
			continue;
		group = vec_push(&w->groups);
		if (!group) {
			record_walk_close(w);
			return -ENOMEM;
		}
		*group = r->metrics.v[i].group;
	}
	*ret = w;
	return 0;
}

void record_walk_close(struct record_walk *w)
{
	if (!w)
		return;
	vec_done(&w->groups);
	vec_done(&w->flats.rows);
	free(w);
}

int record_walk_next(struct record_walk *w, struct record_sample *ret)
{
	const struct flat *row;
	const struct file_metric *m;

	while (w->at >= w->flats.rows.n) {
		int got;

		w->at = w->flats.rows.n = 0;
		got =
		    each_minute(w->r, w->groups.v, w->groups.n, w->next_ns, &w->flats, &w->next_ns);
		if (got < 0)
			return got == -ENODATA ? 0 : got;
		if (w->flats.rows.n)
			qsort(w->flats.rows.v, w->flats.rows.n, sizeof(*w->flats.rows.v), by_time);
	}
	row = &w->flats.rows.v[w->at++];
	m = &w->r->metrics.v[row->metric];
	*ret = (struct record_sample){ .t_ns = row->t_ns,
				       .metric = m->known,
				       .metric_name = m->name,
				       .unit = m->unit,
				       .entity = row->entity,
				       .value = (double)row->raw * m->scale };
	return 1;
}

int record_each_sample(struct record *r, bool (*fn)(const struct record_sample *s, void *arg),
		       void *arg)
{
	struct record_walk *w = NULL;
	struct record_sample s;
	int got = record_walk_open(r, &w);

	while (got >= 0 && (got = record_walk_next(w, &s)) > 0)
		if (!fn(&s, arg))
			break;
	record_walk_close(w);
	return got < 0 ? got : 0;
}

/* SPDX-License-Identifier: MIT
 *
 * Figures over a range. The first question about a group and a range reads that group's blobs once
 * and keeps the answer for every series in it, so a verdict that asks for thousands of series costs
 * a dozen passes.
 *
 * Ranges up to 20 minutes whose samples are all kept are answered from these. Others from the
 * buckets: their growth, min, max and last are exact, their mean is within 1/8000 of (max - min),
 * and at edges that no bucket meets the samples are read. Where retention deleted those, a bucket
 * counts in proportion.
 *
 * Series that stood still in the whole range still have a value: the one held from before. It is
 * looked for in the roll-ups from the start of the run (288 rows a day and group), then in the
 * samples of the last seconds before the range.
 */
#include "record/read.h"

#include "base/clock.h"
#include "record/db.h"
#include "record/sqlite_api.h"

#include <errno.h>
#include <stdlib.h>

#define RAW_UP_TO_NS (20 * 60 * NS_PER_S)

/* One series in the making, in raw units. */
struct tally {
	uint64_t key;
	struct stat_builder b;
	double scale;
	int64_t end_ns; /* of the range, or of the thing if that was earlier */
	bool absent;    /* gone before the range began */
	bool has_before;
	int64_t before;
};

struct pass {
	struct record *r;
	enum entity_kind group;
	int64_t from_ns, to_ns;
	VEC(struct tally) rows;
	struct map index;
};

static void stat_set_done(struct stat_set *s)
{
	map_done(&s->index);
	vec_done(&s->rows);
	*s = (struct stat_set){ 0 };
}

void stats_forget(struct record *r)
{
	for (int i = 0; i < STAT_SETS; i++)
		stat_set_done(&r->sets[i]);
}

/* NULL: a metric this version does not know (*ret_failed false), or no memory. */
static struct tally *tally_of(struct pass *p, uint64_t series_id, bool *ret_failed)
{
	const struct file_metric *m = file_metric(p->r, series_id >> 32);
	uint32_t entity = (uint32_t)series_id, at;
	const struct entity *e;
	struct tally *t;
	uint64_t key;

	if (!m || !m->known || m->kind != p->group)
		return NULL;
	key = (uint64_t)m->known << 32 | entity;
	if (map_get(&p->index, key, &at))
		return &p->rows.v[at];
	t = vec_push(&p->rows);
	if (!t || !map_put(&p->index, key, (uint32_t)(p->rows.n - 1))) {
		*ret_failed = true;
		return NULL;
	}
	e = entity_find(&p->r->entities, entity);
	t->key = key;
	t->scale = m->scale;
	t->end_ns = e && e->gone_ns && e->gone_ns < p->to_ns ? e->gone_ns : p->to_ns;
	t->absent = e && e->gone_ns && e->gone_ns <= p->from_ns;
	stat_begin(&t->b, m->known,
		   window_from_zero(&p->r->entities, &p->r->run, m->known, entity, p->from_ns));
	t->b.counter = m->counter;
	return t;
}

/* Before the first value in the range is added: the one it began with. `held` is what the blob
 * says came before; if that is not what was seen last, something in between is missing (a block
 * that was lost or damaged), and the series is brought up to date. */
static void lead_in(struct pass *p, struct tally *t, int64_t t_ns, bool has_held, int64_t held)
{
	if (!t->b.any) {
		if (t->b.from_zero)
			return;
		if (has_held)
			stat_before(&t->b, p->from_ns, (double)held);
		else if (t->has_before)
			stat_before(&t->b, p->from_ns, (double)t->before);
	} else if (has_held && (double)held != t->b.stat.last) {
		stat_add(&t->b, t_ns, (double)held);
	}
}

static void add_samples(struct pass *p, const struct piece *piece, struct tally *t,
			const struct block_series *s)
{
	struct block_reader *block = &p->r->chunk.block;
	struct block_cursor c;
	bool has_held = s->head.held, led = false;
	int64_t held = s->head.base;
	int i;

	block_samples(block, s, &c);
	while ((i = block_sample(&c)) >= 0) {
		int64_t at = block->ticks.v[i];

		if (at >= piece->hi_ns)
			break;
		/* A sample at the very start of the range is what it begins with. */
		if (at < p->from_ns || (at == p->from_ns && !t->b.from_zero)) {
			t->before = c.raw;
			t->has_before = true;
		}
		if (at >= piece->lo_ns && at >= p->from_ns &&
		    !(at == p->from_ns && !t->b.from_zero)) {
			if (!led)
				lead_in(p, t, at, has_held, held);
			led = true;
			stat_add(&t->b, at, (double)c.raw);
		}
		has_held = true;
		held = c.raw;
	}
}

/* The part of a bucket that lies in the piece, 0..1. */
static double overlap(const struct bucket *b, const struct piece *piece)
{
	int64_t lo = b->t0_ns > piece->lo_ns ? b->t0_ns : piece->lo_ns;
	int64_t hi = b->t1_ns < piece->hi_ns ? b->t1_ns : piece->hi_ns;

	if (b->t1_ns <= b->t0_ns || hi <= lo)
		return 0;
	return (double)(hi - lo) / (double)(b->t1_ns - b->t0_ns);
}

static void bucket_before(struct tally *t, const struct bucket *b, const struct piece *piece)
{
	double share = overlap(b, piece);

	if (share <= 0)
		return;
	t->before = b->last;
	if (share < 1 && t->b.counter && b->held)
		t->before = b->base + (int64_t)(share * (double)b->growth);
	t->has_before = true;
}

static void add_bucket(struct pass *p, const struct piece *piece, struct tally *t,
		       const struct bucket *b)
{
	bool whole = b->t0_ns >= piece->lo_ns, begins = whole && b->t0_ns < piece->hi_ns;
	double share = overlap(b, piece);
	int64_t t0 = whole ? b->t0_ns : piece->lo_ns;
	int64_t t1 = b->t1_ns < piece->hi_ns ? b->t1_ns : piece->hi_ns;
	double last = (double)b->last, growth = (double)b->growth * share;

	/* Born and gone at one tick: no time, but a value. */
	if (share <= 0 && !(b->fresh && begins))
		return;
	if (t1 > t->end_ns)
		t1 = t->end_ns > t0 ? t->end_ns : t0;
	if (t->b.counter && b->held && b->t1_ns > piece->hi_ns)
		last = (double)b->base + growth;
	lead_in(p, t, t0, b->held && whole, b->base);
	if (b->fresh && begins)
		stat_add(&t->b, t0, (double)b->first);
	stat_add_bucket(&t->b, t0, t1, (double)b->min, (double)b->max, last, growth,
			b->mean * (double)(t1 - t0));
}

static bool add_block(struct pass *p, const struct piece *piece)
{
	struct block_series s;
	bool failed = false;

	while (block_next(&p->r->chunk.block, &s)) {
		struct tally *t = tally_of(p, s.head.id, &failed);

		if (t && !t->absent)
			add_samples(p, piece, t, &s);
	}
	return !failed;
}

static bool add_rollups(struct pass *p, const struct piece *piece, int64_t span_ns)
{
	struct rollup_reader reader;
	struct bucket b;
	bool failed = false;

	rollup_begin(&reader, &p->r->chunk.block, span_ns);
	while (rollup_series(&reader)) {
		struct tally *t = tally_of(p, reader.series_id, &failed);

		if (!t || t->absent)
			continue;
		while (rollup_bucket(&reader, t->b.counter, &b)) {
			if (piece->hi_ns <= p->from_ns)
				bucket_before(t, &b, piece);
			else
				add_bucket(p, piece, t, &b);
		}
	}
	return !failed;
}

static int read_piece(struct pass *p, const struct piece *piece)
{
	static const char *const levels[] = { NULL, ROLLUP_FINE, ROLLUP_COARSE };
	static const int64_t spans[] = { 0, ROLLUP_FINE_NS, ROLLUP_COARSE_NS };
	struct record *r = p->r;
	bool ok = true;
	int code = chunk_begin(&r->chunk, r->file.db, levels[piece->source],
			       entity_kind_name(p->group), piece->lo_ns, piece->hi_ns);

	while (ok && code != SQLITE_DONE) {
		if (code != SQLITE_OK && code != SQLITE_ROW)
			break;
		code = chunk_next(&r->chunk);
		if (code != SQLITE_ROW)
			continue;
		ok = piece->source == PIECE_RAW ? add_block(p, piece)
						: add_rollups(p, piece, spans[piece->source]);
	}
	chunk_end(&r->chunk);
	if (!ok)
		return -ENOMEM;
	return code == SQLITE_DONE ? 0 : db_errno(r->file.db);
}

/* Are all samples of this range as they were taken? */
static bool is_whole(struct record *r, enum entity_kind g, int64_t from, int64_t to)
{
	auto_stmt *s = NULL;

	if (from < r->raw_from_ns[g] ||
	    db_prepare(r->file.db,
		       "SELECT 1 FROM block WHERE grp = ?1 AND t0_ns > ?2 - 60000000000 AND"
		       " t0_ns <= ?3 AND level = 'thin' LIMIT 1",
		       &s) < 0)
		return false;
	db_text(s, 1, entity_kind_name(g));
	db_int(s, 2, from);
	db_int(s, 3, to);
	return db_row(s) == 0;
}

static int read_all(struct pass *p)
{
	struct record *r = p->r;
	bool raw =
	    p->to_ns - p->from_ns <= RAW_UP_TO_NS && is_whole(r, p->group, p->from_ns, p->to_ns);
	struct plan plan = { 0 };
	int ret = 0;

	plan_range(r, p->group, r->run.started_mono_ns, p->from_ns, ROLLUP_COARSE_NS, &plan);
	plan_range(r, p->group, p->from_ns, p->to_ns + 1, raw ? 0 : ROLLUP_COARSE_NS, &plan);
	for (size_t i = 0; i < plan.n && ret >= 0; i++)
		ret = read_piece(p, &plan.v[i]);
	return ret;
}

static void scale_stat(struct series_stat *s, double scale)
{
	s->first *= scale;
	s->last *= scale;
	s->min *= scale;
	s->max *= scale;
	s->mean *= scale;
	s->delta *= scale;
}

static int keep_results(struct pass *p, struct stat_set *set)
{
	for (size_t i = 0; i < p->rows.n; i++) {
		struct tally *t = &p->rows.v[i];
		struct series_stat stat, *row;

		if (!t->b.any && t->has_before && !t->absent)
			stat_before(&t->b, p->from_ns, (double)t->before);
		if (t->absent || stat_finish(&t->b, t->end_ns, &stat) < 0)
			continue;
		scale_stat(&stat, t->scale);
		row = vec_push(&set->rows);
		if (!row || !map_put(&set->index, t->key, (uint32_t)(set->rows.n - 1)))
			return -ENOMEM;
		*row = stat;
	}
	return 0;
}

static int make_set(struct record *r, struct stat_set *set)
{
	struct pass p = {
		.r = r, .group = set->group, .from_ns = set->from_ns, .to_ns = set->to_ns
	};
	int ret;

	/* One state of a live file for all of it. */
	(void)db_exec(r->file.db, "BEGIN");
	ret = read_all(&p);
	(void)db_exec(r->file.db, "COMMIT");
	if (ret >= 0)
		ret = keep_results(&p, set);
	vec_done(&p.rows);
	map_done(&p.index);
	return ret;
}

static struct stat_set *find_set(struct record *r, enum entity_kind g, int64_t from, int64_t to,
				 int *ret_error)
{
	struct stat_set *oldest = &r->sets[0];

	for (int i = 0; i < STAT_SETS; i++) {
		struct stat_set *s = &r->sets[i];

		if (s->group == g && s->from_ns == from && s->to_ns == to)
			return s;
		if (s->used < oldest->used)
			oldest = s;
	}
	stat_set_done(oldest);
	oldest->group = g;
	oldest->from_ns = from;
	oldest->to_ns = to;
	*ret_error = make_set(r, oldest);
	if (*ret_error >= 0)
		return oldest;
	stat_set_done(oldest);
	return NULL;
}

int stats_of(struct record *r, enum metric_id m, uint32_t entity, int64_t from, int64_t to,
	     struct series_stat *ret)
{
	uint32_t at = m > M_NONE && m < METRICS ? r->metric_of[m] : 0;
	struct stat_set *set;
	int error = 0;

	if (!at || to < from)
		return -ENODATA;
	set = find_set(r, r->metrics.v[at - 1].kind, from, to, &error);
	if (!set)
		return error;
	set->used = ++r->clock;
	if (!map_get(&set->index, (uint64_t)m << 32 | entity, &at))
		return -ENODATA;
	*ret = set->rows.v[at];
	return 0;
}

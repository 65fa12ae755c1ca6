/* SPDX-License-Identifier: MIT */
#include "record/merge.h"

#include "base/clock.h"

#include <errno.h>
#include <stdlib.h>

void merge_done(struct merge *m)
{
	for (size_t i = 0; i < m->rows.n; i++)
		buf_done(&m->rows.v[i].tokens);
	vec_done(&m->rows);
	vec_done(&m->ticks);
	map_done(&m->by_id);
	block_reader_done(&m->reader);
}

static struct merge_series *row_of(struct merge *m, const struct block_series *s)
{
	struct merge_series *row;
	uint32_t at;

	if (map_get(&m->by_id, s->head.id, &at))
		return &m->rows.v[at];
	row = vec_push(&m->rows);
	if (!row || !map_put(&m->by_id, s->head.id, (uint32_t)(m->rows.n - 1))) {
		m->rows.n -= row ? 1 : 0;
		return NULL;
	}
	row->head = s->head;
	row->head.back = 1;
	row->value = s->head.held ? s->head.base : 0;
	row->tick = -1;
	return row;
}

static bool add_series(struct merge *m, const struct block_series *s, size_t first_tick)
{
	struct merge_series *row = row_of(m, s);
	struct block_cursor c;
	uint8_t token[BLOCK_TOKEN_MAX];
	int i;

	if (!row)
		return false;
	block_samples(&m->reader, s, &c);
	while ((i = block_sample(&c)) >= 0) {
		int64_t tick = (int64_t)first_tick + i;

		if (tick <= row->tick)
			continue; /* a damaged block holds a series twice */
		buf_put(&row->tokens, token,
			block_token(token, (uint32_t)(tick - row->tick), row->value, c.raw));
		row->tick = tick;
		row->value = c.raw;
	}
	return buf_ok(&row->tokens);
}

int merge_add(struct merge *m, const void *blob, size_t n)
{
	size_t first = m->ticks.n;
	struct block_series s;
	int r = block_open(&m->reader, blob, n);

	if (r < 0)
		return r;
	if (first && m->reader.ticks.n && m->reader.ticks.v[0] <= m->ticks.v[first - 1])
		return -EBADMSG;
	for (size_t i = 0; i < m->reader.ticks.n; i++) {
		int64_t *t = vec_push(&m->ticks);

		if (!t)
			return -ENOMEM;
		*t = m->reader.ticks.v[i];
	}
	while (block_next(&m->reader, &s)) {
		if (!add_series(m, &s, first))
			return -ENOMEM;
		if (m->rows.n > MERGE_SERIES)
			return -E2BIG;
	}
	return m->reader.damaged ? -EBADMSG : 0;
}

static int by_id(const void *a, const void *b)
{
	const struct merge_series *x = a, *y = b;

	return x->head.id < y->head.id ? -1 : x->head.id > y->head.id;
}

int merge_end(struct merge *m, struct block_codec *c, const void **ret_blob, size_t *ret_n)
{
	if (m->rows.n)
		qsort(m->rows.v, m->rows.n, sizeof(*m->rows.v), by_id);
	block_begin(c, m->ticks.v, m->ticks.n);
	for (size_t i = 0; i < m->rows.n; i++)
		block_put(c, &m->rows.v[i].head, (const uint8_t *)m->rows.v[i].tokens.data,
			  m->rows.v[i].tokens.len);
	return block_end(c, ret_blob, ret_n);
}

void thin_done(struct thin *t)
{
	block_reader_done(&t->reader);
	vec_done(&t->place);
	vec_done(&t->ticks);
	buf_done(&t->tokens);
}

static int64_t second_of(const struct thin *t, int tick, int64_t start_ns)
{
	/* Wraps for hostile times; only equality matters. */
	int64_t since = (int64_t)((uint64_t)t->reader.ticks.v[tick] - (uint64_t)start_ns);

	return since >= 0 ? since / NS_PER_S : ~(~since / NS_PER_S);
}

/* Walks the samples that stay. With out: writes them as tokens, else marks their ticks. */
static void keep(struct thin *t, const struct block_series *s, int64_t start_ns, bool counter,
		 struct buf *out)
{
	int64_t value = s->head.held ? s->head.base : 0, before = value, at = -1, raw;
	struct block_cursor c;
	int tick, next;

	block_samples(&t->reader, s, &c);
	for (tick = block_sample(&c); tick >= 0; tick = next) {
		uint8_t token[BLOCK_TOKEN_MAX];
		bool was_reset = counter && c.raw < before;

		before = raw = c.raw;
		next = block_sample(&c);
		if (next >= 0 && second_of(t, next, start_ns) == second_of(t, tick, start_ns) &&
		    !was_reset && !(counter && c.raw < raw))
			continue;
		if (!out) {
			t->place.v[tick] = 1;
			continue;
		}
		buf_put(
		    out, token,
		    block_token(token, (uint32_t)((int64_t)t->place.v[tick] - 1 - at), value, raw));
		at = (int64_t)t->place.v[tick] - 1;
		value = raw;
		t->samples++;
	}
}

static int place_ticks(struct thin *t)
{
	t->ticks.n = 0;
	for (size_t i = 0; i < t->place.n; i++) {
		int64_t *tick;

		if (!t->place.v[i])
			continue;
		tick = vec_push(&t->ticks);
		if (!tick)
			return -ENOMEM;
		*tick = t->reader.ticks.v[i];
		t->place.v[i] = (uint32_t)t->ticks.n;
	}
	return 0;
}

int thin_block(struct thin *t, const void *blob, size_t n, int64_t start_ns,
	       bool (*is_counter)(uint64_t id), struct block_codec *c, const void **ret_blob,
	       size_t *ret_n)
{
	struct block_series s;
	int r = block_open(&t->reader, blob, n);

	if (r < 0)
		return r;
	if (!vec_reserve(&t->place, t->reader.ticks.n + 1))
		return -ENOMEM;
	t->place.n = t->reader.ticks.n;
	memset(t->place.v, 0, t->place.n * sizeof(*t->place.v));
	while (block_next(&t->reader, &s))
		keep(t, &s, start_ns, is_counter(s.head.id), NULL);
	if (t->reader.damaged)
		return -EBADMSG;
	r = place_ticks(t);
	if (r < 0)
		return r;
	t->samples = 0;
	block_rewind(&t->reader);
	block_begin(c, t->ticks.v, t->ticks.n);
	while (block_next(&t->reader, &s)) {
		buf_reset(&t->tokens);
		keep(t, &s, start_ns, is_counter(s.head.id), &t->tokens);
		s.head.back = 1;
		block_put(c, &s.head, (const uint8_t *)t->tokens.data, t->tokens.len);
	}
	return buf_ok(&t->tokens) ? block_end(c, ret_blob, ret_n) : -ENOMEM;
}

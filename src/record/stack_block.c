/* SPDX-License-Identifier: MIT */
#include "record/stack_block.h"

#include <errno.h>

#define TIME_MOST (INT64_MAX / 4)

void stack_block_put(struct buf *payload, const struct stack_slice *s)
{
	uint32_t entity = 0, node = 0;

	if (!payload->len)
		buf_char(payload, STACK_BLOCK_VERSION);
	buf_zigzag(payload, s->from_ns);
	buf_varint(payload, (uint64_t)(s->to_ns - s->from_ns));
	buf_varint(payload, s->n);
	for (size_t i = 0; i < s->n; i++) {
		const struct stack_row *r = &s->rows[i];
		const char what[3] = { (char)r->kind, (char)r->on, (char)r->flags };

		if (r->entity != entity)
			node = 0;
		buf_varint(payload, r->entity - entity);
		buf_varint(payload, r->node - node);
		buf_put(payload, what, sizeof(what));
		buf_varint(payload, r->peer);
		buf_varint(payload, r->count);
		buf_varint(payload, r->weight_ns > 0 ? (uint64_t)r->weight_ns : 0);
		entity = r->entity;
		node = r->node;
	}
}

void stack_block_done(struct stack_block *b)
{
	block_codec_done(&b->codec);
	buf_done(&b->plain);
	vec_done(&b->rows);
	*b = (struct stack_block){ 0 };
}

int stack_block_open(struct stack_block *b, const void *blob, size_t n)
{
	int r = block_unpack(&b->codec, blob, n, STACK_BLOCK_BYTES, &b->plain);

	b->damaged = false;
	b->last_ns = -TIME_MOST;
	b->p = b->end = NULL;
	if (r < 0)
		return r;
	b->p = (const uint8_t *)b->plain.data;
	b->end = b->p + b->plain.len;
	return *b->p++ == STACK_BLOCK_VERSION ? 0 : -EBADMSG;
}

/* A number that fits 32 bits. */
static bool read_small(struct stack_block *b, uint64_t most, uint32_t *ret)
{
	uint64_t v;

	if (!varint_read(&b->p, b->end, &v) || v > most)
		return false;
	*ret = (uint32_t)v;
	return true;
}

static bool read_row(struct stack_block *b, const struct stack_row *before, struct stack_row *r)
{
	uint32_t entity = before ? before->entity : 0, node = 0;
	uint64_t weight;

	if (!read_small(b, UINT32_MAX - entity, &r->entity))
		return false;
	if (before && !r->entity)
		node = before->node;
	r->entity += entity;
	if (!read_small(b, STACK_NODES_MAX - node, &r->node) || b->end - b->p < 3)
		return false;
	r->node += node;
	r->kind = *b->p++;
	r->on = *b->p++;
	r->flags = *b->p++;
	if (!read_small(b, UINT32_MAX, &r->peer) || !read_small(b, UINT32_MAX, &r->count) ||
	    !varint_read(&b->p, b->end, &weight) ||
	    weight > (uint64_t)(STACK_WEIGHT_MAX - b->weight_ns))
		return false;
	r->weight_ns = (int64_t)weight;
	b->weight_ns += r->weight_ns;
	return true;
}

static bool read_head(struct stack_block *b, struct stack_slice *s)
{
	uint64_t length, n;

	if (!zigzag_read(&b->p, b->end, &s->from_ns) || !varint_read(&b->p, b->end, &length) ||
	    !varint_read(&b->p, b->end, &n))
		return false;
	if (s->from_ns < b->last_ns || s->from_ns > TIME_MOST || !length || length > TIME_MOST)
		return false;
	s->to_ns = s->from_ns + (int64_t)length;
	s->n = (size_t)n;
	return n <= STACK_SLICE_ROWS && n <= (size_t)(b->end - b->p) / STACK_ROW_BYTES;
}

int stack_block_next(struct stack_block *b, struct stack_slice *ret)
{
	if (b->damaged || b->p >= b->end)
		return 0;
	if (!read_head(b, ret)) {
		b->damaged = true;
		return 0;
	}
	if (!vec_reserve(&b->rows, ret->n + 1))
		return -ENOMEM;
	for (size_t i = 0; i < ret->n; i++) {
		b->rows.v[i] = (struct stack_row){ 0 };
		if (!read_row(b, i ? &b->rows.v[i - 1] : NULL, &b->rows.v[i])) {
			b->damaged = true;
			return 0;
		}
	}
	b->last_ns = ret->from_ns;
	ret->rows = b->rows.v;
	return 1;
}

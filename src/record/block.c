/* SPDX-License-Identifier: MIT */
#include "record/block.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

enum { HEAD, GAPS, FIRSTS, RESTS, SECTIONS };

enum {
	LEVEL = 3,
	LEVEL_THOROUGH = 9,
	/* Series repeat within tens of kilobytes: a window of 256 KB packs as well as level 3's own
	 * of 2 MB and takes a tenth of the memory. */
	WINDOW_LOG = 18,
	HASH_LOG = 15,
	CHAIN_LOG = 15,
	/* Below this the tables of four sections cost more than they save. */
	SMALL = 1500,
	TICK_UNIT = 10000, /* the resolution of our writer */
};

void block_codec_done(struct block_codec *c)
{
	ZSTD_freeCCtx(c->cctx);
	ZSTD_freeDCtx(c->dctx);
	for (int i = 0; i < SECTIONS; i++)
		buf_done(&c->sections[i]);
	buf_done(&c->packed);
	*c = (struct block_codec){ 0 };
}

static uint64_t unit_of(const int64_t *ticks, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if ((uint64_t)(ticks[i] - ticks[i - 1]) % TICK_UNIT)
			return 1;
	return TICK_UNIT;
}

/* A step that is nearly that of most: the middle one of the first few. */
static int64_t usual_step(const int64_t *ticks, size_t n, uint64_t unit)
{
	int64_t few[9];
	size_t k = 0;

	for (size_t i = 1; i < n && k < sizeof(few) / sizeof(few[0]); i++) {
		int64_t step = (int64_t)((uint64_t)(ticks[i] - ticks[i - 1]) / unit);
		size_t at = k++;

		for (; at && few[at - 1] > step; at--)
			few[at] = few[at - 1];
		few[at] = step;
	}
	return k ? few[k / 2] : 0;
}

static size_t put_varint(uint8_t *out, uint64_t v)
{
	size_t n = 0;

	while (v >= 0x80) {
		out[n++] = (uint8_t)(v | 0x80);
		v >>= 7;
	}
	out[n++] = (uint8_t)v;
	return n;
}

void block_begin(struct block_codec *c, const int64_t *ticks, size_t n)
{
	uint64_t unit = unit_of(ticks, n);
	int64_t usual = usual_step(ticks, n, unit);
	struct buf *head = &c->sections[HEAD];

	for (int i = 0; i < SECTIONS; i++) {
		c->sections[i].max = BLOCK_MAX_BYTES;
		buf_reset(&c->sections[i]);
	}
	buf_varint(head, n);
	buf_varint(head, unit);
	buf_zigzag(head, n ? ticks[0] : 0);
	buf_varint(head, (uint64_t)usual);
	for (size_t i = 1; i < n; i++)
		buf_zigzag(head, (int64_t)((uint64_t)(ticks[i] - ticks[i - 1]) / unit) - usual);
	c->id = 0;
}

static size_t varint_bytes(const uint8_t *p)
{
	size_t n = 1;

	while (*p++ & 0x80)
		n++;
	return n;
}

void block_put(struct block_codec *c, const struct block_head *h, const uint8_t *tokens,
	       size_t bytes)
{
	struct buf *head = &c->sections[HEAD], *gaps = &c->sections[GAPS];
	struct buf *firsts = &c->sections[FIRSTS], *rests = &c->sections[RESTS];
	size_t n_gaps = gaps->len, n_firsts = firsts->len, n_rests = rests->len;
	const uint8_t *end = bytes ? tokens + bytes : tokens;
	bool dense = true;

	if (!buf_reserve(gaps, bytes) || !buf_reserve(firsts, bytes) || !buf_reserve(rests, bytes))
		return;
	while (tokens < end) {
		size_t gap = varint_bytes(tokens), n;

		dense &= !*tokens;
		memcpy(gaps->data + gaps->len, tokens, gap);
		gaps->len += gap;
		tokens += gap;
		n = varint_bytes(tokens) - 1;
		firsts->data[firsts->len++] = (char)*tokens++;
		memcpy(rests->data + rests->len, tokens, n);
		rests->len += n;
		tokens += n;
	}
	if (dense)
		gaps->len = n_gaps;
	buf_zigzag(head, (int64_t)(h->id - c->id));
	buf_varint(head, firsts->len - n_firsts);
	buf_varint(head, gaps->len - n_gaps);
	buf_varint(head, rests->len - n_rests);
	buf_varint(head, (uint64_t)h->back << 1 | h->held);
	if (h->held)
		buf_zigzag(head, h->base);
	c->id = h->id;
}

static ZSTD_CCtx *compressor(struct block_codec *c)
{
	ZSTD_CCtx *z = c->cctx;

	if (z)
		return z;
	z = ZSTD_createCCtx();
	if (!z)
		return NULL;
	ZSTD_CCtx_setParameter(z, ZSTD_c_windowLog, WINDOW_LOG);
	ZSTD_CCtx_setParameter(z, ZSTD_c_hashLog, HASH_LOG);
	ZSTD_CCtx_setParameter(z, ZSTD_c_chainLog, CHAIN_LOG);
	c->cctx = z;
	return z;
}

/* Everything of p goes in; after a flush a new set of statistics begins. */
static bool pack(ZSTD_CCtx *z, ZSTD_outBuffer *out, const void *p, size_t n, ZSTD_EndDirective then)
{
	ZSTD_inBuffer in = { .src = p, .size = n };
	size_t left;

	do {
		left = ZSTD_compressStream2(z, out, &in, then);
		if (ZSTD_isError(left))
			return false;
	} while (in.pos < in.size || (then != ZSTD_e_continue && left));
	return true;
}

/* Makes room for what `total` bytes become at most, and begins. NULL: no memory, or too large. */
static ZSTD_CCtx *pack_begin(struct block_codec *c, size_t total, ZSTD_outBuffer *out)
{
	ZSTD_CCtx *z = compressor(c);
	size_t bound = ZSTD_compressBound(total) + 64;

	c->packed.max = 2 * (size_t)BLOCK_MAX_BYTES;
	buf_reset(&c->packed);
	if (!z || total >= BLOCK_MAX_BYTES || !buf_reserve(&c->packed, bound))
		return NULL;
	*out = (ZSTD_outBuffer){ .dst = c->packed.data, .size = bound };
	ZSTD_CCtx_reset(z, ZSTD_reset_session_only);
	ZSTD_CCtx_setParameter(z, ZSTD_c_compressionLevel, c->thorough ? LEVEL_THOROUGH : LEVEL);
	ZSTD_CCtx_setPledgedSrcSize(z, total);
	return z;
}

int block_pack(struct block_codec *c, const void *p, size_t n, const void **ret_blob, size_t *ret_n)
{
	ZSTD_outBuffer out = { 0 };
	ZSTD_CCtx *z = pack_begin(c, n, &out);

	if (!z || !pack(z, &out, p, n, ZSTD_e_end))
		return -ENOMEM;
	*ret_blob = c->packed.data;
	*ret_n = out.pos;
	return 0;
}

int block_end(struct block_codec *c, const void **ret_blob, size_t *ret_n)
{
	uint8_t start[40] = { BLOCK_VERSION };
	ZSTD_outBuffer out = { 0 };
	size_t n_start = 1, total = 0;
	ZSTD_CCtx *z;
	bool ok = true;

	for (int i = 0; i < SECTIONS; i++) {
		ok = ok && buf_ok(&c->sections[i]);
		total += c->sections[i].len;
		if (i < RESTS)
			n_start += put_varint(start + n_start, c->sections[i].len);
	}
	total += n_start;
	z = ok ? pack_begin(c, total, &out) : NULL;
	if (!z)
		return -ENOMEM;
	ok = pack(z, &out, start, n_start, ZSTD_e_continue);
	for (int i = 0; i < SECTIONS && ok; i++)
		ok = pack(z, &out, c->sections[i].data, c->sections[i].len,
			  i == RESTS      ? ZSTD_e_end
			  : total < SMALL ? ZSTD_e_continue
					  : ZSTD_e_flush);
	if (!ok)
		return -ENOMEM; /* the bound is kept, so nothing else can fail */
	*ret_blob = c->packed.data;
	*ret_n = out.pos;
	return 0;
}

size_t block_token(uint8_t out[BLOCK_TOKEN_MAX], uint32_t gap, int64_t before, int64_t raw)
{
	int64_t delta = (int64_t)((uint64_t)raw - (uint64_t)before);
	size_t n = put_varint(out, gap - 1);

	return n + put_varint(out + n, ((uint64_t)delta << 1) ^ (uint64_t)(delta >> 63));
}

void block_reader_done(struct block_reader *b)
{
	block_codec_done(&b->codec);
	buf_done(&b->plain);
	vec_done(&b->ticks);
}

int block_unpack(struct block_codec *c, const void *blob, size_t n, size_t most, struct buf *ret)
{
	unsigned long long size = ZSTD_getFrameContentSize(blob, n);
	size_t got;

	/* Unknown and broken sizes are the two largest numbers. */
	if (!n || size == 0 || size >= most)
		return -EBADMSG;
	if (!c->dctx)
		c->dctx = ZSTD_createDCtx();
	ret->max = most + 1;
	buf_reset(ret);
	if (!c->dctx || !buf_reserve(ret, size))
		return -ENOMEM;
	got = ZSTD_decompressDCtx(c->dctx, ret->data, size, blob, n);
	if (ZSTD_isError(got) || got != size)
		return -EBADMSG;
	ret->len = got;
	return 0;
}

static size_t left(const struct block_span *s)
{
	return (size_t)(s->end - s->p);
}

/* Cuts n bytes off the front. */
static bool cut(struct block_span *from, uint64_t n, struct block_span *ret)
{
	if (n > left(from))
		return false;
	*ret = (struct block_span){ from->p, from->p + n };
	from->p += n;
	return true;
}

static bool read_sections(struct block_reader *b)
{
	struct block_span all = { (const uint8_t *)b->plain.data,
				  (const uint8_t *)b->plain.data + b->plain.len };
	uint64_t n[3];

	if (*all.p++ != BLOCK_VERSION)
		return false;
	for (int i = 0; i < 3; i++)
		if (!varint_read(&all.p, all.end, &n[i]))
			return false;
	b->rests = all;
	return cut(&b->rests, n[0], &b->head) && cut(&b->rests, n[1], &b->gaps) &&
	       cut(&b->rests, n[2], &b->firsts);
}

static int read_ticks(struct block_reader *b)
{
	struct block_span *h = &b->head;
	uint64_t n, unit, usual, step;
	int64_t t, off;

	if (!varint_read(&h->p, h->end, &n) || !varint_read(&h->p, h->end, &unit) ||
	    !zigzag_read(&h->p, h->end, &t) || !varint_read(&h->p, h->end, &usual) ||
	    n > BLOCK_MAX_TICKS || n > left(h) + 1 || !unit)
		return -EBADMSG;
	if (!vec_reserve(&b->ticks, n + 1))
		return -ENOMEM;
	for (uint64_t i = 0; i < n; i++) {
		if (i) {
			if (!zigzag_read(&h->p, h->end, &off))
				return -EBADMSG;
			step = usual + (uint64_t)off;
			if (!step || __builtin_mul_overflow(step, unit, &step) ||
			    step > INT64_MAX || __builtin_add_overflow(t, (int64_t)step, &t))
				return -EBADMSG;
		}
		b->ticks.v[b->ticks.n++] = t;
	}
	return 0;
}

int block_open(struct block_reader *b, const void *blob, size_t n)
{
	static const struct block_span none;
	int r = block_unpack(&b->codec, blob, n, BLOCK_MAX_BYTES, &b->plain);

	b->ticks.n = 0;
	b->id = 0;
	b->head = b->gaps = b->firsts = b->rests = none;
	if (r >= 0)
		r = read_sections(b) ? read_ticks(b) : -EBADMSG;
	b->damaged = r < 0;
	if (r < 0) {
		b->head = none;
		b->ticks.n = 0;
	}
	b->starts[HEAD] = b->head;
	b->starts[GAPS] = b->gaps;
	b->starts[FIRSTS] = b->firsts;
	b->starts[RESTS] = b->rests;
	return r;
}

void block_rewind(struct block_reader *b)
{
	b->head = b->starts[HEAD];
	b->gaps = b->starts[GAPS];
	b->firsts = b->starts[FIRSTS];
	b->rests = b->starts[RESTS];
	b->id = 0;
}

bool block_next(struct block_reader *b, struct block_series *ret)
{
	struct block_span *h = &b->head;
	uint64_t n, gaps, rests, back;
	int64_t step, base = 0;

	if (h->p == h->end)
		return false;
	if (!zigzag_read(&h->p, h->end, &step) || !varint_read(&h->p, h->end, &n) ||
	    !varint_read(&h->p, h->end, &gaps) || !varint_read(&h->p, h->end, &rests) ||
	    !varint_read(&h->p, h->end, &back) || back >> 32 || back < 2 ||
	    ((back & 1) && !zigzag_read(&h->p, h->end, &base)) ||
	    !cut(&b->firsts, n, &ret->firsts) || !cut(&b->gaps, gaps, &ret->gaps) ||
	    !cut(&b->rests, rests, &ret->rests)) {
		b->damaged = true;
		h->p = h->end;
		return false;
	}
	b->id += (uint64_t)step;
	ret->head = (struct block_head){
		.id = b->id, .back = (uint32_t)(back >> 1), .held = back & 1, .base = base
	};
	return true;
}

void block_samples(struct block_reader *b, const struct block_series *s, struct block_cursor *ret)
{
	*ret = (struct block_cursor){ .block = b,
				      .gaps = s->gaps,
				      .firsts = s->firsts,
				      .rests = s->rests,
				      .dense = s->gaps.p == s->gaps.end,
				      .tick = -(int64_t)s->head.back,
				      .raw = s->head.base };
}

static int cut_short(struct block_cursor *c)
{
	c->firsts.p = c->firsts.end;
	c->block->damaged = true;
	return -1;
}

/* The delta: its first byte, and the others if there are. */
static inline bool read_delta(struct block_cursor *c, uint64_t *ret)
{
	uint64_t v = *c->firsts.p++, rest;

	if (v >= 0x80) {
		if (!varint_read(&c->rests.p, c->rests.end, &rest) || rest >> 57)
			return false;
		v = (v & 0x7f) | rest << 7;
	}
	*ret = v;
	return true;
}

int block_sample(struct block_cursor *c)
{
	uint64_t zigzag, skipped = 0;

	if (c->firsts.p == c->firsts.end)
		return -1;
	if (!c->dense && (!varint_read(&c->gaps.p, c->gaps.end, &skipped) || skipped > UINT32_MAX))
		return cut_short(c);
	if (!read_delta(c, &zigzag))
		return cut_short(c);
	c->tick += (int64_t)skipped + 1;
	if (c->tick < 0 || c->tick >= (int64_t)c->block->ticks.n)
		return cut_short(c);
	c->raw = (int64_t)((uint64_t)c->raw + ((zigzag >> 1) ^ -(zigzag & 1)));
	return (int)c->tick;
}

/* SPDX-License-Identifier: MIT */
#include "sink/parquet_page.h"

#include "sink/thrift.h"

#include <errno.h>
#include <zstd.h>

/* Numbers of parquet.thrift. */
enum { TYPE_INT64 = 2, TYPE_DOUBLE = 5, TYPE_BYTE_ARRAY = 6 };
enum { ENCODING_PLAIN = 0, ENCODING_RLE = 3, ENCODING_RLE_DICTIONARY = 8 };
enum { PAGE_DATA = 0, PAGE_DICTIONARY = 2 };
enum { CODEC_ZSTD = 6, LEVEL = 3 };

/* What the footer says of a chunk. */
struct chunk {
	int64_t dictionary_at; /* -1: none */
	int64_t data_at;
	uint64_t packed, unpacked; /* with the headers of the pages */
};

int parquet_physical(enum parquet_type type)
{
	switch (type) {
	case PARQUET_TEXT:
		return TYPE_BYTE_ARRAY;
	case PARQUET_DOUBLE:
		return TYPE_DOUBLE;
	default:
		return TYPE_INT64;
	}
}

void parquet_zstd_done(struct parquet *p)
{
	ZSTD_freeCCtx(p->zstd);
	p->zstd = NULL;
}

/* p->page into p->packed. */
static int pack(struct parquet *p)
{
	size_t most = ZSTD_compressBound(p->page.len), n;

	if (!p->zstd)
		p->zstd = ZSTD_createCCtx();
	buf_reset(&p->packed);
	if (!p->zstd || !buf_ok(&p->page) || !buf_reserve(&p->packed, most))
		return -ENOMEM;
	n = ZSTD_compressCCtx(p->zstd, p->packed.data, most, buf_text(&p->page), p->page.len,
			      LEVEL);
	if (ZSTD_isError(n))
		return -EIO;
	p->packed.len = n;
	return 0;
}

/* PageHeader: 1 kind, 2 size, 3 size when packed, then 5 DataPageHeader or 7 DictionaryPageHeader. */
static int put_page(struct parquet *p, int kind, uint32_t values, int encoding, struct chunk *c,
		    struct buf *out)
{
	struct thrift t = { .out = &p->header }, more;
	int r = pack(p);

	if (r < 0)
		return r;
	buf_reset(&p->header);
	thrift_i32(&t, 1, kind);
	thrift_i32(&t, 2, (int32_t)p->page.len);
	thrift_i32(&t, 3, (int32_t)p->packed.len);
	more = thrift_struct(&t, kind == PAGE_DATA ? 5 : 7);
	thrift_i32(&more, 1, (int32_t)values);
	thrift_i32(&more, 2, encoding);
	if (kind == PAGE_DATA) {
		thrift_i32(&more, 3, ENCODING_RLE); /* of definition levels */
		thrift_i32(&more, 4, ENCODING_RLE); /* of repetition levels: there are none */
	}
	thrift_end(&more);
	thrift_end(&t);
	buf_put(out, buf_text(&p->header), p->header.len);
	buf_put(out, p->packed.data, p->packed.len);
	c->packed += p->header.len + p->packed.len;
	c->unpacked += p->header.len + p->page.len;
	p->at += p->header.len + p->packed.len;
	return buf_ok(&p->header) && buf_ok(out) ? 0 : -ENOMEM;
}

/* One run of bit-packed values, lowest bits first: its header says how many eights of them follow. The
 * hybrid's other form, a value that repeats, is left to zstd. */
struct packer {
	struct buf *out;
	uint64_t bits;
	unsigned held;
};

static void put_bits(struct packer *k, uint32_t v, unsigned width)
{
	k->bits |= (uint64_t)v << k->held;
	for (k->held += width; k->held >= 8; k->held -= 8, k->bits >>= 8)
		buf_char(k->out, (char)(k->bits & 0xff));
}

static void begin_run(struct packer *k, struct buf *out, size_t n)
{
	*k = (struct packer){ .out = out };
	buf_varint(out, (n + 7) / 8 << 1 | 1);
}

/* The last eight is filled up with zeroes. */
static void end_run(struct packer *k, size_t n, unsigned width)
{
	for (; n % 8; n++)
		put_bits(k, 0, width);
}

/* Which rows have a value: a length (32 bits), and a bit a row. */
static void put_levels(const struct parquet_column *c, struct buf *out)
{
	size_t n = c->there.n, begin = out->len;
	uint32_t length = 0;
	struct packer k;

	buf_put(out, &length, sizeof(length));
	begin_run(&k, out, n);
	for (size_t i = 0; i < n; i++)
		put_bits(&k, c->there.v[i], 1);
	end_run(&k, n, 1);
	if (!buf_ok(out))
		return;
	length = (uint32_t)(out->len - begin - sizeof(length));
	memcpy(out->data + begin, &length, sizeof(length));
}

/* Bits a number below n takes; at least one, as not every reader likes none. */
static unsigned width_of(size_t n)
{
	unsigned width = 1;

	while (n > (size_t)1 << width)
		width++;
	return width;
}

static void put_values(const struct parquet_column *c, struct buf *out)
{
	unsigned width = width_of(c->words.n);
	struct packer k;

	if (c->type == PARQUET_DOUBLE) {
		buf_put(out, c->doubles.v, c->doubles.n * sizeof(*c->doubles.v));
		return;
	}
	if (c->type != PARQUET_TEXT) {
		buf_put(out, c->ints.v, c->ints.n * sizeof(*c->ints.v));
		return;
	}
	buf_char(out, (char)width);
	begin_run(&k, out, c->ids.n);
	for (size_t i = 0; i < c->ids.n; i++)
		put_bits(&k, c->ids.v[i], width);
	end_run(&k, c->ids.n, width);
}

/* ColumnChunk: 2 where it is (of old: now 0), 3 ColumnMetaData: 1 type, 2 encodings, 3 path, 4 codec, 5
 * values, 6 and 7 sizes, 9 where the data is, 11 where the dictionary. */
static void put_footer(struct parquet *p, const struct parquet_column *c, const struct chunk *k)
{
	struct thrift t = { .out = &p->groups }, meta;
	bool words = c->type == PARQUET_TEXT;

	thrift_i64(&t, 2, 0);
	meta = thrift_struct(&t, 3);
	thrift_i32(&meta, 1, parquet_physical(c->type));
	thrift_list(&meta, 2, THRIFT_I32, words ? 3 : 2);
	thrift_put_i32(meta.out, ENCODING_PLAIN);
	thrift_put_i32(meta.out, ENCODING_RLE);
	if (words)
		thrift_put_i32(meta.out, ENCODING_RLE_DICTIONARY);
	thrift_list(&meta, 3, THRIFT_BINARY, 1);
	thrift_put_text(meta.out, c->name);
	thrift_i32(&meta, 4, CODEC_ZSTD);
	thrift_i64(&meta, 5, p->rows);
	thrift_i64(&meta, 6, (int64_t)k->unpacked);
	thrift_i64(&meta, 7, (int64_t)k->packed);
	thrift_i64(&meta, 9, k->data_at);
	if (words)
		thrift_i64(&meta, 11, k->dictionary_at);
	thrift_end(&meta);
	thrift_end(&t);
}

int parquet_chunk(struct parquet *p, const struct parquet_column *c, uint64_t *unpacked,
		  struct buf *out)
{
	struct chunk k = { .dictionary_at = -1 };
	bool words = c->type == PARQUET_TEXT;
	int r = 0;

	if (words) {
		k.dictionary_at = (int64_t)p->at;
		buf_reset(&p->page);
		buf_put(&p->page, buf_text(&c->texts), c->texts.len);
		r = put_page(p, PAGE_DICTIONARY, (uint32_t)c->words.n, ENCODING_PLAIN, &k, out);
	}
	if (r < 0)
		return r;
	k.data_at = (int64_t)p->at;
	buf_reset(&p->page);
	if (c->optional)
		put_levels(c, &p->page);
	put_values(c, &p->page);
	r = put_page(p, PAGE_DATA, p->rows, words ? ENCODING_RLE_DICTIONARY : ENCODING_PLAIN, &k,
		     out);
	if (r < 0)
		return r;
	put_footer(p, c, &k);
	*unpacked += k.unpacked;
	return 0;
}

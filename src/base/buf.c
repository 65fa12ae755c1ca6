/* SPDX-License-Identifier: MIT */
#include "base/buf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void buf_init(struct buf *b, size_t max)
{
	*b = (struct buf){ .max = max };
}

void buf_done(struct buf *b)
{
	free(b->data);
	*b = (struct buf){ .max = b->max };
}

void buf_reset(struct buf *b)
{
	b->len = 0;
	b->failed = false;
	if (b->data)
		b->data[0] = '\0';
}

bool buf_ok(const struct buf *b)
{
	return !b->failed;
}

bool buf_reserve(struct buf *b, size_t n)
{
	size_t max = b->max ? b->max : BUF_MAX_DEFAULT;
	size_t cap = b->cap ? b->cap : 128;
	char *data;

	if (b->failed)
		return false;
	if (n >= max || b->len >= max - n) {
		b->failed = true;
		return false;
	}
	if (n < b->cap - b->len && b->data)
		return true;
	while (cap - b->len <= n)
		cap *= 2;
	data = realloc(b->data, cap);
	if (!data) {
		b->failed = true;
		return false;
	}
	b->data = data;
	b->cap = cap;
	b->data[b->len] = '\0';
	return true;
}

void buf_put(struct buf *b, const void *p, size_t n)
{
	if (!n || !buf_reserve(b, n))
		return;
	memcpy(b->data + b->len, p, n);
	b->len += n;
	b->data[b->len] = '\0';
}

void buf_str(struct buf *b, const char *s)
{
	buf_put(b, s, strlen(s));
}

void buf_char(struct buf *b, char c)
{
	buf_put(b, &c, 1);
}

void buf_vprintf(struct buf *b, const char *fmt, va_list ap)
{
	va_list again;
	int n;

	va_copy(again, ap);
	n = vsnprintf(NULL, 0, fmt, again);
	va_end(again);
	if (n < 0)
		b->failed = true;
	if (n <= 0 || !buf_reserve(b, (size_t)n))
		return;
	vsnprintf(b->data + b->len, (size_t)n + 1, fmt, ap);
	b->len += (size_t)n;
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	buf_vprintf(b, fmt, ap);
	va_end(ap);
}

void buf_varint(struct buf *b, uint64_t v)
{
	char tmp[10];
	size_t n = 0;

	while (v >= 0x80) {
		tmp[n++] = (char)(v | 0x80);
		v >>= 7;
	}
	tmp[n++] = (char)v;
	buf_put(b, tmp, n);
}

void buf_zigzag(struct buf *b, int64_t v)
{
	buf_varint(b, ((uint64_t)v << 1) ^ (uint64_t)(v >> 63));
}

const char *buf_text(const struct buf *b)
{
	return b->data ? b->data : "";
}

bool varint_read(const uint8_t **p, const uint8_t *end, uint64_t *ret)
{
	const uint8_t *q = *p;
	uint64_t v = 0;
	unsigned shift = 0;

	for (;;) {
		uint8_t byte;

		if (q >= end || shift > 63)
			return false;
		byte = *q++;
		if (shift == 63 && byte > 1)
			return false;
		v |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			break;
		shift += 7;
	}
	*p = q;
	*ret = v;
	return true;
}

bool zigzag_read(const uint8_t **p, const uint8_t *end, int64_t *ret)
{
	uint64_t v;

	if (!varint_read(p, end, &v))
		return false;
	*ret = (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
	return true;
}

/* SPDX-License-Identifier: MIT
 *
 * The length as a varint, then elements, the kind of each in the lowest two bits of its first byte:
 *
 *	00 literal: upper six bits length - 1; 60 to 63: that many less 59 bytes of length - 1 follow
 *	01 copy of 4 to 11 bytes from up to 2,047 back: 3 bits length - 4, 3 bits and a byte of distance
 *	10 copy of 1 to 64 bytes from up to 65,535 back: 6 bits length - 1, two bytes of distance
 *
 * Input is cut into pieces of 64 KiB, so that a place fits into 16 bits; within one, four bytes that were seen before
 * are found by a table of their hashes. Label names repeat in every series: requests become five to ten times smaller.
 */
#include "push/snappy.h"

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum {
	LITERAL = 0,
	COPY_NEAR = 1,
	COPY_FAR = 2,
	PIECE = 1 << 16,
	TABLE_BITS = 12,
	MATCH_MIN = 4,
	NEAR_MAX = 2047,   /* back */
	NEAR_LEN_MAX = 11, /* long */
	COPY_LEN_MAX = 64,
	SKIP_SHIFT =
	    5, /* look less closely the longer nothing repeats: from 32 bytes on every second one... */
};

static uint32_t load32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static uint32_t hash(uint32_t v)
{
	return v * 0x1e35a7bdu >> (32 - TABLE_BITS);
}

static void put_literal(const uint8_t *p, size_t n, struct buf *out)
{
	size_t last = n - 1;

	if (!n)
		return;
	if (last < 60) {
		buf_char(out, (char)(last << 2 | LITERAL));
	} else if (last < 256) {
		buf_char(out, (char)(60 << 2 | LITERAL));
		buf_char(out, (char)last);
	} else { /* at most a piece: two bytes */
		buf_char(out, (char)(61 << 2 | LITERAL));
		buf_char(out, (char)(last & 0xff));
		buf_char(out, (char)(last >> 8));
	}
	buf_put(out, p, n);
}

static void put_far(size_t back, size_t n, struct buf *out)
{
	buf_char(out, (char)((n - 1) << 2 | COPY_FAR));
	buf_char(out, (char)(back & 0xff));
	buf_char(out, (char)(back >> 8));
}

static void put_copy(size_t back, size_t n, struct buf *out)
{
	/* What is left at the end is never shorter than the short form takes. */
	for (; n >= COPY_LEN_MAX + MATCH_MIN; n -= COPY_LEN_MAX)
		put_far(back, COPY_LEN_MAX, out);
	if (n > COPY_LEN_MAX) {
		put_far(back, COPY_LEN_MAX - MATCH_MIN, out);
		n -= COPY_LEN_MAX - MATCH_MIN;
	}
	if (n > NEAR_LEN_MAX || back > NEAR_MAX) {
		put_far(back, n, out);
		return;
	}
	buf_char(out, (char)((n - MATCH_MIN) << 2 | (back >> 8) << 5 | COPY_NEAR));
	buf_char(out, (char)(back & 0xff));
}

static size_t match_length(const uint8_t *a, const uint8_t *b, size_t max)
{
	size_t n = MATCH_MIN;

	while (n < max && a[n] == b[n])
		n++;
	return n;
}

static void put_piece(const uint8_t *p, size_t n, struct buf *out)
{
	uint16_t table[1 << TABLE_BITS] = { 0 };
	size_t i = 0, told = 0; /* everything before `told` is out */

	while (i + MATCH_MIN <= n) {
		uint32_t here = load32(p + i);
		uint16_t *slot = &table[hash(here)];
		size_t before = *slot, length;

		*slot = (uint16_t)i;
		if (before >= i || load32(p + before) != here) {
			i += 1 + ((i - told) >> SKIP_SHIFT);
			continue;
		}
		length = match_length(p + before, p + i, n - i);
		put_literal(p + told, i - told, out);
		put_copy(i - before, length, out);
		i += length;
		told = i;
	}
	put_literal(p + told, n - told, out);
}

void snappy_compress(const void *p, size_t n, struct buf *out)
{
	const uint8_t *s = p;

	buf_varint(out, n);
	for (size_t at = 0; at < n; at += PIECE)
		put_piece(s + at, n - at < PIECE ? n - at : PIECE, out);
}

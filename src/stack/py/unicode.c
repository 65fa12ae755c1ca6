/* SPDX-License-Identifier: MIT
 *
 * PyASCIIObject.state, since 3.3: bits 0-1 interned, 2-4 kind (bytes a character: 1, 2, 4), 5
 * compact, 6 ascii. The characters stand behind the object: behind PyASCIIObject when ascii, else
 * behind PyCompactUnicodeObject. From 3.14 on `interned` may have 8 or 16 bits of its own, and the rest
 * moves up; the bits it leaves behind are zero, so only one reading makes sense.
 */
#include "stack/py/unicode.h"

#include "base/auto.h"

#include <errno.h>

#define HEADER_MAX 128

static void put_character(struct buf *out, uint32_t c)
{
	if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		c = 0xfffd;
	if (c < 0x80) {
		buf_char(out, (char)c);
	} else if (c < 0x800) {
		buf_char(out, (char)(0xc0 | c >> 6));
		buf_char(out, (char)(0x80 | (c & 63)));
	} else if (c < 0x10000) {
		buf_char(out, (char)(0xe0 | c >> 12));
		buf_char(out, (char)(0x80 | (c >> 6 & 63)));
		buf_char(out, (char)(0x80 | (c & 63)));
	} else {
		buf_char(out, (char)(0xf0 | c >> 18));
		buf_char(out, (char)(0x80 | (c >> 12 & 63)));
		buf_char(out, (char)(0x80 | (c >> 6 & 63)));
		buf_char(out, (char)(0x80 | (c & 63)));
	}
}

void py_unicode_put(struct buf *out, const uint8_t *data, size_t n, unsigned width)
{
	for (size_t i = 0; i < n; i++) {
		uint32_t c = 0;

		memcpy(&c, data + i * width, width);
		/* NUL would end the text for every reader behind us. */
		put_character(out, c ? c : 0xfffd);
	}
}

/* Kind, compact and ascii in bits 0 to 4; 0 when this is no text object of today. */
static unsigned flags_of(const struct py_layout *l, uint32_t state)
{
	static const unsigned shifts[] = { 2, 16, 8 };

	for (size_t i = 0; i < (l->minor >= 14 ? ARRAY_LEN(shifts) : 1); i++) {
		unsigned flags = state >> shifts[i] & 31, kind = flags & 7;

		if ((kind == 1 || kind == 2 || kind == 4) && flags & 8)
			return flags;
	}
	return 0;
}

int py_unicode_read(struct mem *m, const struct py_layout *l, uint64_t at, struct buf *out)
{
	uint8_t head[HEADER_MAX], data[PY_TEXT_MAX * 4];
	uint32_t state, n;
	uint64_t length;
	unsigned kind, flags;
	int r;

	if (l->text_ascii_size > HEADER_MAX || l->text_state + 4 > HEADER_MAX ||
	    l->text_length + 8 > HEADER_MAX || !at)
		return -EBADMSG;
	r = mem_read(m, at, head, l->text_ascii_size);
	if (r < 0)
		return r == -EFAULT ? -EBADMSG : r;
	memcpy(&state, head + l->text_state, 4);
	memcpy(&length, head + l->text_length, 8);
	flags = flags_of(l, state);
	kind = flags & 7;
	if (!flags || length > INT32_MAX)
		return -EBADMSG;
	n = length < PY_TEXT_MAX ? (uint32_t)length : PY_TEXT_MAX;
	at += flags & 16 ? l->text_ascii_size : l->text_compact_size;
	r = n ? mem_read(m, at, data, (size_t)n * kind) : 0;
	if (r < 0)
		return r == -EFAULT ? -EBADMSG : r;
	py_unicode_put(out, data, n, kind);
	if (n < length)
		buf_str(out, "...");
	return 0;
}

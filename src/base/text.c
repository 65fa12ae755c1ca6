/* SPDX-License-Identifier: MIT */
#include "base/text.h"

#include "base/buf.h"

#include <string.h>

size_t text_utf8(const char *s, size_t n)
{
	const unsigned char *p = (const unsigned char *)s;
	size_t need;
	uint32_t cp;

	if (!n)
		return 0;
	if (p[0] < 0x80)
		return 1;
	if (p[0] >= 0xc2 && p[0] <= 0xdf)
		need = 2, cp = p[0] & 0x1f;
	else if (p[0] >= 0xe0 && p[0] <= 0xef)
		need = 3, cp = p[0] & 0x0f;
	else if (p[0] >= 0xf0 && p[0] <= 0xf4)
		need = 4, cp = p[0] & 0x07;
	else
		return 0;
	if (n < need)
		return 0;
	for (size_t i = 1; i < need; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		cp = cp << 6 | (p[i] & 0x3f);
	}
	if ((need == 3 && (cp < 0x800 || (cp >= 0xd800 && cp <= 0xdfff))) ||
	    (need == 4 && (cp < 0x10000 || cp > 0x10ffff)))
		return 0;
	return need;
}

/* C0, DEL, C1 and the bidirectional overrides, which can make a line read backwards. */
static bool is_harmful(const char *p, size_t len)
{
	const unsigned char *u = (const unsigned char *)p;

	if (len == 1)
		return u[0] < 0x20 || u[0] == 0x7f;
	if (len == 2)
		return u[0] == 0xc2 && u[1] < 0xa0;
	if (len == 3 && u[0] == 0xe2 && u[1] == 0x80)
		return u[2] >= 0xa8 && u[2] <= 0xae;
	if (len == 3 && u[0] == 0xe2 && u[1] == 0x81)
		return u[2] >= 0xa6 && u[2] <= 0xa9;
	return false;
}

void text_safe(struct buf *out, const char *s, size_t n)
{
	for (size_t i = 0; i < n;) {
		size_t len = text_utf8(s + i, n - i);

		if (!len || is_harmful(s + i, len))
			buf_char(out, '?');
		else
			buf_put(out, s + i, len);
		i += len ? len : 1;
	}
}

const char *text_safe_copy(char *dst, size_t size, const char *s)
{
	size_t n = strlen(s), out = 0;

	for (size_t i = 0; i < n;) {
		size_t len = text_utf8(s + i, n - i);
		bool bad = !len || is_harmful(s + i, len);
		size_t put = bad ? 1 : len;

		if (out + put + 1 > size)
			break;
		memcpy(dst + out, bad ? "?" : s + i, put);
		out += put;
		i += len ? len : 1;
	}
	if (size)
		dst[out] = '\0';
	return dst;
}

/* Of a valid sequence of that length; 0 where there is none. */
static uint32_t code_point(const char *s, size_t len)
{
	static const unsigned char lead[] = { 0, 0x7f, 0x1f, 0x0f, 0x07 };
	uint32_t cp = (unsigned char)s[0] & lead[len];

	for (size_t i = 1; i < len; i++)
		cp = cp << 6 | ((unsigned char)s[i] & 0x3f);
	return cp;
}

/* The wide blocks of Unicode's EastAsianWidth, coarsely: CJK, Hangul, full-width forms, emoji. */
static bool is_wide(uint32_t cp)
{
	static const struct {
		uint32_t from, to;
	} wide[] = {
		{ 0x1100, 0x115f },   { 0x2e80, 0x303e },   { 0x3041, 0xa4cf },
		{ 0xac00, 0xd7a3 },   { 0xf900, 0xfaff },   { 0xfe30, 0xfe6f },
		{ 0xff00, 0xff60 },   { 0xffe0, 0xffe6 },   { 0x1f300, 0x1f64f },
		{ 0x1f680, 0x1f6ff }, { 0x1f900, 0x1faff }, { 0x20000, 0x3fffd },
	};

	for (size_t i = 0; i < sizeof(wide) / sizeof(wide[0]); i++)
		if (cp >= wide[i].from && cp <= wide[i].to)
			return true;
	return false;
}

size_t text_width(const char *s)
{
	size_t n = strlen(s), width = 0;

	for (size_t i = 0; i < n;) {
		size_t len = text_utf8(s + i, n - i);

		width += is_wide(code_point(s + i, len)) ? 2 : 1;
		i += len ? len : 1;
	}
	return width;
}

bool text_copy(char *dst, size_t size, const char *src)
{
	size_t n = strlen(src);
	size_t put = n < size ? n : size - 1;

	if (!size)
		return false;
	memcpy(dst, src, put);
	dst[put] = '\0';
	return put == n;
}

unsigned text_distance(const char *a, const char *b)
{
	size_t n = strlen(a), m = strlen(b);
	unsigned row[33];

	if (n > 32 || m > 32)
		return 99;
	for (size_t j = 0; j <= m; j++)
		row[j] = (unsigned)j;
	for (size_t i = 1; i <= n; i++) {
		unsigned diagonal = row[0];

		row[0] = (unsigned)i;
		for (size_t j = 1; j <= m; j++) {
			unsigned swap = diagonal + (a[i - 1] != b[j - 1]);
			unsigned best = row[j] + 1 < row[j - 1] + 1 ? row[j] + 1 : row[j - 1] + 1;

			diagonal = row[j];
			row[j] = swap < best ? swap : best;
		}
	}
	return row[m];
}

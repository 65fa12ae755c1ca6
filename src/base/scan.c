/* SPDX-License-Identifier: MIT */
#include "base/scan.h"

#include <string.h>

void scan_blank(struct scan *s)
{
	while (s->p < s->end && (*s->p == ' ' || *s->p == '\t'))
		s->p++;
}

bool scan_lit(struct scan *s, const char *lit)
{
	size_t n = strlen(lit);

	if ((size_t)(s->end - s->p) < n || memcmp(s->p, lit, n) != 0)
		return false;
	s->p += n;
	return true;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

bool scan_u64(struct scan *s, uint64_t *ret)
{
	struct scan t = *s;
	uint64_t v = 0;

	scan_blank(&t);
	if (t.p >= t.end || !is_digit(*t.p))
		return false;
	for (; t.p < t.end && is_digit(*t.p); t.p++) {
		unsigned d = (unsigned)(*t.p - '0');

		if (v > (UINT64_MAX - d) / 10)
			return false;
		v = v * 10 + d;
	}
	*s = t;
	*ret = v;
	return true;
}

bool scan_i64(struct scan *s, int64_t *ret)
{
	struct scan t = *s;
	bool minus;
	uint64_t v;

	scan_blank(&t);
	minus = scan_lit(&t, "-");
	if (t.p >= t.end || !is_digit(*t.p) || !scan_u64(&t, &v))
		return false;
	if (v > (uint64_t)INT64_MAX + minus)
		return false;
	*s = t;
	*ret = minus ? (int64_t)(0 - v) : (int64_t)v;
	return true;
}

static int hex_digit(char c)
{
	if (is_digit(c))
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

bool scan_hex(struct scan *s, uint64_t *ret)
{
	struct scan t = *s;
	uint64_t v = 0;

	scan_blank(&t);
	(void)(scan_lit(&t, "0x") || scan_lit(&t, "0X"));
	if (t.p >= t.end || hex_digit(*t.p) < 0)
		return false;
	for (; t.p < t.end && hex_digit(*t.p) >= 0; t.p++) {
		if (v >> 60)
			return false;
		v = v << 4 | (unsigned)hex_digit(*t.p);
	}
	*s = t;
	*ret = v;
	return true;
}

bool scan_fixed(struct scan *s, unsigned digits, int64_t *ret)
{
	struct scan t = *s;
	bool minus;
	uint64_t v;
	unsigned seen = 0;

	scan_blank(&t);
	minus = scan_lit(&t, "-");
	if (t.p >= t.end || !is_digit(*t.p) || !scan_u64(&t, &v) || v > INT64_MAX)
		return false;
	if (t.p < t.end && *t.p == '.') {
		t.p++;
		for (; t.p < t.end && is_digit(*t.p); t.p++) {
			if (seen >= digits)
				continue;
			if (v > (INT64_MAX - 9) / 10)
				return false;
			v = v * 10 + (unsigned)(*t.p - '0');
			seen++;
		}
	}
	for (; seen < digits; seen++) {
		if (v > INT64_MAX / 10)
			return false;
		v *= 10;
	}
	*s = t;
	*ret = minus ? -(int64_t)v : (int64_t)v;
	return true;
}

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\0';
}

bool scan_word(struct scan *s, const char **ret_p, size_t *ret_n)
{
	struct scan t = *s;
	const char *start;

	scan_blank(&t);
	start = t.p;
	while (t.p < t.end && !is_space(*t.p))
		t.p++;
	if (t.p == start)
		return false;
	*s = t;
	*ret_p = start;
	*ret_n = (size_t)(t.p - start);
	return true;
}

bool scan_skip(struct scan *s, unsigned n)
{
	struct scan t = *s;
	const char *p;
	size_t len;

	while (n--)
		if (!scan_word(&t, &p, &len))
			return false;
	*s = t;
	return true;
}

bool scan_after(struct scan *s, char c)
{
	for (const char *p = s->p; p < s->end && *p != '\n'; p++) {
		if (*p != c)
			continue;
		s->p = p + 1;
		return true;
	}
	return false;
}

bool scan_next_line(struct scan *s)
{
	const char *nl;

	if (scan_end(s))
		return false;
	nl = memchr(s->p, '\n', (size_t)(s->end - s->p));
	s->p = nl ? nl + 1 : s->end;
	return true;
}

bool scan_line(struct scan *s, struct scan *ret_line)
{
	const char *start = s->p;

	if (!scan_next_line(s))
		return false;
	*ret_line = (struct scan){ .p = start, .end = s->p };
	if (ret_line->end > start && ret_line->end[-1] == '\n')
		ret_line->end--;
	return true;
}

bool scan_key(struct scan text, const char *key, struct scan *ret)
{
	struct scan line;
	size_t n = strlen(key);

	while (scan_line(&text, &line)) {
		if ((size_t)(line.end - line.p) <= n || memcmp(line.p, key, n) != 0)
			continue;
		if (line.p[n] != ' ' && line.p[n] != ':' && line.p[n] != '\t')
			continue;
		line.p += n + 1;
		*ret = line;
		return true;
	}
	return false;
}

bool scan_key_u64(struct scan text, const char *key, uint64_t *ret)
{
	struct scan rest;

	return scan_key(text, key, &rest) && scan_u64(&rest, ret);
}

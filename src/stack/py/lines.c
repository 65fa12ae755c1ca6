/* SPDX-License-Identifier: MIT
 *
 * The three tables CPython has had:
 *	to 3.9   co_lnotab: pairs (bytes u8, lines s8), to be added up until the bytes pass the offset
 *	3.10     co_linetable: pairs (bytes u8, lines s8); a pair is a range and its line comes first;
 *	         -128: a range without a line
 *	3.11 on  PEP 657: first byte 1kkkknnn, kind k, n+1 units of two bytes; more bytes by kind
 */
#include "stack/py/lines.h"

static int64_t from_lnotab(const uint8_t *t, size_t n, int64_t line, int32_t offset)
{
	int64_t at = 0;

	for (size_t i = 0; i + 1 < n; i += 2) {
		at += t[i];
		if (at > offset)
			break;
		line += (int8_t)t[i + 1];
	}
	return line;
}

static int64_t from_ranges(const uint8_t *t, size_t n, int64_t line, int32_t offset)
{
	int64_t end = 0;

	for (size_t i = 0; i + 1 < n; i += 2) {
		int8_t delta = (int8_t)t[i + 1];

		if (delta != -128)
			line += delta;
		end += t[i];
		if (end > offset)
			return delta == -128 ? 0 : line;
	}
	return 0;
}

/* Six bits a byte, low ones first, bit 6: more follow. False when cut short or over 32 bits. */
static bool read_varint(const uint8_t **p, const uint8_t *end, uint32_t *ret)
{
	uint32_t value = 0;

	for (unsigned shift = 0; *p < end && shift < 32; shift += 6) {
		uint8_t byte = *(*p)++;

		value |= (uint32_t)(byte & 63) << shift;
		if (!(byte & 64)) {
			*ret = value;
			return true;
		}
	}
	return false;
}

static bool skip_varints(const uint8_t **p, const uint8_t *end, unsigned n)
{
	uint32_t ignored;

	while (n--)
		if (!read_varint(p, end, &ignored))
			return false;
	return true;
}

/* What an entry says behind its first byte. False: cut short. */
static bool read_entry(const uint8_t **p, const uint8_t *end, unsigned kind, int64_t *line,
		       bool *ret_has_line)
{
	uint32_t value;

	*ret_has_line = kind != 15;
	if (kind < 13) { /* columns; 10 to 12: two of them, and up to two lines on */
		ptrdiff_t columns = kind < 10 ? 1 : 2;

		if (end - *p < columns)
			return false;
		*p += columns;
		*line += kind < 10 ? 0 : kind - 10;
	} else if (kind < 15) { /* any line; 14: end line and columns, too */
		if (!read_varint(p, end, &value))
			return false;
		*line += value & 1 ? -(int64_t)(value >> 1) : (int64_t)(value >> 1);
		if (kind == 14 && !skip_varints(p, end, 3))
			return false;
	}
	return true;
}

static int64_t from_locations(const uint8_t *t, size_t n, int64_t line, int32_t offset)
{
	const uint8_t *p = t, *end = t + n;
	int64_t at = 0;

	while (p < end) {
		uint8_t first = *p++;
		bool has_line;

		if (!(first & 128))
			return 0;
		at += ((first & 7) + 1) * 2;
		if (!read_entry(&p, end, first >> 3 & 15, &line, &has_line))
			return 0;
		if (at > offset)
			return has_line ? line : 0;
	}
	return 0;
}

int32_t py_line_of(enum py_lines kind, const uint8_t *table, size_t n, int32_t first_line,
		   int32_t offset)
{
	int64_t line = first_line;

	if (offset < 0)
		return first_line;
	switch (kind) {
	case PY_LINES_LNOTAB:
		line = from_lnotab(table, n, first_line, offset);
		break;
	case PY_LINES_RANGES:
		line = from_ranges(table, n, first_line, offset);
		break;
	case PY_LINES_LOCATIONS:
		line = from_locations(table, n, first_line, offset);
		break;
	}
	return line > 0 && line <= INT32_MAX ? (int32_t)line : 0;
}

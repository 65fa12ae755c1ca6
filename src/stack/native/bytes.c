/* SPDX-License-Identifier: MIT */
#include "stack/native/rules.h"

#include <string.h>

/* DW_EH_PE_*, LSB core 10.5 */
#define PE_OMIT     0xff
#define PE_FORMAT   0x0f
#define PE_RELATIVE 0x70
#define PE_INDIRECT 0x80

void bytes_skip(struct bytes *b, uint64_t n)
{
	if (b->bad || n > (uint64_t)(b->end - b->p)) {
		b->bad = true;
		b->at += (uint64_t)(b->end - b->p);
		b->p = b->end;
		return;
	}
	b->p += n;
	b->at += n;
}

uint64_t bytes_unsigned(struct bytes *b, size_t size)
{
	uint64_t value = 0;
	const uint8_t *from = b->p;

	bytes_skip(b, size);
	if (!b->bad)
		memcpy(&value, from, size); /* both machines are little endian */
	return value;
}

int64_t bytes_signed(struct bytes *b, size_t size)
{
	uint64_t value = bytes_unsigned(b, size), sign = 1ull << (size * 8 - 1);

	return (int64_t)((value ^ sign) - sign);
}

static uint64_t leb(struct bytes *b, bool is_signed)
{
	uint64_t value = 0;
	unsigned shift = 0;

	for (; b->p < b->end && shift < 70; shift += 7) {
		uint8_t byte = *b->p;

		bytes_skip(b, 1);
		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte & 0x80)
			continue;
		if (is_signed && (byte & 0x40) && shift + 7 < 64)
			value |= ~0ull << (shift + 7);
		return value;
	}
	b->bad = true;
	return 0;
}

uint64_t bytes_uleb(struct bytes *b)
{
	return leb(b, false);
}

int64_t bytes_sleb(struct bytes *b)
{
	return (int64_t)leb(b, true);
}

static uint64_t in_format(struct bytes *b, uint8_t format)
{
	switch (format) {
	case 0x0: /* as large as an address */
	case 0x4:
	case 0xc:
		return bytes_unsigned(b, 8);
	case 0x1:
		return bytes_uleb(b);
	case 0x2:
		return bytes_unsigned(b, 2);
	case 0x3:
		return bytes_unsigned(b, 4);
	case 0x9:
		return (uint64_t)bytes_sleb(b);
	case 0xa:
		return (uint64_t)bytes_signed(b, 2);
	case 0xb:
		return (uint64_t)bytes_signed(b, 4);
	default:
		b->bad = true;
		return 0;
	}
}

uint64_t bytes_pointer(struct bytes *b, uint8_t encoding)
{
	uint64_t at = b->at, value;

	if (encoding == PE_OMIT)
		return 0;
	value = in_format(b, encoding & PE_FORMAT);
	switch (encoding & PE_RELATIVE) {
	case 0x00:
		break;
	case 0x10:
		value += at;
		break;
	default: /* relative to text, data, function: not used by these two machines */
		b->bad = true;
	}
	/* PE_INDIRECT: of use for personality routines only, whose value nobody asks for. */
	return value;
}

/* SPDX-License-Identifier: MIT */
#include "base/crc32c.h"

/* Remainders of four bits: a table that fits into a cache line and that nobody has to fill first. */
static const uint32_t nibble[16] = {
	0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3,
	0x61c69362, 0x7198540d, 0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
	0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
};

uint32_t crc32c(uint32_t before, const void *p, size_t n)
{
	const unsigned char *s = p;
	uint32_t c = ~before;

	for (size_t i = 0; i < n; i++) {
		c ^= s[i];
		c = nibble[c & 15] ^ c >> 4;
		c = nibble[c & 15] ^ c >> 4;
	}
	return ~c;
}

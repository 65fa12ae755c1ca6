/* SPDX-License-Identifier: MIT */
#include "../unit.h"

#include "base/crc32c.h"

/* RFC 3720, B.4, and the usual check. */
static void known(void **state)
{
	unsigned char zeros[32] = { 0 }, ones[32], rising[32];

	(void)state;
	memset(ones, 0xff, sizeof(ones));
	for (size_t i = 0; i < sizeof(rising); i++)
		rising[i] = (unsigned char)i;
	assert_int_equal(crc32c(0, "123456789", 9), 0xe3069283);
	assert_int_equal(crc32c(0, zeros, sizeof(zeros)), 0x8a9136aa);
	assert_int_equal(crc32c(0, ones, sizeof(ones)), 0x62a8ab43);
	assert_int_equal(crc32c(0, rising, sizeof(rising)), 0x46dd794e);
	assert_int_equal(crc32c(0, NULL, 0), 0);
}

static void in_parts(void **state)
{
	(void)state;
	assert_int_equal(crc32c(crc32c(0, "1234", 4), "56789", 5), 0xe3069283);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(known), cmocka_unit_test(in_parts) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
#include "../unit.h"

#include "base/auto.h"
#include "base/buf.h"

static void empty_is_valid(void **state)
{
	struct buf b = { 0 };

	(void)state;
	assert_true(buf_ok(&b));
	assert_string_equal(buf_text(&b), "");
	buf_reset(&b);
	buf_done(&b);
	buf_done(&b);
	assert_null(b.data);
}

static void puts_append(void **state)
{
	auto_done(buf) struct buf b = { 0 };

	(void)state;
	buf_str(&b, "ab");
	buf_char(&b, 'c');
	buf_put(&b, "d\0e", 3);
	buf_put(&b, NULL, 0);
	buf_printf(&b, "%d|%s", 42, "x");
	buf_printf(&b, "%s", "");
	assert_true(buf_ok(&b));
	assert_int_equal(b.len, 10);
	assert_memory_equal(b.data, "abcd\0e42|x", 11);
	buf_reset(&b);
	assert_string_equal(buf_text(&b), "");
	buf_str(&b, "again");
	assert_string_equal(buf_text(&b), "again");
}

/* Whatever the pieces, the bytes are there in order and a NUL follows. */
static void grows_in_any_steps(void **state)
{
	auto_done(buf) struct buf b = { 0 };
	char piece[257];
	size_t total = 0;

	(void)state;
	for (size_t n = 0; n < sizeof(piece); n++) {
		memset(piece, (int)(n & 0xff), sizeof(piece));
		buf_put(&b, piece, n);
		total += n;
		assert_int_equal(b.len, total);
		assert_true(b.len < b.cap || !b.len);
		if (b.data)
			assert_int_equal(b.data[b.len], 0);
	}
	assert_true(buf_ok(&b));
	for (size_t n = 1, at = 0; n < sizeof(piece); at += n, n++) {
		assert_int_equal((unsigned char)b.data[at], n & 0xff);
		assert_int_equal((unsigned char)b.data[at + n - 1], n & 0xff);
	}
}

static void long_printf(void **state)
{
	auto_done(buf) struct buf b = { 0 };

	(void)state;
	buf_printf(&b, "%0*d", 5000, 7);
	assert_true(buf_ok(&b));
	assert_int_equal(b.len, 5000);
	assert_int_equal(b.data[4999], '7');
}

/* The ceiling holds also where the memory at hand would allow more. */
static void ceiling_is_sticky(void **state)
{
	auto_done(buf) struct buf b;

	(void)state;
	buf_init(&b, 10);
	buf_str(&b, "12345");
	buf_str(&b, "6789");
	assert_true(buf_ok(&b));
	buf_char(&b, 'x');
	assert_false(buf_ok(&b));
	assert_string_equal(buf_text(&b), "123456789");
	buf_printf(&b, "%s", "");
	buf_reset(&b);
	assert_true(buf_ok(&b));
	buf_str(&b, "0123456789");
	assert_false(buf_ok(&b));
	assert_string_equal(buf_text(&b), "");
	buf_char(&b, 'a');
	assert_int_equal(b.len, 0);
}

static void absurd_sizes_fail(void **state)
{
	auto_done(buf) struct buf b = { 0 };

	(void)state;
	buf_str(&b, "x");
	assert_false(buf_reserve(&b, SIZE_MAX));
	assert_false(buf_ok(&b));
	buf_reset(&b);
	assert_false(buf_reserve(&b, BUF_MAX_DEFAULT));
	buf_reset(&b);
	assert_true(buf_reserve(&b, 1000));
	assert_string_equal(buf_text(&b), "");
}

static uint64_t pattern(unsigned i)
{
	uint64_t v = i / 3 == 64 ? 0 : 1ull << (i / 3);

	return v + (uint64_t)(i % 3) - 1; /* around every power of two, with wrap at both ends */
}

static void varint_round_trip(void **state)
{
	auto_done(buf) struct buf b = { 0 };
	const uint8_t *p, *end;

	(void)state;
	for (unsigned i = 0; i < 195; i++) {
		buf_varint(&b, pattern(i));
		buf_zigzag(&b, (int64_t)pattern(i));
	}
	assert_true(buf_ok(&b));
	p = (const uint8_t *)b.data;
	end = p + b.len;
	for (unsigned i = 0; i < 195; i++) {
		uint64_t u = 0;
		int64_t s = 0;

		assert_true(varint_read(&p, end, &u));
		assert_true(u == pattern(i));
		assert_true(zigzag_read(&p, end, &s));
		assert_true(s == (int64_t)pattern(i));
	}
	assert_ptr_equal(p, end);
}

static void varint_lengths(void **state)
{
	static const struct {
		int64_t v;
		size_t bytes;
	} rows[] = { { 0, 1 },   { -1, 1 },   { 63, 1 },         { -64, 1 },       { 64, 2 },
		     { -65, 2 }, { 8191, 2 }, { INT64_MAX, 10 }, { INT64_MIN, 10 } };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		auto_done(buf) struct buf b = { 0 };

		buf_zigzag(&b, rows[i].v);
		assert_int_equal(b.len, rows[i].bytes);
	}
}

static void refuses(const uint8_t *bytes, size_t n)
{
	const uint8_t *p = bytes;
	uint64_t u = 77;
	int64_t s = 77;

	assert_false(varint_read(&p, bytes + n, &u));
	assert_false(zigzag_read(&p, bytes + n, &s));
	assert_ptr_equal(p, bytes);
	assert_true(u == 77 && s == 77);
}

static void bad_varints_are_refused(void **state)
{
	static const uint8_t cut[] = { 0x80, 0xff, 0x80 };
	static const uint8_t over[] = {
		0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02
	};
	static const uint8_t endless[] = { 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
					   0x80, 0x80, 0x80, 0x80, 0x80, 0x00 };

	(void)state;
	for (size_t n = 0; n <= sizeof(cut); n++)
		refuses(cut, n);
	refuses(over, sizeof(over));
	refuses(endless, sizeof(endless));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(empty_is_valid),          cmocka_unit_test(puts_append),
		cmocka_unit_test(grows_in_any_steps),      cmocka_unit_test(long_printf),
		cmocka_unit_test(ceiling_is_sticky),       cmocka_unit_test(absurd_sizes_fail),
		cmocka_unit_test(varint_round_trip),       cmocka_unit_test(varint_lengths),
		cmocka_unit_test(bad_varints_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

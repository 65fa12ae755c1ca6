/* SPDX-License-Identifier: MIT */
#include "../unit.h"

#include "base/auto.h"
#include "base/scan.h"

static struct scan text(const char *s)
{
	return scan_of(s, strlen(s));
}

static void unsigned_numbers(void **state)
{
	struct scan s = text(" \t18446744073709551615 18446744073709551616");
	uint64_t v = 7;
	const char *at;

	(void)state;
	assert_true(scan_u64(&s, &v));
	assert_true(v == UINT64_MAX);
	at = s.p;
	v = 7;
	assert_false(scan_u64(&s, &v));
	assert_true(v == 7);
	assert_ptr_equal(s.p, at);
	s = text("-1");
	assert_false(scan_u64(&s, &v));
	s = text("\n5");
	assert_false(scan_u64(&s, &v));
	s = text("007x");
	assert_true(scan_u64(&s, &v) && v == 7 && *s.p == 'x');
}

static void signed_numbers(void **state)
{
	static const struct {
		const char *text;
		int64_t want;
	} good[] = { { "0", 0 },
		     { "-0", 0 },
		     { " -12", -12 },
		     { "9223372036854775807", INT64_MAX },
		     { "-9223372036854775808", INT64_MIN } };
	static const char *const bad[] = {
		"", "-", "--1", "- 1", "+1", "x1", "9223372036854775808", "-9223372036854775809"
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		struct scan s = text(good[i].text);
		int64_t v = 7;

		assert_true(scan_i64(&s, &v));
		assert_true(v == good[i].want && scan_end(&s));
	}
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct scan s = text(bad[i]);
		int64_t v = 7;

		assert_false(scan_i64(&s, &v));
		assert_true(v == 7);
		assert_ptr_equal(s.p, bad[i]);
	}
}

static void hex_numbers(void **state)
{
	struct scan s = text("7f1c2A 0xFF 0Xffffffffffffffff 10000000000000000 0xg");
	uint64_t v = 0;

	(void)state;
	assert_true(scan_hex(&s, &v) && v == 0x7f1c2a);
	assert_true(scan_hex(&s, &v) && v == 0xff);
	assert_true(scan_hex(&s, &v) && v == UINT64_MAX);
	assert_false(scan_hex(&s, &v));
	assert_true(scan_skip(&s, 1));
	assert_false(scan_hex(&s, &v));
	assert_true(v == UINT64_MAX);
}

static void fixed_numbers(void **state)
{
	static const struct {
		const char *text;
		unsigned digits;
		int64_t want;
	} good[] = {
		{ "12.34", 2, 1234 },
		{ "12.345", 2, 1234 },
		{ "12.3", 2, 1230 },
		{ "12", 2, 1200 },
		{ "-0.07", 2, -7 },
		{ "0.00", 2, 0 },
		{ "5.", 1, 50 },
		{ "3.9", 0, 3 },
		{ "9223372036854775807", 0, INT64_MAX },
	};
	static const char *const bad[] = { "", ".5", "- 5", "-", "9223372036854775807" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		struct scan s = text(good[i].text);
		int64_t v = 7;

		assert_true(scan_fixed(&s, good[i].digits, &v));
		assert_true(v == good[i].want && scan_end(&s));
	}
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct scan s = text(bad[i]);
		int64_t v = 7;

		assert_false(scan_fixed(&s, 2, &v));
		assert_true(v == 7);
		assert_ptr_equal(s.p, bad[i]);
	}
}

static void words(void **state)
{
	struct scan s = text("  some avg10=0.00\tx\nnext");
	const char *p;
	size_t n;

	(void)state;
	assert_true(scan_word(&s, &p, &n));
	assert_int_equal(n, 4);
	assert_memory_equal(p, "some", 4);
	assert_true(scan_skip(&s, 2));
	assert_false(scan_word(&s, &p, &n)); /* the newline is no word, and is not jumped over */
	assert_false(scan_skip(&s, 1));
	assert_true(scan_skip(&s, 0));
	assert_true(scan_next_line(&s));
	assert_true(scan_lit(&s, "next"));
	assert_true(scan_end(&s));
}

/* A comm may hold ')' and newlines; what counts is that a line-bound search stops at its line. */
static void after_stays_on_its_line(void **state)
{
	struct scan s = text("a:b\nc:d");

	(void)state;
	assert_true(scan_after(&s, ':'));
	assert_int_equal(*s.p, 'b');
	assert_false(scan_after(&s, ':'));
	assert_int_equal(*s.p, 'b');
	assert_true(scan_next_line(&s));
	assert_true(scan_after(&s, 'd'));
	assert_true(scan_end(&s));
	assert_false(scan_after(&s, 'd'));
}

static void lines(void **state)
{
	struct scan s = text("one\n\nthree"), line;

	(void)state;
	assert_true(scan_line(&s, &line));
	assert_int_equal(line.end - line.p, 3);
	assert_true(scan_line(&s, &line));
	assert_true(scan_end(&line));
	assert_true(scan_line(&s, &line));
	assert_memory_equal(line.p, "three", 5);
	assert_false(scan_line(&s, &line));
	assert_false(scan_next_line(&s));
	s = text("");
	assert_false(scan_line(&s, &line));
}

static void keys(void **state)
{
	const struct scan s = text("SwapCached:      7 kB\nCached:          42 kB\nvoluntary\t9\n"
				   "usage_usec 5\nusage 6\nlast");
	struct scan rest;
	uint64_t v = 1;

	(void)state;
	assert_true(scan_key_u64(s, "Cached", &v) && v == 42);
	assert_true(scan_key_u64(s, "usage", &v) && v == 6);
	assert_true(scan_key_u64(s, "usage_usec", &v) && v == 5);
	assert_true(scan_key_u64(s, "voluntary", &v) && v == 9);
	assert_false(scan_key_u64(s, "Swap", &v));
	assert_false(scan_key(s, "last", &rest)); /* nothing stands behind it */
	assert_false(scan_key(s, "lastly", &rest));
	assert_true(v == 9);
	assert_true(scan_key(s, "Cached", &rest));
	assert_true(scan_skip(&rest, 1) && scan_lit(&rest, " kB") && scan_end(&rest));
}

/* Bytes behind `end` must not matter: the text is cut at every length. */
static void cut_anywhere(void **state)
{
	static const char full[] = "123 (x) S -4 0xff 1.50 max\nkey: 99\n";

	(void)state;
	for (size_t n = 0; n < sizeof(full); n++) {
		struct scan s = scan_of(full, n), line;
		uint64_t u;
		int64_t i;

		(void)scan_u64(&s, &u);
		assert_true(s.p <= s.end);
		(void)scan_after(&s, ')');
		(void)scan_skip(&s, 1);
		(void)scan_i64(&s, &i);
		(void)scan_hex(&s, &u);
		(void)scan_fixed(&s, 2, &i);
		scan_blank(&s);
		(void)scan_lit(&s, "max");
		assert_true(s.p <= s.end);
		while (scan_line(&s, &line))
			assert_true(line.p <= line.end && line.end <= s.end);
		assert_ptr_equal(s.p, s.end);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unsigned_numbers),
		cmocka_unit_test(signed_numbers),
		cmocka_unit_test(hex_numbers),
		cmocka_unit_test(fixed_numbers),
		cmocka_unit_test(words),
		cmocka_unit_test(after_stays_on_its_line),
		cmocka_unit_test(lines),
		cmocka_unit_test(keys),
		cmocka_unit_test(cut_anywhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

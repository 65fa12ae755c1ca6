/* SPDX-License-Identifier: MIT */
#include "../unit.h"

#include "base/auto.h"
#include "base/num.h"

#include <math.h>

typedef const char *formatter(double, char *, size_t);

static void shows(formatter *f, double v, const char *want)
{
	char got[48];

	assert_ptr_equal(f(v, got, sizeof(got)), got);
	assert_string_equal(got, want);
}

static void bytes(void **state)
{
	(void)state;
	shows(num_bytes, 0, "0 B");
	shows(num_bytes, -0.2, "0 B");
	shows(num_bytes, 999, "999 B");
	shows(num_bytes, 999.5, "1.0 kB");
	shows(num_bytes, 1000, "1.0 kB");
	shows(num_bytes, 9949, "9.9 kB");
	shows(num_bytes, 9951, "10 kB");
	shows(num_bytes, 999499, "999 kB");
	shows(num_bytes, 999500, "1.0 MB");
	shows(num_bytes, 1.4e9, "1.4 GB");
	shows(num_bytes, 1.7179869184e10, "17 GB");
	shows(num_bytes, 2.5e12, "2.5 TB");
	shows(num_bytes, 5e18, "5000 PB");
	shows(num_bytes, -1.4e9, "-1.4 GB");
}

static void seconds(void **state)
{
	(void)state;
	shows(num_seconds, 0, "0 us");
	shows(num_seconds, -1e-9, "0 us");
	shows(num_seconds, 12e-6, "12 us");
	shows(num_seconds, 999.4e-6, "999 us");
	shows(num_seconds, 999.6e-6, "1.0 ms");
	shows(num_seconds, 0.00994, "9.9 ms");
	shows(num_seconds, 0.00996, "10 ms");
	shows(num_seconds, 0.850, "850 ms");
	shows(num_seconds, 0.9994, "999 ms");
	shows(num_seconds, 0.9996, "1.0 s");
	shows(num_seconds, 12.34, "12.3 s");
	shows(num_seconds, 99.94, "99.9 s");
	shows(num_seconds, 100, "1 min 40 s");
	shows(num_seconds, 250, "4 min 10 s");
	shows(num_seconds, 3600, "1 h 0 min");
	shows(num_seconds, 86399, "23 h 59 min");
	shows(num_seconds, 90000, "1 d 1 h");
	shows(num_seconds, -250, "-4 min 10 s");
	shows(num_seconds, 8.64e18, "100000000000000 d 0 h");
}

static void shares_and_counts(void **state)
{
	(void)state;
	shows(num_percent, 0, "0 %");
	shows(num_percent, 0.803, "80 %");
	shows(num_percent, 0.004, "0.4 %");
	shows(num_percent, 0.0994, "9.9 %");
	shows(num_percent, 0.0996, "10 %");
	shows(num_percent, 6.42, "642 %");
	shows(num_percent, -0.0004, "0 %");
	shows(num_percent, -0.02, "-2.0 %");
	shows(num_cores, 6.42, "6.42");
	shows(num_cores, 8.0, "8");
	shows(num_cores, 7.9996, "8");
	shows(num_cores, 0.25, "0.25");
	shows(num_cores, -0.001, "0");
	shows(num_cores, 128.4, "128");
	shows(num_count, 0, "0");
	shows(num_count, 999, "999");
	shows(num_count, 1000, "1,000");
	shows(num_count, 12345, "12,345");
	shows(num_count, -1234567, "-1,234,567");
	shows(num_count, -100, "-100");
}

/* Callers never show an absent value, but a slip must not be undefined behaviour. */
static void odd_doubles_stay_in_bounds(void **state)
{
	static formatter *const all[] = { num_bytes, num_seconds, num_percent, num_cores,
					  num_count };
	static const double odd[] = { NAN, INFINITY, -INFINITY, 1e308, -1e308, 5e-324 };

	(void)state;
	for (size_t f = 0; f < ARRAY_LEN(all); f++) {
		for (size_t i = 0; i < ARRAY_LEN(odd); i++) {
			char got[12];

			memset(got, 'x', sizeof(got));
			all[f](odd[i], got, 8);
			assert_true(strnlen(got, 8) < 8);
			assert_int_equal(got[8], 'x');
		}
	}
}

static void parse_size(void **state)
{
	static const struct {
		const char *text;
		uint64_t want;
	} good[] = {
		{ "0", 0 },
		{ "4096", 4096 },
		{ "256M", 256ull << 20 },
		{ "256m", 256ull << 20 },
		{ "256MB", 256ull << 20 },
		{ "256 MiB", 256ull << 20 },
		{ "1.5G", 3ull << 29 },
		{ "1T", 1ull << 40 },
		{ "16K", 16384 },
		{ "17B", 17 },
		{ "10000000000", 10000000000ull },
		{ " 1k", 1024 },
	};
	static const char *const bad[] = { "",
					   " ",
					   "M",
					   "-1",
					   "-0",
					   "1X",
					   "1 M x",
					   "1e9",
					   "0x10",
					   "1.2.3",
					   "99999T",
					   "1KK",
					   "18446744073709551616" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		uint64_t v = 1;

		assert_true(num_parse_size(good[i].text, &v));
		assert_true(v == good[i].want);
	}
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		uint64_t v = 77;

		assert_false(num_parse_size(bad[i], &v));
		assert_true(v == 77);
	}
}

static void parse_duration(void **state)
{
	static const struct {
		const char *text;
		int64_t want;
	} good[] = {
		{ "10", 10000000000ll },     { "60s", 60000000000ll },  { "5m", 300000000000ll },
		{ "5 min", 300000000000ll }, { "2h", 7200000000000ll }, { "1d", 86400000000000ll },
		{ "250ms", 250000000ll },    { "0.3ms", 300000ll },     { "1.1ms", 1100000ll },
		{ "7us", 7000ll },           { "0.5", 500000000ll },    { "0", 0 },
	};
	static const char *const bad[] = {
		"", "s", "-1s", "5x", "5mins", "1h30m", "1e9", "99999d"
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		int64_t v = 1;

		assert_true(num_parse_duration(good[i].text, &v));
		assert_true(v == good[i].want);
	}
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		int64_t v = 77;

		assert_false(num_parse_duration(bad[i], &v));
		assert_true(v == 77);
	}
}

static void parse_others(void **state)
{
	double d = 0;
	int64_t i = 0;

	(void)state;
	assert_true(num_parse_ratio("1%", &d) && near(d, 0.01, 1e-12));
	assert_true(num_parse_ratio("0.5 %", &d) && near(d, 0.005, 1e-12));
	assert_true(num_parse_ratio("0.01", &d) && near(d, 0.01, 1e-12));
	assert_false(num_parse_ratio("-1%", &d));
	assert_false(num_parse_ratio("1%%", &d));
	assert_false(num_parse_ratio("%", &d));
	assert_true(num_parse_double("-2.5", &d) && near(d, -2.5, 1e-12));
	assert_true(num_parse_double("10", &d) && near(d, 10, 1e-12));
	assert_false(num_parse_double("", &d));
	assert_false(num_parse_double("- 5", &d));
	assert_false(num_parse_double("nan", &d));
	assert_true(num_parse_i64("-9223372036854775808", &i) && i == INT64_MIN);
	assert_true(num_parse_i64("9223372036854775807", &i) && i == INT64_MAX);
	assert_false(num_parse_i64("9223372036854775808", &i));
	assert_false(num_parse_i64("12x", &i));
	assert_true(i == INT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes),
		cmocka_unit_test(seconds),
		cmocka_unit_test(shares_and_counts),
		cmocka_unit_test(odd_doubles_stay_in_bounds),
		cmocka_unit_test(parse_size),
		cmocka_unit_test(parse_duration),
		cmocka_unit_test(parse_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

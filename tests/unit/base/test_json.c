/* SPDX-License-Identifier: MIT */
#include "../unit.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/json.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

static void nesting_and_commas(void **state)
{
	auto_done(buf) struct buf b = { 0 };
	struct json j;

	(void)state;
	json_init(&j, &b, false);
	json_begin(&j, '{');
	json_key_str(&j, "a", "x");
	json_key_begin(&j, "b", '[');
	json_int(&j, 1);
	json_begin(&j, '{');
	json_end(&j, '}');
	json_begin(&j, '[');
	json_end(&j, ']');
	json_bool(&j, true);
	json_end(&j, ']');
	json_key_int(&j, "c", INT64_MIN);
	json_key_bool(&j, "d", false);
	json_key_num(&j, "e", 0.5);
	json_end(&j, '}');
	assert_string_equal(buf_text(&b), "{\"a\":\"x\",\"b\":[1,{},[],true],"
					  "\"c\":-9223372036854775808,\"d\":false,\"e\":0.5}");
}

static void absent_is_no_key(void **state)
{
	auto_done(buf) struct buf b = { 0 };
	struct json j;

	(void)state;
	json_init(&j, &b, false);
	json_begin(&j, '{');
	json_key_num(&j, "nan", NAN);
	json_key_num(&j, "one", 1);
	json_key_num(&j, "inf", -INFINITY);
	json_key_str(&j, "null", NULL);
	json_key_num(&j, "two", 2);
	json_end(&j, '}');
	assert_string_equal(buf_text(&b), "{\"one\":1,\"two\":2}");
}

static void pretty(void **state)
{
	auto_done(buf) struct buf b = { 0 };
	struct json j;

	(void)state;
	json_init(&j, &b, true);
	json_begin(&j, '{');
	json_key_begin(&j, "empty", '[');
	json_end(&j, ']');
	json_key_begin(&j, "list", '[');
	json_int(&j, 1);
	json_int(&j, 2);
	json_end(&j, ']');
	json_end(&j, '}');
	assert_string_equal(buf_text(&b),
			    "{\n  \"empty\": [],\n  \"list\": [\n    1,\n    2\n  ]\n}");
}

static void string_is(const char *s, size_t n, const char *want)
{
	auto_done(buf) struct buf b = { 0 };
	struct json j;

	json_init(&j, &b, false);
	json_strn(&j, s, n);
	assert_string_equal(buf_text(&b), want);
}

static void strings(void **state)
{
	(void)state;
	string_is("", 0, "\"\"");
	string_is("a\"b\\c/", 6, "\"a\\\"b\\\\c/\"");
	string_is("\n\t\r\x1b\x7f", 5, "\"\\n\\t\\u000d\\u001b\\u007f\"");
	string_is("a\0b", 3, "\"a\\u0000b\"");
	string_is("\xc3\xb6\xf0\x9f\xa6\xbe", 6, "\"\xc3\xb6\xf0\x9f\xa6\xbe\"");
	string_is("\xff"
		  "a\xe2\x82",
		  4, "\"\\ufffda\\ufffd\\ufffd\"");
	string_is("\xc2\x9b", 2, "\"\\u009b\"");
}

static void number_text(double v, char *out, size_t size)
{
	auto_done(buf) struct buf b = { 0 };
	struct json j;

	json_init(&j, &b, false);
	json_num(&j, v);
	assert_true(b.len < size);
	memcpy(out, b.data, b.len + 1);
}

static void numbers_are_short_and_exact(void **state)
{
	uint64_t random = 88172645463325252ull;
	char text[64];

	(void)state;
	number_text(0.1, text, sizeof(text));
	assert_string_equal(text, "0.1");
	number_text(123456789, text, sizeof(text));
	assert_string_equal(text, "123456789");
	number_text(NAN, text, sizeof(text));
	assert_string_equal(text, "null");
	number_text(INFINITY, text, sizeof(text));
	assert_string_equal(text, "null");
	for (int i = 0; i < 20000; i++) {
		double v;

		random ^= random << 13, random ^= random >> 7, random ^= random << 17;
		memcpy(&v, &random, sizeof(v));
		if (!isfinite(v))
			continue;
		number_text(v, text, sizeof(text));
		assert_true(strtod(text, NULL) == v);
	}
	number_text(DBL_MIN / 4, text, sizeof(text));
	assert_true(strtod(text, NULL) == DBL_MIN / 4);
}

/* A writer that ran into its ceiling does not crash on the way out. */
static void ceiling(void **state)
{
	auto_done(buf) struct buf b;
	struct json j;

	(void)state;
	buf_init(&b, 8);
	json_init(&j, &b, false);
	json_begin(&j, '[');
	for (int i = 0; i < 100; i++)
		json_int(&j, i);
	json_end(&j, ']');
	assert_false(buf_ok(&b));
	assert_true(b.len < 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nesting_and_commas),
		cmocka_unit_test(absent_is_no_key),
		cmocka_unit_test(pretty),
		cmocka_unit_test(strings),
		cmocka_unit_test(numbers_are_short_and_exact),
		cmocka_unit_test(ceiling),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
#include "../unit.h"

#include "base/auto.h"
#include "source.h"

#include <math.h>

static void whole_file(void **state)
{
	auto_done(buf) struct buf out = { 0 };

	(void)state;
	source_write(sink_by_name("csv"), &out);
	assert_string_equal(
	    buf_text(&out),
	    "time,seconds,kind,name,key,metric,unit,value\n"
	    "2023-11-14T22:13:20.100Z,0.1,process,\"a,\"\"b\"\"?[2J?\",42,proc.cpu,seconds,0.1\n"
	    "2023-11-14T22:13:20.100Z,0.1,cpu,cpu0,0,core.frequency,hertz,2400000000\n"
	    "2023-11-14T22:13:21.100Z,1.1,,,,newer.metric,count,0.3333333333333333\n");
}

static void fields(void **state)
{
	static const struct {
		const char *in, *out;
	} rows[] = {
		{ "plain", "plain" },
		{ "", "" },
		{ "a,b", "\"a,b\"" },
		{ "say \"x\"", "\"say \"\"x\"\"\"" },
		{ "two\nlines", "\"two\nlines\"" },
		{ "tab\there", "tab\there" },
		{ "\033]0;title\007", "?]0;title?" },
		{ "\xc2\x9b"
		  "31m",
		  "?31m" },
		{ "caf\xc3\xa9", "caf\xc3\xa9" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		auto_done(buf) struct buf out = { 0 };

		csv_field(&out, rows[i].in, strlen(rows[i].in));
		assert_string_equal(buf_text(&out), rows[i].out);
	}
}

/* A NUL inside a field is neither a quote nor an end. */
static void field_with_nul(void **state)
{
	auto_done(buf) struct buf out = { 0 };

	(void)state;
	csv_field(&out, "a\0b", 3);
	assert_int_equal(out.len, 3);
	assert_memory_equal(out.data, "a?b", 3);
}

static void numbers(void **state)
{
	const double values[] = { 0, 1, -2.5, 0.1, 1e300, 123456789012345678.0, 1.0 / 3 };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(values); i++) {
		auto_done(buf) struct buf out = { 0 };

		csv_number(&out, values[i]);
		assert_true(strtod(buf_text(&out), NULL) == values[i]);
	}
}

static void absent_is_empty(void **state)
{
	auto_done(buf) struct buf out = { 0 };

	(void)state;
	csv_number(&out, NAN);
	csv_number(&out, INFINITY);
	assert_int_equal(out.len, 0);
}

static void by_name(void **state)
{
	(void)state;
	assert_string_equal(sink_by_name("csv")->name, "csv");
	assert_null(sink_by_name("CSV"));
	assert_null(sink_by_name(""));
	for (const struct sink_type *const *s = sinks; *s; s++)
		assert_ptr_equal(sink_by_name((*s)->name), *s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_file),      cmocka_unit_test(fields),
		cmocka_unit_test(field_with_nul),  cmocka_unit_test(numbers),
		cmocka_unit_test(absent_is_empty), cmocka_unit_test(by_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
#include "../unit.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/text.h"

/* A naive encoder to hold the validator against. 0: not a code point that may be encoded. */
static size_t encode(uint32_t cp, unsigned char out[4])
{
	if (cp < 0x80) {
		out[0] = (unsigned char)cp;
		return 1;
	}
	if (cp < 0x800) {
		out[0] = (unsigned char)(0xc0 | cp >> 6);
		out[1] = (unsigned char)(0x80 | (cp & 0x3f));
		return 2;
	}
	if (cp < 0x10000) {
		out[0] = (unsigned char)(0xe0 | cp >> 12);
		out[1] = (unsigned char)(0x80 | (cp >> 6 & 0x3f));
		out[2] = (unsigned char)(0x80 | (cp & 0x3f));
		return 3;
	}
	out[0] = (unsigned char)(0xf0 | cp >> 18);
	out[1] = (unsigned char)(0x80 | (cp >> 12 & 0x3f));
	out[2] = (unsigned char)(0x80 | (cp >> 6 & 0x3f));
	out[3] = (unsigned char)(0x80 | (cp & 0x3f));
	return 4;
}

/* Every code point there is and some that are not: valid exactly where Unicode says so. */
static void utf8_every_code_point(void **state)
{
	unsigned wrong = 0;

	(void)state;
	for (uint32_t cp = 0; cp < 0x120000; cp++) {
		unsigned char raw[4];
		size_t n = encode(cp, raw);
		bool valid = cp <= 0x10ffff && !(cp >= 0xd800 && cp <= 0xdfff);

		wrong += text_utf8((const char *)raw, n) != (valid ? n : 0);
		wrong += n > 1 && text_utf8((const char *)raw, n - 1) != 0;
	}
	assert_int_equal(wrong, 0);
}

static void utf8_broken(void **state)
{
	static const char *const bad[] = {
		"\x80",
		"\xbf",
		"\xc0\xaf",
		"\xc1\xbf",
		"\xe0\x80\xaf",
		"\xe0\x9f\xbf",
		"\xc3(",
		"\xe2(\xa1",
		"\xf0\x80\x80\x80",
		"\xf4\x90\x80\x80",
		"\xf5\x80\x80\x80",
		"\xfe",
		"\xff",
		"\xe2\x82",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(text_utf8(bad[i], strlen(bad[i])), 0);
	assert_int_equal(text_utf8("a", 0), 0);
	assert_int_equal(text_utf8("\0", 1), 1);
}

static void safe_is(const char *in, size_t n, const char *want)
{
	auto_done(buf) struct buf b = { 0 };

	text_safe(&b, in, n);
	assert_string_equal(buf_text(&b), want);
}

static void safe_text(void **state)
{
	(void)state;
	safe_is("python3 train.py", 16, "python3 train.py");
	safe_is("gr\xc3\xb6\xc3\x9f"
		"e \xe6\xa8\xa1",
		11,
		"gr\xc3\xb6\xc3\x9f"
		"e \xe6\xa8\xa1");
	safe_is("\x1b[2J\x1b]0;x\a", 10, "?[2J?]0;x?");
	safe_is("a\nb\tc\rd\x7f", 8, "a?b?c?d?");
	safe_is("\xc2\x9b"
		"31m",
		5, "?31m");
	safe_is("a\xe2\x80\xae"
		"b\xe2\x81\xa9",
		8, "a?b?");
	safe_is("\xff\xe2\x82", 3, "???");
	safe_is("a\0b", 3, "a?b");
	safe_is("", 0, "");
}

static void safe_copy_cuts_between_characters(void **state)
{
	static const char full[] = "a\xc3\xb6\xe6\xa8\xa1\xf0\x9f\xa6\xbe\x1b!";
	char out[16];

	(void)state;
	for (size_t size = 1; size <= sizeof(out); size++) {
		memset(out, 'x', sizeof(out));
		assert_ptr_equal(text_safe_copy(out, size, full), out);
		assert_true(strlen(out) < size);
		for (size_t i = 0; out[i];) {
			size_t len = text_utf8(out + i, strlen(out + i));

			assert_true(len > 0);
			i += len;
		}
	}
	assert_string_equal(out, "a\xc3\xb6\xe6\xa8\xa1\xf0\x9f\xa6\xbe?!");
	out[0] = 'x';
	text_safe_copy(out, 0, "abc");
	assert_int_equal(out[0], 'x');
}

static void widths(void **state)
{
	(void)state;
	assert_int_equal(text_width(""), 0);
	assert_int_equal(text_width("abc"), 3);
	assert_int_equal(text_width("\xc3\xb6"), 1);
	assert_int_equal(text_width("\xe6\xa8\xa1\xe5\x9e\x8b"), 4); /* CJK */
	assert_int_equal(text_width("\xef\xbc\xa1"), 2);             /* full-width A */
	assert_int_equal(text_width("\xed\x95\x9c"), 2);             /* Hangul */
	assert_int_equal(text_width("\xf0\x9f\xa6\xbe"), 2);         /* emoji */
	assert_int_equal(text_width("\xe2\x96\x88\xe2\x94\x80"), 2); /* block and line drawing */
	assert_int_equal(text_width("\xf0\x9d\x90\x80"), 1);         /* mathematical A */
	assert_int_equal(text_width("\xff\xff"), 2);
}

static void copies(void **state)
{
	char out[4] = "xyz";

	(void)state;
	assert_true(text_copy(out, sizeof(out), "abc"));
	assert_string_equal(out, "abc");
	assert_false(text_copy(out, sizeof(out), "abcd"));
	assert_string_equal(out, "abc");
	assert_true(text_copy(out, sizeof(out), ""));
	assert_string_equal(out, "");
	assert_false(text_copy(out, 0, "a"));
	assert_string_equal(out, "");
}

static void distances(void **state)
{
	(void)state;
	assert_int_equal(text_distance("", ""), 0);
	assert_int_equal(text_distance("abc", ""), 3);
	assert_int_equal(text_distance("kitten", "sitting"), 3);
	assert_int_equal(text_distance("quite", "quiet"), 2);
	assert_int_equal(text_distance("stacks", "stack"), 1);
	assert_int_equal(text_distance("abc", "abc"), 0);
	assert_int_equal(text_distance("a", "123456789012345678901234567890123"), 99);
	assert_int_equal(text_distance("12345678901234567890123456789012", ""), 32);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(utf8_every_code_point),
		cmocka_unit_test(utf8_broken),
		cmocka_unit_test(safe_text),
		cmocka_unit_test(safe_copy_cuts_between_characters),
		cmocka_unit_test(widths),
		cmocka_unit_test(copies),
		cmocka_unit_test(distances),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

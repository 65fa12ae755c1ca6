/* SPDX-License-Identifier: MIT
 *
 * The pure parts: line tables, offset tables, text.
 */
#include "../unit.h"

#include "base/buf.h"
#include "base/err.h"
#include "stack/py/layout.h"
#include "stack/py/lines.h"
#include "stack/py/unicode.h"

#include <elf.h>
#include <errno.h>

#define LINE(kind, table, offset) py_line_of(kind, table, sizeof(table), 10, offset)

static void test_lnotab(void **state)
{
	/* line 11 from byte 0, 12 from 6, 10 from 14, then 255 + 45 bytes on: 137 */
	static const uint8_t t[] = { 0, 1, 6, 1, 8, 0xfe, 255, 127, 45, 0 };

	(void)state;
	assert_int_equal(LINE(PY_LINES_LNOTAB, t, -1), 10);
	assert_int_equal(LINE(PY_LINES_LNOTAB, t, 0), 11);
	assert_int_equal(LINE(PY_LINES_LNOTAB, t, 5), 11);
	assert_int_equal(LINE(PY_LINES_LNOTAB, t, 6), 12);
	assert_int_equal(LINE(PY_LINES_LNOTAB, t, 14), 10);
	assert_int_equal(LINE(PY_LINES_LNOTAB, t, 1000), 137);
	assert_int_equal(py_line_of(PY_LINES_LNOTAB, t, 0, 10, 4), 10);
}

static void test_ranges(void **state)
{
	/* [0,2) line 10, [2,8) 11, [8,16) none, [16,20) 9 */
	static const uint8_t t[] = { 2, 0, 6, 1, 8, 0x80, 4, 0xfe };

	(void)state;
	assert_int_equal(LINE(PY_LINES_RANGES, t, 0), 10);
	assert_int_equal(LINE(PY_LINES_RANGES, t, 2), 11);
	assert_int_equal(LINE(PY_LINES_RANGES, t, 7), 11);
	assert_int_equal(LINE(PY_LINES_RANGES, t, 8), 0);
	assert_int_equal(LINE(PY_LINES_RANGES, t, 16), 9);
	assert_int_equal(LINE(PY_LINES_RANGES, t, 20), 0);
}

static void test_locations(void **state)
{
	static const uint8_t t[] = {
		0xf1, 0x02, 0x01, 0x05, 0x06, /* long, 2 units, +1: line 11 in [0,4) */
		0xd8, 1,    2,                /* one line on, 1 unit: 12 in [4,6) */
		0x80, 7,                      /* short, 1 unit: 12 in [6,8) */
		0xf8,                         /* none, 1 unit: [8,10) */
		0xe9, 0x07,                   /* no columns, 2 units, -3: 9 in [10,14) */
		0xe8, 0x50, 0x02,             /* +72: 81 in [14,16) */
	};

	(void)state;
	assert_int_equal(LINE(PY_LINES_LOCATIONS, t, -2), 10);
	assert_int_equal(LINE(PY_LINES_LOCATIONS, t, 0), 11);
	assert_int_equal(LINE(PY_LINES_LOCATIONS, t, 2), 11);
	assert_int_equal(LINE(PY_LINES_LOCATIONS, t, 4), 12);
	assert_int_equal(LINE(PY_LINES_LOCATIONS, t, 6), 12);
	assert_int_equal(LINE(PY_LINES_LOCATIONS, t, 8), 0);
	assert_int_equal(LINE(PY_LINES_LOCATIONS, t, 10), 9);
	assert_int_equal(LINE(PY_LINES_LOCATIONS, t, 14), 81);
	assert_int_equal(LINE(PY_LINES_LOCATIONS, t, 16), 0);
	/* Cut short anywhere: no line, never a wrong one. */
	for (size_t n = 0; n < sizeof(t); n++) {
		int32_t line = py_line_of(PY_LINES_LOCATIONS, t, n, 10, 14);

		assert_int_equal(line, 0);
	}
}

static void test_known_versions(void **state)
{
	struct py_layout l;
	struct err e = { 0 };

	(void)state;
	for (unsigned minor = 8; minor <= 12; minor++) {
		assert_int_equal(py_layout_known(minor, EM_X86_64, &l, NULL), 0);
		assert_int_equal(l.minor, minor);
		assert_true(l.thread_size >= l.thread_frame + 8 && l.thread_size <= 512);
		assert_true(l.frame_size >= l.frame_instr + 4 && l.frame_size <= 128);
		assert_true(l.code_size >= l.code_lines + 8);
	}
	assert_int_equal(py_layout_known(11, EM_X86_64, &l, NULL), 0);
	assert_int_equal(l.runtime_current, 576);
	assert_int_equal(py_layout_known(11, EM_AARCH64, &l, NULL), 0);
	assert_int_equal(l.runtime_current, 592);
	assert_int_equal(py_layout_known(7, EM_X86_64, &l, &e), -ENOTSUP);
	assert_non_null(strstr(e.text, "3.7"));
	assert_int_equal(py_layout_known(11, EM_386, &l, NULL), -ENOTSUP);
}

static size_t load(const char *name, uint8_t *table, size_t size)
{
	char path[512];
	FILE *f;
	size_t n;

	snprintf(path, sizeof(path), CORPUS "/py_layout/%s", name);
	f = fopen(path, "re");
	assert_non_null(f);
	n = fread(table, 1, size, f);
	fclose(f);
	return n;
}

/* Their tables have the same values here, in a different order. */
static void test_carried_table(void **state)
{
	static const char *const names[] = { "3.13", "3.14" };

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		uint8_t table[PY_TABLE_MAX];
		size_t n = load(names[i], table, sizeof(table));
		struct py_layout l;

		assert_int_equal(py_layout_parse(table, n, &l, NULL), 0);
		assert_int_equal(l.minor, 13 + i);
		assert_int_equal(l.runtime_interpreters, 632);
		assert_int_equal(l.interp_threads, 7344);
		assert_int_equal(l.interp_next, 7264);
		assert_int_equal(l.interp_gil, 16);
		assert_int_equal(l.interp_collecting, 7600);
		assert_int_equal(l.gil_holder, 8);
		assert_int_equal(l.gil_locked, 16);
		assert_int_equal(l.thread_frame, 72);
		assert_int_equal(l.thread_native, 160);
		assert_int_equal(l.thread_chunk, 232);
		assert_int_equal(l.frame_instr, 56);
		assert_int_equal(l.frame_owner, 70);
		assert_int_equal(l.code_qualname, 128);
		assert_int_equal(l.code_instructions, 200);
		assert_int_equal(l.code_traceable, 184);
		assert_int_equal(l.text_ascii_size, 40);
		assert_int_equal(l.frame_code_mask, i ? ~3ull : UINT64_MAX);
	}
}

static void test_refused_tables(void **state)
{
	uint8_t table[PY_TABLE_MAX];
	size_t n = load("3.13", table, sizeof(table));
	struct py_layout l = { .minor = 77 };
	struct err e = { 0 };

	(void)state;
	table[16] = 1;
	assert_int_equal(py_layout_parse(table, n, &l, &e), -ENOTSUP);
	assert_non_null(strstr(e.text, "free-threaded"));
	table[16] = 0;
	assert_int_equal(py_layout_parse(table, 300, &l, NULL), -ENOTSUP);
	assert_int_equal(py_layout_parse(table, 10, &l, NULL), -ENOTSUP);
	table[152 + 4 * 8 + 3] = 1; /* current_frame beyond the structure */
	assert_int_equal(py_layout_parse(table, n, &l, NULL), -ENOTSUP);
	table[152 + 4 * 8 + 3] = 0;
	table[10] = 15; /* as if it were 3.15: the order does not fit */
	assert_int_equal(py_layout_parse(table, n, &l, NULL), -ENOTSUP);
	table[10] = 13;
	table[0] = 'y';
	assert_int_equal(py_layout_parse(table, n, &l, NULL), -ENOTSUP);
	assert_int_equal(l.minor, 77);
}

static void put(const void *data, size_t n, unsigned width, const char *want)
{
	struct buf out;

	buf_init(&out, 1000);
	py_unicode_put(&out, data, n, width);
	assert_string_equal(buf_text(&out), want);
	buf_done(&out);
}

static void test_text(void **state)
{
	(void)state;
	put("abc", 3, 1, "abc");
	put("gr\xf6\xdf", 4, 1, "größ");
	put((uint16_t[]){ 0x51fd, 0x6570, 'x' }, 3, 2, "函数x");
	put((uint16_t[]){ 'a', 0xdcff }, 2, 2, "a\xef\xbf\xbd");
	put((uint32_t[]){ 0x10330, 0x110000 }, 2, 4, "𐌰\xef\xbf\xbd");
	put("a\0b", 3, 1,
	    "a\xef\xbf\xbd"
	    "b");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lnotab),        cmocka_unit_test(test_ranges),
		cmocka_unit_test(test_locations),     cmocka_unit_test(test_known_versions),
		cmocka_unit_test(test_carried_table), cmocka_unit_test(test_refused_tables),
		cmocka_unit_test(test_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

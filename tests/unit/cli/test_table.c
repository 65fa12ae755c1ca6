/* SPDX-License-Identifier: MIT */
#include "../unit.h"

#include "base/auto.h"
#include "base/buf.h"
#include "cli/table.h"

static void columns_line_up(void **state)
{
	auto_done(table) struct table t = { 0 };
	auto_done(buf) struct buf out = { 0 };

	(void)state;
	table_column(&t, "NAME", false);
	table_column(&t, "N", true);
	table_column(&t, "END", false);
	table_cell(&t, "a");
	table_cell(&t, "1");
	table_cell(&t, "x");
	table_cell(&t, "caf\xc3\xa9s");
	table_cellf(&t, "%d", 1234);
	table_cell(&t, "");
	table_print(&t, &out);
	assert_string_equal(buf_text(&out), "NAME      N  END\n"
					    "a         1  x\n"
					    "caf\xc3\xa9s  1234  \n");
}

static void printed_in_parts(void **state)
{
	auto_done(table) struct table t = { 0 };
	auto_done(buf) struct buf out = { 0 };

	(void)state;
	table_column(&t, "A", false);
	table_column(&t, "B", false);
	table_cell(&t, "11");
	table_cell(&t, "2");
	table_print(&t, &out);
	assert_int_equal(table_rows(&t), 0);
	table_cell(&t, "wider");
	table_cell(&t, "3");
	table_print(&t, &out);
	table_print(&t, &out);
	assert_string_equal(buf_text(&out), "A   B\n11  2\nwider  3\n");
}

static void cells_are_safe_and_cut(void **state)
{
	auto_done(table) struct table t = { .widest = 8 };
	auto_done(buf) struct buf out = { 0 };

	(void)state;
	table_column(&t, "\033[1mX", false);
	table_cell(&t, "\033[2Jab\nc");
	table_cell(&t, "123456789012");
	table_cell(&t, "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9");
	table_print(&t, &out);
	assert_string_equal(
	    buf_text(&out),
	    "?[1mX\n?[2Jab?c\n12345...\n\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9...\n");
}

static void empty_table_is_a_header(void **state)
{
	auto_done(table) struct table t = { .bold = true };
	auto_done(buf) struct buf out = { 0 };

	(void)state;
	table_column(&t, "A", true);
	table_print(&t, &out);
	assert_string_equal(buf_text(&out), "\033[1mA\n\033[0m");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(columns_line_up),
		cmocka_unit_test(printed_in_parts),
		cmocka_unit_test(cells_are_safe_and_cut),
		cmocka_unit_test(empty_table_is_a_header),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

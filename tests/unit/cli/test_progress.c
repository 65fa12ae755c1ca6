/* SPDX-License-Identifier: MIT */
#include "../unit.h"

#include "base/auto.h"
#include "base/buf.h"
#include "cli/progress.h"

#include <math.h>

static void expect(double share, unsigned beat, unsigned columns, const char *want)
{
	auto_done(buf) struct buf out = { 0 };

	progress_line("exporting", share, beat, columns, &out);
	assert_string_equal(buf_text(&out), want);
}

static void a_share_is_a_bar(void **state)
{
	(void)state;
	expect(0, 0, 32, "exporting  [>         ]   0 %");
	expect(0.5, 0, 32, "exporting  [=====>    ]  50 %");
	/* not 100 before it is over */
	expect(0.999, 0, 32, "exporting  [=========>]  99 %");
	expect(1, 0, 32, "exporting  [==========] 100 %");
	expect(7, 0, 32, "exporting  [==========] 100 %");
	expect(-3, 0, 32, "exporting  [>         ]   0 %");
}

static void what_is_not_known_moves(void **state)
{
	(void)state;
	expect(NAN, 0, 32, "exporting  [<=>       ]");
	expect(NAN, 7, 32, "exporting  [       <=>]");
	expect(NAN, 8, 32, "exporting  [<=>       ]");
	expect(NAN, 4000000000u, 32, "exporting  [<=>       ]");
	expect(INFINITY, 1, 32, "exporting  [ <=>      ]");
}

static void narrow_terminals_get_words(void **state)
{
	(void)state;
	expect(0.42, 0, 20, "exporting 42 %");
	expect(NAN, 0, 1, "exporting");
}

static void never_wider_than_the_terminal(void **state)
{
	(void)state;
	for (unsigned columns = 20; columns < 200; columns++)
		for (unsigned beat = 0; beat < 50; beat += 7) {
			auto_done(buf) struct buf out = { 0 };

			progress_line("exporting", 1, beat, columns, &out);
			/* a character in the last column makes some terminals go on a new line */
			assert_true(out.len < columns);
			buf_reset(&out);
			progress_line("exporting", NAN, beat, columns, &out);
			assert_true(out.len < columns);
		}
}

static void nothing_without_a_terminal(void **state)
{
	struct progress p = { 0 };

	(void)state;
	progress_begin(&p, "exporting", true);
	assert_false(p.on);
	progress_share(&p, 0.5);
	progress_pulse(&p);
	assert_false(p.shown);
	progress_end(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_share_is_a_bar),
		cmocka_unit_test(what_is_not_known_moves),
		cmocka_unit_test(narrow_terminals_get_words),
		cmocka_unit_test(never_wider_than_the_terminal),
		cmocka_unit_test(nothing_without_a_terminal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

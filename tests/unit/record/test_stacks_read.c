/* SPDX-License-Identifier: MIT
 *
 * Stacks of files that are older, newer or made up; and through SQL.
 */
#include "crew_run.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>

/* A file of before there were stacks: opens, and has none. */
static void test_older_file(void **state)
{
	struct copy c = { 0 };
	struct record *r;
	struct window w;
	struct set_up s;

	(void)state;
	run_begin(&s, 1, NULL);
	run_second(&s);
	run_second(&s);
	run_finish(&s);
	run_sql(s.path, "DROP VIEW stacks; DROP TABLE place; DROP TABLE stack;"
			"DROP TABLE stack_slice; DROP TABLE stack_word;"
			"CREATE TABLE stack (id INTEGER PRIMARY KEY, parent INTEGER, function TEXT,"
			" file TEXT, line INTEGER); PRAGMA user_version = 1000");
	r = run_open(s.path);
	w = record_window(r, 0, 0);
	assert_int_equal(window_stacks(&w, copy_add, &c), -ENODATA);
	assert_int_equal(window_book(&w)->places.n, 0);
	assert_int_equal(window_book(&w)->nodes.n, 0);
	assert_int_equal(
	    sqlite3_exec(record_db(r), "SELECT * FROM stack_samples", NULL, NULL, NULL),
	    SQLITE_ERROR);
	record_close(r);
	run_end(&s);
}

/* Codes mean what the file says they mean. */
static void test_words_of_another_version(void **state)
{
	struct copy c = { 0 };
	struct record *r;
	struct window w;
	struct set_up s;
	size_t unknown = 0, child = 0;

	(void)state;
	run_begin(&s, 1, NULL);
	run_second(&s);
	run_finish(&s);
	run_sql(s.path,
		"UPDATE stack_word SET name = 'child' WHERE what = 'state' AND name = 'running';"
		"UPDATE stack_word SET name = 'telepathy' WHERE what = 'state' AND name = 'lock';"
		"UPDATE stack_word SET name = 'partial' WHERE what = 'flag' AND name = 'gil'");
	r = run_open(s.path);
	w = record_window(r, 0, 0);
	assert_int_equal(window_stacks(&w, copy_add, &c), 0);
	for (size_t i = 0; i < c.slices.v[0].n; i++) {
		const struct stack_row *row = &c.slices.v[0].rows[i];

		assert_int_not_equal(row->kind, WAIT_RUNNING);
		assert_int_not_equal(row->kind, WAIT_LOCK);
		assert_int_equal(row->flags & STACK_GIL, 0);
		unknown += row->kind == WAIT_UNKNOWN;
		child += row->kind == WAIT_CHILD && row->flags == (STACK_PYTHON | STACK_PARTIAL);
	}
	assert_true(unknown > 0 && child > 0);
	assert_true(run_number(r, "SELECT count(*) FROM stack_samples WHERE state = 'telepathy'") >
		    0);
	copy_done(&c);
	record_close(r);
	run_end(&s);
}

/* Rows and blobs that make no sense are left out, and said so. */
static void test_hostile_rows(void **state)
{
	struct copy c = { 0 };
	struct record *r;
	struct window w;
	struct set_up s;

	(void)state;
	run_begin(&s, 1, NULL);
	for (int i = 0; i < 130; i++)
		run_second(&s);
	run_finish(&s);
	run_sql(
	    s.path,
	    "INSERT INTO place VALUES (99999999999, 'python', 'f', 'f', 1, ''),"
	    " (-1, NULL, NULL, NULL, NULL, NULL), (262144, 5, x'00', 7, 1e300, 3);"
	    "INSERT INTO stack VALUES (-5, 1, 1), (524288, 524287, 262144), (400000, 400000, 1),"
	    " (4294967297, 1, 1), (400001, -1, 1), (400002, 1, 'x'), (400003, 1, NULL);"
	    "INSERT INTO stack_word VALUES ('state', -1, 'x'), ('state', 1e18, NULL),"
	    " (NULL, 3, 'x'), ('flag', 3, 'gil'), ('flag', 'x', 'gil');"
	    "UPDATE stack_slice SET data = substr(data, 1, 40) WHERE id ="
	    " (SELECT min(id) FROM stack_slice);"
	    "INSERT INTO stack_slice VALUES (1000, 'second', NULL, NULL, NULL, NULL),"
	    " (1001, 'x', -9223372036854775808, 9223372036854775807, 1, 'text'),"
	    " (1002, 'x', 0, 9223372036854775807, 1, NULL)");
	r = run_open(s.path);
	w = record_window(r, 0, 0);
	assert_int_equal(window_stacks(&w, copy_add, &c), 0);
	assert_true(c.slices.n >= 65 && c.slices.n < 130);
	assert_non_null(strstr(record_remark(r), "3 damaged blocks"));
	assert_int_equal(window_book(&w)->places.n, STACK_PLACES_MAX);
	assert_int_equal(window_book(&w)->nodes.n, STACK_NODES_MAX);
	assert_null(stack_book_find_place(window_book(&w), STACK_PLACES_MAX + 1));
	assert_true(run_number(r, "SELECT count(*) FROM stack_samples") > 100);
	copy_done(&c);
	record_close(r);
	run_end(&s);
}

static void test_sql(void **state)
{
	struct record *r;
	struct set_up s;
	double all;

	(void)state;
	run_begin(&s, 2, NULL);
	for (int i = 0; i < 130; i++)
		run_second(&s);
	run_finish(&s);
	r = run_open(s.path);
	all = run_number(r, "SELECT sum(samples) FROM stack_samples");
	assert_true(all == (double)s.crew.samples);
	assert_true(near(run_number(r, "SELECT sum(seconds) FROM stack_samples"),
			 (double)s.crew.weight_ns / 1e9, 1e-9));
	assert_true(run_number(r, "SELECT sum(samples) FROM stack_samples WHERE t < 70") +
			run_number(r, "SELECT sum(samples) FROM stack_samples WHERE t >= 70") ==
		    all);
	assert_true(run_number(r, "SELECT sum(samples) FROM stack_samples WHERE t = 70") ==
		    run_number(r, "SELECT sum(samples) FROM stack_samples WHERE +t = 70"));
	assert_true(
	    run_number(r, "SELECT count(*) FROM stack_samples WHERE t_end > 100 AND t < 101.5") ==
	    run_number(r, "SELECT count(*) FROM stack_samples WHERE +t_end > 100 AND +t < 101.5"));
	assert_true(run_number(r, "SELECT sum(samples) FROM stack_samples WHERE entity = 100") ==
		    130 * CREW_HZ);
	assert_true(run_number(r, "SELECT count(*) FROM stack_samples WHERE state = 'poll' AND"
				  " waits_on = 'socket' AND flags = 'held,python'") > 0);
	assert_true(run_number(r, "SELECT count(*) FROM stack_samples WHERE state = 'pipe' AND"
				  " peer IN (50, 51)") > 0);
	assert_true(run_number(r, "SELECT count(*) FROM stack_samples WHERE state = 'running' AND"
				  " (peer IS NOT NULL OR waits_on IS NOT NULL)") == 0);
	assert_true(run_number(r,
			       "SELECT sum(s.samples) FROM stack_samples s JOIN stacks k"
			       " ON k.id = s.stack WHERE k.kind IN ('python', 'native')") == all);
	assert_true(run_number(r, "SELECT count(*) FROM stacks WHERE parent IS NULL") > 0);
	record_close(r);
	run_end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_older_file),
		cmocka_unit_test(test_words_of_another_version),
		cmocka_unit_test(test_hostile_rows),
		cmocka_unit_test(test_sql),

	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

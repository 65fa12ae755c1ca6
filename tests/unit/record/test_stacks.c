/* SPDX-License-Identifier: MIT
 *
 * Stacks in a file: what goes in comes out, as it does from the live history; while it is written, after
 * the end, after a crash, packed and added up, on a full disk.
 */
#include "crew_run.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>

static void test_file_is_as_history(void **state)
{
	struct record *r;
	struct set_up s;

	(void)state;
	run_begin(&s, 2, NULL);
	for (int i = 0; i < 150; i++)
		run_second(&s);
	r = run_open(s.path); /* two minutes and 30 seconds */
	assert_true(run_number(r, "SELECT count(*) FROM stack_slice WHERE level = 'minute'") == 2);
	assert_true(run_number(r, "SELECT count(*) FROM stack_slice WHERE level = 'second'") >= 29);
	assert_same_as_history(&s, r, 0, 150);
	assert_same_as_history(&s, r, START + 100 * NS_PER_S, 50);
	assert_same_as_history(&s, r, START + 100 * NS_PER_S + 1, 50); /* a part of the first one */
	record_close(r);
	run_finish(&s);
	r = run_open(s.path);
	assert_true(run_number(r, "SELECT count(*) FROM stack_slice") == 3);
	assert_same_as_history(&s, r, 0, 150);
	assert_string_equal(record_remark(r), "");
	record_close(r);
	run_end(&s);
}

static void test_interrupted(void **state)
{
	struct record *r;
	struct set_up s;

	(void)state;
	run_begin(&s, 1, NULL);
	for (int i = 0; i < 70; i++)
		run_second(&s);
	record_abandon(s.writer);
	s.writer = NULL;
	/* Nobody by that number writes it. */
	run_sql(s.path, "UPDATE run SET recorder_pid = 0");
	r = run_open(s.path);
	assert_int_equal(record_run(r)->state, RUN_INTERRUPTED);
	assert_same_as_history(&s, r, 0, 70);
	record_close(r);
	run_end(&s);
}

static void test_ranges(void **state)
{
	struct window w;
	struct copy c = { .stop_after = 3 };
	struct record *r;
	struct set_up s;

	(void)state;
	run_begin(&s, 1, NULL);
	for (int i = 0; i < 65; i++)
		run_second(&s);
	run_finish(&s);
	r = run_open(s.path);
	w = record_window(r, START + 10 * NS_PER_S, START + 20 * NS_PER_S);
	assert_int_equal(window_stacks(&w, copy_add, &c), 0);
	assert_int_equal(c.slices.n, 3); /* stopped */
	assert_int_equal(c.slices.v[0].from_ns, START + 10 * NS_PER_S);
	copy_done(&c);
	c = (struct copy){ 0 };
	assert_int_equal(window_stacks(&w, copy_add, &c), 0);
	assert_int_equal(c.slices.n, 10);
	copy_done(&c);
	c = (struct copy){ 0 };
	w.from_ns = w.to_ns = START + 500 * NS_PER_S;
	w.to_ns++;
	assert_int_equal(window_stacks(&w, copy_add, &c), -ENODATA);
	w = history_window(s.history, START + 65 * NS_PER_S);
	assert_int_equal(window_stacks(&w, copy_add, &c), -ENODATA);
	copy_done(&c);
	record_close(r);
	run_end(&s);
}

/* A reader that stays open sees places, stacks and slices that come later, and late source lines. */
static void test_refresh(void **state)
{
	struct place p;
	struct window w;
	struct record *r;
	struct set_up s;

	(void)state;
	run_begin(&s, 1, NULL);
	run_second(&s);
	run_second(&s);
	r = run_open(s.path);
	assert_same_as_history(&s, r, 0, 2);
	p = *stack_book_find_place(&s.crew.book, 5);
	p.source = "y = model(x)";
	assert_int_equal(stack_book_set_place(&s.crew.book, 5, &p), 0);
	frame_begin(&s.frame, s.t_ns + NS_PER_MS, 0);
	frame_place(&s.frame, 5, &p);
	p.function = "later";
	p.source = "";
	frame_place(&s.frame, stack_book_place(&s.crew.book, &p), &p);
	frame_node(&s.frame, (uint32_t)s.crew.book.nodes.n + 1,
		   &(struct stack_node){ .parent = 3, .place = s.crew.told_places + 1 });
	s.crew.told_places++;
	assert_int_equal(stack_book_node(&s.crew.book, 3, s.crew.told_places), ++s.crew.told_nodes);
	record_frame(s.writer, &s.frame);
	history_frame(s.history, &s.frame);
	run_second(&s);
	assert_int_equal(record_refresh(r), 0);
	assert_same_as_history(&s, r, 0, 3);
	w = record_window(r, 0, 0);
	assert_string_equal(stack_book_find_place(window_book(&w), 5)->source, "y = model(x)");
	assert_same_book(window_book(&w), &s.crew.book);
	record_close(r);
	run_end(&s);
}

/* Old minutes become one slice each, and say the same in sum. */
static void test_thin(void **state)
{
	struct record_options o = { .keep_raw_ns = 120 * NS_PER_S };
	struct copy c = { 0 };
	struct record *r;
	struct window w;
	struct set_up s;

	(void)state;
	run_begin(&s, 2, &o);
	for (int i = 0; i < 420; i++)
		run_second(&s);
	run_finish(&s);
	r = run_open(s.path);
	w = record_window(r, 0, 0);
	assert_int_equal(window_stacks(&w, copy_add, &c), 0);
	assert_true(run_number(r, "SELECT count(*) FROM stack_slice WHERE level = 'thin'") >= 4);
	assert_true(c.slices.n < 200);
	assert_int_equal(c.slices.v[0].from_ns, START);
	assert_true(c.slices.v[0].to_ns - c.slices.v[0].from_ns >= 58 * NS_PER_S);
	for (size_t i = 1; i < c.slices.n; i++)
		assert_int_equal(c.slices.v[i].from_ns, c.slices.v[i - 1].to_ns);
	assert_int_equal(c.samples, s.crew.samples);
	assert_int_equal(c.weight_ns, s.crew.weight_ns);
	assert_true(run_number(r, "SELECT sum(samples) FROM stack_slice") ==
		    (double)s.crew.samples);
	copy_done(&c);
	record_close(r);
	run_end(&s);
}

/* Beyond max_bytes the oldest go, of stacks as well; places and stacks stay. */
static void test_oldest_go(void **state)
{
	struct record_options o = { .max_bytes = 1 << 20, .keep_raw_ns = 3600 * NS_PER_S };
	struct record_health health;
	struct copy c = { 0 };
	struct record *r;
	struct window w;
	struct set_up s;

	(void)state;
	run_begin(&s, 10, &o);
	for (int i = 0; i < 900; i++)
		run_second(&s);
	record_health(s.writer, &health);
	assert_int_equal(health.lost_slices, 0);
	run_finish(&s);
	r = run_open(s.path);
	assert_true(record_bytes(r) < 1300 << 10);
	w = record_window(r, 0, 0);
	assert_int_equal(window_stacks(&w, copy_add, &c), 0);
	assert_true(c.slices.v[0].from_ns > START + 60 * NS_PER_S);
	assert_int_equal(c.slices.v[c.slices.n - 1].to_ns, START + 900 * NS_PER_S);
	assert_same_book(window_book(&w), &s.crew.book);
	copy_done(&c);
	record_close(r);
	run_end(&s);
}

/* Slices that overlap, come out of order, are empty or no stretch of time at all. */
static void test_odd_slices(void **state)
{
	static const int64_t spans[][2] = { { 0, 1000 },    { 900, 2000 },  { 2000, 2000 },
					    { 4000, 3000 }, { 3000, 4000 }, { 500, 4500 },
					    { 5000, 6000 } };
	int64_t last_ns = INT64_MIN;
	struct copy c = { 0 };
	struct record *r;
	struct window w;
	struct set_up s;

	(void)state;
	run_begin(&s, 1, NULL);
	for (size_t i = 0; i < sizeof(spans) / sizeof(spans[0]); i++) {
		run_frame(&s);
		s.frame.stacks_from_ns = START + spans[i][0] * NS_PER_MS;
		s.frame.stacks_to_ns = START + spans[i][1] * NS_PER_MS;
		if (i == 4)
			s.frame.stacks.n = 0;
		assert_int_equal(record_frame(s.writer, &s.frame), 0);
	}
	run_finish(&s);
	r = run_open(s.path);
	w = record_window(r, 0, 0);
	assert_int_equal(window_stacks(&w, copy_add, &c), 0);
	assert_int_equal(c.slices.n, 5);
	assert_int_equal(c.slices.v[0].to_ns, START + NS_PER_S);
	/* Each blob by itself is in order; blobs go by their start. */
	for (size_t i = 0; i < c.slices.n; i++) {
		assert_true(c.slices.v[i].to_ns > c.slices.v[i].from_ns);
		last_ns = c.slices.v[i].to_ns > last_ns ? c.slices.v[i].to_ns : last_ns;
	}
	assert_int_equal(last_ns, START + 6 * NS_PER_S);
	assert_string_equal(record_remark(r), "");
	copy_done(&c);
	record_close(r);
	run_end(&s);
}

static void limit_files(rlim_t bytes)
{
	struct rlimit l;

	getrlimit(RLIMIT_FSIZE, &l);
	l.rlim_cur = bytes;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &l), 0);
}

/* A disk that is full for some minutes: slices are lost, the oldest first and counted, but no place and
 * no stack told meanwhile; then it goes on. */
static void test_full_disk(void **state)
{
	struct record_health health;
	struct copy c = { 0 };
	struct record *r;
	struct window w;
	struct set_up s;

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	run_begin(&s, 2, NULL);
	limit_files(64 << 10);
	for (int i = 0; i < 300; i++) {
		run_frame(&s);
		(void)record_frame(s.writer, &s.frame);
	}
	record_health(s.writer, &health);
	assert_true(health.error < 0);
	assert_true(health.lost_slices > 100 && health.lost_slices < 300);
	limit_files(RLIM_INFINITY);
	for (int i = 0; i < 10; i++)
		run_second(&s);
	run_finish(&s);
	r = run_open(s.path);
	w = record_window(r, 0, 0);
	assert_int_equal(window_stacks(&w, copy_add, &c), 0);
	assert_int_equal(c.slices.n + health.lost_slices, 310);
	assert_int_equal(c.slices.v[c.slices.n - 1].to_ns, s.t_ns);
	assert_same_book(window_book(&w), &s.crew.book);
	copy_done(&c);
	record_close(r);
	run_end(&s);
}

static double hour_of(const struct record_options *o)
{
	struct record *r;
	struct set_up s;
	double bytes;

	run_begin(&s, 10, o);
	for (int i = 0; i < 3600; i++)
		run_second(&s);
	run_finish(&s);
	r = run_open(s.path);
	bytes = (double)record_bytes(r);
	print_message("an hour of %u processes: %.2f MB (slices %.2f MB, %u places, %u stacks)\n",
		      s.crew.processes, bytes / 1e6,
		      run_number(r, "SELECT sum(length(data)) FROM stack_slice") / 1e6,
		      (unsigned)s.crew.book.places.n, (unsigned)s.crew.book.nodes.n);
	assert_true(run_number(r, "SELECT sum(samples) FROM stack_slice") ==
		    (double)s.crew.samples);
	record_close(r);
	run_end(&s);
	return bytes;
}

/* An hour at 50 Hz with ten processes, places and stacks in it: as it is kept, and if every second of
 * it were (as around events). */
static void test_size(void **state)
{
	struct record_options all = { .keep_raw_ns = 7200 * NS_PER_S };

	(void)state;
	assert_true(hour_of(NULL) < 20e6);
	assert_true(hour_of(&all) < 20e6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_file_is_as_history),
		cmocka_unit_test(test_interrupted),
		cmocka_unit_test(test_ranges),
		cmocka_unit_test(test_refresh),
		cmocka_unit_test(test_thin),
		cmocka_unit_test(test_oldest_go),
		cmocka_unit_test(test_odd_slices),
		cmocka_unit_test(test_full_disk),
		cmocka_unit_test(test_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

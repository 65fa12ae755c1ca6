/* SPDX-License-Identifier: MIT
 *
 * What a writer does with what it is given: files it may not have, frames out of order, text that is
 * none, noise, and the past.
 */
#include "../unit.h"

#include "base/clock.h"
#include "base/err.h"
#include "record/reader.h"
#include "record/writer.h"
#include "world.h"

#include <errno.h>
#include <math.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define TICK (100 * NS_PER_MS)

static struct record *open_record(const char *path)
{
	struct record *r = NULL;
	struct err e = { 0 };

	if (record_open(path, &r, &e) < 0)
		print_error("%s\n", e.text);
	assert_non_null(r);
	return r;
}

static struct record_writer *create(const char *path, const struct world *w,
				    const struct record_options *o)
{
	struct record_writer *writer = NULL;
	struct run_info run;
	struct err e = { 0 };

	world_run(w, &run);
	if (record_create(path, &run, o, &writer, &e) < 0)
		print_error("%s\n", e.text);
	run_info_done(&run);
	assert_non_null(writer);
	return writer;
}

static void test_create_refuses(void **state)
{
	char path[256];
	struct world w;
	struct record_writer *writer;
	struct run_info run;
	struct err e = { 0 };
	struct stat st;

	(void)state;
	test_path(path, sizeof(path));
	world_init(&w, 9, 2);
	writer = create(path, &w, NULL);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	world_run(&w, &run);
	assert_int_equal(record_create(path, &run, NULL, &writer, &e), -EEXIST);
	assert_non_null(strstr(e.text, "exists"));
	assert_true(e.hint[0]);
	e = (struct err){ 0 };
	assert_int_equal(record_create("/nonexistent/x.spot", &run, NULL, &writer, &e), -ENOENT);
	assert_true(e.text[0]);
	run_info_done(&run);
	record_abandon(writer);
	world_done(&w);
	test_path_rm(path);
}

/* Removed while it is written: said, and survived. */
static void test_deleted_file(void **state)
{
	char path[256];
	struct world w;
	struct record_writer *writer;
	struct record_health h;
	int r = 0;

	(void)state;
	test_path(path, sizeof(path));
	world_init(&w, 10, 4);
	writer = create(path, &w, NULL);
	for (int i = 0; i < 50; i++)
		assert_int_equal(record_frame(writer, world_tick(&w, TICK)), 0);
	assert_int_equal(unlink(path), 0);
	for (int i = 0; i < 700; i++)
		r = record_frame(writer, world_tick(&w, TICK));
	assert_int_equal(r, -ENOENT);
	record_health(writer, &h);
	assert_int_equal(h.error, -ENOENT);
	assert_true(h.lost_ticks >= 680);
	assert_int_equal(record_finish(writer, NULL), -ENOENT);
	world_done(&w);
	test_path_rm(path);
}

static void test_late_frame_is_refused(void **state)
{
	char path[256];
	struct world w;
	struct record_writer *writer;

	(void)state;
	test_path(path, sizeof(path));
	world_init(&w, 11, 4);
	writer = create(path, &w, NULL);
	assert_int_equal(record_frame(writer, world_tick(&w, TICK)), 0);
	assert_int_equal(record_frame(writer, world_tick(&w, 0)), -EINVAL);
	assert_int_equal(record_frame(writer, world_tick(&w, TICK)), 0);
	assert_int_equal(record_finish(writer, NULL), 0);
	world_done(&w);
	test_path_rm(path);
}

/* Text that is no UTF-8 would make every reader of SQL stumble. */
static void test_text_is_utf8(void **state)
{
	char path[256];
	struct world w;
	struct record_writer *writer;
	struct record *r;
	struct window win;
	const struct entity *e;
	struct frame f = { 0 };

	(void)state;
	test_path(path, sizeof(path));
	world_init(&w, 12, 4);
	writer = create(path, &w, NULL);
	frame_begin(&f, w.start_ns + TICK, 0);
	frame_life(&f, &(struct life){ .id = 99, .kind = ENTITY_PROC, .key = 5 }, "a\xff(b)\n",
		   "x\xc3");
	frame_event(&f, EVENT_NOTE, 99, 1, "bad \xfe byte");
	assert_int_equal(record_frame(writer, &f), 0);
	assert_int_equal(record_finish(writer, NULL), 0);
	r = open_record(path);
	win = record_window(r, 0, 0);
	e = entity_find(window_entities(&win), 99);
	assert_non_null(e);
	assert_string_equal(e->name, "a\xef\xbf\xbd(b)\n");
	assert_string_equal(e->detail, "x\xef\xbf\xbd");
	record_close(r);
	frame_done(&f);
	world_done(&w);
	test_path_rm(path);
}

/* The status of a process that nobody waited for: from a file as from memory it is not known, and no zero. */
static void test_unknown_is_not_zero(void **state)
{
	char path[256];
	struct world w;
	struct record_writer *writer;
	struct record *r;
	struct window win;
	const struct window_event *e;
	struct frame f = { 0 };
	size_t n;

	(void)state;
	test_path(path, sizeof(path));
	world_init(&w, 12, 4);
	writer = create(path, &w, NULL);
	frame_begin(&f, w.start_ns + TICK, 0);
	frame_life(&f, &(struct life){ .id = 99, .kind = ENTITY_PROC, .key = 5 }, "x", "");
	frame_event(&f, EVENT_EXIT, 99, (double)NAN, "ended");
	frame_event(&f, EVENT_EXIT, 99, 3, "ended with status 3");
	assert_int_equal(record_frame(writer, &f), 0);
	assert_int_equal(record_finish(writer, NULL), 0);
	r = open_record(path);
	win = record_window(r, 0, 0);
	e = win.ops->events(win.src, &n);
	assert_int_equal(n, 2);
	assert_true(isnan(e[0].value));
	assert_true(e[1].value == 3);
	record_close(r);
	frame_done(&f);
	world_done(&w);
	test_path_rm(path);
}

static int64_t number(struct record *r, const char *sql)
{
	sqlite3_stmt *s;
	int64_t v;

	assert_int_equal(sqlite3_prepare_v2(record_db(r), sql, -1, &s, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(s), SQLITE_ROW);
	v = sqlite3_column_int64(s, 0);
	sqlite3_finalize(s);
	return v;
}

/* Old minutes are thinned, but for those around an event that is worth a close look. */
static void test_raw_stays_around_events(void **state)
{
	struct record_options o = { .keep_raw_ns = 60 * NS_PER_S };
	char path[256];
	struct world w;
	struct record_writer *writer;
	struct record *r;

	(void)state;
	test_path(path, sizeof(path));
	world_init(&w, 14, 4);
	w.quiet = true; /* only exits, which do not count */
	writer = create(path, &w, &o);
	for (int i = 1; i <= 12 * 600; i++) {
		struct frame *f = world_tick(&w, TICK);

		if (i == 4 * 600 + 300)
			frame_event(f, EVENT_OOM_KILL, ID_JOB, 9, "killed");
		if (i == 8 * 600 + 300)
			frame_event(f, EVENT_NOTE, ID_JOB, 0, "nothing special");
		assert_int_equal(record_frame(writer, f), 0);
	}
	assert_int_equal(record_finish(writer, NULL), 0);
	r = open_record(path);
	assert_int_equal(number(r, "SELECT count(*) FROM block WHERE level = 'second'"), 0);
	/* the minute of the event, and those on both sides of it */
	assert_int_equal(number(r,
				"SELECT group_concat(m, '') FROM (SELECT DISTINCT (t0_ns - (SELECT"
				" started_mono_ns FROM run)) / 60000000000 AS m FROM block WHERE"
				" level = 'minute' AND grp = 'host' AND m < 10 ORDER BY m)"),
			 345);
	/* one a second, and some more where a counter was reset */
	assert_in_range(
	    number(r, "SELECT max(ticks) FROM block WHERE level = 'thin' AND grp = 'host'"), 60,
	    90);
	assert_int_equal(number(r, "SELECT min(ticks) >= 599 FROM block WHERE level = 'minute' AND"
				   " grp = 'host' AND t0_ns < (SELECT ended_mono_ns FROM run) -"
				   " 60000000000"),
			 1);
	record_close(r);
	world_done(&w);
	test_path_rm(path);
}

static bool take_sample(const struct record_sample *s, void *arg)
{
	*(struct record_sample *)arg = *s;
	return true;
}

/* Below 10 us there is only noise, and it is left out: of the clock, and of CPU times. */
static void test_resolution(void **state)
{
	char path[256];
	struct world w;
	struct record_writer *writer;
	struct record_sample s = { 0 };
	struct record *r;
	struct frame f = { 0 };

	(void)state;
	test_path(path, sizeof(path));
	world_init(&w, 13, 4);
	writer = create(path, &w, NULL);
	frame_begin(&f, w.start_ns + 123456789, 0);
	frame_put(&f, M_JOB_CPU, ID_JOB, 987654321);
	assert_int_equal(record_frame(writer, &f), 0);
	assert_int_equal(record_finish(writer, NULL), 0);
	r = open_record(path);
	assert_int_equal(record_each_sample(r, take_sample, &s), 0);
	assert_int_equal(s.t_ns, w.start_ns + 123450000);
	assert_true(s.metric == M_JOB_CPU && s.value == 98765 * 1e-5);
	assert_int_equal(record_run(r)->ended_mono_ns, s.t_ns);
	record_close(r);
	frame_done(&f);
	world_done(&w);
	test_path_rm(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_create_refuses),
		cmocka_unit_test(test_deleted_file),
		cmocka_unit_test(test_late_frame_is_refused),
		cmocka_unit_test(test_text_is_utf8),
		cmocka_unit_test(test_unknown_is_not_zero),
		cmocka_unit_test(test_raw_stays_around_events),
		cmocka_unit_test(test_resolution),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

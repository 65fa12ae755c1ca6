/* SPDX-License-Identifier: MIT
 *
 * What the training said, in a file: what goes in comes out, as it does from the live history; while it is
 * written, after the end, after a crash, on a disk that does not take it; and files of before.
 */
#include "../unit.h"

#include "base/clock.h"
#include "base/err.h"
#include "model/history.h"
#include "random.h"
#include "record/reader.h"
#include "record/writer.h"
#include "world.h"

#include <math.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/stat.h>

#define START (5000 * NS_PER_S)
#define TICK  (100 * NS_PER_MS)

enum { TRAINERS = 3 };

struct set_up {
	char path[256];
	struct frame frame;
	struct history *history;
	struct record_writer *writer;
	struct random random;
	int64_t t_ns;
	uint64_t number[TRAINERS];
};

static void set_up(struct set_up *s, uint64_t seed)
{
	struct run_info run = { .started_mono_ns = START,
				.started_wall_ns = NS_PER_S,
				.state = RUN_GOING,
				.rusage_cpu_ns = -1,
				.rusage_maxrss_bytes = -1 };
	struct err e = { 0 };

	*s = (struct set_up){ .t_ns = START };
	s->random.state = seed;
	test_path(s->path, sizeof(s->path));
	snprintf(run.id, sizeof(run.id), "test");
	s->history = history_new(&run, 1000);
	assert_non_null(s->history);
	assert_int_equal(record_create(s->path, &run, NULL, &s->writer, &e), 0);
}

static void tear_down(struct set_up *s)
{
	frame_done(&s->frame);
	history_free(s->history);
	record_abandon(s->writer);
	test_path_rm(s->path);
}

static void finish(struct set_up *s)
{
	assert_int_equal(record_finish(s->writer, NULL), 0);
	s->writer = NULL;
}

static void say(struct set_up *s, unsigned who, enum mark_type type, int64_t t_ns, uint64_t number,
		double value, const char *name)
{
	frame_mark(&s->frame,
		   &(struct frame_mark){ .t_ns = t_ns,
					 .type = type,
					 .entity = 20 + who,
					 .rank = who ? (int32_t)who : -1,
					 .number = number,
					 .value = value },
		   name);
}

static void born(struct set_up *s)
{
	for (unsigned who = 0; who < TRAINERS; who++)
		frame_life(&s->frame,
			   &(struct life){ .change = LIFE_BORN,
					   .id = 20 + who,
					   .kind = ENTITY_PROC,
					   .key = 4000 + who,
					   .start_ns = START },
			   "python3", "train.py");
}

/* Any mark whatever, in order of time for each process. */
static void chatter(struct set_up *s, unsigned who, int64_t from_ns, unsigned n)
{
	static const char *const names[] = { "evaluate", "forward", "\xff not UTF-8", "loss2", "" };
	const char *name = names[random_below(&s->random, 5)];

	for (unsigned i = 0; i < n; i++) {
		int64_t t = from_ns + (int64_t)i * (TICK / (int64_t)n);
		double value = (double)random_below(&s->random, 1000) / 7;

		switch (random_below(&s->random, 12)) {
		case 0:
			say(s, who, SAID_PHASE_BEGIN, t, 0, 0, name);
			break;
		case 1:
			say(s, who, SAID_PHASE_END, t, 0, 0, name);
			break;
		case 2:
			say(s, who, SAID_SCALAR, t, 0, value, name);
			break;
		case 3:
			say(s, who, SAID_DATA_WAIT, t, 0, value / 1e6, NULL);
			break;
		case 4:
			say(s, who, SAID_MICRO_STEP, t, 0, 0, NULL);
			break;
		case 5:
			if (!random_below(&s->random, 20))
				say(s, who, SAID_LOST, t, 3, 0, NULL);
			break;
		case 6:
			say(s, who, SAID_SETTING, t, 0, value, name);
			break;
		case 7:
			say(s, who, SAID_EPOCH, t, random_below(&s->random, 9), 0, NULL);
			break;
		case 8:
			say(s, who, SAID_SOURCE, t, 0, 0, who ? "torch" : "api");
			break;
		default:
			say(s, who, SAID_STEP, t, ++s->number[who],
			    random_below(&s->random, 3) ? value : NAN, NULL);
		}
	}
}

static void tick(struct set_up *s, unsigned marks)
{
	frame_begin(&s->frame, s->t_ns + TICK, 0);
	if (s->t_ns == START)
		born(s);
	for (unsigned who = 0; who < TRAINERS && marks; who++)
		chatter(s, who, s->t_ns, marks);
	s->t_ns += TICK;
}

static void both(struct set_up *s)
{
	assert_int_equal(history_frame(s->history, &s->frame), 0);
	assert_int_equal(record_frame(s->writer, &s->frame), 0);
}

static struct record *reopen(const char *path)
{
	struct record *r = NULL;
	struct err e = { 0 };

	assert_int_equal(record_open(path, &r, &e), 0);
	return r;
}

static bool same(double a, double b)
{
	return a == b || (isnan(a) && isnan(b));
}

/* Invalid bytes are replaced in a file, as SQL wants it. */
static bool same_name(const char *file, const char *live)
{
	return strcmp(file, live) == 0 || strchr(live, '\xff');
}

static void assert_same_scalars(const struct window_scalar *a, size_t n,
				const struct window_scalar *b, size_t m, bool steps)
{
	assert_int_equal(n, m);
	for (size_t i = 0; i < n; i++) {
		assert_true(same_name(a[i].name, b[i].name));
		assert_true(a[i].entity == b[i].entity && a[i].rank == b[i].rank);
		assert_true(a[i].t_ns == b[i].t_ns && same(a[i].value, b[i].value));
		assert_true(!steps || a[i].step == b[i].step);
	}
}

/* The number of steps. */
static size_t assert_same_as_history(struct set_up *s, struct record *r)
{
	struct window f = record_window(r, 0, 0), h = history_window(s->history, 0);
	size_t n, m;
	const struct window_step *a = f.ops->steps(f.src, &n), *b = h.ops->steps(h.src, &m);
	const struct window_phase *p, *q;
	const struct window_scalar *x, *y;
	size_t steps = n;

	assert_int_equal(n, m);
	for (size_t i = 0; i < n; i++) {
		assert_true(a[i].rank == b[i].rank && a[i].entity == b[i].entity);
		assert_true(a[i].number == b[i].number && a[i].micro == b[i].micro);
		assert_true(a[i].begin_ns == b[i].begin_ns && a[i].end_ns == b[i].end_ns);
		assert_true(same(a[i].loss, b[i].loss) && same(a[i].data_wait, b[i].data_wait));
	}
	p = f.ops->phases(f.src, &n);
	q = h.ops->phases(h.src, &m);
	assert_int_equal(n, m);
	for (size_t i = 0; i < n; i++) {
		assert_true(same_name(p[i].name, q[i].name) && p[i].entity == q[i].entity);
		assert_true(p[i].begin_ns == q[i].begin_ns && p[i].end_ns == q[i].end_ns);
	}
	x = f.ops->scalars(f.src, &n);
	y = h.ops->scalars(h.src, &m);
	assert_same_scalars(x, n, y, m, true);
	x = f.ops->settings(f.src, &n);
	y = h.ops->settings(h.src, &m);
	assert_same_scalars(x, n, y, m, false);
	assert_string_equal(f.ops->step_source(f.src), h.ops->step_source(h.src));
	return steps;
}

static double number(struct record *r, const char *sql)
{
	sqlite3_stmt *s = NULL;
	double v;

	assert_int_equal(sqlite3_prepare_v2(record_db(r), sql, -1, &s, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(s), SQLITE_ROW);
	v = sqlite3_column_double(s, 0);
	sqlite3_finalize(s);
	return v;
}

static void gone(struct set_up *s, unsigned who)
{
	frame_life(&s->frame,
		   &(struct life){ .change = LIFE_GONE, .id = 20 + who, .kind = ENTITY_PROC },
		   "python3", NULL);
}

static void test_as_history(void **state)
{
	struct record *r;
	struct set_up s;

	(void)state;
	set_up(&s, 1);
	for (int i = 0; i < 300; i++) {
		tick(&s, 5);
		both(&s);
	}
	record_flush(s.writer);
	r = reopen(s.path);
	assert_true(assert_same_as_history(&s, r) > 500);
	/* A live file that grows. */
	for (int i = 0; i < 30; i++) {
		tick(&s, 5);
		if (i == 29)
			gone(&s, 1);
		both(&s);
	}
	record_flush(s.writer);
	assert_int_equal(record_refresh(r), 0);
	assert_same_as_history(&s, r);
	record_close(r);
	finish(&s);
	r = reopen(s.path);
	assert_same_as_history(&s, r);
	/* What was open when its process ended, ended with it. */
	assert_true(number(r, "SELECT count(*) FROM mark WHERE end_ns IS NULL AND entity = 21") >
		    0);
	assert_true(number(r, "SELECT count(*) FROM phases WHERE t_end IS NULL AND entity = 21") ==
		    0);
	record_close(r);
	tear_down(&s);
}

static void test_interrupted(void **state)
{
	struct record *r;
	struct set_up s;
	sqlite3 *db;

	(void)state;
	set_up(&s, 2);
	for (int i = 0; i < 50; i++) {
		tick(&s, 5);
		both(&s);
	}
	record_flush(s.writer);
	record_abandon(s.writer);
	s.writer = NULL;
	assert_int_equal(sqlite3_open(s.path, &db), SQLITE_OK);
	sqlite3_exec(db, "UPDATE run SET recorder_pid = 0", NULL, NULL, NULL);
	sqlite3_close(db);
	r = reopen(s.path);
	assert_int_equal(record_run(r)->state, RUN_INTERRUPTED);
	assert_true(number(r, "SELECT count(*) FROM step") > 50);
	assert_true(number(r, "SELECT count(*) FROM phases WHERE t_end IS NULL") == 0);
	record_close(r);
	tear_down(&s);
}

static void test_views(void **state)
{
	struct record *r;
	struct set_up s;

	(void)state;
	set_up(&s, 3);
	tick(&s, 0);
	both(&s);
	tick(&s, 0);
	say(&s, 1, SAID_SOURCE, s.t_ns - TICK, 0, 0, "torch");
	say(&s, 1, SAID_DATA_WAIT, s.t_ns - TICK + 10 * NS_PER_MS, 0, 0.004, NULL);
	say(&s, 1, SAID_STEP, s.t_ns - TICK + 50 * NS_PER_MS, 9, 0.5, NULL);
	say(&s, 1, SAID_SCALAR, s.t_ns - TICK + 51 * NS_PER_MS, 0, 0.75, "accuracy");
	say(&s, 1, SAID_STEP, s.t_ns - TICK + 80 * NS_PER_MS, 10, NAN, NULL);
	say(&s, 1, SAID_PHASE_BEGIN, s.t_ns - TICK + 81 * NS_PER_MS, 0, 0, "evaluate");
	say(&s, 1, SAID_PHASE_END, s.t_ns - TICK + 91 * NS_PER_MS, 0, 0, "evaluate");
	both(&s);
	finish(&s);
	r = reopen(s.path);
	assert_true(near(number(r, "SELECT seconds FROM steps WHERE step = 9"), 0.044, 1e-9));
	assert_true(near(number(r, "SELECT t FROM steps WHERE step = 9"), 0.106, 1e-9));
	assert_true(near(number(r, "SELECT data_wait FROM steps WHERE step = 9"), 0.004, 1e-9));
	assert_true(number(r, "SELECT loss FROM steps WHERE step = 9 AND rank = 1 AND pid = 4001"
			      " AND source = 'torch'") == 0.5);
	assert_true(number(r, "SELECT loss IS NULL FROM steps WHERE step = 10") == 1);
	assert_true(number(r, "SELECT value FROM scalars WHERE name = 'accuracy' AND step = 9") ==
		    0.75);
	assert_true(
	    near(number(r, "SELECT seconds FROM phases WHERE name = 'evaluate'"), 0.01, 1e-9));
	record_close(r);
	tear_down(&s);
}

/* Of before 1.2, and of before that: nothing was said. */
static void test_older(void **state)
{
	struct record *r;
	struct window w;
	struct set_up s;
	sqlite3 *db;
	size_t n = 1;

	(void)state;
	set_up(&s, 4);
	tick(&s, 5);
	both(&s);
	finish(&s);
	assert_int_equal(sqlite3_open(s.path, &db), SQLITE_OK);
	assert_int_equal(
	    sqlite3_exec(db,
			 "DROP VIEW steps; DROP VIEW phases; DROP VIEW scalars; DROP VIEW settings;"
			 "DROP TABLE step; DROP TABLE mark; DROP TABLE scalar; DROP TABLE setting;"
			 "DROP TABLE trainer; CREATE TABLE step (rank INTEGER, n INTEGER, begin_ns"
			 " INTEGER, end_ns INTEGER, source TEXT); PRAGMA user_version = 1001",
			 NULL, NULL, NULL),
	    SQLITE_OK);
	sqlite3_close(db);
	r = reopen(s.path);
	w = record_window(r, 0, 0);
	w.ops->steps(w.src, &n);
	assert_int_equal(n, 0);
	w.ops->phases(w.src, &n);
	assert_int_equal(n, 0);
	w.ops->scalars(w.src, &n);
	assert_int_equal(n, 0);
	assert_null(w.ops->step_source(w.src));
	record_close(r);
	tear_down(&s);
}

/* Rows that make no sense are not shown, or shown as what they can be. */
static void test_hostile(void **state)
{
	struct record *r;
	struct window w;
	struct set_up s;
	const struct window_step *x;
	sqlite3 *db;
	size_t n;

	(void)state;
	set_up(&s, 5);
	tick(&s, 0);
	both(&s);
	finish(&s);
	assert_int_equal(sqlite3_open(s.path, &db), SQLITE_OK);
	assert_int_equal(
	    sqlite3_exec(
		db,
		"INSERT INTO step VALUES (-5, -9, 10, 5, 'x', -1, 'text', -7, -1),"
		" (1e30, 9e18, 9223372036854775807, 1, 1, 1, 1, 1, 1),"
		" (2, 3, NULL, 7, NULL, 99999999999, NULL, NULL, 99999999999),"
		" (x'00', 'a', 'b', 8, 'd', 'e', x'ff', 'g', 'h');"
		"INSERT INTO mark VALUES (5, 1, 99, NULL, 1), (NULL, 'x', 'y', x'00ff', 9);"
		"INSERT INTO scalar VALUES ('x', 'y', -8, NULL, 'text', NULL);"
		"INSERT INTO trainer VALUES (1, 2, NULL, NULL)",
		NULL, NULL, NULL),
	    SQLITE_OK);
	sqlite3_close(db);
	r = reopen(s.path);
	w = record_window(r, 0, 0);
	x = w.ops->steps(w.src, &n);
	assert_int_equal(n, 3);
	assert_true(x[0].begin_ns == 5 && x[0].end_ns == 5 && x[0].rank == -1 && !x[0].number);
	assert_true(isnan(x[0].data_wait) && x[0].micro == 0 && x[0].entity == 0);
	assert_true(x[1].begin_ns == 7 && x[1].entity == 0 && isnan(x[1].loss));
	w.ops->phases(w.src, &n);
	assert_int_equal(n, 2);
	w.ops->scalars(w.src, &n);
	assert_int_equal(n, 1);
	record_close(r);
	tear_down(&s);
}

/* While the disk takes nothing: marks wait, up to a bound, and are counted beyond it; births find room. */
static void test_full_disk(void **state)
{
	struct rlimit before, limit;
	struct record_health health;
	struct record *r;
	struct set_up s;

	(void)state;
	set_up(&s, 6);
	tick(&s, 5);
	both(&s);
	record_flush(s.writer);
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &before);
	limit = before;
	limit.rlim_cur = 4096;
	setrlimit(RLIMIT_FSIZE, &limit);
	for (int i = 0; i < 80; i++) {
		tick(&s, 600);
		(void)record_frame(s.writer, &s.frame);
	}
	record_health(s.writer, &health);
	setrlimit(RLIMIT_FSIZE, &before);
	assert_true(health.error < 0);
	assert_in_range(health.lost_marks, 1000, 80 * 600 * TRAINERS);
	tick(&s, 0);
	frame_life(&s.frame,
		   &(struct life){ .change = LIFE_BORN, .id = 77, .kind = ENTITY_PROC, .key = 77 },
		   "late", NULL);
	(void)record_frame(s.writer, &s.frame);
	assert_int_equal(record_flush(s.writer), 0);
	finish(&s);
	r = reopen(s.path);
	assert_true(number(r, "SELECT count(*) FROM process WHERE name = 'late'") == 1);
	assert_true(number(r, "SELECT count(*) FROM event WHERE kind = 'write_error'"
			      " AND text LIKE '%marks of the program lost'") == 1);
	assert_true(number(r, "SELECT count(*) FROM step") > 1000);
	record_close(r);
	tear_down(&s);
}

/* 1000 steps a second with loss and data wait. */
static void test_cost(void **state)
{
	enum { SECONDS = 60 };
	int64_t before = clock_thread_cpu_ns(), spent;
	struct set_up s;
	struct stat st;
	double bytes;

	(void)state;
	set_up(&s, 7);
	for (int i = 0; i < SECONDS * 10; i++) {
		tick(&s, 0);
		for (int k = 0; k < 100; k++) {
			int64_t t = s.t_ns - TICK + k * NS_PER_MS;

			say(&s, 0, SAID_DATA_WAIT, t, 0, 0.0002, NULL);
			say(&s, 0, SAID_STEP, t, (uint64_t)(i * 100 + k), 1.0 / (k + 3), NULL);
		}
		assert_int_equal(record_frame(s.writer, &s.frame), 0);
	}
	spent = clock_thread_cpu_ns() - before;
	finish(&s);
	assert_int_equal(stat(s.path, &st), 0);
	bytes = (double)st.st_size / (SECONDS * 1000);
	print_message("%.0f bytes a step, %.2f ms a second\n", bytes,
		      (double)spent / SECONDS / NS_PER_MS);
	assert_true(bytes < 60);
	/* Ten times what it takes: machines are noisy. */
	assert_true(spent < (int64_t)SECONDS * 60 * NS_PER_MS);
	tear_down(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_as_history), cmocka_unit_test(test_interrupted),
		cmocka_unit_test(test_views),      cmocka_unit_test(test_older),
		cmocka_unit_test(test_hostile),    cmocka_unit_test(test_full_disk),
		cmocka_unit_test(test_cost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

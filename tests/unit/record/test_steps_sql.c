/* SPDX-License-Identifier: MIT
 *
 * What a step used, in SQL: in the view `steps` of a reader and of the loadable extension, against what was
 * written; absent for a step that is too short; and the file itself is as it was.
 */
#include "../unit.h"

#include "base/clock.h"
#include "base/err.h"
#include "model/step_usage.h"
#include "record/reader.h"
#include "record/writer.h"
#include "world.h"

#include <math.h>
#include <sqlite3.h>

#define START (5000 * NS_PER_S)

enum { TRAINER = 20, GPU = 50, ON_GPU = 60, SECONDS = 20 };

static void born(struct frame *f, uint32_t id, uint32_t parent, enum entity_kind kind, int64_t key)
{
	frame_life(f,
		   &(struct life){
		       .change = LIFE_BORN, .id = id, .parent = parent, .kind = kind, .key = key },
		   "x", "");
}

static void say_step(struct frame *f, double t, uint64_t number)
{
	frame_mark(f,
		   &(struct frame_mark){ .t_ns = START + (int64_t)(t * 1e9),
					 .type = SAID_STEP,
					 .entity = TRAINER,
					 .rank = -1,
					 .number = number,
					 .value = 1 / (double)number },
		   NULL);
}

/* 20 s at 10 Hz: the job on 1 core, from 10 s on 3; memory 100 MB, then 300; GPU busy a quarter at 60 W,
 * then three quarters at 200 W. Steps of 2 s, the last of 0.1 s. */
static void write_run(const char *path)
{
	struct run_info run = { .started_mono_ns = START,
				.hz = 10,
				.state = RUN_GOING,
				.rusage_cpu_ns = -1,
				.rusage_maxrss_bytes = -1 };
	struct record_writer *w;
	struct frame f = { 0 };
	struct err e = { 0 };

	snprintf(run.id, sizeof(run.id), "test");
	assert_int_equal(record_create(path, &run, NULL, &w, &e), 0);
	for (int i = 0; i <= SECONDS * 10; i++) {
		double t = i / 10.0;
		bool late = t > 10;

		frame_begin(&f, START + i * 100 * NS_PER_MS, 0);
		if (!i) {
			born(&f, ID_HOST, 0, ENTITY_HOST, 0);
			born(&f, ID_JOB, ID_HOST, ENTITY_JOB, 0);
			born(&f, ID_SELF, ID_HOST, ENTITY_SELF, 0);
			born(&f, TRAINER, ID_JOB, ENTITY_PROC, 100);
			born(&f, GPU, ID_HOST, ENTITY_GPU, 0);
			born(&f, ON_GPU, GPU, ENTITY_GPU_PROC, 100);
		}
		frame_put(&f, M_SELF_TICKS, ID_SELF, i + 1);
		frame_put(&f, M_JOB_CPU, ID_JOB, llround((t + fmax(0, t - 10) * 2) * 1e9));
		frame_put(&f, M_JOB_RSS, ID_JOB, late ? 300000 : 100000);
		frame_put(&f, M_GPU_BUSY, GPU,
			  llround((late ? 0.75 : 0.25) / metrics[M_GPU_BUSY].scale));
		frame_put(&f, M_GPU_MEM_USED, GPU, llround(8e9 / metrics[M_GPU_MEM_USED].scale));
		frame_put(&f, M_GPU_POWER, GPU,
			  llround((late ? 200 : 60) / metrics[M_GPU_POWER].scale));
		if (i && i % 20 == 0 && i < SECONDS * 10)
			say_step(&f, t, (uint64_t)i / 20);
		if (i == 181)
			say_step(&f, t, 10);
		assert_int_equal(record_frame(w, &f), 0);
	}
	assert_int_equal(record_finish(w, NULL), 0);
	frame_done(&f);
}

struct opened {
	char path[256];
	struct record *r;
};

static int set_up(void **state)
{
	struct opened *o = calloc(1, sizeof(*o));
	struct err e = { 0 };

	assert_non_null(o);
	test_path(o->path, sizeof(o->path));
	write_run(o->path);
	assert_int_equal(record_open(o->path, &o->r, &e), 0);
	*state = o;
	return 0;
}

static int tear_down(void **state)
{
	struct opened *o = *state;

	record_close(o->r);
	test_path_rm(o->path);
	free(o);
	return 0;
}

/* NAN: NULL, or no row. */
static double number(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *s;
	double v = NAN;

	if (sqlite3_prepare_v2(db, sql, -1, &s, NULL) != SQLITE_OK)
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
	if (sqlite3_step(s) == SQLITE_ROW && sqlite3_column_type(s, 0) != SQLITE_NULL)
		v = sqlite3_column_double(s, 0);
	sqlite3_finalize(s);
	return v;
}

static void is_near(double a, double b)
{
	if (!(fabs(a - b) <= 1e-6 * fmax(1, fabs(b))))
		fail_msg("%.9g is not %.9g", a, b);
}

static void check(sqlite3 *db)
{
	is_near(number(db, "SELECT count(*) FROM steps"), 10);
	is_near(number(db, "SELECT cpu_cores FROM steps WHERE step = 3"), 1);
	is_near(number(db, "SELECT cpu_cores FROM steps WHERE step = 8"), 3);
	is_near(number(db, "SELECT memory FROM steps WHERE step = 3"), 100000 * 1024.0);
	is_near(number(db, "SELECT memory FROM steps WHERE step = 8"), 300000 * 1024.0);
	is_near(number(db, "SELECT gpu_busy FROM steps WHERE step = 3"), 0.25);
	is_near(number(db, "SELECT gpu_memory FROM steps WHERE step = 8"), 8e9);
	is_near(number(db, "SELECT gpu_power FROM steps WHERE step = 8"), 200);
	/* the columns of before are where they were */
	is_near(number(db, "SELECT seconds FROM steps WHERE step = 8 AND pid = 100"), 2);
	is_near(number(db, "SELECT loss FROM steps ORDER BY t_end DESC LIMIT 1"), 0.1);
	is_near(number(db, "SELECT sum(a.seconds) FROM steps a JOIN steps b ON b.step = a.step + 1"
			   " WHERE b.cpu_cores > 2"),
		8);
	/* what is shorter than two samples has no figures of its own; the first has no beginning */
	assert_true(isnan(number(db, "SELECT cpu_cores FROM steps WHERE step = 10")));
	assert_true(isnan(number(db, "SELECT gpu_power FROM steps WHERE step = 10")));
	assert_true(isnan(number(db, "SELECT cpu_cores FROM steps WHERE step = 1")));
}

static void by_reader(void **state)
{
	struct opened *o = *state;
	sqlite3 *db = record_db(o->r);
	struct window w = record_window(o->r, 0, 0);
	struct step_usage u;
	size_t n;
	const struct window_step *s = w.ops->steps(w.src, &n);

	check(db);
	/* one implementation: the exports say the same */
	assert_int_equal(n, 10);
	assert_true(step_usage(&w, &s[4], &u));
	is_near(number(db, "SELECT cpu_cores FROM step_usage WHERE step = 5"), u.cores);
	is_near(number(db, "SELECT gpu_busy FROM step_usage WHERE step = 5"), u.gpu_busy);
	/* nothing of it is in the file, and its own view is untouched */
	is_near(number(db, "SELECT count(*) FROM main.sqlite_schema WHERE sql LIKE '%step_usage%'"),
		0);
	is_near(number(db, "SELECT count(*) FROM main.steps"), 10);
}

static void by_extension(void **state)
{
	struct opened *o = *state;
	const char *extension = getenv("SPOTTER_SQLITE");
	char *error = NULL;
	sqlite3 *db;

	if (!extension) {
		print_message("skipped: SPOTTER_SQLITE does not name the extension\n");
		skip();
	}
	assert_int_equal(sqlite3_open_v2(o->path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
	sqlite3_enable_load_extension(db, 1);
	if (sqlite3_load_extension(db, extension, NULL, &error) != SQLITE_OK)
		fail_msg("%s", error);
	check(db);
	assert_int_equal(sqlite3_close(db), SQLITE_OK); /* nothing is left open */
}

/* Any other database keeps its own `steps`, and is told what it lacks. */
static void of_no_record(void **state)
{
	const char *extension = getenv("SPOTTER_SQLITE");
	sqlite3_stmt *s = NULL;
	sqlite3 *db;

	(void)state;
	if (!extension)
		skip();
	assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "CREATE TABLE steps (x)", NULL, NULL, NULL), SQLITE_OK);
	sqlite3_enable_load_extension(db, 1);
	assert_int_equal(sqlite3_load_extension(db, extension, NULL, NULL), SQLITE_OK);
	is_near(number(db, "SELECT count(x) FROM steps"), 0);
	assert_int_equal(sqlite3_prepare_v2(db, "SELECT * FROM step_usage", -1, &s, NULL),
			 SQLITE_OK);
	assert_int_not_equal(sqlite3_step(s), SQLITE_ROW);
	assert_non_null(strstr(sqlite3_errmsg(db), "no steps of a Spotter recording"));
	sqlite3_finalize(s);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(by_reader, set_up, tear_down),
		cmocka_unit_test_setup_teardown(by_extension, set_up, tear_down),
		cmocka_unit_test(of_no_record),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

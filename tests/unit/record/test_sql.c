/* SPDX-License-Identifier: MIT
 *
 * The record through SQL: what a query gives is what went in, whichever way it is narrowed down; and
 * the same through the stock sqlite3 program with the loadable extension.
 */
#include "../unit.h"

#include "base/clock.h"
#include "base/err.h"
#include "record/reader.h"
#include "record/series.h"
#include "record/writer.h"
#include "world.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

struct fixture {
	char path[256];
	struct world w;
	struct record *r;
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct record_options o = { .keep_raw_ns = 3600 * NS_PER_S };
	struct record_writer *writer;
	struct run_info run;
	struct err e = { 0 };

	test_path(f->path, sizeof(f->path));
	world_init(&f->w, 60, 10);
	world_run(&f->w, &run);
	if (record_create(f->path, &run, &o, &writer, &e) < 0)
		return -1;
	for (int i = 0; i < 4000; i++) {
		struct frame *frame = world_tick(&f->w, 100 * NS_PER_MS);

		if (i == 10) {
			frame_stack(frame, &(struct stack_row){ .entity = 20, .count = 5 });
			frame->stacks_from_ns = frame->mono_ns - NS_PER_MS;
			frame->stacks_to_ns = frame->mono_ns;
		}
		record_frame(writer, frame);
	}
	run.state = RUN_ENDED;
	record_set_verdict(writer, "{\"findings\": [{\"cause\": \"cpu_quota\", \"cost\": 0.25}]}");
	if (record_finish(writer, &run) < 0)
		return -1;
	run_info_done(&run);
	*state = f;
	return record_open(f->path, &f->r, &e);
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	record_close(f->r);
	world_done(&f->w);
	test_path_rm(f->path);
	free(f);
	return 0;
}

__attribute__((format(printf, 2, 3))) static double number(struct fixture *f, const char *fmt, ...)
{
	char sql[600];
	sqlite3_stmt *s = NULL;
	double v;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(sql, sizeof(sql), fmt, ap);
	va_end(ap);
	if (sqlite3_prepare_v2(record_db(f->r), sql, -1, &s, NULL) != SQLITE_OK)
		fail_msg("%s: %s", sql, sqlite3_errmsg(record_db(f->r)));
	assert_int_equal(sqlite3_step(s), SQLITE_ROW);
	v = sqlite3_column_double(s, 0);
	sqlite3_finalize(s);
	return v;
}

static void test_samples_by_metric_and_entity(void **state)
{
	struct fixture *f = *state;

	for (size_t i = 0; i < f->w.series.n; i += 7) {
		const struct world_series *s = &f->w.series.v[i];
		enum entity_kind k = metrics[s->metric].entity;
		size_t n = 0;
		double sum = 0, scale = series_scale(s->metric);

		for (size_t j = 0; j < s->v.n; j++) {
			if ((k == ENTITY_PROC || k == ENTITY_THREAD) && j &&
			    s->v.v[j].raw == s->v.v[j - 1].raw)
				continue;
			n++;
			sum += (double)s->v.v[j].raw * scale;
		}
		assert_true(
		    number(f, "SELECT count(*) FROM samples WHERE metric = '%s' AND entity = %u",
			   metrics[s->metric].name, s->entity) == (double)n);
		assert_true(
		    near(number(f,
				"SELECT sum(value) FROM samples WHERE entity = %u AND kind ="
				" '%s' AND metric = '%s'",
				s->entity, entity_kind_name(k), metrics[s->metric].name),
			 sum, 1e-9));
	}
}

static void test_ranges_agree_with_the_whole(void **state)
{
	struct fixture *f = *state;
	double all = number(f, "SELECT count(*) FROM samples");

	assert_true(all > 30000);
	assert_true(number(f, "SELECT count(*) FROM samples WHERE t < 100") +
			number(f, "SELECT count(*) FROM samples WHERE t >= 100") ==
		    all);
	assert_true(number(f, "SELECT count(*) FROM samples WHERE t > 50 AND t <= 60.05") ==
		    number(f, "SELECT count(*) FROM samples WHERE +t > 50 AND +t <= 60.05"));
	assert_true(
	    number(f, "SELECT count(*) FROM samples WHERE t = 50.1 AND metric = 'mem.free'") == 1);
	assert_true(number(f, "SELECT count(*) FROM samples WHERE kind = 'process'") ==
		    number(f, "SELECT count(*) FROM samples WHERE +kind = 'process'"));
	assert_true(
	    number(f, "SELECT count(*) FROM samples WHERE metric IN ('mem.free', 'mem.total')") ==
	    8000);
	assert_true(number(f, "SELECT count(*) FROM samples WHERE metric = 'no.such'") == 0);
	assert_true(number(f, "SELECT count(*) FROM samples WHERE metric = NULL") == 0);
	assert_true(number(f, "SELECT count(*) FROM samples WHERE entity = -1") == 0);
	assert_true(number(f, "SELECT max(t) FROM samples") > 399.9);
	/* joined with plain rows */
	assert_true(
	    number(f, "SELECT count(*) FROM processes p JOIN samples s ON s.entity = p.id WHERE"
		      " s.metric = 'proc.cpu'") ==
	    number(f, "SELECT count(*) FROM samples WHERE metric = 'proc.cpu'"));
	assert_true(number(f, "SELECT count(DISTINCT key) FROM samples WHERE kind = 'process'") ==
		    number(f, "SELECT count(*) FROM process WHERE id IN (SELECT entity FROM samples"
			      " WHERE kind = 'process')"));
	assert_true(number(f,
			   "SELECT name = 'machine' AND key IS NULL AND unit = 'bytes' FROM samples"
			   " WHERE metric = 'mem.free' LIMIT 1") == 1);
}

static void test_rollups_agree_with_samples(void **state)
{
	struct fixture *f = *state;

	assert_true(number(f, "SELECT count(*) FROM rollups WHERE metric = 'mem.free'") == 40);
	assert_true(number(f, "SELECT count(*) FROM rollups r WHERE metric = 'mem.free' AND"
			      " (min > max OR mean < min OR mean > max OR t_end - t <> 10)") == 0);
	assert_true(number(f,
			   "SELECT max(max) - (SELECT max(value) FROM samples WHERE metric ="
			   " 'mem.free' AND t < 400) FROM rollups WHERE metric = 'mem.free'") == 0);
	assert_true(
	    near(number(f, "SELECT sum(growth) FROM rollups WHERE metric = 'job.threads'"), 0, 0));
	/* the growth of a whole bucket is the difference of its ends, unless it was reset */
	assert_true(number(f,
			   "SELECT count(*) FROM (SELECT last - lag(last) OVER (ORDER BY t) AS d,"
			   " growth FROM rollups WHERE metric = 'host.switches') WHERE d >= 0 AND"
			   " abs(d - growth) > 1e-6 AND growth < 0") == 0);
	assert_true(
	    number(f, "SELECT count(*) FROM rollups WHERE kind = 'thread' AND t >= 100 AND t <"
		      " 200") ==
	    number(f, "SELECT count(*) FROM rollups WHERE +kind = 'thread' AND +t >= 100 AND"
		      " +t < 200"));
}

static void test_aggregates(void **state)
{
	struct fixture *f = *state;

	assert_true(number(f, "SELECT median(column1) FROM (VALUES (3), (1), (2), (NULL))") == 2);
	assert_true(number(f, "SELECT median(column1) FROM (VALUES (1), (2))") == 1.5);
	assert_true(
	    number(f, "SELECT percentile(column1, 25) FROM (VALUES (0), (10), (20), (30), (40))") ==
	    10);
	assert_true(number(f, "SELECT percentile(column1, 100) FROM (VALUES (0), (40))") == 40);
	assert_true(number(f, "SELECT median(x) IS NULL FROM (SELECT 1 AS x WHERE 0)") == 1);
	assert_int_not_equal(sqlite3_exec(record_db(f->r), "SELECT percentile(1, 200)", 0, 0, 0),
			     SQLITE_OK);
}

static void test_plain_tables_and_views(void **state)
{
	struct fixture *f = *state;

	assert_true(number(f, "SELECT count(*) FROM events") == (double)f->w.events);
	assert_true(number(f, "SELECT max(t) <= 400 AND min(t) > 0 FROM events") == 1);
	assert_true(number(f, "SELECT json_array_length(argv) FROM run") == 4);
	assert_true(number(f, "SELECT cost FROM finding WHERE cause = 'cpu_quota'") == 0.25);
	assert_true(number(f, "SELECT count(*) FROM threads WHERE pid IS NULL") == 0);
	assert_true(number(f, "SELECT count(*) FROM devices WHERE kind = 'cpu'") == 2);
	assert_true(number(f, "SELECT count(*) FROM gaps WHERE metric = 'psi.cpu.some'") > 0);
	for (int i = 1; i < METRICS; i++)
		assert_true(number(f, "SELECT count(*) FROM metric WHERE name = '%s'",
				   metrics[i].name) == 1);
	/* a reader never writes */
	assert_int_not_equal(sqlite3_exec(record_db(f->r), "DELETE FROM block", 0, 0, 0),
			     SQLITE_OK);
	assert_int_not_equal(
	    sqlite3_exec(record_db(f->r), "INSERT INTO samples VALUES (1)", 0, 0, 0), SQLITE_OK);
}

/* Runs argv and takes its output. -1 when it could not be started. */
static int run_program(char *const *argv, char *out, size_t size)
{
	int pipe_fd[2], status;
	size_t n = 0;
	ssize_t got;
	pid_t pid;

	assert_int_equal(pipe(pipe_fd), 0);
	pid = fork();
	if (pid == 0) {
		dup2(pipe_fd[1], 1);
		close(pipe_fd[0]);
		close(pipe_fd[1]);
		execvp(argv[0], argv);
		_exit(127);
	}
	close(pipe_fd[1]);
	while (n + 1 < size && (got = read(pipe_fd[0], out + n, size - 1 - n)) > 0)
		n += (size_t)got;
	out[n] = '\0';
	close(pipe_fd[0]);
	waitpid(pid, &status, 0);
	return WIFEXITED(status) && WEXITSTATUS(status) != 127 ? WEXITSTATUS(status) : -1;
}

static void test_through_sqlite3(void **state)
{
	struct fixture *f = *state;
	const char *extension = getenv("SPOTTER_SQLITE");
	char load[400], expected[200], out[400];
	char sql[] =
	    "SELECT count(*) + (SELECT sum(samples) FROM stack_samples), round(median(value), 3)"
	    " FROM samples WHERE metric = 'mem.free';";
	char sqlite3_program[] = "sqlite3", batch[] = "-batch", cmd[] = "-cmd";
	char *const argv[] = { sqlite3_program, batch, cmd, load, f->path, sql, NULL };
	int status;

	if (!extension) {
		print_message("skipped: SPOTTER_SQLITE does not name the extension\n");
		skip();
	}
	snprintf(load, sizeof(load), ".load %s", extension);
	status = run_program(argv, out, sizeof(out));
	if (status < 0) {
		print_message("skipped: no sqlite3 program\n");
		skip();
	}
	snprintf(
	    expected, sizeof(expected), "4005|%.16g\n",
	    number(f, "SELECT round(median(value), 3) FROM samples WHERE metric = 'mem.free'"));
	assert_int_equal(status, 0);
	assert_int_equal(strncmp(out, "4005|", 5), 0);
	assert_true(near(strtod(out + 5, NULL), strtod(expected + 5, NULL), 1e-9));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_samples_by_metric_and_entity),
		cmocka_unit_test(test_ranges_agree_with_the_whole),
		cmocka_unit_test(test_rollups_agree_with_samples),
		cmocka_unit_test(test_aggregates),
		cmocka_unit_test(test_plain_tables_and_views),
		cmocka_unit_test(test_through_sqlite3),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}

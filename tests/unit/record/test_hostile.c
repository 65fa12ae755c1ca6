/* SPDX-License-Identifier: MIT
 *
 * Files that are not what they should be: a clear sentence or as much as can be read, never a crash.
 */
#include "../unit.h"

#include "base/clock.h"
#include "base/err.h"
#include "record/follow.h"
#include "record/reader.h"
#include "record/writer.h"
#include "world.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void make_record(const char *path)
{
	struct record_writer *writer;
	struct run_info run;
	struct world w;
	struct err e = { 0 };

	world_init(&w, 30, 6);
	world_run(&w, &run);
	assert_int_equal(record_create(path, &run, NULL, &writer, &e), 0);
	for (int i = 0; i < 700; i++)
		record_frame(writer, world_tick(&w, 100 * NS_PER_MS));
	run.state = RUN_ENDED;
	assert_int_equal(record_finish(writer, &run), 0);
	run_info_done(&run);
	world_done(&w);
}

static void write_file(const char *path, const void *p, size_t n)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, p, n), n);
	close(fd);
}

static void *read_file(const char *path, size_t *n)
{
	int fd = open(path, O_RDONLY);
	struct stat st;
	void *p;

	assert_true(fd >= 0);
	fstat(fd, &st);
	p = malloc((size_t)st.st_size);
	assert_int_equal(read(fd, p, (size_t)st.st_size), st.st_size);
	close(fd);
	*n = (size_t)st.st_size;
	return p;
}

/* Refused with this word in the sentence. */
static void assert_refused(const char *path, int code, const char *word)
{
	struct record *r = NULL;
	struct err e = { 0 };
	int got = record_open(path, &r, &e);

	if (got != code || !strstr(e.text, word))
		fail_msg("expected %d and '%s': %d, '%s'", code, word, got, e.text);
	assert_null(r);
	assert_int_equal(e.code, code);
}

static void run_sql(const char *path, const char *sql)
{
	char *message = NULL;
	sqlite3 *db;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	sqlite3_db_config(db, SQLITE_DBCONFIG_WRITABLE_SCHEMA, 1, NULL);
	sqlite3_exec(db, sql, NULL, NULL, &message);
	if (message)
		fail_msg("%s: %s", sql, message);
	sqlite3_close(db);
}

static void test_refused(void **state)
{
	char path[256], folder[256];

	(void)state;
	test_path(path, sizeof(path));
	assert_refused(path, -ENOENT, "no such file");
	snprintf(folder, sizeof(folder), "%.*s", (int)(strrchr(path, '/') - path), path);
	assert_refused(folder, -EISDIR, "folder");
	write_file(path, "", 0);
	assert_refused(path, -ENODATA, "empty");
	write_file(path, "hello\n", 6);
	assert_refused(path, -EBADMSG, "not a Spotter recording");
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_refused(path, -EINVAL, "not a file");
	unlink(path);
	run_sql(path, "CREATE TABLE t (x)");
	assert_refused(path, -EBADMSG, "not a Spotter recording");
	unlink(path);
	make_record(path);
	run_sql(path, "PRAGMA user_version = 2000");
	assert_refused(path, -EPROTO, "newer");
	run_sql(path, "PRAGMA user_version = 1007");
	{
		struct record *r = NULL;
		struct err e = { 0 };

		assert_int_equal(record_open(path, &r, &e), 0); /* a newer minor one is fine */
		record_close(r);
	}
	run_sql(path, "DROP TABLE kept");
	assert_refused(path, -EBADMSG, "damaged");
	test_path_rm(path);
}

/* As an ordinary user: root may read everything. */
static void test_no_permission(void **state)
{
	char path[256];
	int status;
	pid_t pid;

	(void)state;
	test_path(path, sizeof(path));
	make_record(path);
	chmod(path, 0);
	pid = fork();
	if (pid == 0) {
		struct record *r = NULL;
		struct err e = { 0 };
		int got;

		if (getuid() == 0 && setuid(65534) < 0)
			_exit(3);
		got = record_open(path, &r, &e);
		_exit(got == -EACCES && strstr(e.text, "permission denied") ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WEXITSTATUS(status), 0);
	test_path_rm(path);
}

/* As a user who may read it only: what is said of it, NULL for nothing. */
static void assert_remark(const char *path, const char *remark)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		struct record *r = NULL;
		struct err e = { 0 };

		if (getuid() == 0 && setuid(65534) < 0)
			_exit(3);
		if (record_open(path, &r, &e) < 0)
			_exit(1);
		if (record_run(r)->state != RUN_INTERRUPTED)
			_exit(4);
		if (remark)
			_exit(strstr(record_remark(r), remark) ? 0 : 2);
		_exit(record_remark(r)[0] ? 2 : 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* In a folder that cannot be written, with the log of a dead recorder beside it. */
static void test_read_only_folder(void **state)
{
	char path[256], folder[256], shm[300];
	struct record_writer *writer;
	struct run_info run;
	struct world w;
	struct err e = { 0 };
	int status;
	pid_t pid;

	(void)state;
	test_path(path, sizeof(path));
	snprintf(folder, sizeof(folder), "%.*s", (int)(strrchr(path, '/') - path), path);
	world_init(&w, 31, 6);
	world_run(&w, &run);
	pid = fork();
	if (pid == 0) {
		if (record_create(path, &run, NULL, &writer, &e) < 0)
			_exit(1);
		for (int i = 0; i < 300; i++)
			record_frame(writer, world_tick(&w, 100 * NS_PER_MS));
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	snprintf(shm, sizeof(shm), "%s-shm", path);
	unlink(shm); /* as when the two were copied */
	if (getuid() == 0) {
		char wal[300];

		snprintf(wal, sizeof(wal), "%s-wal", path);
		assert_int_equal(chmod(folder, 0755), 0);
		assert_int_equal(chmod(path, 0644), 0);
		assert_int_equal(chmod(wal, 0644), 0);
	} else {
		assert_int_equal(chmod(folder, 0555), 0);
	}
	assert_remark(path, "left out");
	/* without a log nothing is left out */
	assert_int_equal(chmod(folder, 0755), 0);
	snprintf(shm, sizeof(shm), "%s-wal", path);
	assert_int_equal(unlink(shm), 0);
	if (getuid() != 0)
		assert_int_equal(chmod(folder, 0555), 0);
	assert_remark(path, NULL);
	chmod(folder, 0755);
	run_info_done(&run);
	world_done(&w);
	test_path_rm(path);
}

static bool ignore_sample(const struct record_sample *s, void *arg)
{
	(void)s;
	(void)arg;
	return true;
}

static bool ignore_point(const struct point *p, void *arg)
{
	(void)p;
	(void)arg;
	return true;
}

/* Asks for everything a reader can be asked for. */
static bool use_all(const char *path)
{
	struct record *r = NULL;
	struct err e = { 0 };
	struct window w;
	struct series_stat stat;

	if (record_open(path, &r, &e) < 0) {
		assert_true(e.text[0]);
		return false;
	}
	w = record_window(r, 0, 0);
	for (int m = 1; m < METRICS; m++) {
		window_stat(&w, (enum metric_id)m, ID_HOST, &stat);
		window_stat(&w, (enum metric_id)m, ID_FIRST_FREE + 4, &stat);
	}
	for (int step = 0; step < 3; step++)
		w.ops->each(w.src, M_MEM_FREE, ID_HOST, w.from_ns, w.to_ns,
			    step == 0   ? 0
			    : step == 1 ? 10 * NS_PER_S
					: 300 * NS_PER_S,
			    ignore_point, NULL);
	record_each_sample(r, ignore_sample, NULL);
	sqlite3_exec(record_db(r), "SELECT * FROM samples", NULL, NULL, NULL);
	sqlite3_exec(record_db(r), "SELECT * FROM rollups WHERE t > 1", NULL, NULL, NULL);
	sqlite3_exec(record_db(r), "SELECT * FROM processes, events", NULL, NULL, NULL);
	record_verdict(r);
	record_refresh(r);
	record_close(r);
	return true;
}

static void test_truncated_and_flipped(void **state)
{
	char path[256];
	struct random r = { 40 };
	uint8_t *whole, *bad;
	size_t n;
	int opened = 0;

	(void)state;
	test_path(path, sizeof(path));
	make_record(path);
	whole = read_file(path, &n);
	bad = malloc(n);
	assert_true(use_all(path));
	for (int i = 0; i < 60; i++) {
		write_file(path, whole, random_below(&r, n));
		opened += use_all(path);
	}
	for (int i = 0; i < 150; i++) {
		memcpy(bad, whole, n);
		for (uint64_t k = 0, flips = 1 + random_below(&r, 20); k < flips; k++)
			bad[random_below(&r, n)] ^= (uint8_t)(1u << random_below(&r, 8));
		write_file(path, bad, n);
		opened += use_all(path);
	}
	print_message("%d of 210 damaged files could still be opened\n", opened);
	assert_true(opened > 50);
	free(whole);
	free(bad);
	test_path_rm(path);
}

/* Tables replaced by things that do something, and rows that lie. */
static void test_crafted(void **state)
{
	static const char *const crafts[] = {
		"ALTER TABLE run RENAME TO x; CREATE VIEW run AS WITH RECURSIVE c(n) AS (SELECT 1 "
		"UNION"
		" ALL SELECT n + 1 FROM c) SELECT n FROM c",
		"ALTER TABLE kept RENAME TO x; CREATE TABLE kept (level, grp, from_ns,"
		" y AS (hex(zeroblob(1000))))",
		"UPDATE sqlite_schema SET sql = 'CREATE VIRTUAL TABLE event USING fts5(a)'"
		" WHERE name = 'event'",
	};
	static const char *const lies[] = {
		"UPDATE run SET started_mono_ns = -9223372036854775808",
		"UPDATE run SET ended_mono_ns = 9223372036854775807",
		"UPDATE run SET coarse_to_ns = 9223372036854775807",
		"UPDATE run SET fine_to_ns = 9223372036854775807",
		"UPDATE run SET fine_to_ns = -9223372036854775808, coarse_to_ns = 'x'",
		"UPDATE run SET argv = '[', state = NULL, id = x'ff00', hz = 'x'",
		"DELETE FROM run",
		"UPDATE metric SET scale = 9e999",
		"UPDATE metric SET id = id + 9223372036854770000 WHERE id > 9",
		"UPDATE metric SET name = id || x'ff', unit = x'00'",
		"UPDATE metric SET kind = 'gauge'",
		"UPDATE metric SET entity = 'nothing'",
		"UPDATE process SET id = -id",
		"UPDATE process SET born_ns = -9223372036854775808, gone_ns = 9223372036854775807",
		"UPDATE device SET kind = NULL, name = NULL, parent = -5",
		"UPDATE block SET t0_ns = -9223372036854775808",
		"UPDATE block SET t0_ns = 9223372036854775807",
		"UPDATE block SET grp = 'host'",
		"UPDATE block SET data = zeroblob(1000)",
		"UPDATE block SET data = (SELECT data FROM rollup LIMIT 1)",
		"UPDATE rollup SET data = (SELECT data FROM block LIMIT 1)",
		"UPDATE rollup SET level = '5min'",
		"UPDATE event SET kind = 'x'",
		"UPDATE gap SET why = NULL, from_ns = 9223372036854775807",
		"INSERT INTO kept VALUES ('raw', 'host', 9223372036854775807)",
		"INSERT INTO kept VALUES ('10s', 'host', 9223372036854775807)",
		"INSERT INTO kept VALUES ('raw', 'host', 'x')",
		"INSERT INTO verdict VALUES (x'ff')",
	};
	char path[256];
	uint8_t *whole;
	size_t n;

	(void)state;
	test_path(path, sizeof(path));
	make_record(path);
	whole = read_file(path, &n);
	for (size_t i = 0; i < sizeof(crafts) / sizeof(crafts[0]); i++) {
		write_file(path, whole, n);
		run_sql(path, crafts[i]);
		assert_refused(path, -EBADMSG, "damaged");
	}
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		write_file(path, whole, n);
		run_sql(path, lies[i]);
		use_all(path);
	}
	free(whole);
	test_path_rm(path);
}

/* A trigger on the row that finalising changes must not run. */
static void test_trigger_does_not_run(void **state)
{
	char path[256];
	sqlite3_stmt *s;
	sqlite3 *db;

	(void)state;
	test_path(path, sizeof(path));
	make_record(path);
	run_sql(path, "CREATE TRIGGER t AFTER UPDATE ON run BEGIN DELETE FROM block; END;"
		      "UPDATE run SET state = 'going', recorder_start = 1;");
	/* that one ran it; put something back */
	run_sql(path, "INSERT INTO block (level, grp) VALUES ('minute', 'host')");
	assert_true(use_all(path));
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	sqlite3_prepare_v2(db, "SELECT (SELECT count(*) FROM block), state FROM run", -1, &s, NULL);
	assert_int_equal(sqlite3_step(s), SQLITE_ROW);
	assert_int_equal(sqlite3_column_int(s, 0), 1);
	assert_string_equal((const char *)sqlite3_column_text(s, 1), "interrupted");
	sqlite3_finalize(s);
	sqlite3_close(db);
	test_path_rm(path);
}

/* A path that looks like a URI is still a path, and a '?' in it is no option. */
static void test_odd_paths(void **state)
{
	static const char *const names[] = { "file:x.spot", "a?immutable=1.spot", "100%.spot",
					     "a b\n.spot" };
	char path[256], folder[256];

	(void)state;
	test_path(path, sizeof(path));
	snprintf(folder, sizeof(folder), "%.*s", (int)(strrchr(path, '/') - path), path);
	assert_int_equal(chdir(folder), 0);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		make_record(names[i]);
		assert_int_equal(access(names[i], F_OK), 0);
		assert_true(use_all(names[i]));
	}
	assert_int_equal(chdir("/"), 0);
	test_path_rm(path);
}

/* Page and page size of the root of table step. */
static void root_of_steps(const char *path, size_t *page, size_t *size)
{
	sqlite3_stmt *s;
	sqlite3 *db;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	sqlite3_prepare_v2(db,
			   "SELECT rootpage, page_size FROM sqlite_schema, pragma_page_size"
			   " WHERE name = 'step'",
			   -1, &s, NULL);
	assert_int_equal(sqlite3_step(s), SQLITE_ROW);
	*page = (size_t)sqlite3_column_int64(s, 0);
	*size = (size_t)sqlite3_column_int64(s, 1);
	sqlite3_finalize(s);
	sqlite3_close(db);
}

static bool any_step(const struct window_step *s, void *arg)
{
	(void)s;
	(void)arg;
	return true;
}

/* A tree that leads to the same leaf again and again has no end in sight: following it ends where a row comes twice. */
static void test_steps_in_circles(void **state)
{
	struct record *r = NULL;
	struct err e = { 0 };
	int64_t after = 0;
	size_t n, page, size, cells;
	char path[256];
	uint8_t *whole, *root;

	(void)state;
	test_path(path, sizeof(path));
	make_record(path);
	run_sql(path, "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c LIMIT 2000)"
		      " INSERT INTO step (rank, n, end_ns, entity) SELECT 0, i, i, 1 FROM c");
	root_of_steps(path, &page, &size);
	whole = read_file(path, &n);
	assert_true(page > 1 && page * size <= n);
	root = whole + (page - 1) * size;
	assert_int_equal(root[0], 5); /* within a table, above its leaves */
	cells = (size_t)(root[3] << 8 | root[4]);
	assert_true(cells > 1);
	for (size_t i = 1; i < cells; i++)
		memcpy(root + (root[12 + 2 * i] << 8 | root[13 + 2 * i]),
		       root + (root[12] << 8 | root[13]), 4);
	write_file(path, whole, n);
	assert_int_equal(record_open(path, &r, &e), 0);
	assert_int_equal(record_new_steps(r, &after, 1 << 16, any_step, NULL), -EBADMSG);
	assert_true(after > 0 && after < 2000);
	record_close(r);
	free(whole);
	test_path_rm(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_no_permission),
		cmocka_unit_test(test_read_only_folder),
		cmocka_unit_test(test_truncated_and_flipped),
		cmocka_unit_test(test_crafted),
		cmocka_unit_test(test_trigger_does_not_run),
		cmocka_unit_test(test_odd_paths),
		cmocka_unit_test(test_steps_in_circles),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

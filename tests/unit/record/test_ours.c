/* SPDX-License-Identifier: MIT
 *
 * Whose a record is: with its log only where nobody else can reach what lies beside it, and what others leave there or in
 * its path harms nobody. Parts that need another user's files need root; the others make the folder anybody's.
 */
#include "../unit.h"

#include "base/clock.h"
#include "base/err.h"
#include "record/db.h"
#include "record/ours.h"
#include "record/reader.h"
#include "record/store.h"
#include "record/writer.h"
#include "world.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OTHER = 65534 };

struct left {
	char path[256], folder[256], real[PATH_MAX];
	struct world w;
	struct run_info run;
};

/* A record that another process wrote and left: its name in the file is train.py, in the log "late". */
static void write_and_leave(struct left *p)
{
	struct record_writer *writer;
	struct err e = { 0 };

	if (record_create(p->path, &p->run, NULL, &writer, &e) < 0)
		_exit(1);
	for (int i = 0; i < 50; i++)
		record_frame(writer, world_tick(&p->w, 100 * NS_PER_MS));
	snprintf(p->run.name, sizeof(p->run.name), "late");
	if (record_set_run(writer, &p->run) < 0 || record_flush(writer) < 0)
		_exit(2);
	_exit(0);
}

static void set_up(struct left *p)
{
	int status;
	pid_t pid;

	*p = (struct left){ 0 };
	test_path(p->path, sizeof(p->path));
	snprintf(p->folder, sizeof(p->folder), "%.*s", (int)(strrchr(p->path, '/') - p->path),
		 p->path);
	world_init(&p->w, 5, 4);
	world_run(&p->w, &p->run);
	pid = fork();
	if (pid == 0)
		write_and_leave(p);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_non_null(realpath(p->path, p->real));
}

static void tear_down(struct left *p)
{
	chmod(p->folder, 0700);
	run_info_done(&p->run);
	world_done(&p->w);
	test_path_rm(p->path);
}

static const char *beside(const struct left *p, const char *ending)
{
	static char name[PATH_MAX + 8];

	snprintf(name, sizeof(name), "%s%s", p->real, ending);
	return name;
}

/* What the reader of this moment takes for the run's name. */
static void assert_name(const char *path, const char *name, const char *remark)
{
	struct record *r = NULL;
	struct err e = { 0 };

	if (record_open(path, &r, &e) < 0)
		fail_msg("%s", e.text);
	assert_string_equal(record_run(r)->name, name);
	if (remark)
		assert_non_null(strstr(record_remark(r), remark));
	else
		assert_string_equal(record_remark(r), "");
	record_close(r);
}

static void whose_it_is(void **state)
{
	struct left p;

	(void)state;
	set_up(&p);
	assert_true(run_file_is_safe(p.real));
	assert_int_equal(chmod(p.folder, 0777), 0);
	assert_false(run_file_is_safe(p.real));
	/* like /tmp: nobody can take away what is there, and all of it is */
	assert_int_equal(chmod(p.folder, 01777), 0);
	assert_true(run_file_is_safe(p.real));
	assert_int_equal(chmod(beside(&p, "-shm"), 0666), 0);
	assert_false(run_file_is_safe(p.real));
	assert_int_equal(unlink(beside(&p, "-shm")), 0);
	assert_false(run_file_is_safe(p.real));
	assert_int_equal(chmod(p.folder, 0700), 0);
	assert_true(run_file_is_safe(p.real));
	/* what SQLite would wait for, or map */
	assert_int_equal(mkfifo(beside(&p, "-shm"), 0600), 0);
	assert_false(run_file_is_safe(p.real));
	assert_int_equal(unlink(beside(&p, "-shm")), 0);
	assert_int_equal(symlink("/etc/passwd", beside(&p, "-shm")), 0);
	assert_false(run_file_is_safe(p.real));
	assert_false(run_file_is_safe("/nowhere/at/all.spot"));
	tear_down(&p);
}

static void of_another_user(void **state)
{
	struct left p;

	(void)state;
	if (geteuid() != 0)
		skip();
	set_up(&p);
	assert_true(run_file_is_safe(p.real));
	static const char *const sides[] = { "", "-wal", "-shm" };
	for (size_t i = 0; i < sizeof(sides) / sizeof(sides[0]); i++) {
		assert_int_equal(chown(beside(&p, sides[i]), OTHER, (gid_t)-1), 0);
		assert_false(run_file_is_safe(p.real));
		assert_int_equal(chown(beside(&p, sides[i]), 0, (gid_t)-1), 0);
	}
	assert_int_equal(chown(p.folder, OTHER, (gid_t)-1), 0);
	assert_false(run_file_is_safe(p.real));
	assert_int_equal(chown(p.folder, 0, (gid_t)-1), 0);
	assert_int_equal(chmod(p.folder, 0770), 0);
	assert_false(run_file_is_safe(p.real));
	assert_int_equal(chmod(p.folder, 0700), 0);
	assert_true(run_file_is_safe(p.real));
	tear_down(&p);
}

/* Each state of it opened: what is in the log is seen, or said to be left out. Its recorder is gone: where it is ours
 * it is closed, elsewhere not touched. */
static void with_and_without_its_log(void **state)
{
	struct store_list list = { 0 };
	struct stat before, after;
	struct err e = { 0 };
	struct left p;

	(void)state;
	set_up(&p);
	assert_int_equal(chmod(p.folder, 0777), 0);
	assert_int_equal(truncate(beside(&p, "-shm"), 0), 0);
	assert_int_equal(stat(beside(&p, "-shm"), &before), 0);
	assert_name(p.path, "train.py", "left out");
	assert_int_equal(setenv("SPOTTER_DIR", p.folder, 1), 0);
	assert_int_equal(store_list(&list, &e), 0);
	assert_int_equal(list.rows.n, 1);
	assert_string_equal(list.rows.v[0].name, "train.py");
	store_list_done(&list);
	assert_int_equal(stat(beside(&p, "-shm"), &after), 0);
	assert_int_equal(after.st_size, 0);
	assert_int_equal(after.st_mtim.tv_nsec, before.st_mtim.tv_nsec);
	assert_int_equal(access(beside(&p, "-wal"), F_OK), 0);
	assert_int_equal(chmod(p.folder, 0700), 0);
	assert_name(p.path, "late", NULL);
	assert_int_equal(access(beside(&p, "-wal"), F_OK), -1);
	tear_down(&p);
}

/* A mapping that is cut short kills whoever looks at it: one who reads as it is has none. */
static void cut_short_while_it_is_read(void **state)
{
	struct record *r = NULL;
	struct err e = { 0 };
	struct left p;

	(void)state;
	set_up(&p);
	assert_int_equal(chmod(p.folder, 0777), 0);
	assert_int_equal(record_open(p.path, &r, &e), 0);
	assert_int_equal(truncate(beside(&p, "-shm"), 0), 0);
	for (int i = 0; i < 3; i++) {
		struct window w = record_window(r, 0, 0);
		struct series_stat s;

		assert_int_equal(record_refresh(r), 0);
		(void)window_stat(&w, M_PSI_CPU_SOME, ID_HOST, &s);
		/* the same for what its owner does to the log */
		assert_int_equal(truncate(beside(&p, "-wal"), i * 100), 0);
	}
	record_close(r);
	tear_down(&p);
}

static void checkpoint(const char *path)
{
	sqlite3 *db;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "PRAGMA wal_checkpoint(PASSIVE)", 0, 0, 0), SQLITE_OK);
	sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	sqlite3_close(db);
}

/* A run that goes on: what its recorder has moved into the file is seen with the next look, and its end. */
static void followed_as_it_is(void **state)
{
	struct record_writer *writer;
	struct record *r = NULL;
	struct run_info run;
	struct world w;
	struct err e = { 0 };
	char path[256], folder[256];

	(void)state;
	test_path(path, sizeof(path));
	snprintf(folder, sizeof(folder), "%.*s", (int)(strrchr(path, '/') - path), path);
	world_init(&w, 6, 4);
	world_run(&w, &run);
	assert_int_equal(record_create(path, &run, NULL, &writer, &e), 0);
	assert_int_equal(chmod(folder, 0777), 0);
	for (int i = 0; i < 30; i++)
		record_frame(writer, world_tick(&w, 100 * NS_PER_MS));
	assert_int_equal(record_flush(writer), 0);
	assert_int_equal(record_open(path, &r, &e), 0);
	assert_int_equal(record_run(r)->ended_mono_ns, run.started_mono_ns);
	assert_int_equal(record_refresh(r), 0);
	assert_int_equal(record_run(r)->ended_mono_ns, run.started_mono_ns);
	assert_false(record_is_mixed(r));
	assert_null(strstr(record_remark(r), "two moments"));
	checkpoint(path);
	/* what is read from now on may not go with what was read */
	assert_true(record_is_mixed(r));
	assert_non_null(strstr(record_remark(r), "left out"));
	assert_non_null(strstr(record_remark(r), "two moments"));
	assert_int_equal(record_refresh(r), 0);
	assert_false(record_is_mixed(r));
	assert_int_equal(record_run(r)->ended_mono_ns, w.t_ns);
	assert_int_equal(record_run(r)->state, RUN_GOING);
	/* whoever writes it sees all of it at any time */
	record_frame(writer, world_tick(&w, 100 * NS_PER_MS));
	assert_int_equal(record_flush(writer), 0);
	assert_int_equal(record_refresh(r), 0);
	assert_int_not_equal(record_run(r)->ended_mono_ns, w.t_ns);
	struct record *own = NULL;
	assert_int_equal(record_open_writing(path, &own, &e), 0);
	assert_int_equal(record_run(own)->ended_mono_ns, w.t_ns);
	record_close(own);
	run.state = RUN_ENDED;
	run.ended_mono_ns = w.t_ns;
	assert_int_equal(record_finish(writer, &run), 0);
	assert_int_equal(record_refresh(r), 0);
	assert_int_equal(record_run(r)->state, RUN_ENDED);
	assert_int_equal(record_run(r)->ended_mono_ns, w.t_ns);
	record_close(r);
	assert_int_equal(chmod(folder, 0700), 0);
	run_info_done(&run);
	world_done(&w);
	test_path_rm(path);
}

static void assert_resolved(const char *path, const char *expected)
{
	char full[PATH_MAX];

	assert_int_equal(run_file_resolve(path, full), 0);
	assert_string_equal(full, expected);
}

static void links(void **state)
{
	char name[PATH_MAX], other[PATH_MAX], full[PATH_MAX], real[PATH_MAX];
	struct left p;

	(void)state;
	set_up(&p);
	assert_non_null(realpath(p.folder, real));
	snprintf(name, sizeof(name), "%s/link.spot", p.folder);
	snprintf(other, sizeof(other), "%s/again.spot", p.folder);
	assert_int_equal(symlink("run.spot", name), 0);
	assert_int_equal(symlink(name, other), 0);
	assert_resolved(p.path, p.real);
	assert_resolved(name, p.real);
	assert_resolved(other, p.real);
	assert_name(other, "late", NULL);
	snprintf(full, sizeof(full), "%s/./..//%s/again.spot", p.folder, strrchr(real, '/') + 1);
	assert_resolved(full, p.real);
	assert_resolved("/", "/");
	assert_resolved("/..", "/");
	assert_int_equal(run_file_resolve("", full), -ENOENT);
	assert_int_equal(run_file_resolve("/nowhere/at/all", full), -ENOENT);
	assert_int_equal(unlink(name), 0);
	assert_int_equal(symlink(other, name), 0);
	assert_int_equal(run_file_resolve(name, full), -ELOOP);
	if (geteuid() == 0) {
		struct record *r = NULL;
		struct err e = { 0 };

		assert_int_equal(unlink(name), 0);
		assert_int_equal(symlink("run.spot", name), 0);
		assert_int_equal(lchown(name, OTHER, (gid_t)-1), 0);
		assert_int_equal(run_file_resolve(name, full), -EPERM);
		/* also where ours leads to it */
		assert_int_equal(record_open(other, &r, &e), -EPERM);
		assert_non_null(strstr(e.text, "link of another user"));
	}
	tear_down(&p);
}

/* A file that was written to a moment ago is looked at again, until a further write would be noticed. */
static void just_written(void **state)
{
	struct record *r = NULL;
	struct err e = { 0 };
	struct left p;

	(void)state;
	set_up(&p);
	assert_int_equal(chmod(p.folder, 0777), 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(utimensat(AT_FDCWD, p.real, NULL, 0), 0);
		assert_int_equal(
		    i ? record_open(p.real, &r, &e) : record_open_others(p.real, &r, &e), 0);
		assert_false(record_is_mixed(r));
		record_close(r);
	}
	tear_down(&p);
}

/* An SQLite file that tells which one it is. */
static void put_database(const char *path, int number)
{
	char sql[64];
	sqlite3 *db;

	snprintf(sql, sizeof(sql), "PRAGMA user_version = %d", number);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, sql, 0, 0, 0), SQLITE_OK);
	sqlite3_close(db);
}

enum { MINE = 3, SECRET = 7, LOOKS = 1000 };

/* What its owner would do: exchanges two names until it is ended, or whoever started it has gone. */
static pid_t exchange(const char *a, const char *b)
{
	pid_t parent = getpid(), pid = fork();

	assert_true(pid >= 0);
	if (pid)
		return pid;
	while (getppid() == parent)
		for (int i = 0; i < 100; i++)
			(void)!syscall(SYS_renameat2, AT_FDCWD, a, AT_FDCWD, b,
				       2 /* RENAME_EXCHANGE */);
	_exit(0);
}

/* Looks at it again and again while the two are exchanged: it waits for nothing and sees nothing but one's own. */
static void look_while(const char *path, const char *a, const char *b)
{
	pid_t pid = exchange(a, b);
	int64_t number = 0;
	int status;

	alarm(60); /* or this test would wait for ever, too */
	for (int i = 0; i < LOOKS; i++) {
		struct sqlite3 *db = NULL;

		if (db_open_hostile(path, DB_READ_AS_IS, &db) < 0)
			continue;
		if (db_number(db, "PRAGMA user_version", &number) == 0)
			assert_int_equal(number, MINE);
		sqlite3_close(db);
	}
	alarm(0);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
}

static void exchanged_while_it_is_opened(void **state)
{
	char top[PATH_MAX], mine[PATH_MAX + 16], secret[PATH_MAX + 16], a[PATH_MAX + 16],
	    b[PATH_MAX + 16];
	struct sqlite3 *db = NULL;
	struct left p;

	(void)state;
	set_up(&p);
	assert_non_null(realpath(p.folder, top));
	snprintf(a, sizeof(a), "%s/a", top);
	snprintf(b, sizeof(b), "%s/b", top);
	snprintf(secret, sizeof(secret), "%s/secret", top);
	assert_int_equal(mkdir(a, 0700), 0);
	assert_int_equal(mkdir(secret, 0700), 0);
	assert_int_equal(symlink("secret", b), 0);
	snprintf(secret, sizeof(secret), "%s/secret/r.spot", top);
	snprintf(mine, sizeof(mine), "%s/a/r.spot", top);
	put_database(secret, SECRET);
	put_database(mine, MINE);
	assert_int_equal(db_open_hostile(mine, DB_READ_AS_IS, &db), 0);
	sqlite3_close(db);
	snprintf(b, sizeof(b), "%s/b/r.spot", top);
	assert_true(db_open_hostile(b, DB_READ_AS_IS, &db) < 0);
	snprintf(b, sizeof(b), "%s/b", top);
	look_while(mine, a, b);
	(void)unlink(mine);
	(void)unlink(secret);
	snprintf(mine, sizeof(mine), "%s/b/r.spot", top);
	(void)unlink(mine);
	snprintf(secret, sizeof(secret), "%s/secret", top);
	(void)rmdir(a);
	(void)rmdir(b);
	assert_int_equal(rmdir(secret), 0);
	/* the same with a pipe */
	snprintf(b, sizeof(b), "%s/pipe", top);
	assert_int_equal(mkfifo(b, 0600), 0);
	alarm(60);
	assert_int_equal(db_open_hostile(b, DB_READ_AS_IS, &db), -EINVAL);
	put_database(p.path, MINE);
	look_while(p.real, p.real, b);
	tear_down(&p);
}

static bool map_has(const char *map)
{
	return run_file_map_has(map, strlen(map), 65534);
}

/* Where nobody is a user like any other, what belongs to nobody is not root's from outside. */
static void maps_of_users(void **state)
{
	(void)state;
	assert_true(map_has("         0          0 4294967295\n"));
	assert_true(map_has("         0          0      65536\n"));
	assert_true(map_has("         0     100000      65536\n"));
	assert_true(map_has("0 1000 1\n65534 100000 1\n"));
	assert_false(map_has("         0       1000          1\n"));
	assert_false(map_has("0 1000 1\n1 100000 65533\n"));
	assert_false(map_has("65535 100000 1000\n"));
	/* what is no map makes nobody trusted */
	assert_true(map_has(""));
	assert_true(map_has("0 1000\n"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whose_it_is),
		cmocka_unit_test(of_another_user),
		cmocka_unit_test(with_and_without_its_log),
		cmocka_unit_test(cut_short_while_it_is_read),
		cmocka_unit_test(followed_as_it_is),
		cmocka_unit_test(links),
		cmocka_unit_test(just_written),
		cmocka_unit_test(exchanged_while_it_is_opened),
		cmocka_unit_test(maps_of_users),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

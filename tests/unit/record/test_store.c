/* SPDX-License-Identifier: MIT */
#include "../unit.h"

#include "base/clock.h"
#include "base/err.h"
#include "record/place.h"
#include "record/reader.h"
#include "record/store.h"
#include "record/writer.h"
#include "world.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char top[200]; /* a folder for each test */

static int set_up(void **state)
{
	char path[256];

	(void)state;
	test_path(path, sizeof(path));
	snprintf(top, sizeof(top), "%.*s", (int)(strrchr(path, '/') - path), path);
	setenv("SPOTTER_DIR", top, 1);
	return 0;
}

static int tear_down(void **state)
{
	char path[256];

	(void)state;
	snprintf(path, sizeof(path), "%s/x", top);
	test_path_rm(path);
	unsetenv("SPOTTER_DIR");
	return 0;
}

/* Big enough to tell from the others: `seconds` long. */
static void make_run(const char *id, const char *name, int64_t wall_s, int seconds, bool finish)
{
	struct record_writer *writer;
	struct run_info run;
	struct world w;
	char path[300];
	struct err e = { 0 };

	world_init(&w, (uint64_t)wall_s, 4);
	world_run(&w, &run);
	snprintf(run.id, sizeof(run.id), "%s", id);
	snprintf(run.name, sizeof(run.name), "%s", name);
	run.started_wall_ns = wall_s * NS_PER_S;
	snprintf(path, sizeof(path), "%s/%s.spot", top, id);
	assert_int_equal(record_create(path, &run, NULL, &writer, &e), 0);
	for (int i = 0; i < seconds * 10; i++)
		record_frame(writer, world_tick(&w, 100 * NS_PER_MS));
	if (finish) {
		run.state = RUN_ENDED;
		run.has_exit = true;
		run.exit_code = 1;
		assert_int_equal(record_finish(writer, &run), 0);
	} else {
		record_flush(writer);
		record_abandon(writer); /* its pid, ours, is alive: still going */
	}
	run_info_done(&run);
	world_done(&w);
}

static void make_runs(void)
{
	make_run("20261114-100000-aaaa", "train.py", 1000, 3, true);
	make_run("20261115-100000-bbbb", "eval.py", 2000, 5, true);
	make_run("20261115-110000-cccc", "train.py", 3000, 8, true);
}

static void test_list(void **state)
{
	struct store_list l = { 0 };
	struct err e = { 0 };
	char path[300];
	int fd;

	(void)state;
	assert_int_equal(store_list(&l, &e), 0);
	assert_int_equal(l.rows.n, 0);
	make_runs();
	make_run("20261115-120000-dddd", "live.py", 4000, 2, false);
	snprintf(path, sizeof(path), "%s/20261113-000000-eeee.spot", top);
	fd = open(path, O_WRONLY | O_CREAT, 0600);
	assert_int_equal(write(fd, "junk", 4), 4);
	close(fd);
	snprintf(path, sizeof(path), "%s/20261113-000001-ffff.spot", top);
	close(open(path, O_WRONLY | O_CREAT, 0600));
	assert_int_equal(store_list(&l, &e), 0);
	assert_int_equal(l.rows.n, 6);
	assert_string_equal(l.rows.v[0].id, "20261113-000000-eeee");
	assert_non_null(strstr(l.rows.v[0].problem, "not a Spotter recording"));
	assert_non_null(strstr(l.rows.v[1].problem, "empty"));
	assert_string_equal(l.rows.v[2].id, "20261114-100000-aaaa");
	assert_string_equal(l.rows.v[2].problem, "");
	assert_true(near(l.rows.v[2].duration_s, 3, 1e-6));
	assert_int_equal(l.rows.v[2].state, RUN_ENDED);
	assert_true(l.rows.v[2].has_exit && l.rows.v[2].exit_code == 1);
	assert_true(l.rows.v[2].bytes > 4096);
	assert_string_equal(l.rows.v[5].name, "live.py");
	assert_int_equal(l.rows.v[5].state, RUN_GOING);
	store_list_done(&l);
}

static void test_find(void **state)
{
	char path[PATH_MAX];
	struct err e = { 0 };

	(void)state;
	assert_int_equal(store_find(NULL, path, sizeof(path), &e), -ENOENT);
	assert_non_null(strstr(e.text, "nothing has been recorded"));
	make_runs();
	assert_int_equal(store_find("last", path, sizeof(path), NULL), 0);
	assert_non_null(strstr(path, "cccc.spot"));
	assert_int_equal(store_find("train.py", path, sizeof(path), NULL), 0);
	assert_non_null(strstr(path, "cccc.spot")); /* the newest of that name */
	assert_int_equal(store_find("eval.py", path, sizeof(path), NULL), 0);
	assert_non_null(strstr(path, "bbbb.spot"));
	assert_int_equal(store_find("20261114-100000-aaaa", path, sizeof(path), NULL), 0);
	assert_non_null(strstr(path, "aaaa.spot"));
	assert_int_equal(store_find("20261114", path, sizeof(path), NULL), 0);
	assert_non_null(strstr(path, "aaaa.spot"));
	assert_int_equal(store_find("/some/where.spot", path, sizeof(path), NULL), 0);
	assert_string_equal(path, "/some/where.spot");
	e = (struct err){ 0 };
	assert_int_equal(store_find("20261115", path, sizeof(path), &e), -ENOTUNIQ);
	assert_non_null(strstr(e.hint, "bbbb"));
	assert_non_null(strstr(e.hint, "cccc"));
	e = (struct err){ 0 };
	assert_int_equal(store_find("trian.py", path, sizeof(path), &e), -ENOENT);
	assert_non_null(strstr(e.hint, "'train.py'"));
	e = (struct err){ 0 };
	assert_int_equal(store_find("something else", path, sizeof(path), &e), -ENOENT);
	assert_null(strstr(e.hint, "did you mean"));
}

static void test_remove(void **state)
{
	char path[300];
	struct err e = { 0 };
	int fd;

	(void)state;
	make_run("20261114-100000-aaaa", "train.py", 1000, 1, true);
	make_run("20261115-120000-dddd", "live.py", 4000, 2, false);
	snprintf(path, sizeof(path), "%s/20261114-100000-aaaa.spot", top);
	assert_int_equal(store_remove(path, &e), 0);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(store_remove(path, &e), -ENOENT);
	e = (struct err){ 0 };
	snprintf(path, sizeof(path), "%s/20261115-120000-dddd.spot", top);
	assert_int_equal(store_remove(path, &e), -EBUSY);
	assert_int_equal(access(path, F_OK), 0);
	snprintf(path, sizeof(path), "%s/precious.txt", top);
	fd = open(path, O_WRONLY | O_CREAT, 0600);
	assert_int_equal(write(fd, "mine", 4), 4);
	close(fd);
	assert_true(store_remove(path, &e) < 0);
	assert_int_equal(access(path, F_OK), 0);
}

static void test_gc(void **state)
{
	struct store_list l = { 0 };
	struct err e = { 0 };
	int64_t freed, total = 0;
	unsigned n;

	(void)state;
	make_runs();
	make_run("20261101-120000-dddd", "live.py", 10, 2, false); /* the oldest, but going */
	assert_int_equal(store_list(&l, &e), 0);
	for (size_t i = 0; i < l.rows.n; i++)
		total += l.rows.v[i].bytes;
	assert_int_equal(store_gc((uint64_t)total, &n, &freed, &e), 0);
	assert_int_equal(n, 0);
	assert_int_equal(store_gc((uint64_t)total - 1, &n, &freed, &e), 0);
	assert_int_equal(n, 1);
	assert_int_equal(freed, l.rows.v[1].bytes);
	assert_int_equal(access(l.rows.v[1].path, F_OK), -1);
	assert_int_equal(access(l.rows.v[0].path, F_OK), 0);
	assert_int_equal(store_gc(0, &n, &freed, &e), 0);
	assert_int_equal(n, 2);
	store_list_done(&l);
	assert_int_equal(store_list(&l, &e), 0);
	assert_int_equal(l.rows.n, 1);
	store_list_done(&l);
}

static void test_names(void **state)
{
	static const struct {
		const char *argv[8];
		const char *name;
	} rows[] = {
		{ { "python", "train.py", "--lr", "1" }, "train.py" },
		{ { "/usr/bin/python3.11", "-u", "-O", "src/train.py" }, "train.py" },
		{ { "python3", "-m", "my.module", "x.py" }, "my.module" },
		{ { "python3", "-m", "torch.distributed.run", "--nproc", "2", "t.py" }, "t.py" },
		{ { "torchrun", "--nproc_per_node", "8", "run.py" }, "run.py" },
		{ { "accelerate", "launch", "fit.py" }, "fit.py" },
		{ { "python", "-W", "ignore", "-X", "dev", "x/train" }, "train" },
		{ { "mpirun", "-np", "4", "python3", "-m", "fit" }, "fit" },
		{ { "timeout", "60", "./trainer" }, "trainer" },
		{ { "nohup" }, "nohup" },
		{ { "bash", "go.sh" }, "go.sh" },
		{ { "sh", "-c", "python x.py" }, "sh" },
		{ { "python3" }, "python3" },
		{ { "python3", "-c", "pass" }, "python3" },
		{ { "env", "A=1", "python", "a.py" }, "a.py" },
		{ { "./build/trainer", "--fast" }, "trainer" },
		{ { "pythonic" }, "pythonic" },
		{ { "python", "script" }, "script" },
		{ { "/" }, "/" },
		{ { "" }, "run" },
		{ { "a\x1b[2Jb" }, "a?[2Jb" },
	};
	char name[96];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		store_name_from((char *const *)rows[i].argv, name, sizeof(name));
		assert_string_equal(name, rows[i].name);
	}
}

static void test_ids(void **state)
{
	char a[40], b[40];
	int same = 0;

	(void)state;
	store_new_id(1794777129 * NS_PER_S, a, sizeof(a));
	assert_int_equal(strncmp(a, "20261115-211209-", 16), 0);
	assert_int_equal(strlen(a), 20);
	for (int i = 0; i < 100; i++) {
		store_new_id(1794777129 * NS_PER_S, b, sizeof(b));
		same += strcmp(a, b) == 0;
	}
	assert_true(same < 3);
}

static void test_dir(void **state)
{
	char folder[PATH_MAX], want[PATH_MAX];
	struct stat st;
	struct err e = { 0 };

	(void)state;
	assert_int_equal(store_dir(false, folder, sizeof(folder), &e), 0);
	assert_string_equal(folder, top);
	unsetenv("SPOTTER_DIR");
	setenv("XDG_STATE_HOME", top, 1);
	assert_int_equal(store_dir(true, folder, sizeof(folder), &e), 0);
	snprintf(want, sizeof(want), "%s/spotter/runs", top);
	assert_string_equal(folder, want);
	assert_int_equal(stat(folder, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	rmdir(folder);
	snprintf(want, sizeof(want), "%s/spotter", top);
	rmdir(want);
	unsetenv("XDG_STATE_HOME");
	setenv("HOME", top, 1);
	assert_int_equal(store_dir(false, folder, sizeof(folder), &e), 0);
	snprintf(want, sizeof(want), "%s/.local/state/spotter/runs", top);
	assert_string_equal(folder, want);
	setenv("SPOTTER_DIR", "/proc/nowhere", 1);
	assert_true(store_dir(true, folder, sizeof(folder), &e) < 0);
	assert_non_null(strstr(e.text, "/proc/nowhere"));
	assert_true(e.hint[0]);
}

static void test_place(void **state)
{
	struct store_place p;
	char want[PATH_MAX], out[300];
	struct err e = { 0 };

	(void)state;
	assert_int_equal(store_place("ID", NULL, &p, &e), 0);
	snprintf(want, sizeof(want), "%s/ID.spot", top);
	assert_string_equal(p.path, want);
	assert_string_equal(p.final, "");
	assert_string_equal(p.remark, "");
	snprintf(out, sizeof(out), "%s/mine.spot", top);
	assert_int_equal(store_place("ID", out, &p, &e), 0);
	assert_string_equal(p.path, out);
	close(open(out, O_WRONLY | O_CREAT, 0600));
	assert_int_equal(store_place("ID", out, &p, &e), -EEXIST);
	e = (struct err){ 0 };
	assert_int_equal(store_place("ID", top, &p, &e), -EISDIR);
	e = (struct err){ 0 };
	assert_int_equal(store_place("ID", "/no/such/folder/x.spot", &p, &e), -ENOENT);
	assert_non_null(strstr(e.text, "/no/such/folder/x.spot"));
	/* the folder of runs cannot be made: somewhere private, and it says so */
	setenv("SPOTTER_DIR", "/proc/nowhere", 1);
	setenv("TMPDIR", top, 1);
	assert_int_equal(store_place("ID", NULL, &p, &e), 0);
	snprintf(want, sizeof(want), "%s/spotter-%u/ID.spot", top, (unsigned)getuid());
	assert_string_equal(p.path, want);
	assert_non_null(strstr(p.remark, "cannot be written"));
	snprintf(want, sizeof(want), "%s/spotter-%u", top, (unsigned)getuid());
	rmdir(want);
	/* a folder of that name that others may write is not taken */
	assert_int_equal(mkdir(want, 0777), 0);
	chmod(want, 0777);
	assert_int_equal(store_place("ID", NULL, &p, &e), 0);
	assert_int_not_equal(strncmp(p.path, want, strlen(want)), 0);
	rmdir(want);
	unsetenv("TMPDIR");
}

static void test_network_types(void **state)
{
	(void)state;
	assert_true(place_is_network(0x6969));
	assert_true(place_is_network((long)0xff534d42));
	assert_true(place_is_network((long)(int32_t)0xff534d42)); /* as a 32-bit kernel says it */
	assert_true(place_is_network(0x65735546));
	assert_false(place_is_network(0xef53));     /* ext4 */
	assert_false(place_is_network(0x01021994)); /* tmpfs */
	assert_false(place_is_network(0x794c7630)); /* overlayfs */
}

/* From a local folder to another file system, as after a run recorded beside a network one. */
static void test_settle(void **state)
{
	struct store_place p = { 0 };
	struct record *r = NULL;
	struct err e = { 0 };

	(void)state;
	if (access("/dev/shm", W_OK) < 0) {
		print_message("skipped: no second file system\n");
		skip();
	}
	make_run("20261114-100000-aaaa", "train.py", 1000, 3, true);
	snprintf(p.path, sizeof(p.path), "%s/20261114-100000-aaaa.spot", top);
	snprintf(p.final, sizeof(p.final), "/dev/shm/spotter-test-%d.spot", (int)getpid());
	assert_int_equal(store_settle(&p, &e), 0);
	assert_int_equal(access(p.path, F_OK), -1);
	assert_int_equal(record_open(p.final, &r, &e), 0);
	record_close(r);
	/* and back, onto something that is there already: refused, nothing lost */
	snprintf(p.path, sizeof(p.path), "%s", p.final);
	snprintf(p.final, sizeof(p.final), "%s/there.spot", top);
	close(open(p.final, O_WRONLY | O_CREAT, 0600));
	assert_int_equal(store_settle(&p, &e), -EEXIST);
	assert_int_equal(access(p.path, F_OK), 0);
	unlink(p.final);
	e = (struct err){ 0 };
	assert_int_equal(store_settle(&p, &e), 0);
	assert_int_equal(record_open(p.final, &r, &e), 0);
	record_close(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_list, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_find, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_remove, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_gc, set_up, tear_down),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_ids),
		cmocka_unit_test_setup_teardown(test_dir, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_place, set_up, tear_down),
		cmocka_unit_test(test_network_types),
		cmocka_unit_test_setup_teardown(test_settle, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT
 *
 * A disk that is full for a while: the caller is told, goes on, and what fitted stays readable. Once
 * with a limit on the size of files, which anybody can set, and once on a real tiny file system.
 */
#include "../unit.h"

#include "base/clock.h"
#include "base/err.h"
#include "record/reader.h"
#include "record/writer.h"
#include "world.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define TICK (100 * NS_PER_MS)

static void limit_files(rlim_t bytes)
{
	struct rlimit l;

	getrlimit(RLIMIT_FSIZE, &l);
	l.rlim_cur = bytes;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &l), 0);
}

static struct record_writer *create(const char *path, struct world *w)
{
	struct record_options o = { .sync_every_ns = NS_PER_S };
	struct record_writer *writer = NULL;
	struct run_info run;
	struct err e = { 0 };

	world_run(w, &run);
	assert_int_equal(record_create(path, &run, &o, &writer, &e), 0);
	run_info_done(&run);
	return writer;
}

struct ticks {
	int64_t n, first_ns, last_ns;
};

static bool count_tick(const struct record_sample *s, void *arg)
{
	struct ticks *t = arg;

	if (s->metric != M_CPU_USER)
		return true;
	if (!t->n++)
		t->first_ns = s->t_ns;
	t->last_ns = s->t_ns;
	return true;
}

/* What the file says afterwards adds up: ticks in it and ticks lost are all there were. */
static void check_file(const char *path, const struct world *w, const struct record_health *h,
		       int64_t all)
{
	struct record *r = NULL;
	struct ticks t = { 0 };
	struct err e = { 0 };
	struct window win;
	const struct window_event *events;
	size_t n, found = 0;

	assert_int_equal(record_open(path, &r, &e), 0);
	assert_int_equal(record_each_sample(r, count_tick, &t), 0);
	assert_int_equal(t.last_ns, w->t_ns);
	assert_int_equal(t.n + (int64_t)h->lost_ticks, all);
	win = record_window(r, 0, 0);
	events = win.ops->events(win.src, &n);
	for (size_t i = 0; i < n; i++)
		found += events[i].kind == EVENT_WRITE_ERROR && events[i].value > 0 &&
			 strstr(events[i].text, "could not be written");
	assert_true(found >= 1);
	record_close(r);
}

static void fill_and_recover(void (*fill)(void *arg), void (*drain)(void *arg), void *arg,
			     const char *path, int seconds, bool loses)
{
	struct world w;
	struct record_writer *writer;
	struct record_health h;
	int64_t all = 0;
	int errors = 0;

	world_init(&w, 50, 10);
	writer = create(path, &w);
	for (int i = 0; i < 300; i++, all++)
		assert_int_equal(record_frame(writer, world_tick(&w, TICK)), 0);
	fill(arg);
	for (int i = 0; i < seconds * 10; i++, all++)
		errors += record_frame(writer, world_tick(&w, TICK)) < 0;
	record_health(writer, &h);
	assert_true(h.error < 0);
	assert_true(errors > 10);
	assert_int_equal(h.lost_ticks > 0, loses);
	drain(arg);
	for (int i = 0; i < 300; i++, all++)
		record_frame(writer, world_tick(&w, TICK));
	record_health(writer, &h);
	assert_int_equal(h.error, 0);
	assert_int_equal(record_finish(writer, NULL), 0);
	check_file(path, &w, &h, all);
	world_done(&w);
}

static void fill_limit(void *arg)
{
	struct stat st;

	assert_int_equal(stat(arg, &st), 0);
	limit_files(4096);
}

static void drain_limit(void *arg)
{
	(void)arg;
	limit_files(RLIM_INFINITY);
}

static void test_short_trouble(void **state)
{
	char path[256];

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	test_path(path, sizeof(path));
	fill_and_recover(fill_limit, drain_limit, path, path, 90, false);
	test_path_rm(path);
}

static void test_long_trouble(void **state)
{
	char path[256];

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	test_path(path, sizeof(path));
	fill_and_recover(fill_limit, drain_limit, path, path, 600, true);
	test_path_rm(path);
}

/* It never works again: what was committed before is there. */
static void test_full_to_the_end(void **state)
{
	char path[256];
	struct world w;
	struct record_writer *writer;
	struct record *r = NULL;
	struct ticks t = { 0 };
	struct err e = { 0 };

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	test_path(path, sizeof(path));
	world_init(&w, 51, 10);
	writer = create(path, &w);
	for (int i = 0; i < 300; i++)
		assert_int_equal(record_frame(writer, world_tick(&w, TICK)), 0);
	assert_int_equal(record_flush(writer), 0);
	limit_files(4096);
	for (int i = 0; i < 300; i++)
		record_frame(writer, world_tick(&w, TICK));
	assert_true(record_finish(writer, NULL) < 0);
	limit_files(RLIM_INFINITY);
	assert_int_equal(record_open(path, &r, &e), 0);
	assert_int_equal(record_each_sample(r, count_tick, &t), 0);
	assert_in_range(t.n, 300, 320);
	record_close(r);
	world_done(&w);
	test_path_rm(path);
}

struct tiny {
	char folder[200], filler[240];
};

static void fill_tiny(void *arg)
{
	struct tiny *t = arg;
	char page[4096] = { 1 };
	FILE *f = fopen(t->filler, "w");

	assert_non_null(f);
	setvbuf(f, NULL, _IONBF, 0);
	while (fwrite(page, 1, sizeof(page), f) == sizeof(page))
		;
	fclose(f);
}

static void drain_tiny(void *arg)
{
	assert_int_equal(unlink(((struct tiny *)arg)->filler), 0);
}

static void in_tiny_file_system(void)
{
	struct tiny t;
	char path[256];

	snprintf(t.folder, sizeof(t.folder), "/tmp/spotter-tiny-XXXXXX");
	if (!mkdtemp(t.folder))
		_exit(1);
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("tiny", t.folder, "tmpfs", 0, "size=4m") < 0) {
		rmdir(t.folder);
		_exit(77);
	}
	snprintf(t.filler, sizeof(t.filler), "%s/filler", t.folder);
	snprintf(path, sizeof(path), "%s/run.spot", t.folder);
	fill_and_recover(fill_tiny, drain_tiny, &t, path, 60, false);
	umount(t.folder);
	rmdir(t.folder);
	_exit(0);
}

static void test_full_file_system(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	fflush(stdout);
	pid = fork();
	if (pid == 0)
		in_tiny_file_system();
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
		print_message("skipped: mounting a file system needs root\n");
		skip();
	}
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_short_trouble),
		cmocka_unit_test(test_long_trouble),
		cmocka_unit_test(test_full_to_the_end),
		cmocka_unit_test(test_full_file_system),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

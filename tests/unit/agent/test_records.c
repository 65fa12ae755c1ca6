/* SPDX-License-Identifier: MIT
 *
 * Following a record while it is written: every step is counted, once, and the end is seen.
 */
#include "../unit.h"

#include "agent/jobs.h"
#include "base/clock.h"
#include "base/err.h"
#include "model/frame.h"
#include "record/reader.h"
#include "record/writer.h"
#include "small_record.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static void every_step_once(void **state)
{
	struct record_news news = { .serial = 1 };
	struct record_cursor cursor = { 0 };
	struct set_up s;

	(void)state;
	set_up(&s);
	snprintf(news.path, sizeof(news.path), "%s", s.path);
	assert_int_equal(record_look(&news, &cursor, false, false), 0);
	assert_int_equal(news.groups.n, 0);
	assert_string_equal(news.id, "20261115-211209-4f3a");
	assert_int_equal(news.pid, 4000);
	for (unsigned i = 1; i <= 5; i++) {
		steps(&s, i);
		assert_int_equal(record_look(&news, &cursor, false, false), 0);
		/* and again: there is nothing new */
		assert_int_equal(record_look(&news, &cursor, false, false), 0);
		assert_int_equal(news.groups.n, 2);
		assert_int_equal(news.groups.v[0].steps.count, i * (i + 1) / 2);
	}
	assert_int_equal(news.groups.v[1].rank, 1);
	assert_int_equal(news.groups.v[1].pid, 4001);
	assert_true(near(news.groups.v[1].steps.loss, 1.0 / 15, 1e-9));
	assert_true(near(news.groups.v[1].steps.data_wait, 15 * 0.002, 1e-6));
	assert_true(near(news.groups.v[1].steps.last_s, 1700000000 + 0.45, 1e-9));
	assert_true(isnan(news.groups.v[1].steps.comm_wait));
	assert_false(news.ended);
	/* the last ones are written with the end */
	steps(&s, 4);
	finish(&s);
	assert_int_equal(record_look(&news, &cursor, false, false), 0);
	assert_int_equal(news.groups.v[0].steps.count, 19);
	assert_true(news.ended);
	vec_done(&news.groups);
	tear_down(&s);
}

static void take(const struct record_news *n, void *arg)
{
	struct record_news *ret = arg;

	ret->serial += n->serial;
	ret->pid = n->pid;
	ret->ended = n->ended;
}

/* Without a thread, as --once has it. */
static void a_few_of_them(void **state)
{
	struct records *r;
	struct err e = { 0 };
	struct record_news seen = { 0 };
	struct set_up s;

	(void)state;
	set_up(&s);
	steps(&s, 3);
	assert_int_equal(
	    records_open(&(struct records_options){ .look_ns = 1, .folder = s.folder }, &r, &e), 0);
	assert_true(records_offer(r, getpid(), geteuid(), s.path, true));
	assert_true(records_offer(r, getpid(), geteuid(), s.path, true));
	/* not in the folder that was asked for */
	assert_true(records_offer(r, getpid(), geteuid(), "/elsewhere/run.spot", true));
	records_look(r);
	records_each(r, take, &seen);
	assert_int_equal(seen.serial, 1);
	assert_int_equal(seen.pid, 4000);
	assert_false(seen.ended);
	records_forget(r, 1);
	seen = (struct record_news){ 0 };
	records_each(r, take, &seen);
	assert_int_equal(seen.serial, 0);
	records_close(r);
	tear_down(&s);
}

static void take_first(const struct record_news *n, void *arg)
{
	struct view_steps *ret = arg;

	if (n->serial == 1 && n->groups.n)
		*ret = n->groups.v[0].steps;
}

/* The thread reads while it is written, others are offered and forgotten, and somebody asks all the time. */
static void by_a_thread(void **state)
{
	int64_t end = clock_mono_ns() + 60 * NS_PER_S;
	struct view_steps seen = { 0 };
	struct records *r;
	struct err e = { 0 };
	struct set_up s;

	(void)state;
	set_up(&s);
	assert_int_equal(
	    records_open(&(struct records_options){ .look_ns = 1, .thread = true }, &r, &e), 0);
	assert_true(records_offer(r, getpid(), geteuid(), s.path, true));
	for (int i = 0; i < 20; i++) {
		steps(&s, 2);
		assert_true(
		    records_offer(r, 0x3fffffff - i, geteuid(), "/nowhere/at/all.spot", true));
		records_forget(r, (uint64_t)i + 2);
		records_each(r, take_first, &seen);
		assert_true(seen.count <= (uint64_t)(i + 1) * 2);
	}
	while (seen.count < 40 && clock_mono_ns() < end) {
		records_each(r, take_first, &seen);
		usleep(1000);
	}
	assert_int_equal(seen.count, 40);
	assert_int_equal(records_dropped(r), 0);
	records_close(r);
	tear_down(&s);
}

/* What cannot be read, of a recorder that is gone, is over. */
static void unreadable(void **state)
{
	struct records *r;
	struct err e = { 0 };
	struct record_news seen = { 0 };

	(void)state;
	assert_int_equal(records_open(&(struct records_options){ .look_ns = 1 }, &r, &e), 0);
	assert_true(records_offer(r, 0x3fffffff, geteuid(), "/nowhere/at/all.spot", true));
	records_look(r);
	records_each(r, take, &seen);
	assert_true(seen.ended);
	assert_int_equal(seen.pid, 0);
	records_close(r);
}

/* A file that is not its recorder's own, or a link, is not read; one user cannot take all places. */
static void of_others(void **state)
{
	struct record_news news = { .serial = 1, .offered = true, .uid = geteuid() + 1 };
	struct record_cursor cursor = { 0 };
	struct records *r;
	struct err e = { 0 };
	char link[300];
	struct set_up s;
	int taken = 0;

	(void)state;
	set_up(&s);
	snprintf(news.path, sizeof(news.path), "%s", s.path);
	assert_int_equal(record_look(&news, &cursor, false, false), -EPERM);
	news.uid = geteuid();
	assert_int_equal(record_look(&news, &cursor, false, false), 0);
	snprintf(link, sizeof(link), "%s/link.spot", s.folder);
	assert_int_equal(symlink(s.path, link), 0);
	snprintf(news.path, sizeof(news.path), "%s", link);
	assert_int_equal(record_look(&news, &cursor, false, false), -EPERM);
	unlink(link);
	vec_done(&news.groups);
	assert_int_equal(records_open(&(struct records_options){ .look_ns = 1 }, &r, &e), 0);
	for (int i = 1; i <= RECORDS_MAX; i++)
		taken += records_offer(r, 0x3fffffff - i, geteuid() + 1, s.path, true);
	assert_int_equal(taken, RECORDS_MAX / 2);
	/* those there was no place for are counted, however often they come */
	assert_int_equal(records_dropped(r), RECORDS_MAX / 2);
	assert_false(records_offer(r, 0x3fffffff - RECORDS_MAX, geteuid() + 1, s.path, true));
	assert_int_equal(records_dropped(r), RECORDS_MAX / 2);
	assert_true(records_offer(r, getpid(), geteuid(), s.path, true));
	assert_int_equal(records_dropped(r), RECORDS_MAX / 2);
	records_close(r);
	tear_down(&s);
}

static void whom_it_may_tell_of(void **state)
{
	struct note x = { .uid = 1000 };
	struct record_news n = { .uid = 1000 };

	(void)state;
	assert_true(record_may_tell(&n, &x));
	n.uid = 1001;
	assert_false(record_may_tell(&n, &x));
	n.uid = 0;
	assert_true(record_may_tell(&n, &x));
	/* not known is nobody's, not everybody's */
	n.uid = x.uid = NO_UID;
	assert_false(record_may_tell(&n, &x));
}

/* Whatever becomes of the -shm and -wal of another user's record, they are not touched: a mapped file that is cut short kills
 * whoever has mapped it. */
static void as_it_is(void **state)
{
	struct record *record = NULL;
	struct err e = { 0 };
	char path[PATH_MAX], name[PATH_MAX + 8];
	struct stat before, after;
	struct set_up s;

	(void)state;
	set_up(&s);
	steps(&s, 3);
	assert_non_null(realpath(s.path, path));
	snprintf(name, sizeof(name), "%s-shm", path);
	assert_int_equal(truncate(name, 0), 0);
	assert_int_equal(stat(name, &before), 0);
	if (record_open_others(path, &record, &e) < 0)
		fail_msg("%s", e.text);
	assert_string_equal(record_run(record)->id, "20261115-211209-4f3a");
	record_close(record);
	assert_int_equal(stat(name, &after), 0);
	assert_int_equal(after.st_size, 0);
	assert_int_equal(after.st_mtim.tv_nsec, before.st_mtim.tv_nsec);
	/* nor is a link in its place followed */
	snprintf(name, sizeof(name), "%s/link.spot", s.folder);
	assert_int_equal(symlink(path, name), 0);
	assert_true(record_open_others(name, &record, NULL) < 0);
	unlink(name);
	/* its writer has mapped it, too */
	snprintf(name, sizeof(name), "%s-shm", path);
	assert_int_equal(truncate(name, 1 << 15), 0);
	tear_down(&s);
}

/* Only with the rights of root can a file be given to another user; without them the part above has to do. */
static void given_away(void **state)
{
	struct record_news news = { .serial = 1, .offered = true, .uid = 65534 };
	struct record_cursor cursor = { 0 };
	struct set_up s;

	(void)state;
	if (geteuid() != 0)
		skip();
	set_up(&s);
	steps(&s, 3);
	assert_int_equal(chown(s.path, 65534, (gid_t)-1), 0);
	snprintf(news.path, sizeof(news.path), "%s", s.path);
	/* what is in its log is not there yet */
	assert_int_equal(record_look(&news, &cursor, false, false), 0);
	assert_int_equal(news.groups.n, 0);
	assert_int_equal(news.pid, 4000);
	finish(&s);
	assert_int_equal(record_look(&news, &cursor, false, false), 0);
	assert_int_equal(news.groups.n, 2);
	assert_int_equal(news.groups.v[0].steps.count, 3);
	assert_true(news.ended);
	vec_done(&news.groups);
	tear_down(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_step_once),     cmocka_unit_test(a_few_of_them),
		cmocka_unit_test(unreadable),          cmocka_unit_test(of_others),
		cmocka_unit_test(whom_it_may_tell_of), cmocka_unit_test(as_it_is),
		cmocka_unit_test(given_away),          cmocka_unit_test(by_a_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

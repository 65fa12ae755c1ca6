/* SPDX-License-Identifier: MIT
 *
 * Rings of a program read into frames. The test writes the rings itself, under names of processes that the
 * frames then tell of.
 */
#include "../unit.h"

#include "base/clock.h"
#include "base/err.h"
#include "collect/collector.h"
#include "engine/mark_folder.h"
#include "engine/mark_watch.h"
#include "mark/ring.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TICKS = 1187, PID = 2000000000 }; /* above every pid the kernel gives out */

static char parent[64], folder[128];
static struct mark_watch *watch;
static struct frame f;
static struct collect ids;

static void path_of(char *ret, size_t size, const char *file)
{
	snprintf(ret, size, "%s/%s", folder, file);
}

/* The ring of this process under the name of process `n`. */
static struct ring *ring_of(int n)
{
	struct ring *r = ring_create(folder);
	char from[400], to[400], name[64];
	struct dirent *e;
	DIR *d = opendir(folder);
	long pid;
	unsigned long long ticks;

	assert_non_null(r);
	assert_non_null(d);
	while ((e = readdir(d)))
		if (mark_folder_parse(e->d_name, &pid, &ticks) && pid == getpid())
			path_of(from, sizeof(from), e->d_name);
	closedir(d);
	snprintf(name, sizeof(name), "%d-%d.ring", PID + n, TICKS + n);
	path_of(to, sizeof(to), name);
	assert_int_equal(rename(from, to), 0);
	return r;
}

static bool has_ring(int n)
{
	char path[400], name[64];

	snprintf(name, sizeof(name), "%d-%d.ring", PID + n, TICKS + n);
	path_of(path, sizeof(path), name);
	return access(path, F_OK) == 0;
}

static void begin_frame(void)
{
	frame_begin(&f, clock_mono_ns(), 0);
}

static void life(enum life_change change, int n)
{
	frame_life(&f,
		   &(struct life){ .change = change,
				   .id = 100 + (uint32_t)n,
				   .kind = ENTITY_PROC,
				   .key = PID + n,
				   .start_ns = (TICKS + n) * 10 * NS_PER_MS },
		   "python3", NULL);
}

static void open_watch(void)
{
	struct err e = { 0 };

	assert_int_equal(mark_watch_open(folder, &watch, &e), 0);
}

static int set_up(void **state)
{
	(void)state;
	ids.next_id = 1000;
	snprintf(parent, sizeof(parent), "/tmp/spotter-marks-XXXXXX");
	if (!mkdtemp(parent))
		return -1;
	snprintf(folder, sizeof(folder), "%s/spotter-abCD12", parent);
	return mkdir(folder, 0700);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	return remove(path);
}

static int tear_down(void **state)
{
	(void)state;
	mark_watch_close(watch);
	watch = NULL;
	frame_done(&f);
	return nftw(parent, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void test_reads_all(void **state)
{
	struct ring *r = ring_of(1);
	int64_t t = clock_mono_ns();

	(void)state;
	open_watch();
	ring_put(r, MARK_SOURCE, ring_name(r, "torch"), 0, 0, t);
	ring_put(r, MARK_DATA_WAIT, 0, 1500000, 0, t + 1);
	ring_put(r, MARK_STEP, 0, 7, 0.25, t + 2);
	ring_put(r, MARK_SCALAR, ring_name(r, "accuracy"), 0, 0.5, t + 3);
	ring_put(r, MARK_PHASE_BEGIN, ring_name(r, "evaluate"), 0, 0, t + 4);
	ring_put(r, MARK_STEP, 0, UINT64_MAX, NAN, t + 5);
	begin_frame();
	life(LIFE_BORN, 1);
	mark_watch_tick(watch, &ids, &f, false);
	assert_int_equal(f.marks.n, 6);
	assert_int_equal(f.marks.v[0].type, SAID_SOURCE);
	assert_string_equal(frame_text(&f, f.marks.v[0].name), "torch");
	assert_int_equal(f.marks.v[0].entity, 101);
	assert_true(f.marks.v[1].type == SAID_DATA_WAIT && f.marks.v[1].value == 0.0015);
	assert_true(f.marks.v[2].type == SAID_STEP && f.marks.v[2].number == 7);
	assert_true(f.marks.v[2].value == 0.25 && f.marks.v[2].t_ns == t + 2);
	assert_string_equal(frame_text(&f, f.marks.v[2].name), "");
	assert_string_equal(frame_text(&f, f.marks.v[3].name), "accuracy");
	assert_true(f.marks.v[5].number == INT64_MAX && isnan(f.marks.v[5].value));
	assert_int_equal(f.events.n, 0);
	/* Once, and then what is new. */
	begin_frame();
	mark_watch_tick(watch, &ids, &f, false);
	assert_int_equal(f.marks.n, 0);
	ring_put(r, MARK_STEP, 0, 8, 0.25, t);                   /* earlier than the last */
	ring_put(r, MARK_STEP, 0, 9, 0.25, t + 3600 * NS_PER_S); /* and an hour from now */
	begin_frame();
	mark_watch_tick(watch, &ids, &f, false);
	assert_int_equal(f.marks.n, 2);
	assert_int_equal(f.marks.v[0].t_ns, t + 5);
	assert_true(f.marks.v[1].t_ns >= t + 5 && f.marks.v[1].t_ns <= clock_mono_ns());
	ring_close(r);
}

static void test_later_ones_are_found(void **state)
{
	struct ring *r;

	(void)state;
	open_watch();
	begin_frame();
	life(LIFE_BORN, 1);
	life(LIFE_BORN, 2);
	mark_watch_tick(watch, &ids, &f, false);
	r = ring_of(1);
	ring_put(r, MARK_STEP, 0, 1, 0, clock_mono_ns());
	usleep(260000); /* it looks four times a second */
	begin_frame();
	mark_watch_tick(watch, &ids, &f, false);
	assert_int_equal(f.marks.n, 1);
	ring_close(r);
	/* The last look finds what is there, also of who has just ended. */
	r = ring_of(2);
	ring_put(r, MARK_STEP, 0, 5, 0, clock_mono_ns());
	ring_close(r);
	begin_frame();
	life(LIFE_GONE, 2);
	mark_watch_tick(watch, &ids, &f, true);
	assert_int_equal(f.marks.n, 1);
	assert_int_equal(f.marks.v[0].entity, 102);
}

/* How many ranks there are is said once, before the rest. */
static void test_world(void **state)
{
	struct ring *r;

	(void)state;
	setenv("RANK", "1", 1);
	setenv("WORLD_SIZE", "4", 1);
	r = ring_of(1);
	unsetenv("RANK");
	unsetenv("WORLD_SIZE");
	open_watch();
	ring_put(r, MARK_STEP, 0, 1, 0, clock_mono_ns());
	begin_frame();
	life(LIFE_BORN, 1);
	mark_watch_tick(watch, &ids, &f, false);
	assert_int_equal(f.marks.n, 2);
	assert_int_equal(f.marks.v[0].type, SAID_SETTING);
	assert_string_equal(frame_text(&f, f.marks.v[0].name), "world_size");
	assert_true(f.marks.v[0].value == 4 && f.marks.v[0].rank == 1);
	assert_int_equal(f.marks.v[1].type, SAID_STEP);
	ring_put(r, MARK_STEP, 0, 2, 0, clock_mono_ns());
	begin_frame();
	mark_watch_tick(watch, &ids, &f, false);
	assert_int_equal(f.marks.n, 1);
	ring_close(r);
}

static void test_lost(void **state)
{
	struct ring *r = ring_of(1);

	(void)state;
	for (int i = 0; i < RING_SLOTS + 100; i++)
		ring_put(r, MARK_STEP, 0, (uint64_t)i + 1, 0, clock_mono_ns());
	open_watch();
	begin_frame();
	life(LIFE_BORN, 1);
	mark_watch_tick(watch, &ids, &f, true);
	assert_int_equal(f.marks.v[0].type, SAID_LOST);
	assert_int_equal(f.marks.v[0].number, 100);
	assert_int_equal(f.marks.v[1].number, 101);
	assert_int_equal(f.events.n, 1);
	assert_int_equal(f.events.v[0].kind, EVENT_NOTE);
	assert_int_equal(f.events.v[0].entity, 101);
	assert_true(f.events.v[0].value == 100);
	begin_frame();
	mark_watch_tick(watch, &ids, &f, true);
	assert_int_equal(f.events.n, 0); /* said once */
	ring_close(r);
}

static void fill(int rings)
{
	for (int n = 1; n <= rings; n++) {
		struct ring *r = ring_of(n);

		for (int i = 0; i < RING_SLOTS; i++)
			ring_put(r, MARK_STEP, 0, (uint64_t)i + 1, 0, clock_mono_ns());
		ring_close(r);
	}
}

static void test_bounded(void **state)
{
	size_t n = 0;

	(void)state;
	fill(6);
	open_watch();
	begin_frame();
	for (int i = 1; i <= 6; i++)
		life(LIFE_BORN, i);
	for (int i = 0; i < 6 && n < 6 * RING_SLOTS; i++) {
		mark_watch_tick(watch, &ids, &f, false);
		assert_in_range(f.marks.n, RING_SLOTS, 2 * RING_SLOTS);
		n += f.marks.n;
		begin_frame();
	}
	assert_int_equal(n, 6 * RING_SLOTS);
}

static void test_last_takes_all(void **state)
{
	(void)state;
	fill(6);
	open_watch();
	begin_frame();
	for (int n = 1; n <= 6; n++)
		life(LIFE_BORN, n);
	mark_watch_tick(watch, &ids, &f, true);
	assert_int_equal(f.marks.n, 6 * RING_SLOTS);
}

/* Whoever is not of the job waits for two seconds; who ended leaves no file. */
/* Whether the frame tells of a process that came (and went), with these numbers. */
static bool tells_of_unseen(uint32_t id, int n, bool gone_too)
{
	bool born = false, gone = false;

	for (size_t i = 0; i < f.lives.n; i++) {
		const struct life *l = &f.lives.v[i];

		if (l->id != id || l->key != PID + n || l->kind != ENTITY_PROC)
			continue;
		born |= l->change == LIFE_BORN && l->parent == ID_JOB &&
			l->start_ns == (TICKS + n) * 10 * NS_PER_MS;
		gone |= born && l->change == LIFE_GONE;
	}
	return born && gone == gone_too;
}

/* A process that nobody saw, and one that lives but is none of the job's. */
static void test_the_last_of_unseen_ones(void **state)
{
	struct ring *unseen = ring_of(1), *alive = ring_create(folder);

	(void)state;
	assert_non_null(alive);
	ring_put(unseen, MARK_STEP, 0, 20, 0, clock_mono_ns());
	ring_put(alive, MARK_STEP, 0, 7, 0, clock_mono_ns());
	open_watch();
	begin_frame();
	mark_watch_tick(watch, &ids, &f, false);
	assert_int_equal(f.marks.n, 0); /* it may be told of yet */
	begin_frame();
	mark_watch_tick(watch, &ids, &f, true);
	assert_int_equal(f.marks.n, 1);
	assert_int_equal(f.marks.v[0].number, 20);
	assert_int_equal(f.marks.v[0].entity, 1000);
	assert_true(tells_of_unseen(1000, 1, true));
	assert_int_equal(ids.next_id, 1001);
	ring_close(unseen);
	ring_close(alive);
}

static void test_strangers_and_the_ended(void **state)
{
	struct ring *late = ring_of(1), *never = ring_of(2), *ended = ring_of(3);
	struct ring *reused = ring_of(4);

	(void)state;
	ring_put(late, MARK_STEP, 0, 1, 0, clock_mono_ns());
	ring_put(never, MARK_STEP, 0, 2, 0, clock_mono_ns());
	ring_put(ended, MARK_STEP, 0, 3, 0, clock_mono_ns());
	ring_put(reused, MARK_STEP, 0, 4, 0, clock_mono_ns());
	open_watch();
	begin_frame();
	life(LIFE_BORN, 3);
	frame_life(&f, /* the pid of 4, but not its start */
		   &(struct life){ .id = 104, .kind = ENTITY_PROC, .key = PID + 4, .start_ns = 1 },
		   "other", NULL);
	mark_watch_tick(watch, &ids, &f, false);
	assert_int_equal(f.marks.n, 1);
	assert_int_equal(f.marks.v[0].number, 3);
	begin_frame();
	life(LIFE_GONE, 3);
	life(LIFE_BORN, 1);
	mark_watch_tick(watch, &ids, &f, false);
	assert_int_equal(f.marks.n, 1);
	assert_int_equal(f.marks.v[0].number, 1);
	usleep(2100000);
	begin_frame();
	life(LIFE_BORN, 2); /* late, but not too late */
	mark_watch_tick(watch, &ids, &f, false);
	assert_int_equal(f.marks.n, 2);
	for (size_t i = 0; i < 2; i++) /* that of 4 has nobody else: its process ended unseen */
		assert_int_equal(f.marks.v[i].entity, f.marks.v[i].number == 2 ? 102 : 1000);
	assert_true(tells_of_unseen(1000, 4, false));
	/* it may be alive under another number, and goes on */
	ring_put(reused, MARK_STEP, 0, 5, 0, clock_mono_ns());
	begin_frame();
	mark_watch_tick(watch, &ids, &f, false);
	assert_int_equal(f.marks.n, 1);
	assert_true(f.marks.v[0].number == 5 && f.marks.v[0].entity == 1000);
	assert_true(has_ring(1) && has_ring(2) && has_ring(4));
	assert_false(has_ring(3));
	ring_close(late);
	ring_close(never);
	ring_close(ended);
	ring_close(reused);
}

static void test_garbage(void **state)
{
	static const char *const names[] = { "x",
					     "1-2.ring",
					     "12-34.ring.x",
					     "-1-2.ring",
					     "99999999999999999999-1.ring",
					     "1-2-3.ring",
					     ".ring" };
	char path[400];

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		FILE *file;

		path_of(path, sizeof(path), names[i]);
		file = fopen(path, "w");
		assert_non_null(file);
		fputs("not a ring", file);
		fclose(file);
	}
	path_of(path, sizeof(path), "3-4.ring");
	assert_int_equal(symlink("/etc/passwd", path), 0);
	open_watch();
	for (int i = 0; i < 2; i++) {
		begin_frame();
		life(LIFE_BORN, 1);
		mark_watch_tick(watch, &ids, &f, true);
		assert_int_equal(f.marks.n, 0);
	}
	mark_watch_close(watch);
	watch = NULL;
	/* What is not ours is still there. */
	path_of(path, sizeof(path), "x");
	assert_int_equal(access(path, F_OK), 0);
}

static void test_close_removes(void **state)
{
	struct ring *r = ring_of(1);

	(void)state;
	open_watch();
	mark_watch_close(watch);
	watch = NULL;
	assert_int_equal(access(folder, F_OK), -1);
	/* Who still writes is not disturbed. */
	ring_put(r, MARK_STEP, 0, 1, 0, 1);
	ring_close(r);
}

static void test_none(void **state)
{
	struct err e = { 0 };

	(void)state;
	rmdir(folder);
	assert_int_equal(mark_watch_open(folder, &watch, &e), -ENOENT);
}

static bool is_there(const char *name)
{
	char path[400];

	snprintf(path, sizeof(path), "%s/%s", parent, name);
	return access(path, F_OK) == 0;
}

static void add(const char *name, mode_t mode, const char *file)
{
	char path[400], inside[500];

	snprintf(path, sizeof(path), "%s/%s", parent, name);
	assert_int_equal(mkdir(path, 0700), 0);
	if (file) {
		int fd;

		snprintf(inside, sizeof(inside), "%s/%s", path, file);
		fd = open(inside, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
		assert_true(fd >= 0);
		close(fd);
	}
	assert_int_equal(chmod(path, mode), 0);
}

/* What a killed recorder left goes, and nothing else. */
static void test_sweep(void **state)
{
	int held = mark_folder_hold(folder);

	(void)state;
	assert_true(held >= 0);
	add("spotter-stale1", 0700, "12-34.ring");
	add("spotter-stale2", 0700, ".12.new");
	add("spotter-other1", 0700, "notes.txt");
	add("spotter-other2", 0755, "12-34.ring");
	add("spotter-too-long", 0700, NULL);
	add("spotter-back-1", 0700, NULL);
	mark_folder_sweep_in(parent, 60);
	assert_true(is_there("spotter-stale1")); /* young */
	mark_folder_sweep_in(parent, -1);
	assert_false(is_there("spotter-stale1"));
	assert_false(is_there("spotter-stale2"));
	assert_true(is_there("spotter-other1") && is_there("spotter-other2"));
	assert_true(is_there("spotter-too-long") && is_there("spotter-back-1"));
	assert_true(is_there("spotter-abCD12"));
	close(held);
	mark_folder_sweep_in(parent, -1);
	assert_false(is_there("spotter-abCD12"));
}

static void test_make(void **state)
{
	mode_t before = umask(0777);
	char path[200];
	struct stat st;

	(void)state;
	assert_int_equal(mark_folder_make(path, sizeof(path)), 0);
	umask(before);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	mark_folder_remove(path);
	assert_int_equal(access(path, F_OK), -1);
}

int main(void)
{
#define EACH(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		EACH(test_reads_all),
		EACH(test_later_ones_are_found),
		EACH(test_lost),
		EACH(test_bounded),
		EACH(test_world),
		EACH(test_last_takes_all),
		EACH(test_strangers_and_the_ended),
		EACH(test_the_last_of_unseen_ones),
		EACH(test_garbage),
		EACH(test_close_removes),
		EACH(test_none),
		EACH(test_sweep),
		EACH(test_make),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT
 *
 * What a record costs: bytes a sample on disk, allocations a frame, memory.
 *
 * The job here is shaped after a measured one (six Python workers and a dozen threads at 10 Hz on a
 * busy machine): how often each metric changes, and how many bits its changes have. Bits that are
 * random in life are random here.
 */
#include "../unit.h"

#include "base/clock.h"
#include "base/err.h"
#include "record/reader.h"
#include "record/writer.h"
#include "world.h"

#include <malloc.h>
#include <math.h>
#include <sqlite3.h>
#include <stdlib.h>

/* Counts allocations of our own code: the linker sends them here (--wrap). */
static unsigned long allocations;

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);

void *__wrap_malloc(size_t n)
{
	allocations++;
	return __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
	allocations++;
	return __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t n)
{
	allocations++;
	return __real_realloc(p, n);
}

enum { PROCESSES = 7, THREADS = 30 };

struct job {
	struct random random;
	int64_t t_ns;
	unsigned ticks;
	int64_t host[METRICS], process[PROCESSES][METRICS], thread[THREADS][METRICS];
	struct frame frame;
};

static bool chance(struct job *j, unsigned percent)
{
	return random_below(&j->random, 100) < percent;
}

/* A number of so many bits, give or take, all of them random. */
static int64_t bits(struct job *j, unsigned low, unsigned high)
{
	unsigned n = low + (unsigned)random_below(&j->random, high - low + 1);

	return (int64_t)(random_next(&j->random) & ((1ull << n) - 1)) | (1ll << n);
}

static void host(struct job *j, enum metric_id m, unsigned percent, unsigned low, unsigned high)
{
	if (chance(j, percent))
		j->host[m] += bits(j, low, high);
	frame_put(&j->frame, m, metrics[m].entity == ENTITY_JOB ? ID_JOB : ID_HOST, j->host[m]);
}

static void step_host(struct job *j)
{
	static const enum metric_id rare[] = { M_CPU_IDLE,    M_CPU_IOWAIT,  M_CPU_IRQ,
					       M_CPU_NICE,    M_CPU_SOFTIRQ, M_CPU_STEAL,
					       M_HOST_BLOCKED };

	for (size_t i = 0; i < sizeof(rare) / sizeof(rare[0]); i++)
		host(j, rare[i], 2, 0, 1);
	host(j, M_CPU_SYSTEM, 90, 0, 3);
	host(j, M_CPU_USER, 100, 3, 4);
	host(j, M_HOST_FORKS, 78, 0, 3);
	host(j, M_HOST_RUNNING, 73, 0, 2);
	host(j, M_HOST_SWITCHES, 100, 6, 9);
	host(j, M_PSI_CPU_SOME, 90, 12, 16);
	host(j, M_PSI_MEM_SOME, 1, 3, 6);
	host(j, M_PSI_IO_SOME, 5, 8, 14);
	host(j, M_JOB_CPU, 100, 21, 26);
	host(j, M_JOB_RSS, 70, 4, 12);
	host(j, M_JOB_RUNNABLE, 60, 0, 2);
}

static void process(struct job *j, int p, enum metric_id m, int64_t more)
{
	j->process[p][m] += more;
	frame_put(&j->frame, m, ID_FIRST_FREE + (uint32_t)p, j->process[p][m]);
}

static void step_process(struct job *j, int p)
{
	if (!chance(j, 80))
		return;
	process(j, p, M_PROC_CPU, bits(j, 18, 24));
	if (chance(j, 75)) {
		int64_t reads = 1 + (int64_t)random_below(&j->random, 2);

		process(j, p, M_PROC_READS, reads);
		process(j, p, M_PROC_READ_CHARS, reads << 20);
	}
	if (chance(j, 42))
		process(j, p, M_PROC_CPU_USER, 1);
	if (chance(j, 20)) {
		int64_t pages = 256 * (1 + (int64_t)random_below(&j->random, 4));

		process(j, p, M_PROC_MINOR_FAULTS, pages);
		process(j, p, M_PROC_RSS, chance(j, 50) ? 4 * pages : -4 * pages);
		process(j, p, M_PROC_VIRTUAL, chance(j, 50) ? 4 * pages : -4 * pages);
	}
	if (chance(j, 18))
		process(j, p, M_PROC_STATE, j->process[p][M_PROC_STATE] == 'R' ? 1 : 'R' - 'S');
}

static void thread(struct job *j, int t, enum metric_id m, int64_t more)
{
	j->thread[t][m] += more;
	frame_put(&j->frame, m, ID_FIRST_FREE + PROCESSES + (uint32_t)t, j->thread[t][m]);
}

static void step_thread(struct job *j, int t)
{
	if (!chance(j, 40))
		return;
	thread(j, t, M_THREAD_CPU, bits(j, 15, 23));
	thread(j, t, M_THREAD_SLICES, chance(j, 70) ? 2 : bits(j, 0, 3));
	if (chance(j, 83))
		thread(j, t, M_THREAD_RUN_DELAY, bits(j, 16, 24));
	if (chance(j, 13))
		thread(j, t, M_THREAD_STATE, j->thread[t][M_THREAD_STATE] == 'R' ? 1 : 'R' - 'S');
}

static struct frame *job_tick(struct job *j)
{
	/* on time but for the wait for a CPU */
	j->t_ns = 1000 * NS_PER_S + ++j->ticks * 100 * NS_PER_MS + bits(j, 14, 16);
	frame_begin(&j->frame, j->t_ns, j->t_ns);
	if (j->ticks == 1) {
		for (int p = 0; p < PROCESSES; p++)
			j->process[p][M_PROC_STATE] = 'S';
		for (int t = 0; t < THREADS; t++)
			j->thread[t][M_THREAD_STATE] = 'S';
	}
	step_host(j);
	for (int p = 0; p < PROCESSES; p++)
		step_process(j, p);
	for (int t = 0; t < THREADS; t++)
		step_thread(j, t);
	return &j->frame;
}

static struct record_writer *create(const char *path, const struct job *j)
{
	struct run_info run = { .id = "x", .name = "x", .started_mono_ns = 1000 * NS_PER_S };
	struct record_options o = { .sync_every_ns = 3600 * NS_PER_S };
	struct record_writer *w = NULL;
	struct err e = { 0 };

	(void)j;
	assert_int_equal(record_create(path, &run, &o, &w, &e), 0);
	return w;
}

static double query(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *s;
	double v;

	assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &s, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(s), SQLITE_ROW);
	v = sqlite3_column_double(s, 0);
	sqlite3_finalize(s);
	return v;
}

static void test_bytes_a_sample(void **state)
{
	struct job *j = calloc(1, sizeof(*j));
	struct record_writer *w;
	struct record *r = NULL;
	struct err e = { 0 };
	char path[256];
	double samples, bytes, thin;

	(void)state;
	j->random.state = 1;
	test_path(path, sizeof(path));
	w = create(path, j);
	for (int i = 0; i < 20 * 600; i++)
		assert_int_equal(record_frame(w, job_tick(j)), 0);
	assert_int_equal(record_finish(w, NULL), 0);
	assert_int_equal(record_open(path, &r, &e), 0);
	samples = query(record_db(r), "SELECT sum(samples) FROM block WHERE level = 'minute'");
	bytes = query(record_db(r), "SELECT sum(length(data)) FROM block WHERE level = 'minute'");
	thin = query(record_db(r), "SELECT 1.0 * sum(length(data)) / sum(samples) FROM block WHERE"
				   " level = 'thin'");
	print_message("%.0f samples, %.3f bytes each as taken, %.3f when thinned to 1 Hz\n",
		      samples, bytes / samples, thin);
	assert_true(samples > 500000);
	assert_true(bytes / samples <= 1.0);
	record_close(r);
	frame_done(&j->frame);
	free(j);
	test_path_rm(path);
}

/* Once warm a frame allocates nothing, nor does a commit; only the work at a minute's end may. */
static void test_allocations(void **state)
{
	struct job *j = calloc(1, sizeof(*j));
	unsigned long by_frames = 0, by_minutes = 0;
	struct record_writer *w;
	char path[256];

	(void)state;
	j->random.state = 2;
	test_path(path, sizeof(path));
	w = create(path, j);
	for (int i = 0; i < 10 * 600; i++)
		record_frame(w, job_tick(j));
	for (int i = 0; i < 5 * 600; i++) {
		const struct frame *f = job_tick(j);
		unsigned long before = allocations;

		record_frame(w, f);
		/* the frame after a minute's end, and the commit that follows within the second */
		if ((j->t_ns - 1000 * NS_PER_S) % (60 * NS_PER_S) < 2 * NS_PER_S)
			by_minutes += allocations - before;
		else
			by_frames += allocations - before;
	}
	print_message("allocations in 5 minutes: %lu by frames and commits, %lu by minutes\n",
		      by_frames, by_minutes);
	/* a series that has a fuller minute than ever before grows its buffer */
	assert_true(by_frames <= 60);
	assert_int_equal(record_finish(w, NULL), 0);
	frame_done(&j->frame);
	free(j);
	test_path_rm(path);
}

/* A thousand busy threads do not make it grow without end. */
static void test_memory(void **state)
{
	struct frame f = { 0 };
	struct random r = { 3 };
	struct record_writer *w;
	struct job j = { 0 };
	struct mallinfo2 before, after;
	char path[256];

	(void)state;
	test_path(path, sizeof(path));
	w = create(path, &j);
	before = mallinfo2();
	for (int i = 1; i <= 900; i++) {
		frame_begin(&f, 1000 * NS_PER_S + i * 100 * NS_PER_MS, 0);
		for (uint32_t t = 0; t < 1000; t++) {
			frame_put(&f, M_THREAD_CPU, 100 + t,
				  i * 100000000ll + (int64_t)random_below(&r, 1u << 26));
			frame_put(&f, M_THREAD_RUN_DELAY, 100 + t, i * 1000000ll);
			frame_put(&f, M_THREAD_SLICES, 100 + t, i * 3);
		}
		assert_int_equal(record_frame(w, &f), 0);
	}
	after = mallinfo2();
	print_message("1000 busy threads: %.1f MB\n",
		      (double)(after.uordblks + after.hblkhd - before.uordblks - before.hblkhd) /
			  1e6);
	assert_true(after.uordblks + after.hblkhd - before.uordblks - before.hblkhd < 24u << 20);
	assert_int_equal(record_finish(w, NULL), 0);
	frame_done(&f);
	test_path_rm(path);
}

/* Ten short-lived processes a tick: what is gone is let go. */
static void test_many_short_lives(void **state)
{
	struct frame f = { 0 };
	struct record_writer *w;
	struct job j = { 0 };
	struct mallinfo2 before = { 0 }, after;
	char path[256];
	uint32_t id = 100;

	(void)state;
	test_path(path, sizeof(path));
	w = create(path, &j);
	for (int i = 1; i <= 3600; i++) {
		frame_begin(&f, 1000 * NS_PER_S + i * 100 * NS_PER_MS, 0);
		for (int k = 0; k < 10; k++, id++) {
			struct life l = { .id = id, .kind = ENTITY_PROC, .key = id };

			frame_life(&f, &l, "cc1", "cc1 -quiet x.c");
			for (int m = M_PROC_CPU; m <= M_PROC_THREADS; m++)
				frame_put(&f, (enum metric_id)m, id, id * 3 + m);
			if (id > 120) {
				l = (struct life){ .change = LIFE_GONE, .id = id - 20 };
				frame_life(&f, &l, "", NULL);
			}
		}
		assert_int_equal(record_frame(w, &f), 0);
		if (i == 1800)
			before = mallinfo2();
	}
	after = mallinfo2();
	print_message(
	    "36000 processes in 6 minutes: %.1f MB, %.1f MB more than after half of them\n",
	    (double)(after.uordblks + after.hblkhd) / 1e6,
	    ((double)(after.uordblks + after.hblkhd) - (double)(before.uordblks + before.hblkhd)) /
		1e6);
	assert_true(after.uordblks + after.hblkhd < before.uordblks + before.hblkhd + (2 << 20));
	assert_int_equal(record_finish(w, NULL), 0);
	frame_done(&f);
	test_path_rm(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bytes_a_sample),
		cmocka_unit_test(test_allocations),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_many_short_lives),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

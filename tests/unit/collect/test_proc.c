/* SPDX-License-Identifier: MIT
 *
 * The process collector over fixture roots (tests/roots/proc-*): what is odd about each is in its
 * README.
 */
#include "proc_rig.h"

#include <errno.h>
#include <math.h>

enum { TICK_NS = 10 * 1000 * 1000 };

static void test_values(void **state)
{
	struct rig r;
	uint32_t p, t;

	(void)state;
	rig_open(&r, "proc-names", 100, 0);
	rig_tick(&r, true);
	p = rig_id(&r, ENTITY_PROC, 100);
	t = rig_id(&r, ENTITY_THREAD, 100);
	assert_int_equal(rig_value(&r, M_PROC_CPU, p, -1), 10 * TICK_NS);
	assert_int_equal(rig_value(&r, M_PROC_CPU_USER, p, -1), 7);
	assert_int_equal(rig_value(&r, M_PROC_CPU_SYSTEM, p, -1), 3);
	assert_int_equal(rig_value(&r, M_PROC_CPU_CHILDREN, p, -1), 0);
	assert_int_equal(rig_value(&r, M_PROC_RSS, p, -1), 1310 * 4);
	assert_int_equal(rig_value(&r, M_PROC_RSS_SHARED, p, -1), 890 * 4);
	assert_int_equal(rig_value(&r, M_PROC_VIRTUAL, p, -1), 2574 * 4);
	assert_int_equal(rig_value(&r, M_PROC_RSS_PEAK, p, -1), 5240);
	assert_int_equal(rig_value(&r, M_PROC_SWAP, p, -1), 0);
	assert_int_equal(rig_value(&r, M_PROC_THREADS, p, -1), 2);
	assert_int_equal(rig_value(&r, M_PROC_MINOR_FAULTS, p, -1), 100);
	assert_int_equal(rig_value(&r, M_PROC_MAJOR_FAULTS, p, -1), 0);
	assert_int_equal(rig_value(&r, M_PROC_READ_CHARS, p, -1), 6976);
	assert_int_equal(rig_value(&r, M_PROC_READS, p, -1), 10);
	assert_int_equal(rig_value(&r, M_PROC_READ_BYTES, p, -1), 4096);
	assert_int_equal(rig_value(&r, M_PROC_WRITTEN_BYTES, p, -1), 0);
	assert_int_equal(rig_value(&r, M_PROC_SWITCHES, p, -1), 13);
	assert_int_equal(rig_value(&r, M_PROC_PREEMPTIONS, p, -1), 4);
	assert_int_equal(rig_value(&r, M_PROC_STATE, p, -1), 'S');
	assert_int_equal(rig_value(&r, M_THREAD_CPU, t, -1), 10 * TICK_NS + 123456);
	assert_int_equal(rig_value(&r, M_THREAD_RUN_DELAY, t, -1), 1000000);
	assert_int_equal(rig_value(&r, M_THREAD_SLICES, t, -1), 60);
	assert_int_equal(rig_value(&r, M_THREAD_STATE, t, -1), 'S');
	assert_int_equal(thread_value(&r, M_THREAD_STATE, 104), 'R');
	assert_int_equal(job_value(&r, M_JOB_PROCESSES), 3);
	assert_int_equal(job_value(&r, M_JOB_THREADS), 4);
	assert_int_equal(job_value(&r, M_JOB_RUNNABLE), 1);
	assert_int_equal(job_value(&r, M_JOB_RSS), 3 * 1310 * 4);
	/* Attached: the job's CPU counts from here. */
	assert_int_equal(job_value(&r, M_JOB_CPU), 0);
	assert_int_equal(job_value(&r, M_JOB_CPU_ENDED), 0);
	/* A kernel without smaps_rollup: no sum, and no zero. */
	assert_int_equal(job_value(&r, M_JOB_PSS), -1);
	rig_close(&r);
}

static void test_names(void **state)
{
	struct rig r;
	const struct entity *e;

	(void)state;
	rig_open(&r, "proc-names", 100, 0);
	rig_tick(&r, true);
	e = rig_find(&r, ENTITY_PROC, 100);
	assert_string_equal(e->name, "a) R (b");
	assert_string_equal(e->detail, "./a) R (b --x");
	assert_int_equal(e->parent, ID_JOB);
	assert_int_equal(e->start_ns, 5000ll * TICK_NS);
	e = rig_find(&r, ENTITY_PROC, 101);
	assert_string_equal(e->name, "two\nlines");
	assert_int_equal(e->parent, rig_id(&r, ENTITY_PROC, 100));
	e = rig_find(&r, ENTITY_PROC, 102);
	assert_string_equal(e->name, "?");
	assert_string_equal(e->detail, "");
	e = rig_find(&r, ENTITY_THREAD, 104);
	assert_string_equal(e->name, ") Z 1 2");
	assert_int_equal(e->parent, rig_id(&r, ENTITY_PROC, 100));
	assert_null(rig_find(&r, ENTITY_PROC, 103));
	assert_int_equal(rig_lives(&r, LIFE_BORN, ENTITY_PROC, 0), 3);
	assert_int_equal(rig_lives(&r, LIFE_BORN, ENTITY_THREAD, 0), 4);
	rig_close(&r);
}

/* Nothing changed: nothing is put, not even by a slow tick. */
static void test_still(void **state)
{
	struct rig r;

	(void)state;
	rig_open(&r, "proc-names", 100, 0);
	rig_tick(&r, true);
	r.ticks = 0; /* the same state again */
	rig_tick(&r, true);
	assert_int_equal(r.frame.samples.n, 0);
	assert_int_equal(r.frame.lives.n, 0);
	assert_int_equal(r.frame.gaps.n, 0);
	assert_int_equal(r.frame.events.n, 0);
	rig_close(&r);
}

static void test_vanish(void **state)
{
	struct rig r;
	uint32_t p2, p3;

	(void)state;
	rig_open(&r, "proc-vanish", 100, 0);
	rig_tick(&r, true);
	p2 = rig_id(&r, ENTITY_PROC, 102);
	p3 = rig_id(&r, ENTITY_PROC, 103);
	rig_tick(&r, true);
	assert_int_equal(rig_lives(&r, LIFE_GONE, ENTITY_PROC, p2), 1);
	assert_int_equal(rig_lives(&r, LIFE_GONE, ENTITY_PROC, p3), 0);
	assert_int_equal(rig_lives(&r, LIFE_GONE, ENTITY_THREAD, 0), 1);
	assert_non_null(rig_event(&r, EVENT_EXIT, p2));
	assert_string_equal(frame_text(&r.frame, rig_event(&r, EVENT_EXIT, p2)->text),
			    "worker (102) ended");
	assert_true(isnan(rig_event(&r, EVENT_EXIT, p2)->value));
	/* 100 waited for 102: one tick of its own, one of what 102 did last. */
	assert_int_equal(r.cpu_ns, 2 * TICK_NS);
	assert_int_equal(r.ended_ns, 1 * TICK_NS);
	rig_tick(&r, true);
	assert_int_equal(rig_lives(&r, LIFE_GONE, ENTITY_PROC, p3), 1);
	assert_int_equal(r.cpu_ns, 4 * TICK_NS);
	assert_int_equal(r.ended_ns, 2 * TICK_NS);
	assert_int_equal(job_value(&r, M_JOB_PROCESSES), 1);
	rig_close(&r);
}

static void test_reuse(void **state)
{
	struct rig r;
	uint32_t first, third;

	(void)state;
	rig_open(&r, "proc-reuse", 100, 0);
	rig_tick(&r, false);
	first = rig_id(&r, ENTITY_PROC, 102);
	third = rig_id(&r, ENTITY_PROC, 103);
	rig_tick(&r, false);
	assert_int_equal(rig_lives(&r, LIFE_GONE, ENTITY_PROC, first), 1);
	assert_int_equal(rig_lives(&r, LIFE_GONE, ENTITY_PROC, third), 1);
	assert_int_not_equal(rig_id(&r, ENTITY_PROC, 102), first);
	assert_string_equal(rig_find(&r, ENTITY_PROC, 102)->name, "second");
	assert_int_equal(rig_id(&r, ENTITY_PROC, 103), third);
	assert_int_equal(proc_value(&r, M_PROC_CPU, 102), TICK_NS);
	assert_int_equal(r.cpu_ns,
			 TICK_NS); /* 40 in kids for 40 that were known, and the new one's */
	rig_close(&r);
}

static void test_back(void **state)
{
	struct rig r;

	(void)state;
	rig_open(&r, "proc-back", 100, 0);
	rig_tick(&r, false);
	rig_tick(&r, false);
	assert_int_equal(r.frame.samples.n, 0);
	rig_tick(&r, false);
	assert_int_equal(proc_value(&r, M_PROC_CPU, 100), 72ll * TICK_NS);
	assert_int_equal(proc_value(&r, M_PROC_CPU_USER, 100), 60);
	assert_int_equal(proc_value(&r, M_PROC_MINOR_FAULTS, 100), 600);
	assert_int_equal(proc_value(&r, M_PROC_READ_CHARS, 100), 1100);
	assert_int_equal(proc_value(&r, M_PROC_WRITTEN_BYTES, 100), 12288);
	assert_int_equal(thread_value(&r, M_THREAD_CPU, 100), 700000000);
	assert_int_equal(r.cpu_ns, (72 - 60 + 35 - 30) * (int64_t)TICK_NS);
	rig_close(&r);
}

static void test_exec(void **state)
{
	struct rig r;
	uint32_t p;

	(void)state;
	rig_open(&r, "proc-exec", 100, 0);
	rig_tick(&r, false);
	assert_string_equal(rig_find(&r, ENTITY_PROC, 100)->detail, "sh -c exec python3 train.py");
	rig_tick(&r, false);
	p = rig_id(&r, ENTITY_PROC, 100);
	assert_int_equal(rig_lives(&r, LIFE_CHANGED, ENTITY_PROC, p), 1);
	assert_non_null(rig_event(&r, EVENT_EXEC, p));
	assert_string_equal(frame_text(&r.frame, rig_event(&r, EVENT_EXEC, p)->text),
			    "sh (100) became python3");
	assert_string_equal(rig_find(&r, ENTITY_PROC, 100)->name, "python3");
	assert_string_equal(rig_find(&r, ENTITY_PROC, 100)->detail, "python3 train.py");
	assert_string_equal(rig_find(&r, ENTITY_THREAD, 100)->name, "python3");
	/* A new name is not a new program ... */
	p = rig_id(&r, ENTITY_PROC, 101);
	assert_int_equal(rig_lives(&r, LIFE_CHANGED, ENTITY_PROC, p), 1);
	assert_null(rig_event(&r, EVENT_EXEC, p));
	/* ... a new program may have the old name ... */
	p = rig_id(&r, ENTITY_PROC, 102);
	assert_non_null(rig_event(&r, EVENT_EXEC, p));
	assert_string_equal(rig_find(&r, ENTITY_PROC, 102)->detail, "same again");
	/* ... and where that cannot be told apart it is taken for one. */
	assert_non_null(rig_event(&r, EVENT_EXEC, rig_id(&r, ENTITY_PROC, 103)));
	/* One that was met in the middle of an exec is asked again. */
	p = rig_id(&r, ENTITY_PROC, 104);
	assert_int_equal(rig_lives(&r, LIFE_CHANGED, ENTITY_PROC, p), 1);
	assert_null(rig_event(&r, EVENT_EXEC, p));
	assert_string_equal(rig_find(&r, ENTITY_PROC, 104)->detail, "same again");
	rig_close(&r);
}

static void test_hidepid(void **state)
{
	struct rig r;

	(void)state;
	rig_open(&r, "proc-hidepid", 0, 0);
	rig_tick(&r, false);
	assert_int_equal(job_value(&r, M_JOB_PROCESSES), 3);
	assert_int_equal(rig_find(&r, ENTITY_PROC, 310)->parent, rig_id(&r, ENTITY_PROC, 300));
	assert_int_equal(rig_find(&r, ENTITY_PROC, 300)->parent, ID_JOB);
	rig_close(&r);
}

static void test_zombie(void **state)
{
	struct rig r;
	uint32_t p;

	(void)state;
	rig_open(&r, "proc-zombie", 100, 0);
	rig_tick(&r, true);
	assert_int_equal(job_value(&r, M_JOB_PROCESSES), 3);
	rig_tick(&r, true);
	assert_int_equal(job_value(&r, M_JOB_PROCESSES), 1);
	assert_int_equal(proc_value(&r, M_PROC_STATE, 101), 'Z');
	assert_int_equal(proc_value(&r, M_PROC_RSS, 101), 0);
	assert_int_equal(rig_lives(&r, LIFE_GONE, ENTITY_PROC, 0), 0);
	p = rig_id(&r, ENTITY_PROC, 101);
	rig_tick(&r, true);
	assert_int_equal(rig_lives(&r, LIFE_GONE, ENTITY_PROC, p), 1);
	assert_string_equal(frame_text(&r.frame, rig_event(&r, EVENT_EXIT, p)->text),
			    "worker (101) ended with status 3");
	assert_true(rig_event(&r, EVENT_EXIT, p)->value == 3);
	assert_int_equal(r.cpu_ns, 0); /* its time went to its parent, to the tick */
	rig_close(&r);
}

static void test_threads(void **state)
{
	struct rig r;
	uint32_t late;

	(void)state;
	rig_open(&r, "proc-threads", 100, 0);
	rig_tick(&r, true);
	assert_int_equal(rig_lives(&r, LIFE_BORN, ENTITY_THREAD, 0), 40);
	assert_int_equal(job_value(&r, M_JOB_THREADS), 40);
	assert_int_equal(job_value(&r, M_JOB_RUNNABLE), 0);
	/* 12 of the first thread and 5, 10, ... 195 of the others */
	assert_int_equal(proc_value(&r, M_PROC_SWITCHES, 100), 12 + 5 * 39 * 40 / 2);
	assert_int_equal(proc_value(&r, M_PROC_PSS, 100), 2620);
	assert_int_equal(proc_value(&r, M_PROC_USS, 100), 48 + 1116);
	assert_int_equal(job_value(&r, M_JOB_PSS), 2620);
	rig_tick(&r, true);
	assert_int_equal(rig_lives(&r, LIFE_BORN, ENTITY_THREAD, 0), 1);
	assert_int_equal(rig_lives(&r, LIFE_GONE, ENTITY_THREAD, rig_id(&r, ENTITY_THREAD, 105)),
			 1);
	assert_int_equal(rig_lives(&r, LIFE_GONE, ENTITY_THREAD, 0), 1);
	assert_int_equal(rig_lives(&r, LIFE_CHANGED, ENTITY_THREAD, 0), 1);
	assert_string_equal(rig_find(&r, ENTITY_THREAD, 110)->name, "loader");
	assert_int_equal(thread_value(&r, M_THREAD_CPU, 120), 20500000);
	assert_int_equal(thread_value(&r, M_THREAD_SLICES, 121), 211);
	assert_int_equal(thread_value(&r, M_THREAD_RUN_DELAY, 120), -1); /* has not changed */
	assert_int_equal(thread_value(&r, M_THREAD_CPU, 122), -1);
	assert_int_equal(thread_value(&r, M_THREAD_STATE, 140), 'D');
	assert_int_equal(job_value(&r, M_JOB_RUNNABLE), 2);
	/* The one that ended stays in the sum: 1 more of the first, 1 of the new one. */
	assert_int_equal(proc_value(&r, M_PROC_SWITCHES, 100), 12 + 5 * 39 * 40 / 2 + 2);
	late = rig_id(&r, ENTITY_THREAD, 140);
	rig_tick(&r, true);
	assert_int_equal(rig_lives(&r, LIFE_GONE, ENTITY_THREAD, late), 1);
	assert_int_equal(rig_lives(&r, LIFE_BORN, ENTITY_THREAD, 0), 0);
	assert_int_equal(job_value(&r, M_JOB_THREADS), 39);
	rig_close(&r);
}

static void test_missing_files(void **state)
{
	struct rig r;
	uint32_t p;

	(void)state;
	rig_open(&r, "proc-noio", 100, 0);
	rig_tick(&r, true);
	p = rig_id(&r, ENTITY_PROC, 100);
	assert_int_equal(rig_value(&r, M_PROC_READ_BYTES, p, -1), -1);
	assert_int_equal(rig_gaps(&r, M_PROC_READ_BYTES, p, GAP_NOT_SUPPORTED), 1);
	assert_int_equal(rig_gaps(&r, M_PROC_WRITES, p, GAP_NOT_SUPPORTED), 1);
	assert_int_equal(rig_gaps(&r, M_PROC_PSS, p, GAP_NOT_SUPPORTED), 1);
	assert_int_equal(rig_gaps(&r, M_THREAD_RUN_DELAY, ID_JOB, GAP_NOT_SUPPORTED), 1);
	/* The thread's CPU time comes from its stat then, in ticks; the rest is absent, not zero.
	 * */
	assert_int_equal(thread_value(&r, M_THREAD_CPU, 101), 3 * TICK_NS);
	assert_int_equal(thread_value(&r, M_THREAD_RUN_DELAY, 101), -1);
	assert_int_equal(thread_value(&r, M_THREAD_SLICES, 101), -1);
	r.ticks = 0;
	rig_tick(&r, true);
	assert_int_equal(r.frame.gaps.n, 0); /* told once */
	assert_int_equal(r.frame.samples.n, 0);
	rig_close(&r);
}

static void test_orphans(void **state)
{
	struct rig r;

	(void)state;
	rig_open(&r, "proc-orphan", 100, 50);
	rig_tick(&r, false);
	assert_int_equal(job_value(&r, M_JOB_PROCESSES), 7);
	assert_null(rig_find(&r, ENTITY_PROC, 50));
	assert_null(rig_find(&r, ENTITY_PROC, 110));
	assert_int_equal(rig_find(&r, ENTITY_PROC, 104)->parent, rig_id(&r, ENTITY_PROC, 103));
	assert_int_equal(rig_find(&r, ENTITY_PROC, 106)->parent, rig_id(&r, ENTITY_PROC, 107));
	/* Started by us: all of it counts. */
	assert_int_equal(r.cpu_ns, (10 + 5 + 20 + 30 + 40 + 1 + 1) * TICK_NS);
	assert_int_equal(r.ended_ns, 0);
	rig_tick(&r, false); /* 102 ended with 20 seen, 25 paid */
	assert_int_equal(job_value(&r, M_JOB_PROCESSES), 6);
	assert_int_equal(r.cpu_ns, (107 + 5) * TICK_NS);
	assert_int_equal(r.ended_ns, 5 * TICK_NS);
	rig_tick(&r, false); /* 103 and 104: 70 seen, 80 paid to the reaper */
	assert_int_equal(job_value(&r, M_JOB_PROCESSES), 4);
	assert_int_equal(r.cpu_ns, (107 + 5 + 10) * TICK_NS);
	rig_tick(&r, false); /* 101: 5 own and 25 kids seen, nothing paid: kept */
	assert_int_equal(job_value(&r, M_JOB_PROCESSES), 3);
	assert_int_equal(r.cpu_ns, (107 + 5 + 10) * TICK_NS);
	assert_int_equal(r.ended_ns, 15 * TICK_NS);
	rig_close(&r);
}

/* Attached to 101: 103, once a member, stays one when it falls to somebody outside. */
static void test_attached_orphan(void **state)
{
	struct rig r;

	(void)state;
	rig_open(&r, "proc-orphan", 101, 0);
	rig_tick(&r, false);
	assert_int_equal(job_value(&r, M_JOB_PROCESSES), 4);
	rig_tick(&r, false);
	assert_int_equal(job_value(&r, M_JOB_PROCESSES), 3);
	assert_int_equal(rig_lives(&r, LIFE_GONE, ENTITY_PROC, 0), 1);
	assert_int_equal(r.cpu_ns, 5 * TICK_NS);
	rig_tick(&r, false);
	assert_int_equal(job_value(&r, M_JOB_PROCESSES), 1);
	rig_tick(&r, false);
	assert_int_equal(job_value(&r, M_JOB_PROCESSES), 0);
	assert_int_equal(r.cpu_ns,
			 5 * TICK_NS); /* nothing is lost with those nobody of ours waited for */
	rig_close(&r);
}

static void test_kernel_threads(void **state)
{
	struct rig r;

	(void)state;
	rig_open(&r, "proc-kernel", 0, 0);
	rig_tick(&r, true);
	assert_int_equal(job_value(&r, M_JOB_PROCESSES), 1);
	rig_close(&r);

	rig_open(&r, "proc-kernel", 2, 0);
	rig_tick(&r, true);
	assert_int_equal(job_value(&r, M_JOB_PROCESSES), 2);
	assert_int_equal(proc_value(&r, M_PROC_RSS_PEAK, 30), -1);
	assert_int_equal(proc_value(&r, M_PROC_SWITCHES, 30), 12);
	assert_int_equal(strlen(rig_find(&r, ENTITY_PROC, 30)->name), 63);
	assert_string_equal(rig_find(&r, ENTITY_PROC, 30)->detail, "");
	rig_close(&r);
}

/* For the sanitizer: nothing overflows. */
static void test_absurd(void **state)
{
	struct rig r;

	(void)state;
	rig_open(&r, "proc-absurd", 100, 50);
	rig_tick(&r, true);
	assert_int_equal(job_value(&r, M_JOB_PROCESSES), 10);
	assert_true(r.cpu_ns > 0);
	assert_true(job_value(&r, M_JOB_RSS) > 0);
	assert_int_equal(job_value(&r, M_JOB_RUNNABLE), 11);
	rig_tick(&r, true);
	assert_int_equal(rig_lives(&r, LIFE_GONE, ENTITY_PROC, 0), 10); /* another start time */
	assert_true(job_value(&r, M_JOB_CPU) == -1 || job_value(&r, M_JOB_CPU) > 0);
	rig_close(&r);
}

static void test_no_proc(void **state)
{
	struct rig r = { 0 };
	struct err e = { 0 };

	(void)state;
	assert_int_equal(host_open(&r.host, ROOTS "/proc-names/t0/proc/100/task", &e), 0);
	r.collect = (struct collect){ .host = &r.host, .next_id = ID_FIRST_FREE, .thrift = 1 };
	r.state = calloc(1, proc_collector.state_size);
	assert_int_equal(proc_collector.open(&r.collect, r.state, &r.frame), -ENOENT);
	free(r.state);
	host_close(&r.host);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),        cmocka_unit_test(test_names),
		cmocka_unit_test(test_still),         cmocka_unit_test(test_vanish),
		cmocka_unit_test(test_reuse),         cmocka_unit_test(test_back),
		cmocka_unit_test(test_exec),          cmocka_unit_test(test_hidepid),
		cmocka_unit_test(test_zombie),        cmocka_unit_test(test_threads),
		cmocka_unit_test(test_orphans),       cmocka_unit_test(test_attached_orphan),
		cmocka_unit_test(test_no_proc),       cmocka_unit_test(test_kernel_threads),
		cmocka_unit_test(test_missing_files), cmocka_unit_test(test_absurd),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

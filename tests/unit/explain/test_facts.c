/* SPDX-License-Identifier: MIT
 *
 * Facts whose value is known beforehand.
 */
#include "../unit.h"

#include "scenario.h"

#include "explain/fact.h"
#include "explain/scene.h"

#include <math.h>

/* Facts of a scenario given as text, over all of it. */
static void compute(const char *text, struct facts *f)
{
	struct scenario s = { 0 };
	struct history *h;
	struct window w;
	struct scene scene;

	scenario_parse(&s, text);
	h = scenario_play(&s, M_NONE, 0);
	w = history_window(h, 0);
	assert_int_equal(scene_open(&scene, &w, w.from_ns, w.to_ns), 0);
	facts_compute(&scene, f);
	scene_done(&scene);
	history_free(h);
	scenario_done(&s);
}

static void is(const struct facts *f, enum fact_id id, double value)
{
	if (!f->v[id].known)
		fail_msg("%s is absent: %s", fact_infos[id].name, f->v[id].why);
	if (!near(value, f->v[id].value, 1e-6) && fabs(value - f->v[id].value) > 1e-9)
		fail_msg("%s is %g, not %g", fact_infos[id].name, f->v[id].value, value);
	assert_true(f->v[id].low <= f->v[id].value && f->v[id].value <= f->v[id].high);
}

static void is_absent(const struct facts *f, enum fact_id id, const char *why)
{
	assert_false(f->v[id].known);
	if (!strstr(f->v[id].why, why))
		fail_msg("%s: '%s' does not say '%s'", fact_infos[id].name, f->v[id].why, why);
}

static struct facts f;

static void cores(void **state)
{
	(void)state;
	compute("run 100\nexit 0\njob.cpu 0 642\njob.cores_affinity 8\njob.cores_allowed 8\n"
		"cpu.online 16\ncpu.user 0 800\ncpu.nice 0 10\ncpu.system 0 40\ncpu.irq 0 1\n"
		"cpu.softirq 0 1\ncpu.idle 0 700\ncpu.iowait 0 8\ncpu.steal 0 40\nself.cpu 0 0.5\n",
		&f);
	is(&f, FACT_CORES_USED, 6.42);
	is(&f, FACT_CORES_ALLOWED, 8);
	assert_string_equal(f.v[FACT_CORES_ALLOWED].text, "affinity");
	is(&f, FACT_CORES_MACHINE, 16);
	is(&f, FACT_CORES_OTHERS, (852 - 642 - 0.5) / 100);
	is(&f, FACT_USAGE_STEAL, 40.0 / 1600);
	is_absent(&f, FACT_CORES_QUOTA, "cgroup.cpu_quota");
	is_absent(&f, FACT_QUOTA_THROTTLED, "no control group");
	is_absent(&f, FACT_THREADS_READY, "thread.run_delay");
}

/* Which limit it is; a quota as large as the affinity stops nothing. */
static void limits(void **state)
{
	(void)state;
	compute("run 10\njob.cores_affinity 8\njob.cores_allowed 2.5\ncpu.online 16\ncgroup 40 x\n"
		"cgroup.cpu_quota 2.5\n",
		&f);
	assert_string_equal(f.v[FACT_CORES_ALLOWED].text, "quota");
	compute("run 10\njob.cores_affinity 2\njob.cores_allowed 2\ncpu.online 16\ncgroup 40 x\n"
		"cgroup.cpu_quota 2\n",
		&f);
	assert_string_equal(f.v[FACT_CORES_ALLOWED].text, "affinity");
	compute("run 10\njob.cores_affinity 16\njob.cores_allowed 16\ncpu.online 16\n", &f);
	assert_string_equal(f.v[FACT_CORES_ALLOWED].text, "machine");
	/* the collector's figure is missing: the least of what is known */
	compute("run 10\nmachine 16 2\njob.cores_affinity 6\ncgroup 40 x\ncgroup.cpu_quota 4\n",
		&f);
	is(&f, FACT_CORES_ALLOWED, 4);
	assert_string_equal(f.v[FACT_CORES_ALLOWED].text, "quota");
	/* of two groups the tighter */
	compute(
	    "run 10\ncgroup 40 pod\ncgroup 41 container\ncgroup.cpu_quota@40 3\n"
	    "cgroup.cpu_quota@41 5\ncgroup.throttled_periods@40 0 10\ncgroup.periods@40 0 100\n",
	    &f);
	is(&f, FACT_CORES_QUOTA, 3);
	is(&f, FACT_QUOTA_THROTTLED, 0.1);
}

/* One reading of a counter is not a growth of 0. */
static void one_reading(void **state)
{
	(void)state;
	compute("run 0.2 hz 1\ncpu.user 100\ncpu.nice 0\ncpu.system 10\ncpu.irq 0\ncpu.softirq 0\n"
		"vm.oom_kills 3\njob.cpu 0.1\n",
		&f);
	is_absent(&f, FACT_OOM_MACHINE, "vm.oom_kills");
	is_absent(&f, FACT_USAGE_OTHERS, "");
}

/* n threads that always want to run, q cores of quota: everything stands still 1 - q/n of the time. */
static void quota_lost(void **state)
{
	(void)state;
	compute("run 10\njob.cpu 0 20\njob.threads 8\njob.cores_affinity 16\ncpu.online 16\n"
		"job.cores_allowed 2\ncgroup 40 x\ncgroup.cpu_quota 2\ncgroup.periods 0 100\n"
		"cgroup.throttled_periods 0 100\ncgroup.throttled 0 60\n",
		&f);
	is(&f, FACT_QUOTA_THROTTLED, 1);
	is(&f, FACT_QUOTA_LOST, 0.75);
	assert_true(near(f.v[FACT_QUOTA_LOST].high, 0.75, 1e-9));
	/* one queue at a time stood still: anything between 6/8 of a tenth and all of it */
	compute("run 10\njob.cpu 0 15\njob.threads 8\njob.cores_affinity 16\ncpu.online 16\n"
		"cgroup 40 x\ncgroup.cpu_quota 2\ncgroup.periods 0 100\n"
		"cgroup.throttled_periods 0 50\ncgroup.throttled 0 1\n",
		&f);
	is(&f, FACT_QUOTA_LOST, 0.0125);
	assert_true(near(f.v[FACT_QUOTA_LOST].high, 0.1, 1e-6));
	/* no quota: no figure and no gap; unreadable: a gap */
	compute("run 10\ncgroup 40 x\ncgroup.cpu 0 5\n", &f);
	is(&f, FACT_QUOTA_THROTTLED, 0);
	compute("run 10\ncgroup 40 x\ncgroup.cpu 0 5\ngap cgroup.cpu_quota no_permission\n", &f);
	is_absent(&f, FACT_QUOTA_THROTTLED, "cgroup.throttled_periods");
}

static void ready_threads(void **state)
{
	(void)state;
	compute("run 10\nprocess 20 100 python3\nprocess 21 101 worker from 5\n"
		"job.cpu 0 24\nproc.cpu@20 0 16\nproc.cpu@21 0 8\n"
		"thread 30 20 100 python3\nthread.cpu@30 0 8\nthread.run_delay@30 0 1\n"
		"thread.slices@30 0 100\npool 20 1 8 2 50\npool 21 2 4 1 20\n",
		&f);
	is(&f, FACT_THREADS_DELAY, 5.0 / 24);
	is(&f, FACT_THREADS_READY, 29.0 / 10);
	is(&f, FACT_THREADS_SWITCHES, 19);
	is(&f, FACT_MAIN_DELAY, 0.1);
	is(&f, FACT_MAIN_BLOCKED, 0.1);
	/* 1.9 ready threads for 10 s, 2 for 5 s */
	is(&f, FACT_POOL_PROCESSES, 1.5);
	is(&f, FACT_POOL_THREADS, 29.0 / 15);
	is(&f, FACT_POOL_SHARE, 1);
	assert_string_equal(f.v[FACT_POOL_PROCESSES].text, "python3");
}

static void memory(void **state)
{
	(void)state;
	compute("run 100\nexit 0\nprocess 20 100 python3\nprocess 21 101 worker\njob.processes 2\n"
		"job.rss 0:2048e6 100:4096e6\njob.pss 1024e6\nproc.rss@20 1024e6\n"
		"proc.rss@21 0:1024e6 40:1024e6 100:3072e6\nmem.total 65536e6\n",
		&f);
	/* several processes: shared pages count once */
	is(&f, FACT_MEMORY_USED, 1024e6);
	is(&f, FACT_MEMORY_PEAK, 3072e6); /* the largest process alone had more */
	is(&f, FACT_MEMORY_ALLOWED, 65536e6);
	assert_string_equal(f.v[FACT_MEMORY_ALLOWED].text, "machine");
	assert_string_equal(f.v[FACT_MEMORY_LARGEST].text, "worker");
	assert_true(near(f.v[FACT_MEMORY_GROWTH].value, 2048e6 / 60, 0.01));
}

/* Foreign names reach texts made safe. */
static void hostile_name(void **state)
{
	(void)state;
	compute("run 10\nprocess 20 100 a\033]0;x\007b\nproc.rss@20 1e6\n", &f);
	assert_string_equal(f.v[FACT_MEMORY_LARGEST].text, "a?]0;x?b");
}

static void rounding(void **state)
{
	(void)state;
	assert_true(fact_round(0.49500000000000044) == 0.495);
	assert_true(fact_round(0.1 + 0.2) == 0.3);
	assert_true(fact_round(-1995949495) == -1995949495);
	assert_true(fact_round(123456789012345) == 123456789012000);
	assert_true(fact_round(0) == 0 && isnan(fact_round(NAN)) && isinf(fact_round(INFINITY)));
	assert_true(fact_round(1e-300) == 1e-300);
	/* more than any machine has: an edited record */
	assert_true(isnan(fact_round(1e300)) && isnan(fact_round(-1e300)));
	assert_int_equal(fact_whole(3.9), 3);
	assert_int_equal(fact_whole(-1), 0);
	assert_int_equal(fact_whole(1e300), 1000000);
	assert_int_equal(fact_whole(NAN), 0);
}

static void vocabulary(void **state)
{
	(void)state;
	for (int i = 0; i < FACTS; i++) {
		assert_true(fact_infos[i].name[0] && fact_infos[i].unit[0] &&
			    fact_infos[i].help[0]);
		assert_in_range(fact_infos[i].level, 0, 3);
		for (int k = 0; k < i; k++)
			assert_string_not_equal(fact_infos[i].name, fact_infos[k].name);
	}
	compute("run 10\n", &f);
	for (int i = 0; i < FACTS; i++)
		assert_true(f.v[i].known ? isfinite(f.v[i].value) : f.v[i].why[0] != '\0');
}

/* One thread on one core: shares of its time, and where they are. */
static void stacks(void **state)
{
	(void)state;
	compute("run 100\nprocess 20 100 python3\nthread 30 20 100 python3\njob.cpu 0 80\n"
		"thread.cpu@30 0 80\nthread.run_delay@30 0 0\n"
		"place 1 /a/train.py 10 main\nplace 2 /a/train.py 11 main\n"
		"place 3 /a/data.py 5 load_batch source x = y[i]\n"
		"place 4 /a/data.py 6 load_batch source x = np.abs(y)\n"
		"place 5 /usr/lib/python3/dist-packages/PIL/Image.py 900 Image.convert\n"
		"native 6 /usr/lib/libjpeg.so.62\nnative 7 /usr/bin/python3.11\n"
		"stack 1 = 1 3\nstack 2 = 1 4\nstack 3 = 1 3 5\nstack 4 = 2\nstack 5 = 1 3 6\n"
		"stack 6 = 1 3 7\n"
		"does 30 1 running 0.2 gil\ndoes 30 2 running 0.1 gil\ndoes 30 3 running 0.1 gil\n"
		"does 30 5 running 0.1\ndoes 30 6 running 0.1 gil\ndoes 30 4 running 0.2 gil\n"
		"does 30 4 gil 0.2\n",
		&f);
	is(&f, FACT_TIME_DATA_LOAD, 0.6);
	is(&f, FACT_TIME_PYTHON, 0.2);
	is(&f, FACT_GIL_WAIT, 0.2);
	is(&f, FACT_TIME_UNACCOUNTED, 0);
	is(&f, FACT_LOADER_WORKERS, 0);
	/* of 0.6: line 5 itself and in the interpreter; line 6 may call C, PIL is not the program */
	is(&f, FACT_LOAD_CPU, 0.6);
	is(&f, FACT_LOAD_PYTHON, 0.5);
	assert_true(f.v[FACT_LOAD_PYTHON].high > 0.5 + 0.1 / 0.6);
	assert_string_equal(f.v[FACT_LOAD_PYTHON].text, "data.py:5");
	is(&f, FACT_LOAD_NATIVE, 1.0 / 3);
	/* main has the loop: line 10 gets the data, line 11 does the rest */
	is(&f, FACT_LOADER_LINE, 0.6);
	assert_string_equal(f.v[FACT_LOADER_LINE].text, "train.py:10");
	is(&f, FACT_LOADER_FRAMEWORK, 0);
	is_absent(&f, FACT_CORES_FREE, "job.cores_allowed");
}

/* The loop does nothing itself, and its caller does now and then: the loop has the line all the same. A
 * library's loop has none that its user could change. */
static void line_of_the_loop(void **state)
{
	static const char *const text =
	    "run 100\nprocess 20 100 python3\nthread 30 20 100 python3\n"
	    "place 1 /a/train.py 90 main\nplace 2 %s/train.py 10 fit\n"
	    "place 3 %s/train.py 11 fit\nplace 4 /a/train.py 20 load_batch\n"
	    "place 5 /a/train.py 30 step\nstack 1 = 1 2 4\nstack 2 = 1 3 5\nstack 3 = 1\n"
	    "does 30 1 running 0.5\ndoes 30 2 running 0.4\ndoes 30 3 running 0.1\n";
	char own[1024], library[1024];

	(void)state;
	snprintf(own, sizeof(own), text, "/a", "/a");
	snprintf(library, sizeof(library), text, "/x/site-packages/fast", "/x/site-packages/fast");
	compute(own, &f);
	assert_string_equal(f.v[FACT_LOADER_LINE].text, "train.py:10");
	compute(library, &f);
	assert_string_equal(f.v[FACT_LOADER_LINE].text, "train.py:90");
}

/* One that does next to nothing but wait is not seen elsewhere in its loop: the loop has the line all the same, and not
 * what called it. */
static void line_of_a_loop_that_waits(void **state)
{
	static const char text[] = "run 100\nprocess 20 100 python3\nthread 30 20 100 python3\n"
				   "place 1 /a/train.py 90 <module> source train(options)\n"
				   "place 2 /a/train.py 10 train source for x, y in loader:\n"
				   "place 3 /x/site-packages/torch/utils/data/dataloader.py 1011 "
				   "_MultiProcessingDataLoaderIter._try_get_data\n"
				   "place 4 /a/train.py 80 <module> source options = parse()\n"
				   "stack 1 = 1 2 3\nstack 2 = 4\n"
				   "does 30 1 poll 0.95 on pipe\ndoes 30 2 running 0.05\n";

	(void)state;
	compute(text, &f);
	assert_string_equal(f.v[FACT_LOADER_LINE].text, "train.py:10");
}

/* Workers of a pool that never load are there for something else; a worker's helpers are no workers. */
static void crew(void **state)
{
	(void)state;
	compute("run 100\nprocess 20 100 python3\nthread 30 20 100 python3\njob.cpu 0 80\n"
		"process 21 101 python3 from 50\nthread 31 21 101 python3\nthread 32 21 102 x\n"
		"thread 33 20 103 python3\nthread.cpu@30 0 20\nthread.run_delay@30 0 0\n"
		"thread.cpu@31 0 25\nthread.run_delay@31 0 5\nthread.cpu@32 0 0\n"
		"thread.run_delay@32 0 0\nthread.cpu@33 0 0\nthread.run_delay@33 0 0\n"
		"place 1 train.py 10 main\n"
		"place 2 /usr/lib/python3/site-packages/torch/utils/data/_utils/worker.py 9 "
		"_worker_loop\n"
		"place 3 data.py 5 D.__getitem__\n"
		"place 4 /usr/lib/python3.11/concurrent/futures/thread.py 81 _worker\n"
		"place 5 /usr/lib/python3.11/multiprocessing/queues.py 103 Queue.get\n"
		"stack 1 = 1\nstack 2 = 2 3\nstack 3 = 2 5\nstack 4 = 4\n"
		"does 30 1 running 0.2\ndoes 30 1 sleep 0.8\ndoes 31 2 running 0.6\n"
		"does 31 2 disk 0.1\ndoes 31 3 pipe 0.3\ndoes 32 2 lock 1\ndoes 33 4 lock 1\n",
		&f);
	is(&f, FACT_LOADER_WORKERS, 0.5);
	assert_string_equal(f.v[FACT_LOADER_WORKERS].text, "processes");
	is(&f, FACT_LOADER_BUSY, 0.5);
	is(&f, FACT_LOADER_QUEUED, 0.1);
	is(&f, FACT_LOADER_STORAGE, 0.1);
	is(&f, FACT_LOADER_IDLE, 0.3);
	assert_string_equal(f.v[FACT_LOADER_FRAMEWORK].text, "torch");
	/* too little to speak of, and nothing at all */
	compute("run 1\nprocess 20 100 x\nthread 30 20 100 x\nplace 1 a.py 1 f\nstack 1 = 1\n"
		"does 30 1 running 0.6\n",
		&f);
	is_absent(&f, FACT_TIME_DATA_LOAD, "too few stacks");
	compute("run 10\nprocess 20 100 x\nthread 30 20 100 x\n", &f);
	is_absent(&f, FACT_TIME_DATA_LOAD, "no stacks");
	is_absent(&f, FACT_GIL_WAIT, f.v[FACT_TIME_DATA_LOAD].why);
	is_absent(&f, FACT_LOADER_IDLE, f.v[FACT_TIME_DATA_LOAD].why);
	is_absent(&f, FACT_LOAD_PYTHON, f.v[FACT_TIME_DATA_LOAD].why);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cores),
		cmocka_unit_test(limits),
		cmocka_unit_test(one_reading),
		cmocka_unit_test(quota_lost),
		cmocka_unit_test(ready_threads),
		cmocka_unit_test(memory),
		cmocka_unit_test(rounding),
		cmocka_unit_test(hostile_name),
		cmocka_unit_test(vocabulary),
		cmocka_unit_test(stacks),
		cmocka_unit_test(crew),
		cmocka_unit_test(line_of_the_loop),
		cmocka_unit_test(line_of_a_loop_that_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT
 *
 * What threads did, from stacks: each sample's state, its weight against the kernel's accounts, and
 * the two ledgers made of it. Roles: test_activity_roles.c.
 */
#include "../unit.h"

#include "activity_world.h"
#include "explain/render.h"

#include <math.h>

static void balances(const struct act_thread *t)
{
	double sum = t->unaccounted;

	assert_true(t->unaccounted >= 0);
	for (int i = 0; i < TIME_STATES; i++) {
		assert_true(t->state[i] >= 0);
		sum += t->state[i];
	}
	assert_true(fabs(sum - t->alive) < 1e-9);
}

static void each_state(void **state)
{
	static const struct {
		const char *does;
		enum time_state state;
		bool matched;
	} rows[] = {
		{ "2 poll 1 on pipe", TIME_DATA_WAIT, true },
		{ "2 lock 1", TIME_DATA_WAIT, true },
		{ "2 running 1", TIME_DATA_WAIT, true },
		{ "2 gil 1", TIME_LOCK_WAIT, true },
		{ "17 poll 1 on pipe", TIME_DATA_WAIT, true },
		{ "3 running 1", TIME_DATA_LOAD, true },
		{ "3 disk 1", TIME_DATA_LOAD, true },
		{ "3 sleep 1", TIME_DATA_LOAD, true },
		{ "3 page_fault 1", TIME_DATA_LOAD, true }, /* a mapped file */
		{ "11 page_fault 1", TIME_MEMORY_STALL, true },
		{ "4 running 1", TIME_DISPATCH, true },
		{ "4 lock 1", TIME_LOCK_WAIT, true },
		{ "4 gpu_driver 1", TIME_GPU_WAIT, true },
		{ "14 lock 1", TIME_GPU_WAIT, true },
		{ "14 running 1", TIME_GPU_WAIT, true },
		{ "20 lock 1", TIME_DISPATCH, true },
		{ "5 running 1", TIME_GPU_WAIT, true },
		{ "5 lock 1", TIME_GPU_WAIT, true },
		{ "19 running 1", TIME_PYTHON, false },
		{ "6 running 1", TIME_TRANSFER, true },
		{ "7 running 1", TIME_IO, true },
		{ "7 disk 1", TIME_IO, true },
		{ "10 lock 1", TIME_COMM_WAIT, true },
		{ "10 running 1", TIME_COMM_WAIT, true },
		{ "16 poll 1 on pipe", TIME_DATA_WAIT, true },
		{ "11 running 1", TIME_PYTHON, false },
		{ "11 lock 1", TIME_LOCK_WAIT, false },
		{ "11 disk 1", TIME_IO, false },
		{ "11 sleep 1", TIME_IDLE, false },
		{ "11 child 1", TIME_IDLE, false },
		{ "11 socket 1", TIME_IDLE, false },
		{ "11 poll 1", TIME_IDLE, false },
		{ "11 pipe 1", TIME_OTHER, false },
		{ "11 poll 1 on gpu_driver", TIME_GPU_WAIT, false },
		{ "0 running 1 python", TIME_PYTHON, false },
		{ "0 running 1", TIME_OTHER, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct world x;
		char text[80];

		snprintf(text, sizeof(text), "gpu 50 0 H100\ngpu.busy@50 0.9\ndoes 30 %s\n",
			 rows[i].does);
		open_world(&x, text);
		if (x.scene.activity.rows.v[0].state != rows[i].state ||
		    x.scene.activity.rows.v[0].unknown ||
		    x.scene.activity.rows.v[0].matched != rows[i].matched)
			fail_msg("%s is %s", rows[i].does,
				 time_state_name(x.scene.activity.rows.v[0].state));
		balances(thread_of(&x, 30));
		assert_true(close_to(thread_of(&x, 30)->state[rows[i].state], 10));
		close_world(&x);
	}
}

/* Where there is no GPU, ".item()" is a call like any other. */
static void no_device(void **state)
{
	struct world x;

	(void)state;
	open_world(&x, "does 30 5 running 0.5\ndoes 30 6 running 0.5\n");
	assert_true(close_to(thread_of(&x, 30)->state[TIME_PYTHON], 10));
	close_world(&x);
}

/* The kernel says it ran 6 s and was queued for 1; samples have 7 on a CPU (2 of them queued). */
static void weighed(void **state)
{
	const struct act_thread *t;
	struct world x;

	(void)state;
	open_world(&x, "thread.cpu@30 0 6\nthread.run_delay@30 0 1\n"
		       "does 30 4 running 0.4\ndoes 30 4 runnable 0.2\ndoes 30 11 running 0.1\n"
		       "does 30 2 poll 0.2 on pipe\ndoes 30 0 running 0.1 unproven python\n");
	t = thread_of(&x, 30);
	balances(t);
	/* the 6 s of samples of running share 6; those of being queued are none of them */
	assert_true(close_to(t->state[TIME_DISPATCH], 4));
	assert_true(close_to(t->state[TIME_PYTHON], 1));
	assert_true(close_to(t->state[TIME_CPU_QUEUE], 1));
	assert_true(close_to(t->state[TIME_DATA_WAIT], 3));
	assert_true(close_to(t->unaccounted, 1));
	assert_int_equal(x.scene.activity.unproven, 50);
	close_world(&x);
}

/* The kernel says it was queued for next to nothing, and samples that it was so half of the time: then they are wrong
 * about the queue, and right about what it did. */
static void queued_by_mistake(void **state)
{
	const struct act_thread *t;
	struct world x;

	(void)state;
	open_world(&x,
		   "thread.cpu@30 0 7\nthread.run_delay@30 0 0.05\n"
		   "does 30 4 running 0.2\ndoes 30 11 runnable 0.5\ndoes 30 2 poll 0.3 on pipe\n");
	t = thread_of(&x, 30);
	balances(t);
	assert_true(close_to(t->state[TIME_DISPATCH], 2));
	assert_true(close_to(t->state[TIME_PYTHON], 5));
	assert_true(t->state[TIME_CPU_QUEUE] < 0.1);
	close_world(&x);
}

static void by_samples_alone(void **state)
{
	const struct act_thread *t;
	struct world x;

	(void)state;
	open_world(&x, "does 30 4 running 0.4\ndoes 30 4 runnable 0.2\n"
		       "does 30 2 poll 0.2 on pipe\n");
	t = thread_of(&x, 30);
	balances(t);
	assert_true(isnan(t->run));
	assert_true(close_to(t->state[TIME_DISPATCH], 4));
	assert_true(close_to(t->state[TIME_CPU_QUEUE], 2));
	assert_true(close_to(t->state[TIME_DATA_WAIT], 2));
	assert_true(close_to(t->unaccounted, 2));
	close_world(&x);
}

/* It ran, but was never seen running: what it did is not known. */
static void not_invented(void **state)
{
	const struct act_thread *t;
	struct world x;

	(void)state;
	open_world(&x, "thread.cpu@30 0 4\nthread.run_delay@30 0 0\ndoes 30 2 poll 0.6 on pipe\n");
	t = thread_of(&x, 30);
	balances(t);
	/* of the 6 s it waited, samples cover 6 of 10 */
	assert_true(close_to(t->state[TIME_DATA_WAIT], 3.6));
	assert_true(close_to(t->unaccounted, 6.4));
	close_world(&x);
	/* a tenth of the samples does not stand for nine tenths of the time */
	open_world(&x, "thread.cpu@30 0 9\nthread.run_delay@30 0 0\ndoes 30 4 running 0.1\n"
		       "does 30 2 poll 0.9 on pipe\n");
	t = thread_of(&x, 30);
	balances(t);
	assert_true(t->state[TIME_DISPATCH] < 2);
	assert_true(t->unaccounted > 6);
	close_world(&x);
}

static void partial(void **state)
{
	const struct act_thread *t;
	struct world x;

	(void)state;
	/* outer frames that match are enough; the line of a frame that is not the innermost is not */
	open_world(&x, "does 30 4 running 0.5 partial\ndoes 30 5 running 0.3 partial\n"
		       "does 30 0 gil 0.2 unproven python\n");
	t = thread_of(&x, 30);
	balances(t);
	assert_true(close_to(t->state[TIME_DISPATCH], 5));
	assert_true(close_to(t->state[TIME_GPU_WAIT], 0));
	assert_true(close_to(t->state[TIME_LOCK_WAIT], 2));
	assert_true(close_to(t->gil_wait, 2));
	assert_true(close_to(t->unaccounted, 3));
	close_world(&x);
}

static void gil(void **state)
{
	const struct act_thread *t;
	struct world x;

	(void)state;
	open_world(&x, "thread.cpu@30 0 5\nthread.run_delay@30 0 0\ndoes 30 11 running 0.4 gil\n"
		       "does 30 11 running 0.1\ndoes 30 11 gil 0.5\n");
	t = thread_of(&x, 30);
	assert_true(close_to(t->gil_held, 4));
	assert_true(close_to(t->gil_wait, 5));
	assert_true(close_to(t->state[TIME_LOCK_WAIT], 5));
	close_world(&x);
}

/* A pipe from a worker, read by code nobody knows. */
static void peer(void **state)
{
	struct world x;

	(void)state;
	open_world(&x, "process 21 101 python3\nthread 31 21 101 python3\n"
		       "does 30 11 pipe 1 peer 21\ndoes 31 8 running 1\n");
	assert_true(close_to(thread_of(&x, 30)->state[TIME_DATA_WAIT], 10));
	close_world(&x);
	open_world(&x, "process 21 101 cat\nthread 31 21 101 cat\n"
		       "does 30 11 pipe 1 peer 21\ndoes 31 0 running 1\n");
	assert_true(close_to(thread_of(&x, 30)->state[TIME_OTHER], 10));
	close_world(&x);
}

static const struct ledger_line *line_of(const struct verdict *v, const char *role)
{
	for (size_t i = 0; i < v->cpu.n; i++)
		if (strcmp(v->cpu.v[i].role, role) == 0)
			return &v->cpu.v[i];
	fail_msg("no line %s", role);
	return NULL;
}

static void ledgers(void **state)
{
	struct verdict v = { 0 };
	struct world x;
	double shares;

	(void)state;
	/* main ran 6 s, 2 of it spinning; another thread of its process ran 3 and has ended */
	open_world(&x, "process 21 101 python3\nthread 31 21 101 python3\n"
		       "proc.cpu@20 0 9\nproc.cpu@21 0 8\njob.cpu 0 20\njob.cpu_ended 0 2\n"
		       "thread.cpu@30 0 6\nthread.run_delay@30 0 0.5\nthread.cpu@31 0 8\n"
		       "thread.run_delay@31 0 0\n"
		       "does 30 11 running 0.3\ndoes 30 18 running 0.1\n"
		       "does 30 21 running 0.2\ndoes 30 2 poll 0.4 on pipe\n"
		       "does 31 8 running 0.8\ndoes 31 9 pipe 0.2\n");
	assert_int_equal(explain(&x.w, &v), 0);
	assert_true(near(line_of(&v, "main")->seconds, 4, 1e-9));
	assert_true(near(line_of(&v, "spin_wait")->seconds, 2, 1e-9));
	assert_true(near(line_of(&v, "loader_worker")->seconds, 8, 1e-9));
	assert_true(near(line_of(&v, "other")->seconds, 5, 1e-9));
	assert_int_equal(line_of(&v, "loader_worker")->processes, 1);
	assert_int_equal(line_of(&v, "other")->processes, -1);
	assert_true(near(v.cpu_unaccounted, 1.0 / 20, 1e-9));
	assert_string_equal(line_of(&v, "loader_worker")->top[0].function,
			    "Photos.__getitem__ -> jpeg_read_scanlines");
	/* two lines of one function: the hottest */
	assert_int_equal(line_of(&v, "main")->n_top, 1);
	assert_string_equal(line_of(&v, "main")->top[0].function, "helper");
	assert_int_equal(line_of(&v, "main")->top[0].line, 30);
	assert_true(near(line_of(&v, "main")->top[0].share, 1, 1e-9));
	assert_int_equal(v.level, 3);
	assert_int_equal(v.time_tid, 100);
	assert_string_equal(v.time.v[0].role, "python");
	assert_true(near(v.time.v[0].share, 0.4, 1e-9));
	shares = v.time_unaccounted;
	for (size_t i = 0; i < v.time.n; i++) {
		shares += v.time.v[i].share;
		assert_true(i == 0 || v.time.v[i].share <= v.time.v[i - 1].share);
	}
	assert_true(near(shares, 1, 1e-9));
	assert_true(v.time_error > 0.01 && v.time_error < 0.1);
	verdict_done(&v);
	close_world(&x);
}

/* A running thread is asked for its native code in every other look at most: a third of the samples with
 * it is most of the time in it, a fifth is not. */
static void native_in_python(void **state)
{
	static const struct {
		const char *does, *function;
	} rows[] = {
		{ "does 30 3 running 0.67\ndoes 30 24 running 0.33\n",
		  "Photos.__getitem__ -> jpeg_read_scanlines" },
		{ "does 30 3 running 0.8\ndoes 30 24 running 0.2\n", "Photos.__getitem__" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct verdict v = { 0 };
		struct world x;
		char text[512];

		snprintf(text, sizeof(text),
			 "stack 24 = 1 3 4 21\nproc.cpu@20 0 10\njob.cpu 0 10\n"
			 "thread.cpu@30 0 10\nthread.run_delay@30 0 0\n%s",
			 rows[i].does);
		open_world(&x, text);
		assert_int_equal(explain(&x.w, &v), 0);
		assert_string_equal(line_of(&v, "main")->top[0].function, rows[i].function);
		verdict_done(&v);
		close_world(&x);
	}
}

static void level(void **state)
{
	struct verdict v = { 0 };
	struct world x;

	(void)state;
	open_world(&x, "does 30 4 running 1\nevent stacks 20 1 value 2 no native leaf: because\n");
	assert_int_equal(explain(&x.w, &v), 0);
	assert_int_equal(v.level, 2);
	assert_non_null(strstr(v.level_why, "because"));
	verdict_done(&v);
	close_world(&x);
}

static void level_is(const char *text, int level, const char *why, int run_level)
{
	struct verdict v = { 0 };
	struct world x;

	open_world_at(&x, text, run_level);
	assert_int_equal(explain(&x.w, &v), 0);
	assert_int_equal(v.level, level);
	if (!*why)
		assert_string_equal(v.level_why, "");
	else if (!strstr(v.level_why, why))
		fail_msg("'%s'", v.level_why);
	assert_null(strstr(v.level_why, "stacks are read"));
	verdict_done(&v);
	close_world(&x);
}

static void levels(void **state)
{
	(void)state;
	/* the recorder had native code, of whichever thread */
	level_is("does 30 2 poll 1 on pipe\n", 3, "", 3);
	level_is("does 30 2 poll 1 on pipe\nprocess 21 101 python3\nthread 31 21 101 python3\n"
		 "does 31 8 running 1\n",
		 3, "", 2);
	level_is("does 30 2 poll 1 on pipe\nevent stacks 20 1 value 2 Python 3.11: stacks are "
		 "read\n",
		 2, "no native code was seen", 2);
	/* a refusal that did not last is none */
	level_is(
	    "does 30 4 running 1\nevent stacks 20 1 value 1 not yet\n"
	    "event stacks 20 2 value 2 Python 3.11: stacks are read; no native leaf: because\n",
	    2, "no native leaf: because", 2);
	level_is("does 30 0 poll 1\nevent stacks 20 1 value 1 no permission\n", 1, "no permission",
		 2);
	level_is("does 30 0 running 1 unproven python\n"
		 "event stacks 20 1 value 2 Python 3.11: stacks are read\n",
		 1, "could be proven", 2);
}

/* What is imported is no part of what a run is slow in, as long as enough is left of it. */
static void imports(void **state)
{
	static const char places[] = "place 90 /home/u/train.py 1 <module>\n"
				     "place 91 <frozen~importlib._bootstrap> 1176 _find_and_load\n"
				     "stack 90 = 90 91\n";
	struct verdict v = { 0 };
	struct world x;
	char text[600];

	(void)state;
	snprintf(text, sizeof(text), "%sdoes 30 90 running 1 to 3\ndoes 30 4 running 1 from 3\n",
		 places);
	open_world(&x, text);
	assert_int_equal(explain(&x.w, &v), 0);
	assert_string_equal(v.window_why, "without the first 3.0 s: imports");
	assert_true(near(v.time.v[0].share, 1, 1e-9));
	verdict_done(&v);
	close_world(&x);
}

/* A program that is no Python. */
static void native_program(void **state)
{
	struct verdict v = { 0 };
	struct world x;

	(void)state;
	open_world(&x, "does 30 0 running 0.7\ndoes 30 0 poll 0.3\n");
	assert_int_equal(explain(&x.w, &v), 0);
	assert_true(v.time_native);
	assert_string_equal(time_state_words(&v, "other"), "native code");
	verdict_done(&v);
	close_world(&x);
	open_world(&x, "does 30 4 running 0.7\ndoes 30 0 pipe 0.3\n");
	assert_int_equal(explain(&x.w, &v), 0);
	assert_false(v.time_native);
	assert_string_equal(time_state_words(&v, "other"), "other");
	verdict_done(&v);
	close_world(&x);
}

/* A worker that was forked has its parent's stack below its own: it waits for work, not for data, and it is in
 * no loader's __iter__. */
static void forked(void **state)
{
	const struct activity *a;
	const struct act_thread *t;
	struct world x;

	(void)state;
	open_world(&x,
		   "place 30 " SITE "torch/utils/data/dataloader.py 381 DataLoader._get_iterator\n"
		   "place 31 /usr/lib/python3.11/multiprocessing/process.py 314 "
		   "BaseProcess._bootstrap\n"
		   "stack 30 = 1 30 31 9 10\nstack 31 = 1 30 31 9 4\nstack 32 = 1 8 31 9 12\n"
		   "process 21 101 python3 20\nthread 31 21 101 python3\n"
		   "does 30 4 running 1\ndoes 31 30 poll 0.5 on pipe\ndoes 31 31 running 0.3\n"
		   "does 31 32 running 0.2\n");
	a = &x.scene.activity;
	t = thread_of(&x, 31);
	assert_int_equal(t->role, ROLE_LOADER_WORKER);
	assert_true(close_to(t->state[TIME_IDLE], 5));
	assert_true(close_to(t->state[TIME_DATA_LOAD], 5));
	assert_true(close_to(t->state[TIME_DATA_WAIT], 0));
	for (size_t i = t->row; i < t->row + t->n_rows; i++)
		assert_int_equal(a->rows.v[i].topics, 0);
	close_world(&x);
}

static void wilson(void **state)
{
	(void)state;
	assert_true(near(activity_error(0.5, 100), 0.0962, 1e-3));
	assert_true(activity_error(0, 100) > 0.01);
	assert_true(activity_error(0.5, 0) == 1);
	assert_true(activity_error(NAN, 10) == 1);
}

static void without(void **state)
{
	struct world x;

	(void)state;
	open_world(&x, "");
	assert_false(x.scene.activity.any);
	assert_int_equal(x.scene.activity.critical, -1);
	assert_non_null(x.scene.activity.why_not);
	close_world(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_state),
		cmocka_unit_test(weighed),
		cmocka_unit_test(queued_by_mistake),
		cmocka_unit_test(by_samples_alone),
		cmocka_unit_test(not_invented),
		cmocka_unit_test(partial),
		cmocka_unit_test(gil),
		cmocka_unit_test(peer),
		cmocka_unit_test(ledgers),
		cmocka_unit_test(native_in_python),
		cmocka_unit_test(level),
		cmocka_unit_test(levels),
		cmocka_unit_test(imports),
		cmocka_unit_test(native_program),
		cmocka_unit_test(forked),
		cmocka_unit_test(wilson),
		cmocka_unit_test(without),
		cmocka_unit_test(no_device),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT
 *
 * Threads that start, stop, sleep long and burn known amounts of CPU.
 */
#include "proc_job.h"

#include <pthread.h>

/* ---- threads ---- */

struct worker {
	pthread_t thread;
	int go[2];
	int out;
	const char *name;
	int burn_ms;
};

static void *worker_main(void *arg)
{
	struct worker *w = arg;
	char c;

	pthread_setname_np(pthread_self(), w->name);
	burn(w->burn_ms * NS_PER_MS);
	send(w->out);
	if (read(w->go[0], &c, 1) < 0)
		return NULL;
	return NULL;
}

static void worker_start(struct worker *w, const char *name, int out, int burn_ms)
{
	*w = (struct worker){ .out = out, .name = name, .burn_ms = burn_ms };
	if (pipe(w->go) < 0 || pthread_create(&w->thread, NULL, worker_main, w) != 0)
		_exit(7);
}

static void worker_stop(struct worker *w)
{
	close(w->go[1]);
	pthread_join(w->thread, NULL);
}

static void threads_body(int in, int out)
{
	struct worker w[6];

	worker_start(&w[0], "burner", out, 50);
	worker_start(&w[1], "two", out, 0);
	worker_start(&w[2], "three", out, 0);
	wait_for(in);
	/* The same number as before, and another one. */
	worker_stop(&w[1]);
	worker_start(&w[3], "four", out, 0);
	wait_for(in);
	worker_stop(&w[0]);
	worker_stop(&w[2]);
	worker_stop(&w[3]);
	send(out);
	wait_for(in);
}

static const struct entity *by_name(const struct rig *r, const char *name)
{
	for (size_t i = 0; i < r->entities.rows.n; i++)
		if (r->entities.rows.v[i].kind == ENTITY_THREAD &&
		    strcmp(r->entities.rows.v[i].name, name) == 0)
			return &r->entities.rows.v[i];
	return NULL;
}

static void test_threads(void **state)
{
	struct rig r;
	struct job j = job_start(threads_body);
	const struct entity *e;
	int64_t cpu;

	(void)state;
	rig_open(&r, NULL, j.pid, getpid());
	for (int i = 0; i < 3; i++)
		job_done_part(&j);
	usleep(20000); /* until they sleep: a running thread's time is late */
	rig_tick(&r, true);
	assert_int_equal(job_value(&r, M_JOB_THREADS), 4);
	e = by_name(&r, "burner");
	assert_non_null(e);
	cpu = rig_value(&r, M_THREAD_CPU, e->id, -1);
	assert_true(cpu >= 49 * NS_PER_MS && cpu < 60 * NS_PER_MS);
	assert_true(rig_value(&r, M_THREAD_RUN_DELAY, e->id, -1) >= 0);
	assert_true(rig_value(&r, M_THREAD_SLICES, e->id, -1) > 0);
	assert_int_equal(rig_value(&r, M_THREAD_STATE, e->id, -1), 'S');
	assert_true(rig_value(&r, M_PROC_SWITCHES, e->parent, -1) > 0);
	job_go_on(&j);
	job_done_part(&j);
	rig_tick(&r, false);
	assert_non_null(by_name(&r, "four"));
	assert_true(by_name(&r, "two")->gone_ns > 0);
	assert_true(by_name(&r, "three")->gone_ns == 0);
	assert_int_equal(rig_lives(&r, LIFE_BORN, ENTITY_THREAD, 0), 1);
	assert_int_equal(rig_lives(&r, LIFE_GONE, ENTITY_THREAD, 0), 1);
	job_go_on(&j);
	job_done_part(&j);
	rig_tick(&r, false);
	assert_int_equal(job_value(&r, M_JOB_THREADS), 1);
	assert_int_equal(rig_lives(&r, LIFE_GONE, ENTITY_THREAD, 0), 3);
	job_go_on(&j);
	job_end(&j);
	rig_close(&r);
}

/* ---- threads that slept long ---- */

enum { POOL = 30 };

static void pool_body(int in, int out)
{
	static struct worker w[POOL];
	char c = 'x';

	for (int i = 0; i < POOL; i++)
		worker_start(&w[i], "pool", out, 0);
	for (int i = 0; i < 30; i++) {
		wait_for(in);
		burn(NS_PER_MS);
		send(out);
	}
	wait_for(in);
	/* One of them runs for a moment after all that sleep. */
	if (write(w[17].go[1], &c, 1) != 1)
		_exit(6);
	pthread_join(w[17].thread, NULL);
	worker_start(&w[17], "again", out, 30);
	wait_for(in);
}

static void test_cold_threads(void **state)
{
	struct rig r;
	struct job j = job_start(pool_body);

	(void)state;
	rig_open(&r, NULL, j.pid, getpid());
	for (int i = 0; i < POOL; i++)
		job_done_part(&j);
	rig_tick(&r, false);
	for (int i = 0; i < 30; i++) {
		job_go_on(&j);
		job_done_part(&j);
		rig_tick(&r, false);
	}
	assert_int_equal(job_value(&r, M_JOB_PROCESSES), -1); /* no change */
	job_go_on(&j);
	job_done_part(&j);
	rig_tick(&r, false);
	/* Seen at once: the process used more than its busy thread. */
	assert_non_null(by_name(&r, "again"));
	assert_int_equal(rig_lives(&r, LIFE_GONE, ENTITY_THREAD, 0), 1);
	job_go_on(&j);
	job_end(&j);
	rig_close(&r);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_cold_threads),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, set_reaper, NULL);
}

/* SPDX-License-Identifier: MIT
 *
 * Once warm a tick allocates nothing, however busy the job and however many of its processes and
 * threads come and go. The linker sends malloc, calloc and realloc here (--wrap), so it is
 * counted, not believed.
 */
#include "proc_rig.h"

#include "base/clock.h"

#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);

static unsigned long allocations;

void *__wrap_malloc(size_t size)
{
	allocations++;
	return __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	allocations++;
	return __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t size)
{
	allocations++;
	return __real_realloc(p, size);
}

enum { PROCESSES = 12, THREADS = 4 };

/* Runs a little, for ever, and now and then starts a thread or a process that ends soon. */
static void *busy(void *arg)
{
	for (unsigned i = 0;; i++) {
		int64_t end = clock_thread_cpu_ns() + 20 * 1000;

		while (clock_thread_cpu_ns() < end)
			;
		if (!arg && i % 8 == 0) {
			pid_t pid = fork();

			if (pid == 0) {
				usleep(6000);
				_exit(0);
			}
			waitpid(pid, NULL, 0);
		}
		usleep(1000);
	}
	return NULL;
}

static void job_main(void)
{
	int me = 1;

	for (int i = 0; i < PROCESSES; i++) {
		if (fork() != 0)
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (int k = 1; k < THREADS; k++) {
			pthread_t t;

			pthread_create(&t, NULL, busy, &me);
		}
		busy(i % 4 == 0 ? NULL : &me);
	}
	for (;;)
		pause();
}

static void tick(struct rig *r, bool slow)
{
	int64_t mono, wall;

	host_clock(&r->host, &mono, &wall, &r->collect.boot_ns);
	frame_begin(&r->frame, mono, wall);
	r->collect.slow = slow;
	assert_int_equal(proc_collector.read(&r->collect, r->state, &r->frame), 0);
}

/* Ticks in a row that must pass without one, and when to give up: how many processes live at once
 * is chance, so tables may still grow a while. */
enum {
	QUIET_TICKS = 60,
	MAX_TICKS = 3000,
	LIVES = 20,
	SAMPLES = QUIET_TICKS * PROCESSES * THREADS,
};

static void test_no_allocation(void **state)
{
	struct rig r;
	size_t samples = 0, lives = 0;
	int quiet = 0;
	pid_t job = fork();

	(void)state;
	if (job == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		job_main();
	}
	rig_open(&r, NULL, job, getpid());
	/* A busy machine gives the job few turns: it is watched until enough has happened. */
	for (int i = 0;
	     i < MAX_TICKS && (quiet < QUIET_TICKS || lives <= LIVES || samples <= SAMPLES); i++) {
		unsigned long before = allocations;

		tick(&r, i % 5 == 0);
		if (allocations != before) {
			quiet = 0;
			samples = lives = 0;
		} else {
			quiet++;
			samples += r.frame.samples.n;
			lives += r.frame.lives.n;
		}
		usleep(5000);
	}
	assert_true(allocations > 0); /* the count works */
	assert_true(quiet >= QUIET_TICKS);
	/* It was not idle: threads ran, and some came and went. */
	assert_true(samples > SAMPLES);
	assert_true(lives > LIVES);
	kill(job, SIGKILL);
	while (waitpid(-1, NULL, 0) > 0)
		;
	rig_close(&r);
}

static int set_reaper(void **state)
{
	(void)state;
	return prctl(PR_SET_CHILD_SUBREAPER, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_allocation),
	};

	return cmocka_run_group_tests(tests, set_reaper, NULL);
}

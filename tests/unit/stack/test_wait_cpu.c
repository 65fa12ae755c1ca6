/* SPDX-License-Identifier: MIT
 *
 * Who has the CPU and who has the GIL, and who wants them.
 */
#include "../unit.h"

#include "base/clock.h"
#include "base/err.h"
#include "stack/py/py.h"
#include "stack/wait/wait.h"
#include "target.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LOOKS 200

static void rest_ms(long ms)
{
	struct timespec t = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&t, NULL);
}

static pid_t spin(int cpu, int policy)
{
	pid_t pid = fork();

	if (pid == 0) {
		struct sched_param none = { 0 };

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pin(cpu);
		sched_setscheduler(0, policy, &none);
		for (;;)
			;
	}
	return pid;
}

/* Two on one CPU, one of which is let on it once in a blue moon. */
static void test_running_and_queued(void **state)
{
	int cpu = (int)sysconf(_SC_NPROCESSORS_ONLN) - 1;
	pid_t pids[2] = { spin(cpu, SCHED_OTHER), spin(cpu, SCHED_IDLE) };
	struct wait_process *p[2];
	struct wait_job *job;
	struct wait_state got;
	unsigned on_cpu[2] = { 0 }, queued[2] = { 0 }, preempted = 0;

	(void)state;
	/* Who looks from their CPU finds both of them off it. */
	pin(0);
	assert_int_equal(wait_job_open(&job, 100), 0);
	rest_ms(50);
	for (int i = 0; i < 2; i++)
		assert_int_equal(wait_open(&p[i], job, pids[i]), 0);
	for (int n = 0; n < 100; n++) {
		for (int i = 0; i < 2; i++) {
			assert_int_equal(wait_see(p[i], pids[i], clock_mono_ns(), &got), 0);
			on_cpu[i] += got.kind == WAIT_RUNNING;
			queued[i] += got.kind == WAIT_RUNNABLE;
			preempted += got.kind == WAIT_RUNNABLE && got.preempted;
		}
		rest_ms(8);
	}
	for (int i = 0; i < 2; i++) {
		wait_close(p[i]);
		kill(pids[i], SIGKILL);
		waitpid(pids[i], NULL, 0);
		assert_int_equal(on_cpu[i] + queued[i], 100);
	}
	wait_job_close(job);
	print_message("ahead: %u running; behind: %u queued\n", on_cpu[0], queued[1]);
	/* The one ahead shares the CPU with whatever else runs here. */
	if (sysconf(_SC_NPROCESSORS_ONLN) > 1)
		assert_true(queued[1] >= 90 && on_cpu[0] > on_cpu[1]);
	/* They never wait for anything: but for the first looks it is known that they were taken off. */
	assert_true(preempted + 2 >= queued[0] + queued[1]);
}

static enum wait_kind kind_of(const char *name)
{
	for (int i = 0; i < WAIT_KINDS; i++)
		if (strcmp(wait_kind_name((enum wait_kind)i), name) == 0)
			return (enum wait_kind)i;
	return WAIT_UNKNOWN;
}

/* "gil 4711"; false at "ready 0" and at the end. */
static bool read_row(FILE *in, char name[16], int *tid)
{
	char line[64], *blank;

	if (!fgets(line, sizeof(line), in) || !(blank = strchr(line, ' ')))
		return false;
	*blank = 0;
	snprintf(name, 16, "%.15s", line);
	*tid = (int)strtol(blank + 1, NULL, 10);
	return *tid != 0;
}

static void look_gil(const char *python)
{
	struct target t;
	struct py_process *py = NULL;
	struct wait_process *p = NULL;
	struct wait_job *job = NULL;
	struct py_range gil;
	struct wait_state got;
	struct err e = { 0 };
	char name[8][16];
	int tid[8], rows = 0;
	unsigned good[8] = { 0 };

	target_start(&t, python, -1, SCRIPTS "/holds_gil.py", "-", NULL);
	while (rows < 8 && read_row(t.out, name[rows], &tid[rows]))
		rows++;
	assert_int_equal(rows, 6);
	rest_ms(450);
	assert_int_equal(py_attach(&py, t.pid, NULL, &e), 0);
	assert_true(py_gil(py, 0, &gil));
	assert_int_equal(wait_job_open(&job, 100), 0);
	assert_int_equal(wait_open(&p, job, t.pid), 0);
	wait_set_gils(p, &gil, 1);
	for (int n = 0; n < LOOKS; n++) {
		for (int i = 0; i < rows; i++) {
			assert_int_equal(wait_see(p, tid[i], clock_mono_ns(), &got), 0);
			if (got.kind == WAIT_RUNNABLE) /* others are about */
				got.kind = WAIT_RUNNING;
			good[i] += got.kind == kind_of(name[i]);
		}
		rest_ms(1);
	}
	for (int i = 0; i < rows; i++) {
		if (good[i] * 100 < LOOKS * 98)
			print_message("%s: %s right %u of %d, last %s\n", python, name[i], good[i],
				      LOOKS, wait_kind_name(got.kind));
		assert_true(good[i] * 100 >= LOOKS * 98);
	}
	wait_close(p);
	wait_job_close(job);
	py_detach(py);
	target_end(&t);
}

static void test_gil(void **state)
{
	struct pythons all;

	(void)state;
	pythons_find(&all);
	if (!all.n)
		skip();
	for (size_t i = 0; i < all.n; i++)
		look_gil(all.path[i]);
	print_message("%zu Pythons\n", all.n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_running_and_queued),
		cmocka_unit_test(test_gil),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

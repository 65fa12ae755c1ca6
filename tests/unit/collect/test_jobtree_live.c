/* SPDX-License-Identifier: MIT
 *
 * The CPU time of a job against what the kernel charged: programs that burn known amounts, in
 * children that live between two ticks, are orphaned, are not waited for, or all of it at random.
 */
#include "proc_job.h"

/* ---- what lives between two ticks ---- */

enum { SHORT_LIVED = 300, SHORT_NS = 5 * 1000 * 1000 };

static void short_body(int in, int out)
{
	send(out);
	wait_for(in);
	for (int i = 0; i < SHORT_LIVED; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			burn(SHORT_NS);
			_exit(0);
		}
		waitpid(pid, NULL, 0);
	}
	send(out);
	wait_for(in);
}

static void test_short_lived(void **state)
{
	struct rig r;
	int64_t base = children_ns(), before, burnt = (int64_t)SHORT_LIVED * SHORT_NS;
	struct job j = job_start(short_body);

	(void)state;
	rig_open(&r, NULL, j.pid, getpid());
	job_done_part(&j);
	rig_tick(&r, false);
	before = r.cpu_ns;
	job_go_on(&j);
	job_done_part(&j);
	rig_tick(&r, false);
	/* Not one of them was seen; the kernel tells their sum in ticks of 10 ms. */
	assert_int_equal(rig_lives(&r, LIFE_BORN, ENTITY_PROC, 0), 0);
	assert_true(r.cpu_ns - before > burnt - 20 * NS_PER_MS);
	assert_true(r.ended_ns > burnt - 20 * NS_PER_MS);
	job_go_on(&j);
	job_end(&j);
	rig_tick(&r, false);
	/* Now we are told to the microsecond. */
	assert_true(near((double)(r.cpu_ns - base), (double)(children_ns() - base), 0.001));
	rig_close(&r);
}

/* ---- daemons ---- */

static void daemon_body(int in, int out)
{
	if (fork() == 0) {
		if (fork() == 0) {
			prctl(PR_SET_PDEATHSIG, 0);
			setsid();
			burn(60 * NS_PER_MS);
			send(out);
			wait_for(in);
			burn(60 * NS_PER_MS);
			send(out);
			wait_for(in);
			_exit(0);
		}
		_exit(0);
	}
	wait(NULL);
	send(out);
	wait_for(in);
}

static void test_daemon(void **state)
{
	struct rig r;
	int64_t base = children_ns();
	struct job j = job_start(daemon_body);

	(void)state;
	rig_open(&r, NULL, j.pid, getpid());
	job_done_part(&j);
	job_done_part(&j);
	rig_tick(&r, false);
	assert_int_equal(job_value(&r, M_JOB_PROCESSES), 2); /* the first, and the orphan */
	job_go_on(&j);
	job_go_on(&j);
	job_done_part(&j); /* the orphan burnt once more, with or without the first */
	rig_tick(&r, false);
	assert_true(r.cpu_ns - base > 115 * NS_PER_MS);
	close(j.out);
	while (waitpid(-1, NULL, 0) > 0)
		;
	close(j.in);
	rig_tick(&r, false);
	assert_int_equal(job_value(&r, M_JOB_PROCESSES), 0);
	assert_true(near((double)(r.cpu_ns - base), (double)(children_ns() - base), 0.001));
	rig_close(&r);
}

/* ---- children nobody waits for ---- */

enum { UNWAITED = 5, UNWAITED_MS = 60 };

static void unwaited_body(int in, int out)
{
	int go[2];

	signal(SIGCHLD, SIG_IGN);
	if (pipe(go) < 0)
		_exit(7);
	for (int i = 0; i < UNWAITED; i++)
		if (fork() == 0) {
			close(go[1]);
			burn(UNWAITED_MS * NS_PER_MS);
			send(out);
			wait_for(go[0]); /* ends when the parent closes it */
			_exit(0);
		}
	close(go[0]);
	wait_for(in);
	close(go[1]);
	while (wait(NULL) > 0)
		;
	send(out);
	wait_for(in);
}

static void test_unwaited(void **state)
{
	struct rig r;
	int64_t base = children_ns(), before;
	struct job j = job_start(unwaited_body);

	(void)state;
	rig_open(&r, NULL, j.pid, getpid());
	for (int i = 0; i < UNWAITED; i++)
		job_done_part(&j);
	rig_tick(&r, false);
	assert_int_equal(job_value(&r, M_JOB_PROCESSES), 1 + UNWAITED);
	before = r.cpu_ns - base;
	assert_true(before >= UNWAITED * UNWAITED_MS * NS_PER_MS);
	job_go_on(&j);
	job_done_part(&j);
	rig_tick(&r, false);
	assert_int_equal(job_value(&r, M_JOB_PROCESSES), 1);
	assert_true(r.cpu_ns - base >= before);
	job_go_on(&j);
	job_end(&j);
	rig_tick(&r, false);
	/* The kernel charged them to nobody: we kept what we saw, and counted nothing twice. */
	assert_true(children_ns() - base < UNWAITED * UNWAITED_MS * NS_PER_MS);
	assert_true(r.cpu_ns - base >= before);
	assert_true(r.cpu_ns - base < before + (children_ns() - base) + 5 * NS_PER_MS);
	rig_close(&r);
}

/* ---- many, at random ---- */

static void storm(unsigned depth, unsigned seed)
{
	for (int i = 0; i < 4; i++) {
		seed = seed * 1103515245 + 12345;
		if (depth < 3 && (seed >> 16) % 3 != 0 && fork() == 0) {
			storm(depth + 1, seed);
			_exit(0);
		}
		burn((seed >> 20) % 4 * NS_PER_MS);
		if ((seed >> 24) % 2)
			while (waitpid(-1, NULL, WNOHANG) > 0)
				;
	}
	/* Some leave their children to the reaper. */
	if ((seed >> 18) % 4)
		while (waitpid(-1, NULL, 0) > 0)
			;
}

static void storm_body(int in, int out)
{
	for (unsigned i = 0; i < 6; i++)
		storm(0, i);
	send(out);
	wait_for(in);
}

static void test_storm(void **state)
{
	struct rig r;
	int64_t base = children_ns(), last = 0;
	struct job j = job_start(storm_body);
	char c;

	(void)state;
	rig_open(&r, NULL, j.pid, getpid());
	assert_int_equal(fcntl(j.in, F_SETFL, O_NONBLOCK), 0);
	while (read(j.in, &c, 1) != 1) {
		/* As the recorder does: orphans are reaped while we look. */
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
		rig_tick(&r, r.ticks % 16 == 0);
		assert_true(r.cpu_ns >= last);
		last = r.cpu_ns;
		usleep(2000);
	}
	assert_int_equal(fcntl(j.in, F_SETFL, 0), 0);
	job_go_on(&j);
	job_end(&j);
	rig_tick(&r, false);
	print_message("%u ticks, %zu entities: %.3f ms seen, %.3f ms charged\n", r.ticks,
		      r.entities.rows.n, (double)(r.cpu_ns - base) / 1e6,
		      (double)(children_ns() - base) / 1e6);
	assert_true(near((double)(r.cpu_ns - base), (double)(children_ns() - base), 0.01));
	assert_int_equal(job_value(&r, M_JOB_PROCESSES), 0);
	rig_close(&r);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_short_lived),
		cmocka_unit_test(test_daemon),
		cmocka_unit_test(test_unwaited),
		cmocka_unit_test(test_storm),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, set_reaper, NULL);
}

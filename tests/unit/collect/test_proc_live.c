/* SPDX-License-Identifier: MIT
 *
 * The process collector against this machine: who belongs to the job, and what of it is read as
 * whom.
 */
#include "proc_job.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>

/* ---- a tree ---- */

/* Sleeps, and does not outlive a test that failed. */
static void sleep_on(int out)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	send(out);
	for (;;)
		pause();
}

static void tree_body(int in, int out)
{
	setpgid(0, 0);
	for (int i = 0; i < 3; i++) {
		if (fork() == 0) {
			for (int k = 0; k < 2; k++)
				if (fork() == 0)
					sleep_on(out);
			sleep_on(out);
		}
	}
	send(out);
	wait_for(in);
	kill(0, SIGTERM);
}

static void test_tree(void **state)
{
	struct rig r;
	struct job j = job_start(tree_body);
	unsigned depth2 = 0;

	(void)state;
	for (int i = 0; i < 10; i++)
		job_done_part(&j);
	rig_open(&r, NULL, j.pid, getpid());
	rig_tick(&r, true);
	assert_int_equal(job_value(&r, M_JOB_PROCESSES), 10);
	assert_int_equal(job_value(&r, M_JOB_THREADS), 10);
	assert_true(job_value(&r, M_JOB_RSS) > 0);
	for (size_t i = 0; i < r.entities.rows.n; i++) {
		const struct entity *e = &r.entities.rows.v[i];
		const struct entity *up = entity_find(&r.entities, e->parent);

		depth2 += e->kind == ENTITY_PROC && up && up->kind == ENTITY_PROC &&
			  entity_find(&r.entities, up->parent) &&
			  entity_find(&r.entities, up->parent)->key == j.pid;
	}
	assert_int_equal(depth2, 6);
	/* All of them sleep now: nothing is read of them and nothing put, but for the job's own
	 * line. */
	rig_tick(&r, false);
	rig_tick(&r, false);
	for (size_t i = 0; i < r.frame.samples.n; i++)
		assert_int_equal(r.frame.samples.v[i].entity, ID_JOB);
	job_go_on(&j);
	job_end(&j);
	rig_tick(&r, false);
	assert_int_equal(job_value(&r, M_JOB_PROCESSES), 0);
	assert_int_equal(rig_lives(&r, LIFE_GONE, ENTITY_PROC, 0), 10);
	assert_int_equal(rig_lives(&r, LIFE_GONE, ENTITY_THREAD, 0), 10);
	rig_close(&r);
}

/* ---- exec ---- */

static void exec_body(int in, int out)
{
	send(out);
	wait_for(in);
	execl("/bin/sleep", "sleep", "100", (char *)NULL);
	_exit(6);
}

static void test_exec(void **state)
{
	struct rig r;
	struct job j = job_start(exec_body);
	const struct entity *e;

	(void)state;
	rig_open(&r, NULL, j.pid, getpid());
	job_done_part(&j);
	rig_tick(&r, true);
	assert_int_equal(rig_lives(&r, LIFE_CHANGED, ENTITY_PROC, 0), 0);
	job_go_on(&j);
	/* The pipe closes on exec. */
	assert_int_equal(read(j.in, &(char){ 0 }, 1), 0);
	for (int i = 0; i < 200; i++) {
		rig_tick(&r, false);
		e = rig_find(&r, ENTITY_PROC, j.pid);
		if (strcmp(e->name, "sleep") == 0 && strcmp(e->detail, "sleep 100") == 0)
			break;
		usleep(5000);
	}
	e = rig_find(&r, ENTITY_PROC, j.pid);
	assert_string_equal(e->name, "sleep");
	assert_string_equal(e->detail, "sleep 100");
	assert_non_null(rig_event(&r, EVENT_EXEC, e->id));
	kill(j.pid, SIGKILL);
	job_end(&j);
	rig_tick(&r, false);
	assert_non_null(rig_event(&r, EVENT_EXIT, e->id));
	rig_close(&r);
}

/* ---- descriptors ---- */

/* Descriptors open now, and how many of them a child would inherit. */
static int open_descriptors(int *ret_inherited)
{
	int n = 0;

	*ret_inherited = 0;
	for (int fd = 3; fd < 4096; fd++) {
		int flags = fcntl(fd, F_GETFD);

		n += flags >= 0;
		*ret_inherited += flags >= 0 && !(flags & FD_CLOEXEC);
	}
	return n;
}

static void test_descriptor_limit(void **state)
{
	struct rlimit was, low;
	struct rig r;
	struct job j;
	int before, n, inherited, inherited_before;

	(void)state;
	j = job_start(tree_body);
	for (int i = 0; i < 10; i++)
		job_done_part(&j);
	before = open_descriptors(&inherited_before);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	low = was;
	low.rlim_cur = 64 + 12;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	rig_open(&r, NULL, j.pid, getpid());
	for (int i = 0; i < 3; i++)
		rig_tick(&r, true);
	n = open_descriptors(&inherited) - before;
	/* root, /proc and loadavg of its own, and at most 12 of processes */
	assert_true(n > 3 && n <= 12 + 3);
	assert_int_equal(inherited, inherited_before);
	assert_int_equal(rig_lives(&r, LIFE_GONE, ENTITY_PROC, 0), 0);
	assert_true(rig_find(&r, ENTITY_PROC, j.pid)->gone_ns == 0);
	job_go_on(&j);
	job_end(&j);
	rig_tick(&r, false);
	assert_int_equal(job_value(&r, M_JOB_PROCESSES), 0);
	rig_close(&r);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	assert_int_equal(open_descriptors(&inherited), before - 2);
}

/* ---- pids that wrap ---- */

static bool set_last_pid(int pid)
{
	char text[16];
	int fd = open("/proc/sys/kernel/ns_last_pid", O_WRONLY | O_CLOEXEC), n;
	bool ok;

	if (fd < 0)
		return false;
	n = snprintf(text, sizeof(text), "%d", pid);
	ok = write(fd, text, (size_t)n) == n;
	close(fd);
	return ok;
}

static pid_t sleeper(void)
{
	pid_t pid = fork();

	if (pid == 0)
		for (;;)
			pause();
	return pid;
}

/* A tick after the last look for new processes has been paid for. */
static void late_tick(struct rig *r)
{
	usleep(100000);
	rig_tick(r, false);
}

/* First process of a pid namespace of its own, with its own /proc: tells by its status which check
 * failed, 77 when it may not do this. The job forks while pids wrap and one pid of a stranger is
 * given anew. */
static int wrap_main(void)
{
	struct rig r;
	pid_t low, before, after;

	if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("proc", "/proc", "proc", 0, NULL) < 0 || !set_last_pid(400))
		return 77;
	for (int i = 0; i < 12; i++) /* enough neighbours to learn positions from */
		sleeper();
	set_last_pid(1000000000); /* refused where it is over pid_max */
	set_last_pid(32760);
	rig_open(&r, NULL, getpid(), getpid());
	late_tick(&r);
	if (job_value(&r, M_JOB_PROCESSES) != 12)
		return 1;
	before = sleeper();
	late_tick(&r);
	if (!rig_find(&r, ENTITY_PROC, before))
		return 2;
	late_tick(&r);
	set_last_pid(299); /* as after a wrap */
	low = sleeper();
	if (low >= before)
		return 3;
	late_tick(&r);
	if (!rig_find(&r, ENTITY_PROC, low))
		return 4;
	after = sleeper();
	late_tick(&r);
	if (!rig_find(&r, ENTITY_PROC, after) || job_value(&r, M_JOB_PROCESSES) != 15)
		return 5;
	/* A pid of the job that is given anew between two ticks. */
	kill(low, SIGKILL);
	waitpid(low, NULL, 0);
	set_last_pid(low - 1);
	if (sleeper() != low)
		return 77;
	late_tick(&r);
	late_tick(&r);
	if (rig_find(&r, ENTITY_PROC, low)->gone_ns)
		return 6;
	rig_close(&r);
	return 0;
}

static void test_pid_wrap(void **state)
{
	int status;
	pid_t pid = fork();

	(void)state;
	if (pid == 0) {
		pid_t first;

		if (unshare(CLONE_NEWPID | CLONE_NEWNS) < 0)
			_exit(77);
		first = fork();
		if (first == 0)
			_exit(wrap_main());
		waitpid(first, &status, 0);
		_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 99);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(status, 0);
}

/* ---- attach ---- */

static void attach_body(int in, int out)
{
	burn(50 * NS_PER_MS);
	send(out);
	wait_for(in);
	burn(50 * NS_PER_MS);
	send(out);
	wait_for(in);
}

static void test_attach(void **state)
{
	struct rig r;
	struct job j = job_start(attach_body);
	uint32_t id;

	(void)state;
	job_done_part(&j);
	rig_open(&r, NULL, j.pid, 0);
	rig_tick(&r, false);
	id = rig_id(&r, ENTITY_PROC, j.pid);
	assert_int_equal(r.cpu_ns, 0);
	assert_true(rig_value(&r, M_PROC_CPU, id, -1) >= 50 * NS_PER_MS);
	job_go_on(&j);
	job_done_part(&j);
	rig_tick(&r, false);
	assert_true(r.cpu_ns >= 49 * NS_PER_MS && r.cpu_ns < 75 * NS_PER_MS);
	job_go_on(&j);
	job_end(&j);
	rig_tick(&r, false);
	assert_true(r.cpu_ns >= 49 * NS_PER_MS);
	rig_close(&r);
}

/* ---- an ordinary user ---- */

/* Looks at a process of root's as somebody who is not. Runs in a process of its own, so it tells by
 * its status which check failed. */
static int look_at_init(void)
{
	int reads = 0, pss = 0;
	struct rig r;
	uint32_t id;

	if (getuid() == 0 &&
	    (setresgid(65534, 65534, 65534) < 0 || setresuid(65534, 65534, 65534) < 0))
		return 1;
	rig_open(&r, NULL, 1, 0);
	rig_tick(&r, true);
	if (!rig_find(&r, ENTITY_PROC, 1))
		return 2;
	id = rig_id(&r, ENTITY_PROC, 1);
	if (rig_value(&r, M_PROC_CPU, id, -1) < 0 || rig_value(&r, M_PROC_RSS, id, -1) < 0)
		return 3;
	if (rig_value(&r, M_PROC_READ_BYTES, id, -1) >= 0)
		return 4;
	/* Told once: at the latest when the budget for dear readings has grown to the size of it. */
	for (int i = 0; i < 40; i++) {
		reads += rig_gaps(&r, M_PROC_READ_BYTES, id, GAP_NO_PERMISSION);
		pss += rig_gaps(&r, M_PROC_PSS, id, GAP_NO_PERMISSION);
		rig_tick(&r, true);
	}
	if (reads != 1 || pss != 1)
		return 5;
	rig_close(&r);
	return 0;
}

static void test_not_permitted(void **state)
{
	struct stat st;
	int status;
	pid_t pid;

	(void)state;
	if (stat("/proc/1", &st) < 0 || st.st_uid != 0)
		skip();
	pid = fork();
	if (pid == 0)
		_exit(look_at_init());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tree),
		cmocka_unit_test(test_exec),
		cmocka_unit_test(test_descriptor_limit),
		cmocka_unit_test(test_pid_wrap),
		cmocka_unit_test(test_attach),
		cmocka_unit_test(test_not_permitted),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, set_reaper, NULL);
}

/* SPDX-License-Identifier: MIT
 *
 * launch() called from C: what the caller gets. How it looks from outside is in
 * tests/e2e/test_launch.py.
 */
#include "../unit.h"

#include "base/clock.h"
#include "base/err.h"
#include "launch/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* A word of a command line, which may be written to. */
#define W(text) ((char[]){ text })

/* Written by R, read by the test. */
struct shared {
	bool recorded, ended, zombie_seen;
	int status, waits, again;
	pid_t program, recorder;
	int64_t cpu_ns;
};

static struct shared *shared_new(void)
{
	struct shared *s =
	    mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(s, MAP_FAILED);
	return s;
}

static void record(struct launch_run *run, void *arg)
{
	struct shared *s = arg;
	struct launch_end end;

	s->recorded = true;
	s->program = launch_pid(run);
	s->recorder = getpid();
	while (launch_wait(run, 10 * NS_PER_MS, &end) == 0)
		s->waits++;
	s->status = end.status;
	s->again = launch_wait(run, 0, &end);
	s->cpu_ns = launch_reaped_cpu_ns(run);
	launch_say(run, "", 0);
}

static void ended(struct launch_run *run, void *arg)
{
	struct shared *s = arg;

	s->ended = true;
	s->zombie_seen = kill(launch_pid(run), 0) == 0;
}

struct result {
	int error, status, recorder;
};

/* launch() takes stdout with it, so each is in a process of its own. */
static struct result launch_apart(char *const *argv, struct shared *s)
{
	struct result *r =
	    mmap(NULL, sizeof(*r), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct result got;
	int status = -1;
	pid_t pid;

	assert_ptr_not_equal(r, MAP_FAILED);
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		struct launch l = { .argv = argv,
				    .record = record,
				    .ended = ended,
				    .arg = s,
				    .patience_ns = 5 * NS_PER_S,
				    .ret_recorder = &r->recorder };
		struct err e = { 0 };

		alarm(20);
		r->status = r->recorder = -1;
		r->error = launch(&l, &r->status, &e);
		_exit(r->error == e.code ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	got = *r;
	munmap(r, sizeof(*r));
	return got;
}

static void test_status_and_callbacks(void **state)
{
	char *const argv[] = { W("sh"), W("-c"), W("sleep 0.05; exit 19"), NULL };
	struct shared *s = shared_new();
	struct result r = launch_apart(argv, s);

	(void)state;
	assert_int_equal(r.error, 0);
	assert_int_equal(r.status, 19 << 8);
	assert_int_equal(r.recorder, 0);
	assert_true(s->recorded && s->ended && s->zombie_seen);
	assert_int_equal(s->status, 19 << 8);
	assert_int_equal(s->again, 1);
	assert_true(s->waits >= 2);
	assert_true(s->cpu_ns > 0);
	assert_true(s->program > 0 && s->program != s->recorder);
	munmap(s, sizeof(*s));
}

/* A command that is not there leaves no trace: nothing is recorded. */
static void test_nothing_is_recorded_of_nothing(void **state)
{
	char *const missing[] = { W("/no/such/command"), NULL };
	char *const refused[] = { W("/"), NULL };
	struct shared *s = shared_new();

	(void)state;
	assert_int_equal(launch_apart(missing, s).error, -ENOENT);
	assert_int_equal(launch_apart(refused, s).error, -EACCES);
	assert_false(s->recorded || s->ended);
	munmap(s, sizeof(*s));
}

static int failure_leaves_signals(void)
{
	char *const argv[] = { W("/no/such/command"), NULL };
	struct launch l = { .argv = argv };
	sigset_t want, now;
	int status;

	alarm(20);
	sigemptyset(&want);
	sigaddset(&want, SIGUSR2);
	sigprocmask(SIG_SETMASK, &want, NULL);
	if (signal(SIGCHLD, SIG_IGN) == SIG_ERR)
		return 1;
	if (launch(&l, &status, NULL) != -ENOENT)
		return 2;
	sigprocmask(SIG_SETMASK, NULL, &now);
	for (int sig = 1; sig < 32; sig++)
		if (sigismember(&now, sig) != sigismember(&want, sig))
			return 3;
	/* And nobody is left. */
	if (waitpid(-1, NULL, WNOHANG) != -1 || errno != ECHILD)
		return 4;
	return signal(SIGCHLD, SIG_DFL) == SIG_IGN ? 0 : 5;
}

static void test_failure_leaves_signals_as_found(void **state)
{
	int status = -1;
	pid_t pid;

	(void)state;
	fflush(NULL);
	pid = fork();
	if (pid == 0)
		_exit(failure_leaves_signals());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* Without a body R still waits, and S still gets its status. */
static void test_no_body(void **state)
{
	char *const argv[] = { W("sh"), W("-c"), W("kill -TERM $$"), NULL };
	struct launch l = { .argv = argv, .patience_ns = NS_PER_S };
	int status = -1, seen = -1;
	pid_t pid;

	(void)state;
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		alarm(20);
		if (launch(&l, &seen, NULL) != 0)
			_exit(99);
		launch_exit(seen);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, SIGTERM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_status_and_callbacks),
		cmocka_unit_test(test_nothing_is_recorded_of_nothing),
		cmocka_unit_test(test_failure_leaves_signals_as_found),
		cmocka_unit_test(test_no_body),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

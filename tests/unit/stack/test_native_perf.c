/* SPDX-License-Identifier: MIT
 *
 * Sampled instruction pointers of threads that burn CPU in functions of known names. Where the kernel
 * does not permit it, what is tested is that we say so.
 */
#include "../unit.h"
#include "base/clock.h"
#include "base/err.h"
#include "native_blocks.h"
#include "stack/native/native.h"
#include "stack/native/perf_refusal.h"

#include <errno.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SLEEPERS 200

struct shared {
	_Atomic int burner, framed, sleepers[SLEEPERS];
};

static struct shared *shared;

static void pause_ns(long ns)
{
	nanosleep(&(struct timespec){ .tv_nsec = ns }, NULL);
}

static void *burn(void *arg)
{
	(void)arg;
	shared->burner = (int)syscall(SYS_gettid);
	plain_burn_forever();
	return NULL;
}

static void *burn_framed(void *arg)
{
	(void)arg;
	shared->framed = (int)syscall(SYS_gettid);
	framed_burn_forever();
	return NULL;
}

static void *sleeper(void *arg)
{
	*(_Atomic int *)arg = (int)syscall(SYS_gettid);
	for (;;)
		pause();
	return NULL;
}

enum what { ONE_BURNER, FRAMED_BURNER, MANY_SLEEPERS };

static pid_t start(enum what what)
{
	pthread_t thread;
	pid_t pid;

	memset(shared, 0, sizeof(*shared));
	pid = fork();
	if (pid) {
		assert_true(pid > 0);
		return pid;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (what == ONE_BURNER)
		pthread_create(&thread, NULL, burn, NULL);
	else if (what == FRAMED_BURNER)
		pthread_create(&thread, NULL, burn_framed, NULL);
	else
		for (int i = 0; i < SLEEPERS; i++)
			pthread_create(&thread, NULL, sleeper, (void *)&shared->sleepers[i]);
	for (;;)
		pause();
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static pid_t wait_for(_Atomic int *tid)
{
	int64_t until = clock_mono_ns() + 10 * NS_PER_S;

	while (!*tid && clock_mono_ns() < until)
		pause_ns(1000000);
	assert_true(*tid);
	return *tid;
}

/* True where the kernel lets us; else the words are there. */
static bool permitted(void)
{
	struct err e = { 0 };
	int r = native_perf_try(&e);

	if (r < 0) {
		print_message("not permitted here: %s; %s\n", e.text, e.hint);
		assert_true(*e.text && *e.hint);
	}
	return r == 0;
}

/* The next sample, or 0 after two seconds without. */
static size_t next(struct native_perf *perf, pid_t tid, uint64_t *chain, int64_t *ret_ns)
{
	int64_t until = clock_mono_ns() + 2 * NS_PER_S;
	size_t n = 0;

	while (!n && clock_mono_ns() < until) {
		n = native_perf_newest(perf, tid, chain, NATIVE_FRAMES_MAX, ret_ns);
		if (!n)
			pause_ns(500000);
	}
	return n;
}

static void test_shares(void **state)
{
	struct native_process *p;
	struct native_perf *perf;
	struct native_place place;
	uint64_t chain[NATIVE_FRAMES_MAX];
	unsigned much = 0, little = 0, all = 0;
	int64_t ns, last = 0, from = clock_mono_ns();
	pid_t pid, tid;

	(void)state;
	if (!permitted())
		skip();
	pid = start(ONE_BURNER);
	tid = wait_for(&shared->burner);
	assert_int_equal(native_open(&p, NULL, pid), 0);
	assert_int_equal(native_perf_open(&perf, 997, 8), 0);
	assert_int_equal(native_perf_newest(perf, tid, chain, 64, &ns), 0);
	assert_int_equal(native_perf_watch(perf, tid), 0);
	assert_int_equal(native_perf_watch(perf, tid), 0);
	for (; all < 1500; all++) {
		assert_true(next(perf, tid, chain, &ns) > 0);
		assert_true(ns > last && ns >= from && ns <= clock_mono_ns());
		last = ns;
		assert_true(native_place(p, chain[0], ns, &place));
		much += strcmp(place.symbol, "plain_burn_much") == 0;
		little += strcmp(place.symbol, "plain_burn_little") == 0;
	}
	print_message("%u much, %u little of %u\n", much, little, all);
	assert_true(much + little >= all * 95 / 100);
	assert_true(much >= all * 65 / 100 && much <= all * 75 / 100);
	assert_true(little >= all * 25 / 100 && little <= all * 35 / 100);
	assert_false(native_perf_refused(perf, NULL));
	native_perf_close(perf);
	native_close(p);
	end(pid);
}

static void test_forget_and_gone(void **state)
{
	struct native_perf *perf;
	uint64_t chain[NATIVE_FRAMES_MAX];
	int64_t ns;
	pid_t pid, tid;

	(void)state;
	if (!permitted())
		skip();
	pid = start(ONE_BURNER);
	tid = wait_for(&shared->burner);
	assert_int_equal(native_perf_open(&perf, 500, 8), 0);
	assert_int_equal(native_perf_watch(perf, tid), 0);
	assert_int_equal(native_perf_watch(perf, pid), 0);
	assert_true(next(perf, tid, chain, &ns) > 0);
	native_perf_forget(perf, tid);
	native_perf_forget(perf, tid);
	assert_int_equal(native_perf_newest(perf, tid, chain, 64, &ns), 0);
	assert_int_equal(native_perf_newest(perf, pid, chain, 64, &ns), 0); /* it sleeps */
	assert_int_equal(native_perf_watch(perf, tid), 0);
	assert_true(next(perf, tid, chain, &ns) > 0);
	/* What was not asked for in time is written over; the newest is new. */
	pause_ns(300000000);
	assert_true(native_perf_newest(perf, tid, chain, 64, &ns) > 0);
	assert_true(clock_mono_ns() - ns < 250 * NS_PER_MS);
	assert_int_equal(native_perf_newest(perf, tid, chain, 0, &ns), 0);
	end(pid);
	native_perf_newest(perf, tid, chain, 64, &ns);
	assert_int_equal(native_perf_newest(perf, tid, chain, 64, &ns), 0);
	native_perf_forget(perf, tid);
	assert_int_equal(native_perf_watch(perf, tid), -ESRCH);
	assert_int_equal(native_perf_watch(perf, -1), -ESRCH);
	assert_false(native_perf_refused(perf, NULL));
	native_perf_close(perf);
}

/* With frame pointers the chain has the callers as well. */
static void test_chain(void **state)
{
	struct native_process *p;
	struct native_perf *perf;
	struct native_place place;
	uint64_t chain[NATIVE_FRAMES_MAX];
	int64_t ns;
	unsigned good = 0;
	pid_t pid, tid;

	(void)state;
	if (!permitted())
		skip();
	pid = start(FRAMED_BURNER);
	tid = wait_for(&shared->framed);
	assert_int_equal(native_open(&p, NULL, pid), 0);
	assert_int_equal(native_perf_open(&perf, 500, 8), 0);
	assert_int_equal(native_perf_watch(perf, tid), 0);
	for (int i = 0; i < 50; i++) {
		size_t n = next(perf, tid, chain, &ns);

		assert_true(n >= 1);
		if (n >= 2 && native_place(p, chain[1] - 1, ns, &place))
			good += strcmp(place.symbol, "framed_burn_forever") == 0;
	}
	assert_true(good >= 45);
	native_perf_close(perf);
	native_close(p);
	end(pid);
}

static void test_many(void **state)
{
	struct rlimit old, few;
	struct native_perf *perf;
	pid_t pid;
	int r = 0;

	(void)state;
	if (!permitted())
		skip();
	pid = start(MANY_SLEEPERS);
	for (int i = 0; i < SLEEPERS; i++)
		wait_for(&shared->sleepers[i]);
	assert_int_equal(native_perf_open(&perf, 49, 20), 0);
	for (int i = 0; i < SLEEPERS; i++) {
		r = native_perf_watch(perf, shared->sleepers[i]);
		assert_int_equal(r, i < 20 ? 0 : -ENOSPC);
	}
	native_perf_forget(perf, shared->sleepers[3]);
	assert_int_equal(native_perf_watch(perf, shared->sleepers[100]), 0);
	assert_int_equal(native_perf_watch(perf, shared->sleepers[101]), -ENOSPC);
	native_perf_close(perf);
	/* Descriptors, and the memory that ordinary users may lock, end somewhere. */
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	few = (struct rlimit){ .rlim_cur = 64, .rlim_max = old.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	assert_int_equal(native_perf_open(&perf, 49, 1000), 0);
	for (int i = 0; i < SLEEPERS; i++) {
		r = native_perf_watch(perf, shared->sleepers[i]);
		assert_true(r == 0 || r == -ENOSPC);
	}
	assert_int_equal(r, -ENOSPC);
	assert_false(native_perf_refused(perf, NULL));
	native_perf_close(perf);
	setrlimit(RLIMIT_NOFILE, &old);
	assert_int_equal(getrlimit(RLIMIT_MEMLOCK, &old), 0);
	few = (struct rlimit){ .rlim_cur = 0, .rlim_max = old.rlim_max };
	setrlimit(RLIMIT_MEMLOCK, &few);
	assert_int_equal(native_perf_open(&perf, 49, 1000), 0);
	for (int i = 0; i < SLEEPERS; i++) {
		r = native_perf_watch(perf, shared->sleepers[i]);
		assert_true(r == 0 || r == -ENOSPC);
	}
	/* 516 KB for each CPU are everybody's, 8 KB are a ring's. */
	if (geteuid() != 0 && sysconf(_SC_NPROCESSORS_ONLN) <= 2)
		assert_int_equal(r, -ENOSPC);
	assert_false(native_perf_refused(perf, NULL));
	native_perf_close(perf);
	setrlimit(RLIMIT_MEMLOCK, &old);
	end(pid);
}

static void test_words(void **state)
{
	struct err e = { 0 };

	(void)state;
	perf_refusal_words(-EACCES, 4, &e);
	assert_non_null(strstr(e.text, "kernel.perf_event_paranoid is 4"));
	assert_non_null(strstr(e.hint, "sudo sysctl kernel.perf_event_paranoid=2"));
	e = (struct err){ 0 };
	perf_refusal_words(-EPERM, 2, &e);
	assert_non_null(strstr(e.text, "seccomp"));
	assert_non_null(strstr(e.hint, "--cap-add PERFMON"));
	e = (struct err){ 0 };
	perf_refusal_words(-ENOSYS, 1, &e);
	assert_non_null(strstr(e.text, "seccomp"));
	e = (struct err){ 0 };
	perf_refusal_words(-ENOSYS, LLONG_MIN, &e);
	assert_non_null(strstr(e.text, "no perf events"));
	e = (struct err){ 0 };
	perf_refusal_words(PERF_OTHER_USER, 2, &e);
	assert_non_null(strstr(e.text, "another user"));
	perf_refusal_words(-EACCES, 4, NULL);
}

/* As an ordinary user: init is root's. */
static void test_other_user(void **state)
{
	struct native_perf *perf;
	struct err e = { 0 };

	(void)state;
	if (geteuid() == 0 || !permitted())
		skip();
	assert_int_equal(native_perf_open(&perf, 49, 4), 0);
	assert_int_equal(native_perf_watch(perf, 1), -EACCES);
	assert_true(native_perf_refused(perf, &e));
	assert_non_null(strstr(e.text, "another user"));
	native_perf_close(perf);
}

/* Every perf_event_open is refused, as docker's filter does. */
static bool refuse_perf(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = 4, .filter = code };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/* In a process of its own, as a filter stays: which step went wrong, 0 none. */
static int refused_steps(void)
{
	struct native_perf *perf;
	struct err e = { 0 };

	if (!refuse_perf())
		return 77;
	if (native_perf_open(&perf, 49, 4) < 0 || native_perf_refused(perf, &e))
		return 1;
	if (native_perf_watch(perf, getppid()) != -EPERM)
		return 2;
	if (!native_perf_refused(perf, &e) || !*e.text || !*e.hint)
		return 3;
	native_perf_close(perf);
	e = (struct err){ 0 };
	return native_perf_try(&e) == -EPERM && *e.text ? 0 : 4;
}

static void test_seccomp(void **state)
{
	int status;
	pid_t pid = fork();

	(void)state;
	if (pid == 0)
		_exit(refused_steps());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words),   cmocka_unit_test(test_shares),
		cmocka_unit_test(test_chain),   cmocka_unit_test(test_forget_and_gone),
		cmocka_unit_test(test_many),    cmocka_unit_test(test_other_user),
		cmocka_unit_test(test_seccomp),
	};

	shared =
	    mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

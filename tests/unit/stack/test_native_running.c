/* SPDX-License-Identifier: MIT
 *
 * Callers of threads that run, in chains that are known: every frame that is told must be right, and
 * nearly every chain be told to its end. Where the kernel does not permit it, what is tested is that we
 * say so.
 */
#include "../unit.h"
#include "base/clock.h"
#include "base/err.h"
#include "native_runs.h"
#include "stack/native/native.h"
#include "stack/native/perf_refusal.h"
#include "stack/native/sample.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* A sanitizer puts functions of its own before those of libc, and around threads. */
#if defined(__has_feature)
#define SANITIZED __has_feature(address_sanitizer)
#elif defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif
#ifdef __clang__
#define JUMPS 0
#else
#define JUMPS 1
#endif

#define SAMPLES 20
#define THREADS 12
#define FRAMES  6
#define HOGS    12

struct shared {
	_Atomic int tids[THREADS];
};

struct job {
	enum run how;
	void (*run)(enum run);
	_Atomic int *tid;
};

/* Symbols from the inside outwards, behind the leaf. "libc": one or more frames of the C library. */
struct expected {
	const char *leaf, *frames[FRAMES];
	bool whole;
};

static const struct expected expected[RUNS] = {
	[RUN_CHAIN] = { "spin", { "inner", "middle", "outer", "run" }, true },
	[RUN_ARRAY] = { "spin", { "inner", "array", "outer", "run" }, true },
	[RUN_TAIL] = { "spin", { "inner", "outer", "run" }, true },
	[RUN_SORT] = { "spin", { "compare", "libc", "sort", "outer", "run" }, true },
	[RUN_MEMORY] = { "libc", { "memory", "outer", "run" }, true },
	[RUN_SIGNAL] = { "spin", { "handler", "libc", "signals", "outer", "run" }, true },
	[RUN_BIG] = { "spin", { "inner", "big" }, false },
	[RUN_LIE] = { "lie", { NULL }, false },
};

static struct shared *shared;

static void pause_ns(long ns)
{
	nanosleep(&(struct timespec){ .tv_nsec = ns }, NULL);
}

static void *run_thread(void *arg)
{
	struct job *job = arg;

	*job->tid = (int)syscall(SYS_gettid);
	job->run(job->how);
	return NULL;
}

static pid_t start(enum run how, void (*run)(enum run), int threads)
{
	static struct job jobs[THREADS];
	pthread_t thread;
	pid_t pid;

	memset(shared, 0, sizeof(*shared));
	pid = fork();
	if (pid) {
		assert_true(pid > 0);
		return pid;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (int i = 0; i < threads; i++) {
		jobs[i] = (struct job){ how, run, &shared->tids[i] };
		pthread_create(&thread, NULL, run_thread, &jobs[i]);
	}
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
	pause_ns(20000000); /* for it to be in the middle of what it does */
	return *tid;
}

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

static bool ask(struct native_perf *perf, pid_t tid, struct native_sample *ret)
{
	int64_t until = clock_mono_ns() + 60 * NS_PER_S; /* it needs a CPU */
	bool got = false;

	native_perf_arm(perf, tid);
	while (!got && clock_mono_ns() < until)
		if (!(got = native_perf_sample(perf, tid, ret)))
			pause_ns(20000);
	native_perf_disarm(perf, tid);
	return got;
}

/* Is a frame what is called so? */
static bool is(const struct native_place *place, const char *prefix, const char *name)
{
	size_t n = strlen(prefix);

	if (strcmp(name, "libc") == 0)
		return place->libc;
	return strncmp(place->symbol, prefix, n) == 0 && strcmp(place->symbol + n, name) == 0;
}

/* The frame of what is expected that this one is: how many are within it, -1: none. */
static int find(const struct native_place *place, const char *prefix, const struct expected *e)
{
	for (int k = 0; k < FRAMES && e->frames[k]; k++)
		if (is(place, prefix, e->frames[k]))
			return k;
	return -1;
}

/* Where the thread is: how many frames of what is expected are within it, -1: it cannot be there. Now and
 * then it is on its way: in one of the callers, or in a stub between two of them. */
static int compare_leaf(struct native_process *p, const uint64_t *at, size_t n, const char *prefix,
			const struct expected *e, size_t *ret_next)
{
	struct native_place place;

	assert_true(n && native_place(p, at[0], clock_mono_ns(), &place));
	*ret_next = 1;
	if (is(&place, prefix, e->leaf))
		return 0;
	*ret_next = 0;
	if (!place.symbol[0] && strstr(place.file, "native_runs") && n > 1) {
		assert_true(native_place(p, at[1] - 1, clock_mono_ns(), &place));
		*ret_next = 1;
	}
	return find(&place, prefix, e);
}

/* Are all frames what is expected? -1: one is wrong; 1: and there are all. */
static int compare(struct native_process *p, const uint64_t *at, size_t n, const char *prefix,
		   const struct expected *e)
{
	struct native_place place;
	size_t i;
	int k = compare_leaf(p, at, n, prefix, e, &i);

	for (; k >= 0 && i < n && k < FRAMES && e->frames[k]; i++) {
		assert_true(native_place(p, at[i] - (i > 0), clock_mono_ns(), &place));
		if (is(&place, prefix, e->frames[k]))
			k++;
		else if (!k || strcmp(e->frames[k - 1], "libc") != 0 || !place.libc)
			k = -1;
	}
	if (k < 0 || (!e->whole && i < n)) { /* nobody calls what is the last of the copy */
		print_message("frame %zu of %zu is wrong: %s of %s\n", i, n, place.symbol,
			      place.file);
		return -1;
	}
	return k == FRAMES || !e->frames[k];
}

static void check(enum run how, void (*run)(enum run), const char *prefix)
{
	const struct expected *e = &expected[how];
	unsigned full = 0, asked = 0, known = 0;
	uint64_t at[NATIVE_FRAMES_MAX];
	struct native_sample sample;
	struct native_process *p;
	struct native_perf *perf;
	pid_t pid = start(how, run, 1), tid = wait_for(&shared->tids[0]);
	bool whole;

	assert_int_equal(native_open(&p, NULL, pid), 0);
	assert_int_equal(native_perf_open(&perf, 0, 4), 0);
	assert_int_equal(native_perf_watch_callers(perf, tid), 0);
	assert_false(native_perf_no_callers(perf, NULL));
	for (; asked < SAMPLES; asked++) {
		int k;
		size_t n;

		assert_true(ask(perf, tid, &sample));
		known += sample.known != 0;
		n = native_unwind_sample(p, &sample, clock_mono_ns(), at, NATIVE_FRAMES_MAX,
					 &whole);
		k = compare(p, at, n, prefix, e);
		assert_true(k >= 0);
		full += k > 0 && whole == e->whole;
		pause_ns(1000000);
	}
	print_message("%s %d: %u of %u to the end\n", prefix, (int)how, full, asked);
	assert_int_equal(known, asked);
	assert_true(SANITIZED || full >= asked * 9 / 10);
	native_perf_close(perf);
	native_close(p);
	end(pid);
}

static void test_chains(void **state)
{
	(void)state;
	if (!permitted())
		skip();
	for (int i = 0; i < RUNS; i++) {
		if ((SANITIZED && i >= RUN_SORT && i <= RUN_SIGNAL) || (!JUMPS && i == RUN_TAIL))
			continue;
		check(i, plain_run, "plain_");
		check(i, framed_run, "framed_");
	}
}

/* More threads than there may be rings: they take turns. */
static void test_turns(void **state)
{
	struct native_perf *perf;
	struct native_sample sample;
	struct err e = { 0 };
	unsigned had = 0;
	pid_t pid;

	(void)state;
	if (!permitted())
		skip();
	pid = start(RUN_CHAIN, plain_run, THREADS);
	for (int i = 0; i < THREADS; i++)
		wait_for(&shared->tids[i]);
	assert_int_equal(native_perf_open(&perf, 0, 10), 0);
	for (int i = 0; i < 2 * THREADS; i++) {
		pid_t tid = shared->tids[i % THREADS];

		assert_int_equal(native_perf_watch_callers(perf, tid), 0);
		had += ask(perf, tid, &sample) && sample.known;
	}
	assert_int_equal(had, 2 * THREADS);
	assert_false(native_perf_no_callers(perf, &e));
	/* Watched for its place, and then for its callers. */
	native_perf_forget(perf, shared->tids[0]);
	assert_int_equal(native_perf_watch(perf, shared->tids[0]), 0);
	assert_true(ask(perf, shared->tids[0], &sample) && sample.pc && !sample.known);
	assert_int_equal(native_perf_watch_callers(perf, shared->tids[0]), 0);
	assert_true(ask(perf, shared->tids[0], &sample) && sample.known);
	assert_int_equal(native_perf_watch_callers(perf, -1), -ESRCH);
	native_perf_close(perf);
	end(pid);
	assert_int_equal(native_perf_open(&perf, 0, 10), 0);
	assert_int_equal(native_perf_watch_callers(perf, pid), -ESRCH);
	native_perf_close(perf);
}

/* What a user may lock ends somewhere (516 KB for each CPU, 36 KB a ring): then they take turns, and where
 * there is nothing left at all the place of the thread is still had. */
static void test_no_memory(void **state)
{
	struct rlimit old, none;
	struct native_perf *hogs[HOGS] = { NULL };
	struct native_sample sample;
	struct err e = { 0 };
	bool told = false;
	int r = 0;
	pid_t pid;

	(void)state;
	if (geteuid() == 0 || sysconf(_SC_NPROCESSORS_ONLN) > 4 || !permitted())
		skip(); /* root may lock what it likes */
	pid = start(RUN_CHAIN, plain_run, 8);
	for (int i = 0; i < 8; i++)
		wait_for(&shared->tids[i]);
	assert_int_equal(getrlimit(RLIMIT_MEMLOCK, &old), 0);
	none = (struct rlimit){ .rlim_cur = 0, .rlim_max = old.rlim_max };
	setrlimit(RLIMIT_MEMLOCK, &none);
	for (int i = 0; i < HOGS && !told && r == 0; i++) {
		assert_int_equal(native_perf_open(&hogs[i], 0, 10), 0);
		for (int k = 0; k < 8 && r == 0; k++)
			r = native_perf_watch_callers(hogs[i], shared->tids[k]);
		told = native_perf_no_callers(hogs[i], &e);
		if (r == 0 && told)
			assert_true(ask(hogs[i], shared->tids[0], &sample) && sample.pc &&
				    !sample.known);
	}
	assert_true(told || r == -ENOSPC);
	if (told)
		assert_non_null(strstr(e.text, "kernel.perf_event_mlock_kb"));
	for (int i = 0; i < HOGS; i++)
		native_perf_close(hogs[i]);
	setrlimit(RLIMIT_MEMLOCK, &old);
	end(pid);
}

static void test_words(void **state)
{
	struct err e = { 0 };

	(void)state;
	perf_no_callers(-ENOSPC, &e);
	assert_non_null(strstr(e.text, "kernel.perf_event_mlock_kb"));
	assert_non_null(strstr(e.text, "only the function they are in"));
	e = (struct err){ 0 };
	perf_no_callers(-EOPNOTSUPP, &e);
	assert_non_null(strstr(e.text, "this kernel gives no stacks"));
	assert_true(*e.hint);
}

/* Records that are cut short, or of another kind of program. */
static void test_records(void **state)
{
	uint64_t words[64] = { 0, 0x1234, 0, 99, 2 /* 64 bits */ };
	size_t registers = (size_t)__builtin_popcountll(native_sample_registers());
	const uint8_t *bytes = (const uint8_t *)words;
	struct native_sample s;
	size_t at = 5 + registers;

	(void)state;
	if (!registers)
		skip();
	words[at] = 16; /* of stack */
	words[at + 1] = 7;
	words[at + 2] = 8;
	words[at + 3] = 8; /* of these, this many are one */
	assert_true(native_sample_read(bytes, 8 * (at + 4), true, &s));
	assert_true(s.known && s.pc == 0x1234 && s.ns == 99 && s.stack_n == 8);
	assert_int_equal(*s.stack, 7);
	for (size_t n = 0; n < 8 * (at + 4); n++) {
		bool read = native_sample_read(bytes, n, true, &s);

		assert_true(!read || !s.known);
		assert_int_equal(read, n >= 40);
	}
	words[at + 3] = UINT64_MAX;
	assert_true(native_sample_read(bytes, 8 * (at + 4), true, &s) && s.stack_n == 16);
	words[at] = UINT64_MAX - 7;
	assert_true(native_sample_read(bytes, 8 * (at + 4), true, &s) && !s.known);
	words[at] = 0;
	assert_true(native_sample_read(bytes, 8 * (at + 4), true, &s) && !s.known);
	words[at] = 16;
	words[4] = 1; /* a 32-bit program */
	assert_true(native_sample_read(bytes, 8 * (at + 4), true, &s) && !s.known);
	words[4] = UINT64_MAX; /* as a chain */
	assert_false(native_sample_read(bytes, 8 * (at + 4), false, &s));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words),     cmocka_unit_test(test_records),
		cmocka_unit_test(test_chains),    cmocka_unit_test(test_turns),
		cmocka_unit_test(test_no_memory),
	};

	shared =
	    mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

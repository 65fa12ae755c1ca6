/* SPDX-License-Identifier: MIT
 *
 * Native stacks of real processes: threads that wait in known ways, against what backtrace() said in
 * the thread itself. All allocations are counted: seeing the same again makes none.
 */
#include "../unit.h"
#include "base/clock.h"
#include "base/io.h"
#include "native_blocks.h"
#include "stack/native/native.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* A sanitizer's wrappers of libc keep their frames by rbp, which nobody saves: the walk ends there. */
#if defined(__has_feature)
#define SANITIZED __has_feature(address_sanitizer)
#elif defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

static size_t allocations;

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);

void *__wrap_malloc(size_t n)
{
	allocations++;
	return __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
	allocations++;
	return __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t n)
{
	allocations++;
	return __real_realloc(p, n);
}

struct shared {
	struct truth plain[BLOCKS], framed[BLOCKS];
};

struct job {
	enum block what;
	struct things *things;
	struct truth *truth;
	void (*outer)(enum block, struct things *, struct truth *);
};

static struct shared *shared;
static pid_t target;

static void pause_ns(long ns)
{
	nanosleep(&(struct timespec){ .tv_nsec = ns }, NULL);
}

static void *wait_thread(void *arg)
{
	struct job *job = arg;

	job->outer(job->what, job->things, job->truth);
	return NULL;
}

static void run_target(void)
{
	static struct things things = { .locked = PTHREAD_MUTEX_INITIALIZER,
					.mutex = PTHREAD_MUTEX_INITIALIZER,
					.never = PTHREAD_COND_INITIALIZER };
	static struct job jobs[2 * BLOCKS];
	pthread_t thread;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (pipe(things.pipe) < 0)
		_exit(1);
	pthread_mutex_lock(&things.locked);
	for (int i = 0; i < BLOCKS; i++) {
		jobs[i] = (struct job){ i, &things, &shared->plain[i], plain_outer };
		jobs[BLOCKS + i] = (struct job){ i, &things, &shared->framed[i], framed_outer };
		pthread_create(&thread, NULL, wait_thread, &jobs[i]);
		pthread_create(&thread, NULL, wait_thread, &jobs[BLOCKS + i]);
	}
	for (;;)
		pause();
}

static pid_t start(void)
{
	pid_t pid;

	memset(shared, 0, sizeof(*shared));
	pid = fork();
	if (pid == 0)
		run_target();
	assert_true(pid > 0);
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* "230 0x0 ... 0x7ffc12345678 0x7f1234567890": the last two are sp and pc. */
static bool waits(pid_t pid, pid_t tid, uint64_t *ret_pc, uint64_t *ret_sp)
{
	char path[96], text[256], *pc, *sp;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/syscall", (int)pid, (int)tid);
	n = io_read(AT_FDCWD, path, text, sizeof(text));
	if (n <= 0 || text[0] == 'r' || text[0] == '-')
		return false;
	pc = strrchr(text, ' ');
	*pc = '\0';
	sp = strrchr(text, ' ');
	*ret_pc = strtoull(pc + 1, NULL, 16);
	*ret_sp = strtoull(sp + 1, NULL, 16);
	return true;
}

static pid_t blocked(struct truth *truth, uint64_t *ret_pc, uint64_t *ret_sp)
{
	int64_t until = clock_mono_ns() + 10 * NS_PER_S;

	while (!truth->tid && clock_mono_ns() < until)
		pause_ns(1000000);
	assert_true(truth->tid);
	pause_ns(
	    20000000); /* it said so just before; a system call of libc's own may come between */
	while (!waits(target, truth->tid, ret_pc, ret_sp) && clock_mono_ns() < until)
		pause_ns(1000000);
	return truth->tid;
}

static const char *const functions[] = {
	[BLOCK_NANOSLEEP] = "sleeps", [BLOCK_MUTEX] = "locks", [BLOCK_READ] = "reads",
	[BLOCK_POLL] = "polls",       [BLOCK_COND] = "conds",  [BLOCK_ARRAY] = "sleeps",
	[BLOCK_SIGNAL] = "sleeps",
};
static const char *const calls[] = {
	[BLOCK_NANOSLEEP] = "clock_nanosleep",
	[BLOCK_MUTEX] = "",
	[BLOCK_READ] = "read",
	[BLOCK_POLL] = "poll",
	[BLOCK_COND] = "",
	[BLOCK_ARRAY] = "clock_nanosleep",
	[BLOCK_SIGNAL] = "clock_nanosleep",
};

/* The first frame in our libraries. Before it is libc; with a sanitizer, its wrappers also. */
static size_t first_own(struct native_process *p, const uint64_t *found, size_t n)
{
	struct native_place place;
	size_t i;

	for (i = 0; i < n; i++)
		if (native_place(p, found[i] - 1, clock_mono_ns(), &place) &&
		    strstr(place.file, "native_blocks"))
			break;
	return i;
}

/* Frames from the one that waits on, all of which must be those that the thread itself saw: how many.
 * *ret_all: how many it saw. */
static size_t check_chain(struct native_process *p, enum block what, const struct truth *truth,
			  const char *prefix, uint64_t pc, uint64_t sp, size_t *ret_all)
{
	uint64_t found[NATIVE_FRAMES_MAX], seen[TRUTH_MAX];
	size_t n = native_unwind(p, pc, sp, clock_mono_ns(), found, NATIVE_FRAMES_MAX), own, from;
	struct native_place place;
	char name[64];

	assert_true(n >= 1);
	assert_int_equal(found[0], pc);
	assert_true(native_place(p, pc, clock_mono_ns(), &place));
	assert_true(place.libc);
	if (*calls[what])
		assert_string_equal(place.symbol, calls[what]);
	for (int i = 0; i < truth->n; i++)
		seen[i] = (uint64_t)(uintptr_t)truth->chain[i];
	from = first_own(p, seen, (size_t)truth->n);
	own = first_own(p, found, n);
	*ret_all = (size_t)truth->n - from;
	if (own == n)
		return 0;
	native_place(p, found[own] - 1, clock_mono_ns(), &place);
	snprintf(name, sizeof(name), "%s%s", prefix, functions[what]);
	assert_string_equal(place.symbol, name);
	assert_true(n - own <= *ret_all);
	/* The innermost stands elsewhere in the function by now. */
	for (size_t i = 1; own + i < n; i++)
		assert_int_equal(found[own + i], seen[from + i]);
	return n - own;
}

static void test_waiting(void **state)
{
	struct native_process *p;
	size_t before;

	(void)state;
	target = start();
	assert_int_equal(native_open(&p, NULL, target), 0);
	for (int i = 0; i < BLOCKS; i++) {
		uint64_t pc, sp;
		size_t reached, all;

		blocked(&shared->plain[i], &pc, &sp);
		reached = check_chain(p, i, &shared->plain[i], "plain_", pc, sp, &all);
		/* All of it, but where only rbp, which nobody saved, knows where a frame begins. */
		if (i == BLOCK_ARRAY)
			assert_true(reached >= 2 || SANITIZED);
		else
			assert_true(reached == all || SANITIZED);
		blocked(&shared->framed[i], &pc, &sp);
		assert_true(check_chain(p, i, &shared->framed[i], "framed_", pc, sp, &all) >= 1 ||
			    SANITIZED);
		before = allocations;
		check_chain(p, i, &shared->framed[i], "framed_", pc, sp, &all);
		assert_int_equal(allocations, before);
	}
	native_close(p);
	end(target);
}

/* Wherever a thread may be said to be: each frame is one that it has, or none is told. */
static void test_wrong_start(void **state)
{
	struct native_process *p;
	uint64_t pc, sp, found[NATIVE_FRAMES_MAX];
	struct native_place place;

	(void)state;
	target = start();
	assert_int_equal(native_open(&p, NULL, target), 0);
	blocked(&shared->plain[BLOCK_READ], &pc, &sp);
	assert_int_equal(native_unwind(p, pc, sp, clock_mono_ns(), found, 2), 2);
	assert_int_equal(native_unwind(p, pc, 0, clock_mono_ns(), found, 64), 1);
	assert_int_equal(native_unwind(p, pc, UINT64_MAX - 4, clock_mono_ns(), found, 64), 1);
	assert_int_equal(native_unwind(p, sp, sp, clock_mono_ns(), found, 64), 0);
	assert_int_equal(native_unwind(p, 0, sp, clock_mono_ns(), found, 64), 0);
	assert_int_equal(native_unwind(p, pc, sp, clock_mono_ns(), found, 0), 0);
	assert_false(native_place(p, 8, clock_mono_ns(), &place));
	/* The stack is no code. */
	assert_false(native_place(p, sp, clock_mono_ns(), &place));
	end(target);
	/* Gone: what is known is known, and nothing is made up for the rest. */
	assert_int_equal(native_unwind(p, pc, sp, clock_mono_ns(), found, 64), 1);
	native_close(p);
	assert_int_equal(native_open(&p, NULL, target), 0);
	assert_false(native_place(p, pc, clock_mono_ns(), &place));
	assert_int_equal(native_unwind(p, pc, sp, clock_mono_ns(), found, 64), 0);
	native_close(p);
}

/* Symbols against what the linker itself says of this very process. */
static void test_symbols(void **state)
{
	/* The first three are chosen by the kind of CPU: what runs has no exported name. */
	static const char *const names[] = { "memcpy",
					     "memset",
					     "strlen",
					     "plain_sleeps",
					     "plain_outer",
					     "framed_middle",
					     "framed_burn_little",
					     "poll",
					     "pthread_cond_wait",
					     "backtrace",
					     "qsort",
					     "plain_burn_much" };
	struct native_process *p;
	struct native_place place;
	const char *kept = NULL;

	(void)state;
	assert_int_equal(native_open(&p, NULL, getpid()), 0);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		void *at = dlsym(RTLD_DEFAULT, names[i]);
		size_t before;

		assert_non_null(at);
		assert_true(native_place(p, (uint64_t)(uintptr_t)at, 0, &place));
		assert_string_equal(place.symbol, names[i]);
		assert_true(native_place(p, (uint64_t)(uintptr_t)at + 1, 0, &place));
		assert_string_equal(place.symbol, names[i]);
		assert_int_equal(place.libc, strstr(place.file, "/libc.so") != NULL);
		before = allocations;
		assert_true(native_place(p, (uint64_t)(uintptr_t)at, 0, &place));
		assert_int_equal(allocations, before);
		kept = i == 0 ? place.symbol : kept;
	}
	/* Ours are not exported: the program's name, and no neighbour's symbol; then what the file has. */
	assert_true(native_place(p, (uint64_t)(uintptr_t)check_chain, 0, &place));
	assert_string_equal(place.symbol, "");
	assert_true(place.pending);
	assert_non_null(strstr(place.file, "test_native_live"));
	for (int64_t end = clock_mono_ns() + 20 * NS_PER_S; place.pending;) {
		assert_true(clock_mono_ns() < end);
		pause_ns(1000000);
		assert_true(native_place(p, (uint64_t)(uintptr_t)check_chain, 1, &place));
	}
	assert_true(strncmp(place.symbol, "check_chain", 11) == 0);
	assert_string_equal(kept, names[0]);
	native_close(p);
}

/* A library that comes and goes: seen when it is there, not taken for what was there before. */
static void test_library_comes_and_goes(void **state)
{
	struct native_process *p;
	struct native_place place;
	void *library, *at;

	(void)state;
	assert_int_equal(native_open(&p, NULL, getpid()), 0);
	assert_true(native_place(p, (uint64_t)(uintptr_t)getpid, 0, &place));
	library = dlopen(LATE_LIBRARY, RTLD_NOW | RTLD_LOCAL);
	assert_non_null(library);
	at = dlsym(library, "late_burn_much");
	assert_non_null(at);
	assert_false(native_place(p, (uint64_t)(uintptr_t)at, 1, &place)); /* too soon */
	assert_true(native_place(p, (uint64_t)(uintptr_t)at, NS_PER_S, &place));
	assert_string_equal(place.symbol, "late_burn_much");
	assert_string_equal(place.file, LATE_LIBRARY);
	dlclose(library);
	/* An address that nobody knows, later: maps are read, the library is gone. */
	assert_false(native_place(p, 1 << 20, 2 * NS_PER_S, &place));
	assert_false(native_place(p, (uint64_t)(uintptr_t)at, 2 * NS_PER_S, &place));
	assert_true(native_place(p, (uint64_t)(uintptr_t)getpid, 2 * NS_PER_S, &place));
	assert_string_equal(place.symbol, "getpid");
	native_close(p);
}

static void test_python(void **state)
{
	struct native_process *p;
	struct native_place place;
	uint64_t pc = 0, sp, found[NATIVE_FRAMES_MAX];
	int64_t until = clock_mono_ns() + 20 * NS_PER_S;
	size_t n = 0, python = 0;
	pid_t pid;

	(void)state;
	if (access("/usr/bin/python3", X_OK) < 0)
		skip();
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execl("/usr/bin/python3", "python3", "-I", "-S", "-c",
		      "import time; time.sleep(100)", (char *)NULL);
		_exit(127);
	}
	assert_int_equal(native_open(&p, NULL, pid), 0);
	while (clock_mono_ns() < until) {
		if (waits(pid, pid, &pc, &sp) && native_place(p, pc, clock_mono_ns(), &place) &&
		    strcmp(place.symbol, "clock_nanosleep") == 0)
			break;
		pause_ns(5000000);
	}
	assert_true(native_place(p, pc, clock_mono_ns(), &place));
	assert_string_equal(place.symbol, "clock_nanosleep");
	n = native_unwind(p, pc, sp, clock_mono_ns(), found, NATIVE_FRAMES_MAX);
	for (size_t i = 1; i < n; i++)
		python += native_place(p, found[i] - 1, clock_mono_ns(), &place) &&
			  strstr(place.file, "python") != NULL;
	print_message("python: %zu frames, %zu in python, last %s\n", n, python, place.symbol);
	assert_true(python >= 1);
	native_close(p);
	end(pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_waiting), cmocka_unit_test(test_wrong_start),
		cmocka_unit_test(test_symbols), cmocka_unit_test(test_library_comes_and_goes),
		cmocka_unit_test(test_python),
	};

	shared =
	    mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

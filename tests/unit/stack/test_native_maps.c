/* SPDX-License-Identifier: MIT
 *
 * A process with very many mappings: what is kept of them is bounded, and how often they are read too.
 * Time is simulated.
 */
#include "../unit.h"
#include "base/auto.h"
#include "base/clock.h"
#include "stack/native/process.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MANY    40000      /* vm.max_map_count is 65530 */
#define NOTHING (1u << 20) /* an address where nothing is */

static uint64_t *told; /* by the child: where its code is */

enum kind { DATA, DATA_FILE, CODE };

static void *piece(enum kind kind, int file, int i)
{
	int mode = i % 2 ? PROT_READ : PROT_NONE;

	if (kind == CODE)
		mode = PROT_EXEC | PROT_READ | (i % 2 ? PROT_WRITE : 0);
	if (kind == DATA_FILE)
		return mmap(NULL, 4096, mode, MAP_PRIVATE, file, 0);
	return mmap(NULL, 4096, mode, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static pid_t start(enum kind kind)
{
	int64_t until = clock_mono_ns() + 20 * NS_PER_S;
	pid_t pid;

	*told = 0;
	pid = fork();
	if (pid == 0) {
		int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
		void *code;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (int i = 0; i < MANY; i++)
			(void)piece(kind, file, i);
		code = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		__atomic_store_n(told, (uint64_t)(uintptr_t)code, __ATOMIC_SEQ_CST);
		for (;;)
			pause();
	}
	assert_true(pid > 0);
	while (!__atomic_load_n(told, __ATOMIC_SEQ_CST) && clock_mono_ns() < until)
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	assert_true(*told);
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* Is what is code found among all that is not? */
static void check_data(enum kind kind)
{
	pid_t pid = start(kind);
	struct native_process *p;
	struct native_place place;
	auto_free char *text = NULL;
	size_t n = 0;
	int r = 0;

	text = elf_read_maps(pid, &n, &r);
	assert_non_null(text);
	assert_true(n > 200);
	assert_true(n < 64 << 10);
	assert_int_equal(native_open(&p, NULL, pid), 0);
	assert_true(native_place(p, (uint64_t)(uintptr_t)getpid, 0, &place));
	assert_string_equal(place.symbol, "getpid");
	assert_true(native_place(p, (uint64_t)(uintptr_t)check_data, 0, &place));
	assert_non_null(strstr(place.file, "test_native_maps"));
	/* Code that was made: of no file. */
	assert_true(native_place(p, *told, 0, &place));
	assert_string_equal(place.file, "");
	assert_int_equal(p->maps_reads, 1);
	assert_true(p->maps.n < 512);
	assert_true(p->maps.cap < 1024);
	/* It took more than a 200th of a quarter of a second. */
	assert_true(p->maps_pause > NS_PER_S / 4);
	assert_null(native_mapping(p, NOTHING, p->maps_pause - 1));
	assert_int_equal(p->maps_reads, 1);
	assert_null(native_mapping(p, NOTHING, p->maps_pause));
	assert_int_equal(p->maps_reads, 2);
	native_close(p);
	end(pid);
}

static void test_data(void **state)
{
	(void)state;
	check_data(DATA);
}

static void test_data_files(void **state)
{
	(void)state;
	check_data(DATA_FILE);
}

static void test_code(void **state)
{
	pid_t pid = start(CODE);
	struct native_process *p;
	auto_free char *text = NULL;
	size_t n = 0;
	int r = 0;

	(void)state;
	text = elf_read_maps(pid, &n, &r);
	assert_non_null(text);
	assert_true(n <= 1 << 20);
	assert_int_equal(native_open(&p, NULL, pid), 0);
	assert_null(native_mapping(p, NOTHING, 0));
	assert_true(p->maps.n > 1000);
	assert_true(p->maps.n <= 8192);
	native_close(p);
	end(pid);
}

/* Addresses that are nowhere: read less and less often, and never for those that cannot be code. */
static void test_in_vain(void **state)
{
	struct native_process *p;
	unsigned reads;
	int64_t ns = 0;

	(void)state;
	assert_int_equal(native_open(&p, NULL, getpid()), 0);
	assert_null(native_mapping(p, 8, ns));
	assert_null(native_mapping(p, UINT64_MAX, ns));
	assert_int_equal(p->maps_reads, 0);
	for (; ns < 10 * NS_PER_S; ns += NS_PER_S / 50)
		assert_null(native_mapping(p, NOTHING + (uint64_t)ns % 4096, ns));
	assert_in_range(p->maps_reads, 2, 6);
	for (; ns < 1000 * NS_PER_S; ns += NS_PER_S / 50)
		assert_null(native_mapping(p, NOTHING, ns));
	assert_in_range(p->maps_reads, 5, 6 + 990 / 30 + 1);
	/* What is there, later: found with the next reading, and looked for soon again. */
	reads = p->maps_reads;
	*told = (uint64_t)(uintptr_t)mmap(NULL, 4096, PROT_READ | PROT_EXEC,
					  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_null(native_mapping(p, NOTHING, ns));
	assert_non_null(native_mapping(p, *told, ns + 100 * NS_PER_S));
	assert_true(p->maps_reads > reads);
	assert_int_equal(p->maps_vain, 0);
	munmap((void *)(uintptr_t)*told, 4096);
	native_close(p);
}

static int prepare(void **state)
{
	(void)state;
	told = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return told == MAP_FAILED ? -1 : 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_data),
		cmocka_unit_test(test_data_files),
		cmocka_unit_test(test_code),
		cmocka_unit_test(test_in_vain),
	};

	return cmocka_run_group_tests(tests, prepare, NULL);
}

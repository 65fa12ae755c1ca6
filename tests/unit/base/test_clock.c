/* SPDX-License-Identifier: MIT */
#include "../unit.h"

#include "base/clock.h"

#include <errno.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void clocks_run(void **state)
{
	int64_t mono = clock_mono_ns(), boot = clock_boot_ns(), wall = clock_wall_ns();

	(void)state;
	assert_true(mono > 0 && boot > 0);
	assert_true(wall > 1600000000 * NS_PER_S);
	assert_true(clock_mono_ns() >= mono);
	assert_true(clock_boot_ns() >= boot);
	assert_true(boot - mono > -NS_PER_S); /* the boot clock counts suspend, too */
}

static volatile unsigned sum;

static void burn(int64_t ns)
{
	int64_t end = clock_thread_cpu_ns() + ns;

	while (clock_thread_cpu_ns() < end)
		for (int i = 0; i < 1000; i++)
			sum += (unsigned)i;
}

static void cpu_clocks_count_cpu(void **state)
{
	int64_t self = clock_self_cpu_ns(), thread = clock_thread_cpu_ns();
	int64_t by_pid = clock_pid_cpu_ns(getpid());
	const struct timespec nap = { .tv_nsec = 20000000 };

	(void)state;
	burn(20000000);
	assert_true(clock_self_cpu_ns() - self >= 20000000);
	assert_true(clock_thread_cpu_ns() - thread >= 20000000);
	assert_true(clock_pid_cpu_ns(getpid()) - by_pid >= 20000000);
	thread = clock_thread_cpu_ns();
	nanosleep(&nap, NULL);
	assert_true(clock_thread_cpu_ns() - thread < 15000000);
}

/* The gate the collectors stand on: a process that does not run has a clock that stands still. */
static void another_process(void **state)
{
	int64_t first;
	pid_t child = fork();

	(void)state;
	assert_true(child >= 0);
	if (!child) {
		pause();
		_exit(0);
	}
	do {
		const struct timespec nap = { .tv_nsec = 10000000 };

		first = clock_pid_cpu_ns(child);
		nanosleep(&nap, NULL);
	} while (first != clock_pid_cpu_ns(child));
	assert_true(first >= 0);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	assert_true(clock_pid_cpu_ns(child) < 0);
}

static void no_such_process(void **state)
{
	(void)state;
	assert_true(clock_pid_cpu_ns(0) == -ESRCH);
	assert_true(clock_pid_cpu_ns(-1) == -ESRCH);
	assert_true(clock_pid_cpu_ns(0x1ffffff) < 0);
}

static void iso_is(int64_t ns, const char *want)
{
	char got[32];

	clock_iso(ns, got, sizeof(got));
	assert_string_equal(got, want);
}

static void iso(void **state)
{
	(void)state;
	iso_is(0, "1970-01-01T00:00:00.000Z");
	iso_is(1700000000123999999ll, "2023-11-14T22:13:20.123Z");
	iso_is(951782400ll * NS_PER_S, "2000-02-29T00:00:00.000Z");
	iso_is(-1, "1969-12-31T23:59:59.999Z");
	iso_is(-NS_PER_S, "1969-12-31T23:59:59.000Z");
	iso_is(INT64_MAX, "2262-04-11T23:47:16.854Z");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(clocks_run),
		cmocka_unit_test(cpu_clocks_count_cpu),
		cmocka_unit_test(another_process),
		cmocka_unit_test(no_such_process),
		cmocka_unit_test(iso),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

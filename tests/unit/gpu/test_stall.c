/* SPDX-License-Identifier: MIT
 *
 * Calls that block and come back, many that block, helpers that others end, and what a library does to its
 * process (fake_nvml.c). This binary is the helper as well.
 */
#include "../unit.h"

#include "base/clock.h"
#include "base/err.h"
#include "gpu/client.h"
#include "gpu/shared.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEADLINE_NS (150 * NS_PER_MS)

static struct gpu_client *open_with(const char *trouble, int gpus, const char *program)
{
	struct gpu_client_options o = { .depth = GPU_MIDDLE,
					.period_ns = 10 * NS_PER_MS,
					.deadline_ns = DEADLINE_NS,
					.nvml = FAKE_NVML,
					.program = program };
	struct gpu_client *c = NULL;
	struct err e = { 0 };
	char count[16];

	snprintf(count, sizeof(count), "%d", gpus);
	setenv("FAKE_NVML_GPUS", count, 1);
	if (trouble)
		setenv("FAKE_NVML", trouble, 1);
	else
		unsetenv("FAKE_NVML");
	assert_int_equal(gpu_client_open(&o, &c, &e), 0);
	return c;
}

static void close_client(struct gpu_client *c)
{
	int status;

	gpu_client_close(c);
	assert_int_equal(waitpid(-1, &status, WNOHANG | __WALL), -1);
	assert_int_equal(errno, ECHILD);
}

static void nap(int ms)
{
	struct timespec t = { ms / 1000, ms % 1000 * NS_PER_MS };

	(void)nanosleep(&t, NULL);
}

/* Polls every `ms` until it came. */
static void expect_at(struct gpu_client *c, int kind, struct gpu_event *ret, int ms)
{
	int64_t until = clock_mono_ns() + 20 * NS_PER_S;

	while (clock_mono_ns() < until) {
		(void)gpu_client_poll(c, -1, clock_mono_ns());
		while (gpu_client_event(c, ret))
			if ((int)ret->kind == kind)
				return;
		nap(ms);
	}
	fail_msg("event %d did not come", kind);
}

static void expect(struct gpu_client *c, int kind, struct gpu_event *ret)
{
	expect_at(c, kind, ret, 2);
}

/* Waits until this GPU is in that state. */
static void expect_state(struct gpu_client *c, int gpu, int state)
{
	int64_t until = clock_mono_ns() + 2 * NS_PER_S;

	while (clock_mono_ns() < until) {
		const struct gpu_snapshot *s = gpu_client_poll(c, -1, clock_mono_ns());

		if (s && s->n_devices > gpu && s->device[gpu].state == state &&
		    gpu_metric(&s->device[gpu], M_GPU_BUSY)->have == state)
			return;
		nap(2);
	}
	fail_msg("GPU %d did not come to state %d", gpu, state);
}

static void check_identity(const struct gpu_snapshot *s, int n)
{
	assert_non_null(s);
	assert_int_equal(s->n_devices, n);
	for (int i = 0; i < n; i++) {
		const struct gpu_device *d = &s->device[i];
		char name[32], uuid[32], pci[32];

		snprintf(name, sizeof(name), "Fake GPU %d", i);
		snprintf(uuid, sizeof(uuid), "GPU-%d", i);
		snprintf(pci, sizeof(pci), "00000000:%02X:00.0", 0x10 + i);
		assert_int_equal(d->index, i);
		assert_string_equal(d->name, name);
		assert_string_equal(d->uuid, uuid);
		assert_string_equal(d->pci, pci);
	}
}

/* A stall that ends: the GPU is read again, until it has hung too often. */
static void test_read_again(void **state)
{
	struct gpu_client *c = open_with("hang nvmlDeviceGetUtilizationRates 1 5 600 6", 3, NULL);
	struct gpu_event e;

	(void)state;
	for (int i = 1; i <= GPU_HANGS; i++) {
		expect(c, GPU_EVENT_HANG, &e);
		expect_state(c, 1, GPU_HUNG);
		expect(c, GPU_EVENT_RETURNED, &e);
		expect_state(c, 1, i < GPU_HANGS ? GPU_KNOWN : GPU_HUNG);
		check_identity(gpu_client_last(c), 3);
	}
	nap(50);
	expect_state(c, 1, GPU_HUNG);
	expect_state(c, 0, GPU_KNOWN);
	close_client(c);
}

/* The same when no helper is left: the one that came back reads on. */
static void test_read_again_by_the_last(void **state)
{
	struct gpu_client *c =
	    open_with("hang nvmlDeviceGetUtilizationRates -1 1 2500 2", 10, NULL);
	struct gpu_event e;

	(void)state;
	expect(c, GPU_EVENT_GAVE_UP, &e);
	check_identity(gpu_client_last(c), 10);
	assert_false(gpu_client_last(c)->whole);
	for (int i = 0; i < GPU_HELPERS; i++)
		assert_int_equal(gpu_client_last(c)->device[i].state, GPU_HUNG);
	expect(c, GPU_EVENT_RETURNED, &e);
	expect_state(c, 0, GPU_KNOWN);
	expect_state(c, 9, GPU_KNOWN);
	close_client(c);
}

/* Polls are much rarer than the deadline. */
static void test_rare_polls(void **state)
{
	struct gpu_client *c = open_with("hang nvmlDeviceGetUtilizationRates 1 5 60000", 3, NULL);
	int64_t begun;
	struct gpu_event e;

	(void)state;
	assert_int_equal(gpu_client_wait(c, 10 * NS_PER_S), 0);
	begun = clock_mono_ns();
	expect_at(c, GPU_EVENT_HANG, &e, 3 * DEADLINE_NS / NS_PER_MS);
	assert_int_equal(e.index, 1);
	assert_true(clock_mono_ns() - begun < 5 * 3 * DEADLINE_NS);
	expect_state(c, 2, GPU_KNOWN);
	close_client(c);
}

/* A machine that was paused in the middle of a call: no hang. */
static void test_paused(void **state)
{
	struct gpu_client *c = open_with("hang nvmlDeviceGetUtilizationRates 1 5 100", 3, NULL);
	int64_t now = clock_mono_ns();
	struct gpu_event e;

	(void)state;
	for (int i = 0; i < 60; i++, nap(5), now += 5 * NS_PER_MS)
		(void)gpu_client_poll(c, -1, now);
	now += 3600 * NS_PER_S;
	for (int i = 0; i < 6; i++, nap(5), now += 5 * NS_PER_MS)
		(void)gpu_client_poll(c, -1, now);
	assert_false(gpu_client_event(c, &e));
	close_client(c);
}

/* Every second GPU of eight hangs in the first reading: the others are read, all keep their names. */
static void test_four_hang(void **state)
{
	struct gpu_client *c;
	const struct gpu_snapshot *s;

	(void)state;
	setenv("FAKE_NVML_ODD", "1", 1);
	c = open_with("hang nvmlDeviceGetTemperature -1 1 60000", 8, NULL);
	assert_int_equal(gpu_client_wait(c, 20 * NS_PER_S), 0);
	unsetenv("FAKE_NVML_ODD");
	s = gpu_client_last(c);
	assert_true(s->whole);
	check_identity(s, 8);
	for (int i = 0; i < 8; i++) {
		int have = i % 2 ? GPU_HUNG : GPU_KNOWN;

		assert_int_equal(s->device[i].state, have);
		assert_int_equal(gpu_metric(&s->device[i], M_GPU_TEMPERATURE)->have, have);
	}
	close_client(c);
}

static pid_t only_child_of(pid_t parent)
{
	char path[64], text[64] = "";
	FILE *f;
	int pid = 0;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)parent, (int)parent);
	f = fopen(path, "re");
	if (!f)
		return 0;
	if (fgets(text, sizeof(text), f))
		pid = (int)strtol(text, NULL, 10);
	fclose(f);
	return pid;
}

/* A stuck helper that somebody ends has not come back. */
static void test_stuck_is_killed(void **state)
{
	struct gpu_client *c = open_with("hang nvmlDeviceGetUtilizationRates 1 5 60000", 3, NULL);
	pid_t helper;
	struct gpu_event e;

	(void)state;
	assert_int_equal(gpu_client_wait(c, 10 * NS_PER_S), 0);
	helper = only_child_of(only_child_of(getpid()));
	expect(c, GPU_EVENT_HANG, &e);
	if (helper <= 0)
		skip(); /* a kernel without CONFIG_PROC_CHILDREN */
	assert_int_equal(kill(helper, SIGKILL), 0);
	expect(c, GPU_EVENT_DIED, &e);
	assert_string_equal(
	    e.text,
	    "the GPU helper was killed by SIGKILL in nvmlDeviceGetUtilizationRates on GPU 1");
	expect_state(c, 1, GPU_HUNG);
	while (gpu_client_event(c, &e))
		assert_int_not_equal(e.kind, GPU_EVENT_RETURNED);
	close_client(c);
}

static void test_exit_status(void **state)
{
	struct gpu_client *c = open_with("exit nvmlDeviceGetUtilizationRates 1 5 200", 3, NULL);
	struct gpu_event e;

	(void)state;
	expect(c, GPU_EVENT_DIED, &e);
	assert_string_equal(e.text, "the GPU helper exited with status 200 in "
				    "nvmlDeviceGetUtilizationRates on GPU 1");
	close_client(c);
}

/* What it sends to its process group stays there, and it has no terminal. */
static void test_own_session(void **state)
{
	struct gpu_client *c = open_with("group nvmlDeviceGetUtilizationRates 1 1 0", 3, NULL);
	pid_t keeper, helper;

	(void)state;
	expect_state(c, 1, GPU_KNOWN);
	keeper = only_child_of(getpid());
	helper = keeper > 0 ? only_child_of(keeper) : 0;
	if (helper > 0) {
		assert_int_equal(getsid(helper), helper);
		assert_int_equal(getpgid(helper), helper);
		assert_int_not_equal(getsid(keeper), getsid(0));
	}
	close_client(c);
}

static bool gone(pid_t pid)
{
	for (int i = 0; i < 1000; i++, nap(2))
		if (kill(pid, 0) < 0 && errno == ESRCH)
			return true;
	return false;
}

/* What the library forked goes with it. */
static void test_children_go(void **state)
{
	struct gpu_client *c = open_with("fork nvmlDeviceGetUtilizationRates 1 1 60000", 3, NULL);
	pid_t helper, left;

	(void)state;
	assert_int_equal(gpu_client_wait(c, 10 * NS_PER_S), 0);
	helper = only_child_of(only_child_of(getpid()));
	left = helper > 0 ? only_child_of(helper) : 0;
	close_client(c);
	if (left <= 0)
		skip(); /* a kernel without CONFIG_PROC_CHILDREN */
	assert_true(gone(-helper));
	assert_true(gone(left));
}

/* Stopped ones go as well: when the client is closed, and when it is killed. */
static void test_stopped(void **state)
{
	(void)state;
	for (int how = 0; how < 2; how++) {
		pid_t recorder = fork(), keeper = 0, helper = 0;
		int status;

		if (recorder == 0) {
			struct gpu_client *c = open_with(NULL, 3, NULL);

			(void)gpu_client_wait(c, 10 * NS_PER_S);
			keeper = only_child_of(getpid());
			helper = keeper ? only_child_of(keeper) : 0;
			if (helper && (kill(helper, SIGSTOP) < 0 || kill(keeper, SIGSTOP) < 0))
				_exit(1);
			nap(100);
			if (how == 0)
				gpu_client_close(c);
			_exit(0);
		}
		for (int i = 0; i < 20 && !helper; i++, nap(2)) {
			keeper = only_child_of(recorder);
			helper = keeper ? only_child_of(keeper) : 0;
		}
		assert_int_equal(waitpid(recorder, &status, 0), recorder);
		assert_int_equal(status, 0);
		if (!helper)
			skip();
		assert_true(gone(helper));
		assert_true(gone(keeper));
	}
}

/* Our own failures are not the driver's, and nobody waits for long. */
static void test_cannot_start(void **state)
{
	struct gpu_client *c = open_with(NULL, 3, "/nowhere/spotter");
	int64_t begun = clock_mono_ns();
	struct gpu_event e;

	(void)state;
	assert_int_equal(gpu_client_wait(c, 30 * NS_PER_S), -ETIMEDOUT);
	assert_true(clock_mono_ns() - begun < 5 * NS_PER_S);
	assert_true(gpu_client_event(c, &e));
	assert_int_equal(e.kind, GPU_EVENT_GAVE_UP);
	assert_string_equal(e.text,
			    "GPUs are not read: the GPU helper could not be started: No such "
			    "file or directory");
	assert_false(gpu_client_event(c, &e));
	close_client(c);
}

static void test_file_size_limit(void **state)
{
	struct gpu_client *c = open_with(NULL, 3, NULL);
	struct rlimit old, low;
	struct gpu_event e;
	sigset_t pending;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	low = old;
	low.rlim_cur = 4096;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
	assert_int_equal(gpu_client_wait(c, 30 * NS_PER_S), -ETIMEDOUT);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_true(gpu_client_event(c, &e));
	assert_int_equal(e.kind, GPU_EVENT_GAVE_UP);
	assert_non_null(strstr(e.text, "the limit of file sizes (ulimit -f) is below"));
	assert_int_equal(sigpending(&pending), 0);
	assert_int_equal(sigismember(&pending, SIGXFSZ), 0);
	close_client(c);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read_again),   cmocka_unit_test(test_read_again_by_the_last),
		cmocka_unit_test(test_rare_polls),   cmocka_unit_test(test_paused),
		cmocka_unit_test(test_four_hang),    cmocka_unit_test(test_stuck_is_killed),
		cmocka_unit_test(test_exit_status),  cmocka_unit_test(test_own_session),
		cmocka_unit_test(test_children_go),  cmocka_unit_test(test_stopped),
		cmocka_unit_test(test_cannot_start), cmocka_unit_test(test_file_size_limit),
	};

	if (argc > 1 && strcmp(argv[1], "gpu-helper") == 0)
		return gpu_helper_main(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT
 *
 * The client with helpers that behave and that do not. This binary is the helper as well: the client
 * starts it again as "gpu-helper", and $TEST_HELPER says what is wrong with it.
 */
#include "../unit.h"

#include "base/clock.h"
#include "base/err.h"
#include "gpu/client.h"
#include "gpu/shared.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define POLL_MAX_NS (5 * NS_PER_MS)

/* Shared with others on two cores: the odd poll may be held up by the scheduler, most must not. */
struct pace {
	int polls, late;
};

static void nap(void)
{
	struct timespec t = { 0, 5 * NS_PER_MS };

	(void)nanosleep(&t, NULL);
}

static const struct gpu_snapshot *poll_once(struct gpu_client *c, struct pace *p)
{
	int64_t cpu = clock_thread_cpu_ns();
	const struct gpu_snapshot *s = gpu_client_poll(c, -1, clock_mono_ns());

	p->polls++;
	p->late += clock_thread_cpu_ns() - cpu > POLL_MAX_NS;
	return s;
}

static struct gpu_client *open_client(const char *trouble, int64_t deadline_ns)
{
	struct gpu_client_options o = { .depth = GPU_SLOW,
					.period_ns = 20 * NS_PER_MS,
					.deadline_ns = deadline_ns,
					.nvml = getenv("TEST_NVML") };
	struct gpu_client *c = NULL;
	struct err e = { 0 };

	if (trouble)
		setenv("TEST_HELPER", trouble, 1);
	else
		unsetenv("TEST_HELPER");
	assert_int_equal(gpu_client_open(&o, &c, &e), 0);
	assert_null(gpu_client_last(c));
	assert_true(gpu_client_stale(c, clock_mono_ns()));
	return c;
}

/* Nothing of ours may be left: neither running nor as a zombie. Closing waits 50 ms for helpers to be gone
 * and no longer (client.c); one that a busy machine kept from ending within them must end by itself. */
static void close_client(struct gpu_client *c)
{
	int64_t begun = clock_mono_ns(), until = begun + 30 * NS_PER_S;
	bool in_time;
	pid_t left;

	gpu_client_close(c);
	in_time = clock_mono_ns() - begun < 50 * NS_PER_MS;
	while ((left = waitpid(-1, NULL, WNOHANG | __WALL)) >= 0 && !in_time &&
	       clock_mono_ns() < until)
		nap();
	assert_int_equal(left, -1);
	assert_int_equal(errno, ECHILD);
}

/* Polls until an event of this kind came. */
static void expect_event(struct gpu_client *c, int kind, struct gpu_event *ret, struct pace *p)
{
	int64_t until = clock_mono_ns() + 20 * NS_PER_S;

	while (clock_mono_ns() < until) {
		(void)poll_once(c, p);
		while (gpu_client_event(c, ret))
			if ((int)ret->kind == kind)
				return;
		nap();
	}
	fail_msg("event %d did not come", kind);
}

static void test_first_snapshot(void **state)
{
	struct gpu_client *c = open_client(NULL, 0);
	int64_t begun = clock_mono_ns(), until = begun + 10 * NS_PER_S;
	const struct gpu_snapshot *s = NULL;
	struct gpu_event e;
	struct pace p = { 0 };
	uint64_t first;

	(void)state;
	while (!s && clock_mono_ns() < until) {
		s = poll_once(c, &p);
		nap();
	}
	assert_non_null(s);
	assert_true(s->whole);
	assert_true(s->taken_ns >= begun);
	assert_ptr_equal(gpu_client_last(c), s);
	assert_false(gpu_client_stale(c, s->taken_ns + NS_PER_MS));
	assert_true(gpu_client_stale(c, s->ended_ns + 100 * NS_PER_MS));
	first = s->number;
	for (s = NULL; !s && clock_mono_ns() < until; nap())
		s = poll_once(c, &p);
	assert_non_null(s);
	assert_true(s->number > first);
	assert_int_equal(gpu_client_wait(c, 10 * NS_PER_S), 0);
	assert_true(gpu_client_cpu_ns(c) > 0);
	assert_true(gpu_client_rss_bytes(c) > 0);
	assert_false(gpu_client_event(c, &e));
	assert_true(p.late <= 1);
	close_client(c);
}

/* A program that is no helper: four of them, then nothing more. */
static void test_exits_at_once(void **state)
{
	struct gpu_client *c = open_client("exit", 0);
	int64_t now = clock_mono_ns(), until = now + 10 * NS_PER_S;
	int died = 0, replaced = 0, gave_up = 0;
	struct gpu_event e;
	struct pace p = { 0 };

	(void)state;
	for (; clock_mono_ns() < until && !gave_up; nap()) {
		/* The client's clock runs ahead, so that its pauses need not be waited for. */
		now += 100 * NS_PER_MS;
		assert_null(gpu_client_poll(c, -1, now));
		while (gpu_client_event(c, &e)) {
			died += e.kind == GPU_EVENT_DIED;
			replaced += e.kind == GPU_EVENT_REPLACED;
			gave_up += e.kind == GPU_EVENT_GAVE_UP;
			if (e.kind == GPU_EVENT_DIED)
				assert_string_equal(e.text, "the GPU helper exited with status 7");
		}
	}
	assert_int_equal(died, GPU_SPARES + 1);
	assert_int_equal(replaced, GPU_SPARES);
	assert_int_equal(gave_up, 1);
	for (int i = 0; i < 20; i++) {
		now += NS_PER_S;
		(void)gpu_client_poll(c, -1, now);
	}
	assert_false(gpu_client_event(c, &e));
	assert_int_equal(gpu_client_wait(c, NS_PER_S), -ETIMEDOUT);
	(void)p;
	close_client(c);
}

/* A library that writes over all of the memory, again and again. */
static void test_scribbles(void **state)
{
	struct gpu_client *c = open_client("scribble", 200 * NS_PER_MS);
	struct gpu_event e;
	struct pace p = { 0 };

	(void)state;
	expect_event(c, GPU_EVENT_DIED, &e, &p);
	expect_event(c, GPU_EVENT_REPLACED, &e, &p);
	close_client(c);
}

/* The same, but the head stays whole: only what snapshots and calls say is nonsense. */
static void test_scribbles_behind_head(void **state)
{
	struct gpu_client *c = open_client("scribble_rows", 200 * NS_PER_MS);
	struct gpu_event e;
	struct pace p = { 0 };
	int given = 0;

	(void)state;
	for (int i = 0; i < 100; i++) {
		const struct gpu_snapshot *s = poll_once(c, &p);

		given += s != NULL;
		if (s) {
			assert_in_range(s->n_devices, 0, GPU_DEVICES);
			assert_in_range(s->n_processes, 0, GPU_PROCESSES);
		}
		while (gpu_client_event(c, &e))
			assert_true(strlen(e.text) < sizeof(e.text));
		nap();
	}
	assert_true(given > 0);
	close_client(c);
}

/* A helper that is stuck outside any call. */
static void test_stands_still(void **state)
{
	struct gpu_client *c = open_client("still", 50 * NS_PER_MS);
	struct gpu_event e;
	struct pace p = { 0 };

	(void)state;
	expect_event(c, GPU_EVENT_HANG, &e, &p);
	assert_int_equal(e.index, -1);
	assert_non_null(strstr(e.text, "has not moved for"));
	expect_event(c, GPU_EVENT_REPLACED, &e, &p);
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

/* The recorder is killed: its keeper ends the helper, is given to us (the subreaper) and ends too. */
static void test_dies_with_parent(void **state)
{
	pid_t recorder, keeper = 0, helper = 0;
	bool gone = false;
	int status;

	(void)state;
	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
	unsetenv("TEST_HELPER");
	recorder = fork();
	if (recorder == 0) {
		struct gpu_client *c = open_client(NULL, 0);

		(void)gpu_client_wait(c, 10 * NS_PER_S);
		for (;;)
			pause();
	}
	for (int i = 0; i < 400 && !helper; i++) {
		keeper = only_child_of(recorder);
		helper = keeper ? only_child_of(keeper) : 0;
		nap();
	}
	assert_int_equal(kill(recorder, SIGKILL), 0);
	assert_int_equal(waitpid(recorder, &status, 0), recorder);
	if (!helper)
		skip(); /* a kernel without CONFIG_PROC_CHILDREN */
	for (int i = 0; i < 400 && !gone; i++) {
		gone = waitpid(keeper, &status, WNOHANG | __WALL) == keeper;
		nap();
	}
	assert_true(gone);
	assert_true(WIFEXITED(status));
	/* The helper saw the end of the pipe itself, or was ended first. */
	assert_true(WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 128 + SIGKILL);
	assert_int_equal(kill(helper, 0), -1);
	assert_int_equal(errno, ESRCH);
}

static int bad_helper(const char *how)
{
	struct gpu_shared *s;

	if (strcmp(how, "exit") == 0)
		return 7;
	if (gpu_shared_map(GPU_HELPER_MEMORY_FD, &s) < 0)
		return 1;
	for (unsigned n = 1; n; n++) {
		if (strcmp(how, "scribble") == 0)
			memset(s, (int)n, sizeof(*s));
		if (strcmp(how, "scribble_rows") == 0) {
			memset(&s->calls, (int)(n * 37), sizeof(s->calls));
			memset(s->slot, (int)n, sizeof(s->slot));
			atomic_store(&s->slot[0].sequence, 2);
			atomic_store(&s->slot[1].sequence, 2);
			atomic_fetch_add(&s->published, 1);
		}
		nap();
	}
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_first_snapshot), cmocka_unit_test(test_exits_at_once),
		cmocka_unit_test(test_scribbles),      cmocka_unit_test(test_scribbles_behind_head),
		cmocka_unit_test(test_stands_still),   cmocka_unit_test(test_dies_with_parent),
	};

	if (argc > 1 && strcmp(argv[1], "gpu-helper") == 0)
		return getenv("TEST_HELPER") ? bad_helper(getenv("TEST_HELPER"))
					     : gpu_helper_main(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

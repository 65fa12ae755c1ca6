/* SPDX-License-Identifier: MIT
 *
 * A recorder killed at any moment: the file opens, says "interrupted", and lacks at most the last
 * second. The child writes at 100 Hz in real time, faster than any recorder does, with short minutes
 * of its own so that compaction is caught in the act too.
 */
#include "../unit.h"

#include "base/clock.h"
#include "base/err.h"
#include "record/reader.h"
#include "record/writer.h"
#include "world.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { KILLS = 48 };

/* Shared with the child: how far it has come. */
struct progress {
	volatile int64_t frame_ns; /* last frame handed over */
	volatile int64_t ticks;
};

/* Frames of step_ns: in real time, or as fast as they can be written, so that minutes pass. */
static void child(const char *path, uint64_t seed, int64_t step_ns, bool hurry, struct progress *p)
{
	/* Often in the middle of a checkpoint, or else with time for more minutes. */
	struct record_options o = { .keep_raw_ns = NS_PER_S,
				    .sync_every_ns = (seed % 2 ? 2 : 300) * NS_PER_S };
	struct record_writer *writer;
	struct run_info run;
	struct world w;
	struct err e = { 0 };

	world_init(&w, seed, 10);
	world_run(&w, &run);
	if (record_create(path, &run, &o, &writer, &e) < 0)
		_exit(1);
	for (;;) {
		struct timespec pause = { .tv_nsec = step_ns };
		struct frame *f = world_tick(&w, step_ns);

		if (record_frame(writer, f) < 0)
			_exit(2);
		p->frame_ns = w.t_ns;
		p->ticks = p->ticks + 1;
		if (!hurry)
			nanosleep(&pause, NULL);
	}
}

static bool count(const struct record_sample *s, void *arg)
{
	if (s->metric == M_CPU_USER)
		++*(int64_t *)arg;
	return true;
}

static void test_killed_at_random_moments(void **state)
{
	struct progress *p =
	    mmap(NULL, sizeof(*p), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct random r = { 77 };
	int64_t worst_ns = 0, minutes = 0;

	(void)state;
	assert_true(p != MAP_FAILED);
	for (int i = 0; i < KILLS; i++) {
		struct timespec pause = { .tv_nsec =
					      (long)(20 + random_below(&r, 150)) * NS_PER_MS };
		bool hurry = i % 4; /* now and then as in life */
		int64_t step_ns = (hurry ? 100 : 10) * NS_PER_MS;
		struct record *rec = NULL;
		struct err e = { 0 };
		int64_t samples = 0, missing;
		char path[256];
		int status;
		pid_t pid;

		test_path(path, sizeof(path));
		*p = (struct progress){ 0 };
		pid = fork();
		assert_true(pid >= 0);
		if (pid == 0)
			child(path, (uint64_t)i, step_ns, hurry, p);
		while (!p->ticks && waitpid(pid, &status, WNOHANG) == 0)
			;
		nanosleep(&pause, NULL);
		assert_int_equal(kill(pid, SIGKILL), 0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSIGNALED(status));

		if (record_open(path, &rec, &e) < 0)
			fail_msg("kill %d: %s", i, e.text);
		assert_int_equal(record_run(rec)->state, RUN_INTERRUPTED);
		assert_string_equal(record_remark(rec), "");
		assert_int_equal(record_each_sample(rec, count, &samples), 0);
		missing = p->frame_ns - record_run(rec)->ended_mono_ns;
		if (missing > worst_ns)
			worst_ns = missing;
		/* every tick up to the last one the file speaks of, less those thinned away */
		if (record_run(rec)->ended_mono_ns - record_run(rec)->started_mono_ns <
		    60 * NS_PER_S)
			assert_int_equal(samples, (record_run(rec)->ended_mono_ns -
						   record_run(rec)->started_mono_ns) /
						      step_ns);
		minutes += (record_run(rec)->ended_mono_ns - record_run(rec)->started_mono_ns) /
			   (60 * NS_PER_S);
		record_close(rec);
		test_path_rm(path);
	}
	munmap(p, sizeof(*p));
	print_message("killed %d times, %lld minutes compacted, at most %.2f s missing\n", KILLS,
		      (long long)minutes, (double)worst_ns / 1e9);
	assert_true(minutes > 0);
	assert_true(worst_ns <= NS_PER_S);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_killed_at_random_moments) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}

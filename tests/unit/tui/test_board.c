/* SPDX-License-Identifier: MIT
 *
 * From ticks through the real history to what a screen shows: rates, graphs, the past.
 */
#include "../unit.h"

#include "model/history.h"
#include "tui/board.h"

#include <math.h>
#include <stdlib.h>

#define T0 1000000000000ll
#define S  1000000000ll

enum { TICKS = 20, DIES_AT = 10 };

static void born(struct frame *f, uint32_t id, enum entity_kind kind, uint32_t parent, int64_t key)
{
	frame_life(f,
		   &(struct life){
		       .change = LIFE_BORN, .id = id, .kind = kind, .parent = parent, .key = key },
		   "name", "detail");
}

/* A tick comes a little early or late. */
static int64_t tick_at(int i)
{
	return T0 + i * S + (i % 3 - 1) * 700000;
}

/* A job that uses 2 cores, then 6; a second process ends in the middle; a GPU busy every other tick. */
static struct history *make(void)
{
	struct run_info run = { .started_mono_ns = T0, .started_wall_ns = 1700000000ll * S };
	struct history *h = history_new(&run, 64);
	struct frame f = { 0 };
	int64_t cpu = 0;

	for (int i = 0; i < TICKS; i++) {
		frame_begin(&f, tick_at(i), 1700000000ll * S + i * S);
		if (!i) {
			born(&f, ID_HOST, ENTITY_HOST, 0, 0);
			born(&f, ID_JOB, ENTITY_JOB, 0, 0);
			born(&f, 16, ENTITY_PROC, ID_JOB, 100);
			born(&f, 17, ENTITY_PROC, 16, 101);
			born(&f, 18, ENTITY_GPU, 0, 0);
			born(&f, 19, ENTITY_CPU, 0, 0);
			born(&f, 20, ENTITY_CGROUP, 0, 0);
			frame_put(&f, M_CPU_ONLINE, ID_HOST, 16);
			frame_put(&f, M_MEM_TOTAL, ID_HOST, 1000);
			frame_put(&f, M_MEM_AVAILABLE, ID_HOST, 750);
			frame_put(&f, M_JOB_CORES_ALLOWED, ID_JOB, 7500);
			frame_put(&f, M_JOB_CORES_AFFINITY, ID_JOB, 12);
			frame_put(&f, M_CG_MEM_LIMIT, 20, 500);
		} else {
			cpu += (int64_t)((i <= DIES_AT ? 2 : 6) *
					 (double)(tick_at(i) - tick_at(i - 1)));
		}
		if (i == DIES_AT)
			frame_life(
			    &f,
			    &(struct life){ .change = LIFE_GONE, .id = 17, .kind = ENTITY_PROC },
			    "", "");
		frame_put(&f, M_CPU_USER, ID_HOST, 100 * i);
		frame_put(&f, M_CORE_USER, 19, 50 * i);
		frame_put(&f, M_CORE_SYSTEM, 19, 25 * i);
		frame_put(&f, M_JOB_CPU, ID_JOB, cpu);
		frame_put(&f, M_JOB_RSS, ID_JOB, 100 + i);
		frame_put(&f, M_PROC_CPU, 16, cpu);
		if (i < DIES_AT)
			frame_put(&f, M_PROC_CPU, 17, i * S / 2);
		frame_put(&f, M_GPU_BUSY, 18, i % 2 ? 10000 : 0);
		assert_int_equal(history_frame(h, &f), 0);
	}
	frame_done(&f);
	return h;
}

static struct board *take(struct history *h, int64_t at, int64_t interval)
{
	struct board *b = calloc(1, sizeof(*b));
	struct window w = history_window(h, 0);
	struct board_when when = {
		.at_ns = at, .interval_ns = interval, .right_ns = T0 + TICKS * S, .step_ns = S
	};

	b->job = true;
	assert_int_equal(board_take(b, &w, &when), 0);
	return b;
}

static void drop(struct board *b)
{
	board_done(b);
	free(b);
}

static void now(void **state)
{
	struct history *h = make();
	struct board *b = take(h, tick_at(TICKS - 1), S);

	(void)state;
	/* From tick to tick, however far they are apart. */
	assert_true(near(b->snap.job.cores, 6, 1e-3));
	assert_true(near(b->snap.cores.v[0].busy, 0.75, 5e-3));
	assert_int_equal(b->snap.processes.n, 1);
	assert_string_equal(b->snap.job.cpu_limit, "quota");
	assert_true(near(b->snap.job.cores_allowed, 7.5, 1e-9));
	assert_string_equal(b->snap.job.memory_limit, "cgroup");
	assert_true(near(b->snap.job.memory_allowed, 500 * 1024, 1e-9));
	assert_int_equal(b->snap.wall_ns / S, 1700000000 + TICKS - 1);
	assert_false(b->judged);
	drop(b);
	history_free(h);
}

/* What has ended since is there again. */
static void the_past(void **state)
{
	struct history *h = make();
	struct board *b = take(h, tick_at(DIES_AT - 2) + S / 3, S);

	(void)state;
	assert_true(near(b->snap.job.cores, 2, 1e-3));
	assert_int_equal(b->snap.processes.n, 2);
	assert_true(near(b->snap.processes.v[1].cores, 0.5, 5e-3));
	drop(b);
	history_free(h);
}

static void lines(void **state)
{
	struct history *h = make();
	struct board *b = take(h, tick_at(TICKS - 1), S);
	const float *cpu = b->lines[LINE_CPU].v + LINE_POINTS - TICKS;
	const float *gpu = b->lines[LINE_GPU].v + LINE_POINTS - TICKS;

	(void)state;
	/* Point i is the second from T0 + i on. */
	for (int i = 1; i < TICKS - 2; i++)
		if (i != DIES_AT)
			assert_true(near(cpu[i], i < DIES_AT ? 2 : 6, 5e-3));
	assert_true(isnan(cpu[-2]));
	assert_true(isnan(cpu[TICKS - 1]) || near(cpu[TICKS - 1], 6, 0.01));
	for (int i = 2; i < TICKS - 2; i++)
		assert_true(fabs(gpu[i] - i % 2) < 0.01);
	assert_true(near(b->lines[LINE_MEMORY].v[LINE_POINTS - 3], 117 * 1024, 0.01));
	assert_true(b->lines[LINE_ALL_GPUS].any);
	assert_false(b->lines[LINE_STEPS].any);
	assert_false(b->lines[LINE_READ].any); /* nobody measured it */
	drop(b);
	history_free(h);
}

/* So many processes; proportional memory is read from this tick on. */
static struct board *with_memory(int processes, int pss_from)
{
	struct run_info run = { .started_mono_ns = T0 };
	struct history *h = history_new(&run, 64);
	struct frame f = { 0 };
	struct board *b;

	for (int i = 0; i < TICKS; i++) {
		frame_begin(&f, tick_at(i), 0);
		if (!i)
			born(&f, ID_JOB, ENTITY_JOB, 0, 0);
		frame_put(&f, M_JOB_PROCESSES, ID_JOB, processes);
		frame_put(&f, M_JOB_RSS, ID_JOB, 900 + i % 2);
		if (i >= pss_from)
			frame_put(&f, M_JOB_PSS, ID_JOB, 300 + i % 2);
		assert_int_equal(history_frame(h, &f), 0);
	}
	b = take(h, tick_at(TICKS - 1), S);
	frame_done(&f);
	history_free(h);
	return b;
}

/* Pages that processes share are not counted for each of them, or it is said that they are. */
static void memory_of_several(void **state)
{
	static const struct {
		int processes, pss_from, kib;
		bool at_most;
	} rows[] = { { 4, 1, 300, false },
		     { 4, 15, 900, true },
		     { 4, TICKS, 900, true },
		     { 1, 1, 900, false } };

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct board *b = with_memory(rows[i].processes, rows[i].pss_from);
		const struct line *l = &b->lines[LINE_MEMORY];

		assert_true(near(l->v[LINE_POINTS - 3], rows[i].kib * 1024, 0.01));
		assert_int_equal(l->at_most, rows[i].at_most);
		drop(b);
	}
}

static void one_tick_only(void **state)
{
	struct run_info run = { .started_mono_ns = T0 };
	struct history *h = history_new(&run, 4);
	struct frame f = { 0 };
	struct board *b;

	(void)state;
	frame_begin(&f, T0, 0);
	born(&f, ID_HOST, ENTITY_HOST, 0, 0);
	born(&f, 16, ENTITY_PROC, ID_JOB, 100);
	frame_put(&f, M_CPU_USER, ID_HOST, 5);
	frame_put(&f, M_PROC_CPU, 16, 5);
	assert_int_equal(history_frame(h, &f), 0);
	b = take(h, T0, S);
	assert_true(isnan(b->snap.machine.cores_used)); /* not 0: not known yet */
	assert_int_equal(b->snap.processes.n, 1);
	drop(b);
	frame_done(&f);
	history_free(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(now),           cmocka_unit_test(the_past),
		cmocka_unit_test(lines),         cmocka_unit_test(memory_of_several),
		cmocka_unit_test(one_tick_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

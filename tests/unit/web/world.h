/* SPDX-License-Identifier: MIT
 *
 * A small run in memory for the views: a process with a hostile name, a GPU, steps with a loss, a phase,
 * an event and stacks; 20 seconds at 10 Hz. The job uses half a core in its first half and one and a half
 * in the second.
 */
#ifndef SPOTTER_TESTS_WEB_WORLD_H
#define SPOTTER_TESTS_WEB_WORLD_H

#include "base/clock.h"
#include "explain/verdict.h"
#include "model/gpu_tag.h"
#include "model/history.h"

#include <math.h>
#include <stdlib.h>

#define HOSTILE "<script>alert(1)</script>&\"'\033[2J\xe2\x80\xae\xff\xef\xbf\xbe"

enum { WORLD_TICKS = 200, WORLD_PROC = 16, WORLD_THREAD = 17, WORLD_GPU = 18 };
#define WORLD_START (100 * NS_PER_S)

struct world {
	struct history *history;
	struct window window;
	struct verdict verdict;
	bool marks, stacks, gpu;
	int processes; /* 0: not counted */
	bool pss;      /* their shares of memory are read */
	int64_t cpu;
};

static inline void world_lives(struct frame *f, const struct world *x)
{
	struct gpu_tag tag = { .vendor = "nvidia", .simulated = true };
	char detail[256];

	gpu_tag_write(&tag, detail, sizeof(detail));
	frame_life(f, &(struct life){ .id = ID_HOST, .kind = ENTITY_HOST }, "host", "");
	frame_life(f, &(struct life){ .id = ID_JOB, .kind = ENTITY_JOB }, "job", "");
	frame_life(f, &(struct life){ .id = WORLD_PROC, .kind = ENTITY_PROC, .key = 4711 }, HOSTILE,
		   "python " HOSTILE " --flag");
	frame_life(
	    f,
	    &(struct life){
		.id = WORLD_THREAD, .parent = WORLD_PROC, .kind = ENTITY_THREAD, .key = 4711 },
	    HOSTILE, "");
	if (x->gpu)
		frame_life(f, &(struct life){ .id = WORLD_GPU, .kind = ENTITY_GPU }, "A<100>",
			   detail);
}

static inline void world_stacks(struct frame *f, int64_t now, bool first)
{
	static const struct place places[] = {
		{ PLACE_PYTHON, 12, "<module>", "/home/u/train.py", "" },
		{ PLACE_PYTHON, 40, "step" HOSTILE, "/home/u/" HOSTILE ".py", "" },
		{ PLACE_NATIVE, 0, "", "/usr/lib/libm.so.6", "" },
	};
	struct stack_row rows[] = {
		{ WORLD_THREAD, 2, 0, WAIT_RUNNING, 0, STACK_PYTHON, 5, NS_PER_S / 2 },
		{ WORLD_THREAD, 3, 0, WAIT_RUNNING, 0, STACK_PYTHON, 3, NS_PER_S * 3 / 10 },
		{ WORLD_THREAD, 1, 0, WAIT_PIPE, 0, STACK_PYTHON, 2, NS_PER_S / 5 },
	};

	for (uint32_t i = 0; first && i < 3; i++) {
		frame_place(f, i + 1, &places[i]);
		frame_node(f, i + 1, &(struct stack_node){ .parent = i, .place = i + 1 });
	}
	for (size_t i = 0; i < 3; i++)
		frame_stack(f, &rows[i]);
	f->stacks_from_ns = now - NS_PER_S;
	f->stacks_to_ns = now;
}

static inline void world_marks(struct frame *f, int64_t now, int tick)
{
	if (tick == 0) {
		frame_mark(f, &(struct frame_mark){ now, SAID_SOURCE, WORLD_PROC, 0, 0, 0, 0 },
			   "api");
		frame_mark(f, &(struct frame_mark){ now, SAID_SETTING, WORLD_PROC, 0, 0, 0, 4 },
			   "dataloader.num_workers");
	}
	if (tick == 100)
		frame_mark(f, &(struct frame_mark){ now, SAID_PHASE_BEGIN, WORLD_PROC, 0, 0, 0, 0 },
			   HOSTILE);
	if (tick == 120)
		frame_mark(f, &(struct frame_mark){ now, SAID_PHASE_END, WORLD_PROC, 0, 0, 0, 0 },
			   HOSTILE);
	frame_mark(f,
		   &(struct frame_mark){ now, SAID_STEP, WORLD_PROC, 0, 0, (uint64_t)tick + 1,
					 2.0 / (1 + tick) },
		   "");
	if (tick % 10 == 0)
		frame_mark(f, &(struct frame_mark){ now, SAID_SCALAR, WORLD_PROC, 0, 0, 0, tick },
			   HOSTILE);
}

static inline void world_tick(struct world *x, struct frame *f, int tick)
{
	int64_t now = WORLD_START + (tick + 1) * (NS_PER_S / 10);

	frame_begin(f, now, 1700000000 * NS_PER_S + now);
	if (tick == 0)
		world_lives(f, x);
	x->cpu += tick < WORLD_TICKS / 2 ? NS_PER_S / 20 : NS_PER_S * 3 / 20;
	frame_put(f, M_JOB_CPU, ID_JOB, x->cpu);
	frame_put(f, M_PROC_CPU, WORLD_PROC, x->cpu);
	frame_put(f, M_JOB_RSS, ID_JOB, 1000 + tick);
	frame_put(f, M_MEM_TOTAL, ID_HOST, 1100);
	if (x->processes)
		frame_put(f, M_JOB_PROCESSES, ID_JOB, x->processes);
	if (x->pss && tick % 10 == 0)
		frame_put(f, M_JOB_PSS, ID_JOB, 500 + tick);
	frame_put(f, M_PROC_RSS, WORLD_PROC, 1000 + tick);
	frame_put(f, M_PROC_READ_BYTES, WORLD_PROC, tick * 1000);
	frame_put(f, M_JOB_CORES_ALLOWED, ID_JOB, 2000);
	frame_put(f, M_CPU_ONLINE, ID_HOST, 4);
	frame_put(f, M_CPU_USER, ID_HOST, tick * 20);
	if (x->gpu && tick % 50 == 0)
		frame_put(f, M_GPU_BUSY, WORLD_GPU, tick ? 10000 : 5000);
	if (tick == 150)
		frame_event(f, EVENT_OOM_KILL, WORLD_PROC, 9, "killed %s", HOSTILE);
	if (x->marks)
		world_marks(f, now, tick);
	if (x->stacks && tick % 10 == 9)
		world_stacks(f, now, tick == 9);
}

/* Flags first: marks, stacks, gpu. */
static inline void world_make(struct world *x)
{
	static char *argv[] = { (char *)"python", (char *)HOSTILE, NULL };
	struct run_info run = { .id = "20231114-221320-0001",
				.name = HOSTILE,
				.started_wall_ns = 1700000000 * NS_PER_S,
				.started_mono_ns = WORLD_START,
				.hz = 10,
				.pid = 4711,
				.rusage_cpu_ns = -1,
				.rusage_maxrss_bytes = -1,
				.machine = { .hostname = HOSTILE, .cpus = 4 } };
	struct frame f = { 0 };

	assert_int_equal(run_info_set_argv(&run, argv), 0);
	x->history = history_new(&run, WORLD_TICKS + 10);
	assert_non_null(x->history);
	for (int tick = 0; tick < WORLD_TICKS; tick++) {
		world_tick(x, &f, tick);
		assert_int_equal(history_frame(x->history, &f), 0);
	}
	frame_done(&f);
	run_info_done(&run);
	x->window = history_window(x->history, 0);
	assert_int_equal(explain(&x->window, &x->verdict), 0);
}

static inline void world_done(struct world *x)
{
	verdict_done(&x->verdict);
	history_free(x->history);
}

#endif

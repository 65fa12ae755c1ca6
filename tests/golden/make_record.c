/* SPDX-License-Identifier: MIT
 *
 * make_record NAME FOLDER: writes a run of known frames through the real writer, for golden tests.
 *
 *	tidy    20 s at 10 Hz: python uses 1.5 of 4 cores, its worker 0.5; exit 0
 *	killed  6 s; memory grows to its limit of 2 GiB, the kernel kills the worker and SIGKILL ends it
 *	stacked 20 s like tidy, with stacks: the training waits for its one worker 60 % of the time
 *	trained the same, which says what it does: 50 steps of 0.2 s from 3 s on, of which number 30 takes
 *	        4 s; then an evaluation
 */
#include "base/err.h"
#include "base/text.h"
#include "record/writer.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#define MONO     100000000000ll
#define WALL     1700000000000000000ll /* 2023-11-14T22:13:20Z */
#define TICK     100000000ll
#define MIB      1024ll /* memory is counted in KiB */
#define MS       1000000ll
#define PYTHON   16
#define WORKER   17
#define THREAD   18
#define DISK     19
#define GROUP    20
#define THREAD_W 21

struct plan {
	const char *name, *id;
	int ticks;
	bool killed, stacked, trained;
};

static const struct plan plans[] = {
	{ "tidy", "20231114-221320-0001", 200, false, false, false },
	{ "killed", "20231114-231320-0002", 60, true, false, false },
	{ "stacked", "20231114-221320-0003", 201, false, true, false },
	{ "trained", "20231114-221320-0004", 201, false, true, true },
};

static void born(struct frame *f, uint32_t id, uint32_t parent, enum entity_kind kind, int64_t key,
		 const char *name, const char *detail)
{
	frame_life(f,
		   &(struct life){ .change = LIFE_BORN,
				   .id = id,
				   .parent = parent,
				   .kind = kind,
				   .key = key,
				   .start_ns = MONO },
		   name, detail);
}

static void announce(struct frame *f)
{
	born(f, ID_HOST, 0, ENTITY_HOST, 0, "machine", "");
	born(f, ID_JOB, ID_HOST, ENTITY_JOB, 0, "job", "");
	born(f, ID_SELF, ID_HOST, ENTITY_SELF, 0, "spotter", "");
	born(f, PYTHON, ID_JOB, ENTITY_PROC, 4242, "python", "python train.py --lr 0.1");
	born(f, WORKER, PYTHON, ENTITY_PROC, 4243, "work)\033[31m er", "python loader, \"quoted\"");
	born(f, THREAD, PYTHON, ENTITY_THREAD, 4242, "python", "");
	born(f, THREAD_W, WORKER, ENTITY_THREAD, 4243, "worker", "");
	born(f, DISK, ID_HOST, ENTITY_DISK, 0, "sda", "");
	born(f, GROUP, ID_HOST, ENTITY_CGROUP, 0, "/job", "");
	frame_put(f, M_CPU_ONLINE, ID_HOST, 8);
	frame_put(f, M_MEM_TOTAL, ID_HOST, 16000 * MIB);
	frame_put(f, M_MEM_AVAILABLE, ID_HOST, 12000 * MIB);
	frame_put(f, M_JOB_CORES_ALLOWED, ID_JOB, 4000);
	frame_put(f, M_JOB_CORES_AFFINITY, ID_JOB, 4);
	frame_put(f, M_JOB_PROCESSES, ID_JOB, 2);
	frame_put(f, M_JOB_THREADS, ID_JOB, 2);
	frame_put(f, M_SELF_RSS, ID_SELF, 9 * MIB);
	frame_gap(f, M_PSI_CPU_SOME, 0, GAP_NOT_SUPPORTED);
}

/* Everything that moves, as it is after i ticks. */
static void put_tick(struct frame *f, const struct plan *p, int i)
{
	int64_t n = i, rss = p->killed ? 200 * MIB + n * 30 * MIB : 500 * MIB;

	frame_put(f, M_CPU_USER, ID_HOST, 1000 + n * 20);
	frame_put(f, M_CPU_NICE, ID_HOST, 0);
	frame_put(f, M_CPU_SYSTEM, ID_HOST, 500 + n * 5);
	frame_put(f, M_CPU_IDLE, ID_HOST, 9000 + n * 55);
	frame_put(f, M_CPU_IOWAIT, ID_HOST, 0);
	frame_put(f, M_CPU_IRQ, ID_HOST, 0);
	frame_put(f, M_CPU_SOFTIRQ, ID_HOST, 0);
	frame_put(f, M_CPU_STEAL, ID_HOST, 0);
	if (!p->stacked) {
		frame_put(f, M_PROC_CPU, PYTHON, n * 150 * MS);
		frame_put(f, M_PROC_CPU, WORKER, n * 50 * MS);
		frame_put(f, M_THREAD_CPU, THREAD, n * 150 * MS);
		frame_put(f, M_THREAD_CPU, THREAD_W, n * 50 * MS);
		frame_put(f, M_THREAD_RUN_DELAY, THREAD, n * MS);
		frame_put(f, M_THREAD_RUN_DELAY, THREAD_W, n * MS);
		frame_put(f, M_JOB_CPU, ID_JOB, n * 200 * MS);
	}
	frame_put(f, M_JOB_RSS, ID_JOB, rss);
	frame_put(f, M_PROC_RSS, PYTHON, rss / 2);
	frame_put(f, M_PROC_RSS, WORKER, rss / 2);
	frame_put(f, M_PROC_READ_BYTES, WORKER, n * 1000000);
	frame_put(f, M_DISK_READ, DISK, n * 2000);
	frame_put(f, M_SELF_CPU, ID_SELF, n * MS / 2);
	frame_put(f, M_SELF_TICKS, ID_SELF, n + 1);
	if (!p->killed)
		return;
	frame_put(f, M_CG_MEM_LIMIT, GROUP, 2048 * MIB);
	frame_put(f, M_CG_MEM_USED, GROUP, rss);
	frame_put(f, M_CG_MEM_OOM_KILLS, GROUP, i + 1 == p->ticks);
	if (i + 1 == p->ticks)
		frame_event(f, EVENT_OOM_KILL, WORKER, 4243, "the kernel killed 4243 (python)");
}

static void tell(struct frame *f, uint32_t id, uint32_t parent, enum place_kind kind,
		 const char *function, const char *file, int line, const char *source)
{
	frame_place(f, id, &(struct place){ kind, line, function, file, source });
	frame_node(f, id, &(struct stack_node){ parent, id });
}

/* Place and node have the same number here. */
static void tell_stacks(struct frame *f)
{
	tell(f, 1, 0, PLACE_PYTHON, "<module>", "/home/u/train.py", 60, "train(loader)");
	tell(f, 2, 1, PLACE_PYTHON, "train", "/home/u/train.py", 41, "for batch in loader:");
	tell(f, 3, 2, PLACE_PYTHON, "_MultiProcessingDataLoaderIter._try_get_data",
	     "/usr/lib/python3/dist-packages/torch/utils/data/dataloader.py", 630, "");
	tell(f, 4, 1, PLACE_PYTHON, "train", "/home/u/train.py", 44, "loss = model(batch)");
	tell(f, 5, 4, PLACE_NATIVE, "sgemm_kernel", "/usr/lib/libblas.so.3", 0, "");
	tell(f, 6, 0, PLACE_PYTHON, "_worker_loop",
	     "/usr/lib/python3/dist-packages/torch/utils/data/_utils/worker.py", 308,
	     "data = fetcher.fetch(index)");
	tell(f, 7, 6, PLACE_PYTHON, "Images;\033[1m__getitem__", "/home/u/data.py", 17,
	     "x = [f(p) for p in pixels]");
}

/* A second of what the two threads did; node, kind, flags, samples of 20 ms. */
static void put_second(struct frame *f)
{
	static const struct stack_row rows[] = {
		{ THREAD, 3, WORKER, WAIT_PIPE, 0, STACK_PYTHON | STACK_HELD, 30, 600 * MS },
		{ THREAD, 4, 0, WAIT_RUNNING, 0, STACK_PYTHON | STACK_GIL, 5, 100 * MS },
		{ THREAD, 5, 0, WAIT_RUNNING, 0, STACK_PYTHON | STACK_JOINED, 13, 260 * MS },
		{ THREAD, 4, 0, WAIT_RUNNABLE, 0, STACK_PYTHON, 1, 20 * MS },
		{ THREAD, 1, 0, WAIT_RUNNING, 0, STACK_PYTHON | STACK_PARTIAL, 1, 20 * MS },
		{ THREAD_W, 7, 0, WAIT_RUNNING, 0, STACK_PYTHON | STACK_GIL, 49, 980 * MS },
		{ THREAD_W, 0, 0, WAIT_RUNNING, 0, STACK_PYTHON | STACK_UNPROVEN, 1, 20 * MS },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		frame_stack(f, &rows[i]);
	f->stacks_from_ns = f->mono_ns - 10 * TICK;
	f->stacks_to_ns = f->mono_ns;
}

/* The same clocks as without stacks would be more than one thread can use. */
static void put_stacks(struct frame *f, int i)
{
	int64_t n = i;

	if (!i)
		tell_stacks(f);
	else if (i % 10 == 0)
		put_second(f);
	frame_put(f, M_PROC_CPU, PYTHON, n * 38 * MS);
	frame_put(f, M_PROC_CPU, WORKER, n * 98 * MS);
	frame_put(f, M_THREAD_CPU, THREAD, n * 38 * MS);
	frame_put(f, M_THREAD_CPU, THREAD_W, n * 98 * MS);
	frame_put(f, M_THREAD_RUN_DELAY, THREAD, n * 2 * MS);
	frame_put(f, M_THREAD_RUN_DELAY, THREAD_W, n * 2 * MS);
	frame_put(f, M_JOB_CPU, ID_JOB, n * 136 * MS);
}

static void say(struct frame *f, enum mark_type type, int64_t t_ns, uint64_t number, double value,
		const char *name)
{
	frame_mark(f,
		   &(struct frame_mark){ .t_ns = MONO + t_ns,
					 .type = type,
					 .entity = PYTHON,
					 .rank = -1,
					 .number = number,
					 .value = value },
		   name);
}

/* What was said since the tick before. Steps end at ticks. */
static void put_marks(struct frame *f, int i)
{
	int slow = 88 + 40, step = i <= 88 ? (i - 30) / 2 : i < slow ? 0 : 30 + (i - slow) / 2;
	int64_t now = i * TICK;

	if (i == 30)
		say(f, SAID_SOURCE, now, 0, 0, "torch");
	for (int k = 0; i == 30 && k < 8; k++)
		say(f, SAID_SETTING, now, 0, k % 6 * 16, k % 7 ? "loader.batch" : "work\033ers");
	if (step >= 1 && step <= 50 && i % 2 == 0) {
		say(f, SAID_DATA_WAIT, now - TICK, 0, step == 30 ? 3.5 : 0.01, "");
		say(f, SAID_STEP, now, (uint64_t)step, 2.0 / step, "");
		say(f, SAID_SCALAR, now, 0, step / 100.0, "accu\033[1mracy");
	}
	if (step == 50 && i % 2 == 0)
		say(f, SAID_PHASE_BEGIN, now, 0, 0, "evaluate");
	if (i == 190)
		say(f, SAID_PHASE_END, now, 0, 0, "evaluate");
}

static int fail(const char *what, const struct err *e)
{
	fprintf(stderr, "make_record: %s: %s\n", what, e->text);
	return 1;
}

static int write_run(const struct plan *p, const char *path)
{
	char *argv[] = { (char *)"python", (char *)"train.py", (char *)"--lr", (char *)"0.1",
			 NULL };
	int64_t shift = p->killed ? 3600000000000ll : 0;
	struct run_info run = { .started_mono_ns = MONO + shift,
				.started_wall_ns = WALL + shift,
				.machine = { .hostname = "host",
					     .kernel = "6.1.0",
					     .cpus = 8,
					     .memory_bytes = 16000ll << 20 },
				.version = "0.1.0",
				.hz = 10,
				.level = p->stacked ? 2 : 1,
				.pid = 4242,
				.state = RUN_GOING,
				.rusage_cpu_ns = -1,
				.rusage_maxrss_bytes = -1 };
	struct record_writer *w;
	struct frame f = { 0 };
	struct err e = { 0 };

	text_copy(run.id, sizeof(run.id), p->id);
	text_copy(run.name, sizeof(run.name), p->name);
	run_info_set_argv(&run, argv);
	if (record_create(path, &run, &(struct record_options){ 0 }, &w, &e) < 0)
		return fail(path, &e);
	for (int i = 0; i < p->ticks; i++) {
		frame_begin(&f, run.started_mono_ns + i * TICK, run.started_wall_ns + i * TICK);
		if (!i)
			announce(&f);
		put_tick(&f, p, i);
		if (p->stacked)
			put_stacks(&f, i);
		if (p->trained)
			put_marks(&f, i);
		if (record_frame(w, &f) < 0)
			return fail("cannot write", &e);
	}
	run.ended_mono_ns = f.mono_ns;
	run.state = RUN_ENDED;
	run.has_exit = true;
	run.exit_signal = p->killed ? 9 : 0;
	run.exit_code = p->killed ? -1 : 0;
	run.rusage_cpu_ns = (p->ticks - 1) * (p->stacked ? 136 : 200) * MS;
	frame_done(&f);
	if (record_finish(w, &run) < 0)
		return fail("cannot finish", &e);
	run_info_done(&run);
	return 0;
}

int main(int argc, char **argv)
{
	for (size_t i = 0; argc == 3 && i < sizeof(plans) / sizeof(plans[0]); i++) {
		char path[PATH_MAX];

		if (strcmp(plans[i].name, argv[1]) != 0)
			continue;
		snprintf(path, sizeof(path), "%s/%s.spot", argv[2], plans[i].id);
		return write_run(&plans[i], path);
	}
	fprintf(stderr, "usage: make_record tidy|killed|stacked|trained FOLDER\n");
	return 2;
}

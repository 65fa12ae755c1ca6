/* SPDX-License-Identifier: MIT
 *
 * A verdict with both ledgers, made by hand: for tests of how it is shown.
 */
#ifndef SPOTTER_TESTS_EXPLAIN_VERDICT_MADE_H
#define SPOTTER_TESTS_EXPLAIN_VERDICT_MADE_H

#include "explain/verdict.h"

#include "base/clock.h"
#include "base/text.h"

#include <math.h>

static inline void made_time(struct verdict *v, const char *state, double share)
{
	struct ledger_line *l = vec_push(&v->time);

	assert_non_null(l);
	text_copy(l->role, sizeof(l->role), state);
	l->share = share;
	l->seconds = share * 40;
	l->cores = NAN;
}

static inline struct ledger_line *made_role(struct verdict *v, const char *role, double cores,
					    int processes, int threads)
{
	struct ledger_line *l = vec_push(&v->cpu);

	assert_non_null(l);
	text_copy(l->role, sizeof(l->role), role);
	l->cores = cores;
	l->share = cores / v->cpu_cores;
	l->processes = processes;
	l->threads = threads;
	return l;
}

static inline void made_top(struct ledger_line *l, const char *function, const char *file, int line,
			    double share)
{
	struct ledger_top *t = &l->top[l->n_top++];

	assert_true(l->n_top <= LEDGER_TOP);
	text_copy(t->function, sizeof(t->function), function);
	text_copy(t->file, sizeof(t->file), file);
	t->line = line;
	t->share = share;
}

static inline void made_finding(struct verdict *v)
{
	struct finding *f = vec_push(&v->findings);

	assert_non_null(f);
	f->cause = "no_workers";
	f->family = "input";
	text_copy(f->title, sizeof(f->title), "the training loop loads its data itself");
	text_copy(f->fix, sizeof(f->fix), "load in workers");
	text_copy(f->where.file, sizeof(f->where.file), "/home/u/data/loader.py");
	text_copy(f->where.function, sizeof(f->where.function), "Images.__getitem__");
	f->where.line = 41;
	f->cost = f->confidence = 0.5;
	finding_because(f, "x", 1, "s", "it did");
}

static inline void verdict_make(struct verdict *v, struct run_info *run)
{
	struct ledger_line *l;

	*run = (struct run_info){ .name = "train.py",
				  .started_mono_ns = NS_PER_S,
				  .ended_mono_ns = 41 * NS_PER_S,
				  .state = RUN_ENDED,
				  .has_exit = true };
	*v = (struct verdict){
		.run = run,
		.from_ns = NS_PER_S,
		.to_ns = 41 * NS_PER_S,
		.window_why = "the whole run",
		.level = 2,
		.usage = { .cores_used = 5,
			   .cores_allowed = 8,
			   .cores_machine = 8,
			   .cpu_limit = "affinity",
			   .memory_used = NAN,
			   .memory_peak = NAN,
			   .others_cores = NAN,
			   .steal = NAN,
			   .read_bytes = NAN },
		.cpu_seconds = 200,
		.cpu_cores = 5,
		.cpu_unaccounted = 0.01,
		.time_pid = 4711,
		.time_tid = 4711,
		.time_name = "python3",
		.time_unaccounted = 0.018,
		.time_error = 0.021,
		.overhead = { .cpu_share_of_core = 0.008,
			      .rss_bytes = 12e6,
			      .samples = 400,
			      .samples_skipped = 0,
			      .stack_samples = 12000,
			      .stack_unproven = 20,
			      .stack_partial = 4 },
	};
	made_time(v, "data_wait", 0.61);
	made_top(&v->time.v[0], "Queue.get", "/usr/lib/python3.11/multiprocessing/queues.py", 102,
		 0.93);
	made_time(v, "transfer", 0.004);
	made_time(v, "python", 0.09);
	made_time(v, "gpu_wait", 0.22);
	made_time(v, "cpu_queue", 0.05);
	made_time(v, "lock_wait", 0.008);
	made_time(v, "idle", 0);
	l = made_role(v, "loader_worker", 3.2, 4, 4);
	made_top(l, "Images.decode", "/home/somebody/projects/training/data/loader.py", 41, 0.71);
	made_top(l, "jpeg_read_scanlines", "/usr/lib/x86_64-linux-gnu/libjpeg.so.62", 0, 0.18);
	made_top(l, "", "/usr/lib/libz.so.1", 0, 0.004);
	l = made_role(v, "main", 0.95, 1, 1);
	made_top(l, "a_function_with_a_name_that_is_longer_than_its_column", "train.py", 88, 0.5);
	made_role(v, "framework_threads", 0.5, 1, 3);
	made_role(v, "kernel_side", 0.2, 0, 0);
	made_role(v, "other", 0.1, -1, -1);
	made_finding(v);
}

#endif

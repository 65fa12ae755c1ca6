/* SPDX-License-Identifier: MIT
 *
 * A board filled by hand: a training on two GPUs that waits for its data. What views make of it is known.
 */
#ifndef SPOTTER_TESTS_TUI_MODEL_H
#define SPOTTER_TESTS_TUI_MODEL_H

#include "tui/view.h"

#include "base/text.h"

#include <math.h>
#include <stdlib.h>

#define MODEL_T0 1000000000000ll
#define MODEL_S  1000000000ll

enum { MODEL_PROCS = 8, MODEL_THREADS = 4, MODEL_GPUS = 2 };

struct model {
	struct board board;
	struct run_info run;
	struct entity procs[MODEL_PROCS], threads[MODEL_THREADS], gpus[MODEL_GPUS];
};

static char *own(const char *text)
{
	return (char *)(uintptr_t)text; /* entities own their names; these are never freed */
}

static void model_procs(struct model *m)
{
	static const struct {
		int pid;
		unsigned parent;
		const char *name, *detail;
		double cores, rss;
		char state;
	} rows[MODEL_PROCS] = {
		{ 4200, 2, "torchrun", "torchrun --nproc-per-node=2 train.py", 0.0, 210e6, 'S' },
		{ 4242, 16, "python3", "python3 train.py --lr 1e-3", 1.02, 3.2e9, 'R' },
		{ 4243, 16, "python3", "python3 train.py --lr 1e-3", 0.97, 3.1e9, 'S' },
		{ 4301, 17, "pt_data_worker", "python3 train.py --lr 1e-3", 0.99, 900e6, 'R' },
		{ 4302, 17, "pt_data_worker", "python3 train.py --lr 1e-3", 0.98, 910e6, 'R' },
		{ 4303, 18, "pt_data_worker", "python3 train.py --lr 1e-3", 0.96, 905e6, 'D' },
		/* Names may hold anything: colours, a title, text that runs backwards, wide and broken
		 * characters. */
		{ 4304, 18, "evil",
		  "\033[31mred\033]0;title\007 \xe2\x80\xae"
		  "back \xff \xe6\xbc\xa2\xe5\xad\x97",
		  0.51, 12e6, 'R' },
		{ 4400, 16, "tensorboard", "tensorboard --logdir runs", 0.01, 88e6, 'S' },
	};

	for (size_t i = 0; i < MODEL_PROCS; i++) {
		struct snap_task *t = vec_push(&m->board.snap.processes);

		m->procs[i] = (struct entity){ .id = 16 + (uint32_t)i,
					       .parent = rows[i].parent,
					       .kind = ENTITY_PROC,
					       .key = rows[i].pid,
					       .name = own(rows[i].name),
					       .detail = own(rows[i].detail) };
		*t = (struct snap_task){ .entity = &m->procs[i],
					 .cores = rows[i].cores,
					 .run_delay = NAN,
					 .rss = rows[i].rss,
					 .pss = NAN,
					 .threads = i == 1 ? 4 : 1,
					 .read = i == 5   ? 12.3e6
						 : i == 7 ? NAN
							  : 0,
					 .written = i == 7 ? NAN : 0,
					 .gpu_memory = i == 1 || i == 2 ? 30e9 : NAN,
					 .state = rows[i].state };
	}
}

static void model_threads(struct model *m)
{
	static const char *const names[MODEL_THREADS] = { "python3", "pt_autograd_0",
							  "cuda-EvtHandlr", "pin_memory" };
	struct snapshot *s = &m->board.snap;

	for (size_t i = 0; i < MODEL_THREADS; i++) {
		struct snap_task *t = vec_push(&s->threads);

		m->threads[i] = (struct entity){ .id = 40 + (uint32_t)i,
						 .parent = 17,
						 .kind = ENTITY_THREAD,
						 .key = 4242 + (int64_t)i,
						 .name = own(names[i]),
						 .detail = own("") };
		*t = (struct snap_task){ .entity = &m->threads[i],
					 .cores = 0.8 / (double)(1 + i),
					 .run_delay = i == 1 ? 0.12 : 0,
					 .rss = NAN,
					 .pss = NAN,
					 .threads = NAN,
					 .read = NAN,
					 .written = NAN,
					 .state = 'S' };
	}
	s->processes.v[1].n_threads = MODEL_THREADS;
}

static void model_machine(struct model *m)
{
	struct snapshot *s = &m->board.snap;

	s->wall_ns = 1700000000000000000ll;
	s->seconds = 1;
	s->machine = (struct snap_machine){ .cpus = 16,
					    .cores_used = 7.1,
					    .user = 6.2,
					    .kernel = 0.9,
					    .iowait = 0.2,
					    .steal = 0.03,
					    .memory_total = 64e9,
					    .memory_used = 21e9,
					    .load1 = 7.5,
					    .load5 = 6.25,
					    .load15 = 3,
					    .running = 9,
					    .psi_cpu = 0.12,
					    .psi_memory = 0,
					    .psi_io = 0.031,
					    .disk_read = 12.3e6,
					    .disk_written = 4e5,
					    .net_rx = 1e6,
					    .net_tx = 2e5 };
	s->job = (struct snap_job){ .present = true,
				    .cores = 5.44,
				    .cores_allowed = 8,
				    .rss = 9.3e9,
				    .pss = 8.1e9,
				    .memory = 8.1e9,
				    .processes = MODEL_PROCS,
				    .threads = 31,
				    .cpu_limit = "quota",
				    .memory_allowed = 32e9,
				    .memory_limit = "cgroup",
				    .read = 12.3e6,
				    .written = 0,
				    .throttled = NAN };
	for (int i = 0; i < 16; i++)
		*vec_push(&s->cores) = (struct snap_core){ .key = i, .busy = i / 15.0 };
	for (int i = 0; i < MODEL_GPUS; i++) {
		m->gpus[i] = (struct entity){ .id = 60 + (uint32_t)i,
					      .kind = ENTITY_GPU,
					      .key = i,
					      .name = own("NVIDIA H100 80GB HBM3"),
					      .detail = own("") };
		*vec_push(&s->gpus) = (struct snap_gpu){ .entity = &m->gpus[i],
							 .simulated = true,
							 .busy = i ? 0.37 : 0.41,
							 .memory_used = 31e9,
							 .memory_total = 85e9,
							 .power = 312,
							 .temperature = 61,
							 .job_memory = 30e9,
							 .job_busy = NAN,
							 .slowed = i == 1 };
	}
}

static void model_lines(struct model *m)
{
	for (int l = 0; l < LINE_IDS; l++) {
		struct line *x = &m->board.lines[l];
		double full = l == LINE_CPU                       ? 8
			      : l == LINE_MEMORY                  ? 32e9
			      : l == LINE_READ                    ? 50e6
			      : l == LINE_STEPS || l == LINE_LOSS ? 12
								  : 1;

		x->any = l < LINE_GPU + MODEL_GPUS && l != LINE_WRITTEN;
		for (int i = 0; i < LINE_POINTS; i++)
			/* The first of them are from before anything was known. */
			x->v[i] = i < LINE_POINTS - 140 || !x->any
				      ? NAN
				      : (float)(full * (0.5 + 0.45 * sin((i + 7 * l) / 9.0)));
	}
}

static struct ledger_line *model_line(struct ledger_line *l, const char *role, double share,
				      double cores)
{
	*l = (struct ledger_line){
		.share = share, .cores = cores, .seconds = share * 60, .processes = 1, .threads = 1
	};
	text_copy(l->role, sizeof(l->role), role);
	return l;
}

static void model_top(struct ledger_line *l, const char *function, const char *file, int line,
		      double share)
{
	struct ledger_top *t = &l->top[l->n_top++];

	text_copy(t->function, sizeof(t->function), function);
	text_copy(t->file, sizeof(t->file), file);
	t->line = line;
	t->share = share;
}

static void model_verdict(struct model *m)
{
	struct verdict *v = &m->board.verdict;
	struct finding *f = vec_push(&v->findings);
	struct ledger_line *l;

	v->run = &m->run;
	v->from_ns = MODEL_T0;
	v->to_ns = MODEL_T0 + 60 * MODEL_S;
	v->time_pid = v->time_tid = 4242;
	text_copy(v->time_name, sizeof(v->time_name), "python3");
	l = model_line(vec_push(&v->time), "data_wait", 0.61, 0);
	model_top(l, "_get_data", "/usr/lib/python3/dist-packages/torch/utils/data/dataloader.py",
		  1284, 0.98);
	model_line(vec_push(&v->time), "dispatch", 0.22, 0);
	model_line(vec_push(&v->time), "gpu_wait", 0.09, 0);
	model_line(vec_push(&v->time), "python", 0.05, 0);
	v->time_unaccounted = 0.03;
	v->cpu_cores = 5.44;
	l = model_line(vec_push(&v->cpu), "main", 0.366, 1.99);
	model_top(l, "forward", "/home/u/model.py", 88, 0.4);
	l = model_line(vec_push(&v->cpu), "loader_worker", 0.54, 2.93);
	l->processes = 3;
	model_top(l, "decode", "/home/u/data.py", 41, 0.71);
	model_top(l, "augment", "/home/u/data.py", 77, 0.2);
	v->cpu_unaccounted = 0.094;
	*f = (struct finding){ .cause = "too_few_workers",
			       .family = "input",
			       .cost = 0.61,
			       .confidence = 0.9,
			       .has_gain = true,
			       .speedup = 2.1,
			       .low = 1.8,
			       .high = 2.3 };
	text_copy(f->title, sizeof(f->title),
		  "The loader's workers cannot keep up: the GPU waits 61 % of the time");
	text_copy(f->fix, sizeof(f->fix), "Set num_workers=8 in the DataLoader");
	*vec_push(&v->roles) = (struct thread_role){ 40, 17, true, "main" };
	*vec_push(&v->roles) = (struct thread_role){ 50, 19, true, "loader_worker" };
	*vec_push(&v->roles) = (struct thread_role){ 51, 20, true, "loader_worker" };
	v->judged = m->board.judged = true;
	buf_str(&m->board.why,
		"Run       train.py: 60 s, still running\n"
		"Verdict   The loader's workers cannot keep up: the GPU waits 61 % of the time\n"
		"Because   - 3 workers were busy 98 % of the time\n");
}

static struct model *model_new(bool job)
{
	struct model *m = calloc(1, sizeof(*m));
	struct board *b = &m->board;

	text_copy(m->run.name, sizeof(m->run.name), "train.py");
	text_copy(m->run.machine.hostname, sizeof(m->run.machine.hostname), "node7");
	m->run.pid = 4200;
	m->run.started_mono_ns = MODEL_T0;
	*b = (struct board){ .job = job,
			     .live = true,
			     .run = &m->run,
			     .first_ns = MODEL_T0,
			     .last_ns = MODEL_T0 + 95 * MODEL_S,
			     .step_ns = MODEL_S };
	b->at_ns = b->last_ns;
	b->right_ns = b->last_ns;
	b->steps.count = job ? 1204 : NAN;
	b->steps.rate = 6.31;
	b->steps.loss = 0.4271;
	text_copy(b->event, sizeof(b->event),
		  job ? "GPU 1: XID 79, the GPU has fallen off the bus" : "");
	b->event_ago = 12;
	model_machine(m);
	model_procs(m);
	model_threads(m);
	model_lines(m);
	if (job)
		model_verdict(m);
	return m;
}

static void model_free(struct model *m)
{
	board_done(&m->board);
	free(m);
}

#endif

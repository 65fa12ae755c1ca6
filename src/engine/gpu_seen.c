/* SPDX-License-Identifier: MIT
 *
 * Processes on GPUs: entities of their own, each under its GPU, with the pid it has here.
 */
#include "engine/gpu_seen.h"

#include "base/io.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>

static struct seen_process *find_process(struct gpu_watch *w, uint32_t gpu, int32_t pid)
{
	for (size_t i = 0; i < w->processes.n; i++)
		if (w->processes.v[i].gpu == gpu && w->processes.v[i].driver_pid == pid)
			return &w->processes.v[i];
	return NULL;
}

/* The program's name as this machine knows it, else as the driver does. */
static void name_of(const struct gpu_watch *w, const struct gpu_process *p, int64_t pid, char *ret,
		    size_t size)
{
	char path[48], text[64];
	ssize_t n = -1;

	if (pid > 0) {
		snprintf(path, sizeof(path), "proc/%d/comm", (int)pid);
		n = io_read(w->host->root, path, text, sizeof(text));
	}
	if (n > 0) {
		text[strcspn(text, "\n")] = '\0';
		text_safe_copy(ret, size, text);
	} else {
		const char *slash = strrchr(p->name, '/');

		text_safe_copy(ret, size, slash && slash[1] ? slash + 1 : p->name);
	}
	if (!ret[0])
		text_copy(ret, size, "process");
}

static void tell_process(struct gpu_watch *w, struct frame *f, struct seen_process *q,
			 const struct gpu_process *p, enum life_change change)
{
	struct gpu_owner owner = gpu_job_owner(&w->job, w->host->root, p->pid);
	char name[64], detail[160] = "";

	if (change == LIFE_CHANGED && owner.pid == q->key)
		return;
	q->key = owner.pid;
	q->sure = owner.pid > 0;
	if (!owner.pid)
		snprintf(detail, sizeof(detail), "pid %d of the driver: %s", p->pid,
			 owner.why ? owner.why : "not visible here");
	name_of(w, p, owner.pid, name, sizeof(name));
	frame_life(f,
		   &(struct life){ .change = change,
				   .id = q->id,
				   .parent = q->gpu,
				   .kind = ENTITY_GPU_PROC,
				   .key = owner.pid },
		   name, detail);
}

static void put_process(struct frame *f, const struct seen_process *q, const struct gpu_process *p)
{
	const struct {
		enum metric_id metric;
		int64_t raw;
	} rows[] = {
		{ M_GPU_PROC_MEMORY, p->memory_kb }, { M_GPU_PROC_BUSY, p->busy },
		{ M_GPU_PROC_TIME, p->time_ns },     { M_GPU_PROC_ENCODER, p->encoder },
		{ M_GPU_PROC_DECODER, p->decoder },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].raw >= 0)
			frame_put(f, rows[i].metric, q->id, rows[i].raw);
}

void gpu_take_process(struct gpu_watch *w, struct collect *c, struct frame *f,
		      const struct gpu_snapshot *s, const struct gpu_process *p)
{
	int at = w->row_of[p->device];
	uint32_t gpu = at >= 0 ? w->gpus.v[at].id : 0;
	struct seen_process *q;

	if (!gpu)
		return;
	q = find_process(w, gpu, p->pid);
	if (!q) {
		q = vec_push(&w->processes);
		if (!q)
			return;
		*q = (struct seen_process){ .id = collect_id(c), .driver_pid = p->pid, .gpu = gpu };
		tell_process(w, f, q, p, LIFE_BORN);
	} else if (!q->sure && c->slow) {
		tell_process(w, f, q, p, LIFE_CHANGED);
	}
	q->met = s->number;
	put_process(f, q, p);
}

void gpu_sweep_processes(struct gpu_watch *w, struct frame *f, const struct gpu_snapshot *s)
{
	for (size_t i = 0; i < w->processes.n; i++) {
		struct seen_process *q = &w->processes.v[i];

		if (q->met == s->number)
			continue;
		frame_life(
		    f, &(struct life){ .change = LIFE_GONE, .id = q->id, .kind = ENTITY_GPU_PROC },
		    "process", NULL);
		*q = w->processes.v[--w->processes.n];
		i--;
	}
}

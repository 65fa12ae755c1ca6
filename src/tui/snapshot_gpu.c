/* SPDX-License-Identifier: MIT
 *
 * GPUs of a snapshot: what each did in the interval, and the part of it that is the job's.
 */
#include "tui/snapshot.h"

#include "model/gpu_tag.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

static double mean(const struct window *w, enum metric_id m, uint32_t id)
{
	double v = NAN;

	window_mean(w, m, id, &v);
	return v;
}

static double last(const struct window *w, enum metric_id m, uint32_t id)
{
	double v = NAN;

	window_last(w, m, id, &v);
	return v;
}

static bool is_on(const struct window *w, enum metric_id m, uint32_t id)
{
	return last(w, m, id) > 0;
}

static bool in_job(const struct window *w, const struct snapshot *v, int64_t pid)
{
	const struct entity *e = pid > 0 ? entity_find_pid(window_entities(w), pid) : NULL;

	return e && snapshot_shows(v, w, e);
}

/* Sums over the job's processes on it; NAN where none has the figure. */
static void add_job(const struct window *w, const struct snapshot *s, struct snap_gpu *g)
{
	const struct entity_table *all = window_entities(w);

	for (size_t i = 0; i < all->rows.n; i++) {
		const struct entity *e = &all->rows.v[i];
		double v;

		if (e->kind != ENTITY_GPU_PROC || !snapshot_shows(s, w, e) ||
		    e->parent != g->entity->id || !in_job(w, s, e->key))
			continue;
		v = last(w, M_GPU_PROC_MEMORY, e->id);
		if (!isnan(v))
			g->job_memory = isnan(g->job_memory) ? v : g->job_memory + v;
		v = mean(w, M_GPU_PROC_BUSY, e->id);
		if (!isnan(v))
			g->job_busy = isnan(g->job_busy) ? v : g->job_busy + v;
	}
}

/* What the processes of the list have on GPUs. Of a partition it is told for the partition alone. */
static void add_to_tasks(const struct window *w, struct snapshot *v)
{
	const struct entity_table *all = window_entities(w);

	for (size_t i = 0; i < all->rows.n; i++) {
		const struct entity *e = &all->rows.v[i];
		double memory;

		if (e->kind != ENTITY_GPU_PROC || e->key <= 0 || !snapshot_shows(v, w, e))
			continue;
		memory = last(w, M_GPU_PROC_MEMORY, e->id);
		for (size_t k = 0; !isnan(memory) && k < v->processes.n; k++) {
			struct snap_task *t = &v->processes.v[k];

			if (t->entity->key == e->key)
				t->gpu_memory =
				    isnan(t->gpu_memory) ? memory : t->gpu_memory + memory;
		}
	}
}

static int by_place(const void *a, const void *b)
{
	const struct snap_gpu *x = a, *y = b;
	int64_t gx = x->whole ? x->whole->key : x->entity->key;
	int64_t gy = y->whole ? y->whole->key : y->entity->key;

	if (gx != gy)
		return gx < gy ? -1 : 1;
	return x->entity->key < y->entity->key ? -1 : x->entity->key > y->entity->key;
}

int snapshot_take_gpus(const struct window *w, bool job, struct snapshot *v)
{
	const struct entity_table *all = window_entities(w);

	for (size_t i = 0; i < all->rows.n; i++) {
		const struct entity *e = &all->rows.v[i];
		const struct entity *up = entity_find(all, e->parent);
		struct gpu_tag tag;
		struct snap_gpu *g;

		if (e->kind != ENTITY_GPU || !snapshot_shows(v, w, e))
			continue;
		g = vec_push(&v->gpus);
		if (!g)
			return -ENOMEM;
		gpu_tag_read(e->detail ? e->detail : "", &tag);
		*g = (struct snap_gpu){ .entity = e,
					.whole = up && up->kind == ENTITY_GPU ? up : NULL,
					.simulated = tag.simulated,
					.busy = mean(w, M_GPU_BUSY, e->id),
					.memory_used = last(w, M_GPU_MEM_USED, e->id),
					.memory_total = last(w, M_GPU_MEM_TOTAL, e->id),
					.power = mean(w, M_GPU_POWER, e->id),
					.temperature = last(w, M_GPU_TEMPERATURE, e->id),
					.job_memory = NAN,
					.job_busy = NAN };
		g->slowed = is_on(w, M_GPU_SLOW_HEAT, e->id) ||
			    is_on(w, M_GPU_SLOW_HEAT_HW, e->id) || is_on(w, M_GPU_SLOW_HW, e->id) ||
			    is_on(w, M_GPU_SLOW_BRAKE, e->id);
		if (job)
			add_job(w, v, g);
	}
	if (v->gpus.n) {
		add_to_tasks(w, v);
		qsort(v->gpus.v, v->gpus.n, sizeof(*v->gpus.v), by_place);
	}
	return 0;
}

/* SPDX-License-Identifier: MIT
 *
 * GPUs in `top`: what each did in the interval, and the part of it that is the job's.
 */
#include "cli/top_view.h"

#include "base/buf.h"
#include "base/num.h"
#include "base/text.h"
#include "model/gpu_tag.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

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

static bool in_job(const struct entity_table *all, int64_t pid)
{
	const struct entity *e = pid > 0 ? entity_find_pid(all, pid) : NULL;

	return e && !e->gone_ns;
}

/* Sums over the job's processes on it; NAN where none has the figure. */
static void add_job(const struct window *w, struct top_gpu *g)
{
	const struct entity_table *all = window_entities(w);

	for (size_t i = 0; i < all->rows.n; i++) {
		const struct entity *e = &all->rows.v[i];
		double v;

		if (e->kind != ENTITY_GPU_PROC || e->gone_ns || e->parent != g->entity->id ||
		    !in_job(all, e->key))
			continue;
		v = last(w, M_GPU_PROC_MEMORY, e->id);
		if (!isnan(v))
			g->job_memory = isnan(g->job_memory) ? v : g->job_memory + v;
		v = mean(w, M_GPU_PROC_BUSY, e->id);
		if (!isnan(v))
			g->job_busy = isnan(g->job_busy) ? v : g->job_busy + v;
	}
}

static int by_place(const void *a, const void *b)
{
	const struct top_gpu *x = a, *y = b;
	int64_t gx = x->whole ? x->whole->key : x->entity->key;
	int64_t gy = y->whole ? y->whole->key : y->entity->key;

	if (gx != gy)
		return gx < gy ? -1 : 1;
	return x->entity->key < y->entity->key ? -1 : x->entity->key > y->entity->key;
}

int top_fill_gpus(const struct window *w, bool job, struct top_view *v)
{
	const struct entity_table *all = window_entities(w);

	for (size_t i = 0; i < all->rows.n; i++) {
		const struct entity *e = &all->rows.v[i];
		const struct entity *up = entity_find(all, e->parent);
		struct gpu_tag tag;
		struct top_gpu *g;

		if (e->kind != ENTITY_GPU || e->gone_ns)
			continue;
		g = vec_push(&v->gpus);
		if (!g)
			return -ENOMEM;
		gpu_tag_read(e->detail ? e->detail : "", &tag);
		*g = (struct top_gpu){ .entity = e,
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
			add_job(w, g);
	}
	if (v->gpus.n)
		qsort(v->gpus.v, v->gpus.n, sizeof(*v->gpus.v), by_place);
	return 0;
}

static void put_memory(const struct top_gpu *g, struct buf *out)
{
	char a[32], b[32];

	if (!isnan(g->memory_used) && !isnan(g->memory_total))
		buf_printf(out, ", %s of %s", num_bytes(g->memory_used, a, sizeof(a)),
			   num_bytes(g->memory_total, b, sizeof(b)));
}

void top_put_gpus(const struct top_view *v, struct buf *out)
{
	for (size_t i = 0; i < v->gpus.n; i++) {
		const struct top_gpu *g = &v->gpus.v[i];
		char a[32];

		if (g->whole)
			buf_printf(out, "  part %-2d", (int)(g->entity->key % GPU_PARTITION_KEY));
		else
			buf_printf(out, "GPU %-4lld", (long long)g->entity->key);
		if (isnan(g->busy))
			buf_str(out, " busy not known");
		else
			buf_printf(out, " busy %s", num_percent(g->busy, a, sizeof(a)));
		put_memory(g, out);
		if (!isnan(g->power))
			buf_printf(out, ", %.0f W", g->power);
		if (!isnan(g->temperature))
			buf_printf(out, ", %.0f C", g->temperature);
		if (g->slowed)
			buf_str(out, ", slowed down");
		if (!isnan(g->job_memory))
			buf_printf(out, "; the job has %s", num_bytes(g->job_memory, a, sizeof(a)));
		buf_str(out, "  ");
		text_safe(out, g->entity->name, strlen(g->entity->name));
		buf_str(out, g->simulated ? " (simulated)\n" : "\n");
	}
}

void top_put_gpu_words(const struct top_view *v, struct buf *out)
{
	for (size_t i = 0; i < v->gpus.n; i++) {
		const struct top_gpu *g = &v->gpus.v[i];
		char a[32], b[32];

		if (g->whole)
			continue;
		buf_printf(out, " gpu%lld", (long long)g->entity->key);
		if (!isnan(g->busy))
			buf_printf(out, " %.0f%%", g->busy * 100);
		if (!isnan(g->memory_used) && !isnan(g->memory_total))
			buf_printf(out, " %s/%s", num_bytes(g->memory_used, a, sizeof(a)),
				   num_bytes(g->memory_total, b, sizeof(b)));
	}
}

/* SPDX-License-Identifier: MIT */
#include "explain/usage_gpus.h"

#include "base/num.h"
#include "base/text.h"
#include "explain/fact.h"
#include "explain/scene.h"
#include "explain/verdict.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { PROCESSES_MOST = 64 };

/* Shares of time below this are not worth a word. */
static const double held_least = 0.01;
/* Starting to read takes a moment; from this share of the run on it was read throughout. */
static const double seen_most = 0.9;

static void set_held(const struct gpu_row *g, char *ret, size_t size)
{
	int most = -1;
	char share[24];

	for (int i = 0; i < SLOWS; i++)
		if (g->slow[i] >= held_least && (most < 0 || g->slow[i] > g->slow[most]))
			most = i;
	if (most >= 0)
		snprintf(ret, size, "%s %s", gpu_slow_name((enum gpu_slow)most),
			 num_percent(g->slow[most], share, sizeof(share)));
}

static int of_use(enum gpu_use use)
{
	return use == GPU_USE_YES ? 1 : use == GPU_USE_NO ? 0 : -1;
}

/* For how long it was read, where that is not the run. */
static void set_span(const struct scene *s, const struct gpu_row *g, struct usage_gpu *ret)
{
	static const char *const states[] = { NULL, "lost", "hung", "not read" };
	int64_t start = s->run->started_mono_ns;

	start = start > 0 && start <= s->whole->from_ns ? start : s->whole->from_ns;
	ret->state = states[g->end];
	ret->until = NAN;
	if (ret->state)
		ret->until = fact_round((double)(g->until_ns - start) / 1e9);
	ret->seen = g->seen_s < seen_most * s->whole_seconds ? fact_round(g->seen_s) : NAN;
}

static void fill(const struct scene *s, const struct gpu_row *g, struct usage_gpu *ret)
{
	*ret = (struct usage_gpu){
		.index = g->index,
		.partition = g->partition,
		.simulated = g->tag.simulated,
		.unified = g->tag.unified,
		.listed = g->listed,
		.is_shell = g->parts,
		.allowed = g->mask == GPU_MASK_LEAVES  ? 1
			   : g->mask == GPU_MASK_HIDES ? 0
						       : -1,
		.job = of_use(g->use),
		.busy_at_least = g->busy_at_least,
		.busy = fact_round(g->busy),
		.sm_active = fact_round(g->sm_active),
		.memory_used = fact_round(g->memory_used),
		.memory_peak = fact_round(g->memory_peak),
		.memory_total = fact_round(g->memory_total),
		.power = fact_round(g->power),
		.energy = fact_round(g->energy),
		.temperature = fact_round(g->temperature),
		.clock = fact_round(g->clock),
		.clock_max = fact_round(g->clock_max),
	};
	text_safe_copy(ret->uuid, sizeof(ret->uuid), g->tag.uuid);
	text_safe_copy(ret->name, sizeof(ret->name), g->name);
	text_safe_copy(ret->vendor, sizeof(ret->vendor), g->tag.vendor);
	text_safe_copy(ret->profile, sizeof(ret->profile), g->tag.profile);
	set_held(g, ret->held, sizeof(ret->held));
	set_span(s, g, ret);
}

static double size_of(const struct gpu_process_row *p)
{
	return isfinite(p->memory) ? p->memory : -1;
}

static int by_size(const void *a, const void *b)
{
	const struct gpu_process_row *x = *(const struct gpu_process_row *const *)a;
	const struct gpu_process_row *y = *(const struct gpu_process_row *const *)b;

	if (x->gpu != y->gpu)
		return x->gpu < y->gpu ? -1 : 1;
	if (size_of(x) != size_of(y))
		return size_of(x) > size_of(y) ? -1 : 1;
	return x->id < y->id ? -1 : 1;
}

static int add_process(struct usage *u, const struct gpu_process_row *p)
{
	struct usage_gpu_process *x = vec_push(&u->gpu_processes);

	if (!x)
		return -ENOMEM;
	*x = (struct usage_gpu_process){ .pid = p->pid > 0 ? p->pid : 0,
					 .job = p->job       ? 1
						: p->pid > 0 ? 0
							     : -1,
					 .memory = fact_round(p->memory),
					 .busy = fact_round(p->busy) };
	text_safe_copy(x->name, sizeof(x->name), p->name);
	return 0;
}

/* The processes of one row; they are sorted by row. */
static int add_processes(struct usage *u, struct usage_gpu *g, size_t row,
			 const struct gpu_process_row *const *sorted, size_t n)
{
	size_t at = 0;
	int r = 0;

	while (at < n && sorted[at]->gpu < row)
		at++;
	g->first_process = u->gpu_processes.n;
	for (; r == 0 && at < n && sorted[at]->gpu == row; at++) {
		if (g->n_processes == PROCESSES_MOST) {
			g->left_out++;
			continue;
		}
		r = add_process(u, sorted[at]);
		g->n_processes += r == 0;
	}
	return r;
}

/* The job's own first, those its environment hides last; partitions stay behind their GPU. */
static int rank(const struct gpus *g, const struct gpu_row *x)
{
	if (x->parent >= 0)
		x = &g->rows.v[x->parent];
	return x->use == GPU_USE_YES ? 0 : x->mask == GPU_MASK_HIDES ? 2 : 1;
}

int usage_gpus(const struct scene *s, struct usage *u)
{
	const struct gpus *all = &s->gpus;
	const struct gpu_process_row **sorted;
	int r = 0;

	if (!all->rows.n)
		return 0;
	sorted = calloc(all->processes.n + 1, sizeof(*sorted));
	if (!sorted)
		return -ENOMEM;
	for (size_t i = 0; i < all->processes.n; i++)
		sorted[i] = &all->processes.v[i];
	qsort(sorted, all->processes.n, sizeof(*sorted), by_size);
	for (int turn = 0; r == 0 && turn < 3; turn++)
		for (size_t i = 0; r == 0 && i < all->rows.n; i++) {
			struct usage_gpu *g;

			if (rank(all, &all->rows.v[i]) != turn || all->rows.v[i].replaced)
				continue;
			g = vec_push(&u->gpus);
			if (!g) {
				r = -ENOMEM;
				break;
			}
			fill(s, &all->rows.v[i], g);
			r = add_processes(u, g, i, sorted, all->processes.n);
		}
	free(sorted);
	return r;
}

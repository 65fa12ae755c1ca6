/* SPDX-License-Identifier: MIT */
#include "explain/gpus.h"

#include "explain/scene.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* A process that ended is off the driver's list within a reading or two. */
static const int64_t linger_ns = 10000000000;
static const int state_zombie = 'Z';

const char *gpu_label(const struct gpu_row *g, char *buf, size_t size)
{
	if (g->partition < 0)
		snprintf(buf, size, "GPU %d", g->index);
	else
		snprintf(buf, size, "GPU %d partition %d", g->index, g->partition);
	return buf;
}

const char *gpu_slow_name(enum gpu_slow why)
{
	static const char *const names[SLOWS] = { "temperature, by hardware",
						  "temperature",
						  "power brake",
						  "hardware",
						  "power limit",
						  "clock setting" };

	return names[why];
}

static double mean_of(const struct window *w, enum metric_id m, uint32_t id)
{
	double v;

	return window_mean(w, m, id, &v) ? v : NAN;
}

static double max_of(const struct window *w, enum metric_id m, uint32_t id)
{
	double v;

	return window_max(w, m, id, &v) ? v : NAN;
}

static double last_of(const struct window *w, enum metric_id m, uint32_t id)
{
	double v;

	return window_last(w, m, id, &v) ? v : NAN;
}

static struct window clip(const struct window *w, int64_t to_ns)
{
	struct window c = *w;

	if (to_ns < c.to_ns)
		c.to_ns = to_ns > c.from_ns ? to_ns : c.from_ns;
	return c;
}

static void read_gpu(const struct scene *s, struct gpu_row *g)
{
	static const enum metric_id slow[SLOWS] = { M_GPU_SLOW_HEAT_HW, M_GPU_SLOW_HEAT,
						    M_GPU_SLOW_BRAKE,   M_GPU_SLOW_HW,
						    M_GPU_SLOW_POWER,   M_GPU_SLOW_SETTING };
	/* A value holds until the next one; past the last reading it is nobody's. */
	struct window read = clip(s->whole, g->until_ns), steady = clip(&s->steady, g->until_ns);
	const struct window *w = &read;
	struct series_stat memory;
	double allowed = last_of(w, M_GPU_ALLOWED, g->id);

	g->mask = isnan(allowed) ? GPU_MASK_NONE : allowed > 0.5 ? GPU_MASK_LEAVES : GPU_MASK_HIDES;
	g->listed = isfinite(last_of(w, M_GPU_PROCESSES, g->id));
	g->busy = mean_of(w, M_GPU_BUSY, g->id);
	g->busy_steady = mean_of(&steady, M_GPU_BUSY, g->id);
	g->sm_active = mean_of(w, M_GPU_SM_ACTIVE, g->id);
	g->memory_used = g->memory_peak = g->memory_last = NAN;
	if (window_stat(w, M_GPU_MEM_USED, g->id, &memory) == 0) {
		g->memory_used = memory.mean;
		g->memory_peak = memory.max;
		g->memory_last = memory.last;
	}
	g->memory_steady = mean_of(&steady, M_GPU_MEM_USED, g->id);
	g->memory_total = last_of(w, M_GPU_MEM_TOTAL, g->id);
	g->reserved = last_of(w, M_GPU_MEM_RESERVED, g->id);
	g->power = mean_of(w, M_GPU_POWER, g->id);
	g->temperature = max_of(w, M_GPU_TEMPERATURE, g->id);
	g->clock = mean_of(w, M_GPU_CLOCK_SM, g->id);
	g->clock_max = max_of(w, M_GPU_CLOCK_SM_MAX, g->id);
	if (!scene_growth(w, M_GPU_ENERGY, g->id, &g->energy))
		g->energy = NAN;
	for (int i = 0; i < SLOWS; i++)
		g->slow[i] = mean_of(&steady, slow[i], g->id);
}

/* Keys: gpu_key(). A record may have anything in it. */
static void read_key(int64_t key, struct gpu_row *g)
{
	bool whole = key >= 0 && key < GPU_PARTITION_KEY;

	if (key < 0 || key > 1000LL * GPU_PARTITION_KEY)
		key = 0;
	g->index = (int)(whole ? key : key / GPU_PARTITION_KEY - 1);
	g->partition = whole ? -1 : (int)(key % GPU_PARTITION_KEY);
}

static int by_key(const void *a, const void *b)
{
	const struct gpu_row *x = a, *y = b;

	if (x->index != y->index)
		return x->index < y->index ? -1 : 1;
	if (x->partition != y->partition)
		return x->partition < y->partition ? -1 : 1;
	return x->id < y->id ? -1 : 1;
}

/* After sorting: rows find the GPU they are part of. */
static void join_rows(struct gpus *g, const uint32_t *parents, const struct map *at)
{
	for (size_t i = 0; i < g->rows.n; i++) {
		struct gpu_row *x = &g->rows.v[i];
		const struct gpu_row *next = i + 1 < g->rows.n ? x + 1 : NULL;
		uint32_t row;

		x->parent = -1;
		if (x->partition >= 0 && map_get(at, parents[i], &row) && row != i) {
			x->parent = (int)row;
			g->rows.v[row].parts = true;
			if (x->mask == GPU_MASK_NONE)
				x->mask = g->rows.v[row].mask;
			x->listed |= g->rows.v[row].listed;
		}
		x->replaced = next && next->index == x->index && next->partition == x->partition;
	}
}

static int take_rows(struct gpus *g, const struct scene *s, struct map *ret_at)
{
	const struct entity_table *t = window_entities(s->whole);
	uint32_t *parents;

	for (size_t i = 0; i < t->rows.n; i++) {
		const struct entity *e = &t->rows.v[i];
		struct gpu_row *x;

		if (e->kind != ENTITY_GPU)
			continue;
		x = vec_push(&g->rows);
		if (!x)
			return -ENOMEM;
		*x = (struct gpu_row){
			.id = e->id, .name = e->name, .born_ns = e->born_ns, .gone_ns = e->gone_ns
		};
		read_key(e->key, x);
		gpu_take_span(g, s, x);
		gpu_tag_read(e->detail ? e->detail : "", &x->tag);
		read_gpu(s, x);
	}
	if (!g->rows.n)
		return 0;
	qsort(g->rows.v, g->rows.n, sizeof(*g->rows.v), by_key);
	parents = calloc(g->rows.n, sizeof(*parents));
	if (!parents)
		return -ENOMEM;
	for (size_t i = 0; i < g->rows.n; i++) {
		const struct entity *e = entity_find(t, g->rows.v[i].id);

		parents[i] = e ? e->parent : 0;
		if (!map_put(ret_at, g->rows.v[i].id, (uint32_t)i)) {
			free(parents);
			return -ENOMEM;
		}
	}
	join_rows(g, parents, ret_at);
	free(parents);
	return 0;
}

static void read_process(const struct scene *s, struct gpu_process_row *p)
{
	const struct window *w = s->whole;
	struct series_stat st;
	double time;

	p->memory = p->memory_peak = p->memory_last = NAN;
	p->busy = p->busy_steady = p->memory_steady = NAN;
	if (window_stat(w, M_GPU_PROC_MEMORY, p->id, &st) == 0) {
		p->memory = st.mean;
		p->memory_peak = st.max;
		p->memory_last = p->gone_ns && p->gone_ns <= w->to_ns ? 0 : st.last;
	}
	if (s->seconds > 0 && window_stat(&s->steady, M_GPU_PROC_MEMORY, p->id, &st) == 0)
		p->memory_steady = st.mean * (double)(st.to_ns - st.from_ns) / 1e9 / s->seconds;
	if (!window_mean(w, M_GPU_PROC_BUSY, p->id, &p->busy))
		scene_rate(w, M_GPU_PROC_TIME, p->id, &p->busy);
	if (s->seconds <= 0)
		return;
	if (window_stat(&s->steady, M_GPU_PROC_BUSY, p->id, &st) == 0)
		p->busy_steady = st.mean * (double)(st.to_ns - st.from_ns) / 1e9 / s->seconds;
	else if (scene_growth(&s->steady, M_GPU_PROC_TIME, p->id, &time))
		p->busy_steady = time / s->seconds;
}

struct pid_row {
	int64_t pid;
	size_t member;
};

static int by_pid(const void *a, const void *b)
{
	const struct pid_row *x = a, *y = b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return x->member < y->member ? -1 : x->member > y->member;
}

/* Has the job's process ended, or become a zombie, while the driver goes on listing it? */
static bool is_dead(const struct scene *s, struct gpu_process_row *p, const struct member *m)
{
	int64_t end = p->gone_ns && p->gone_ns < s->whole->to_ns ? p->gone_ns : s->whole->to_ns;
	struct window tail = *s->whole;
	struct series_stat st;

	if (m->gone_ns)
		return end - m->gone_ns >= linger_ns;
	tail.to_ns = end;
	tail.from_ns = end - linger_ns;
	if (tail.from_ns < s->whole->from_ns)
		return false;
	p->unclear = window_stat(&tail, M_PROC_STATE, m->id, &st) < 0;
	return !p->unclear && st.min == state_zombie && st.max == state_zombie &&
	       st.from_ns <= tail.from_ns;
}

/* The job's process with this pid that lived at the same time; numbers are given out again. */
static void find_owner(const struct scene *s, const struct pid_row *pids, size_t n,
		       struct gpu_process_row *p)
{
	size_t low = 0, high = n;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (pids[mid].pid < p->pid)
			low = mid + 1;
		else
			high = mid;
	}
	for (; p->pid > 0 && low < n && pids[low].pid == p->pid; low++) {
		const struct member *m = &s->members.v[pids[low].member];

		if ((p->gone_ns && m->born_ns > p->gone_ns) ||
		    (m->gone_ns && m->gone_ns < p->born_ns))
			continue;
		p->job = true;
		p->member = m->id;
		p->dead = is_dead(s, p, m);
	}
}

static int take_processes(struct gpus *g, const struct scene *s, const struct map *at)
{
	const struct entity_table *t = window_entities(s->whole);
	struct pid_row *pids = calloc(s->members.n + 1, sizeof(*pids));
	int r = pids ? 0 : -ENOMEM;

	for (size_t i = 0; pids && i < s->members.n; i++)
		pids[i] = (struct pid_row){ s->members.v[i].pid, i };
	if (pids)
		qsort(pids, s->members.n, sizeof(*pids), by_pid);
	for (size_t i = 0; r == 0 && i < t->rows.n; i++) {
		const struct entity *e = &t->rows.v[i];
		struct gpu_process_row *p;
		uint32_t row;

		if (e->kind != ENTITY_GPU_PROC || !map_get(at, e->parent, &row) ||
		    e->born_ns > s->whole->to_ns || (e->gone_ns && e->gone_ns <= s->whole->from_ns))
			continue;
		p = vec_push(&g->processes);
		if (!p) {
			r = -ENOMEM;
			break;
		}
		*p = (struct gpu_process_row){ .id = e->id,
					       .gpu = row,
					       .pid = e->key,
					       .name = e->name,
					       .detail = e->detail ? e->detail : "",
					       .born_ns = e->born_ns,
					       .gone_ns = e->gone_ns };
		read_process(s, p);
		find_owner(s, pids, s->members.n, p);
	}
	free(pids);
	return r;
}

static void add_process(struct gpu_row *x, const struct gpu_process_row *p)
{
	x->listed = true;
	x->hidden |= p->pid <= 0;
	x->others |= !p->job;
	if (p->pid <= 0 && isfinite(p->busy_steady))
		x->hidden_busy += p->busy_steady;
	if (p->job)
		x->use = GPU_USE_YES;
}

/* Without a GPU runtime in any of its processes the job cannot be on a GPU, whatever a list says. */
static void count_code(struct gpus *g, const struct scene *s)
{
	double v;

	g->code = -1;
	for (size_t i = 0; i < s->members.n; i++) {
		if (!window_max(s->whole, M_PROC_GPU_CODE, s->members.v[i].id, &v))
			continue;
		g->code = g->code < 0 ? 0 : g->code;
		if (v > 0.5 && g->code++ == 0)
			g->code_first = s->members.v[i].id;
	}
}

/* Who is on which; a partition's process is on its GPU too. */
static void sum_up(struct gpus *g)
{
	for (size_t i = 0; i < g->processes.n; i++) {
		const struct gpu_process_row *p = &g->processes.v[i];
		struct gpu_row *x = &g->rows.v[p->gpu];

		add_process(x, p);
		if (x->parent >= 0)
			add_process(&g->rows.v[x->parent], p);
	}
	for (size_t i = 0; i < g->rows.n; i++) {
		struct gpu_row *x = &g->rows.v[i];

		if (x->use != GPU_USE_YES && (x->hidden || !x->listed) && g->code != 0)
			x->use = GPU_USE_UNKNOWN;
	}
}

/* No figure of the device: its processes' engine time is a part of it. */
static void sum_busy(struct gpus *g, const struct scene *s)
{
	for (size_t i = 0; i < g->processes.n; i++) {
		const struct gpu_process_row *p = &g->processes.v[i];
		struct gpu_row *x = &g->rows.v[p->gpu];
		double time;

		if ((isfinite(x->busy) && !x->busy_at_least) || x->seen_s <= 0 ||
		    !scene_growth(s->whole, M_GPU_PROC_TIME, p->id, &time))
			continue;
		x->busy_at_least = true;
		x->busy = fmin(1, (isfinite(x->busy) ? x->busy : 0) + time / x->seen_s);
		if (isfinite(p->busy_steady))
			x->busy_steady = fmin(1, (isfinite(x->busy_steady) ? x->busy_steady : 0) +
						     p->busy_steady);
	}
}

int gpus_take(struct gpus *g, const struct scene *s)
{
	struct map at = { 0 };
	int r;

	gpus_find_unread(g, s);
	r = take_rows(g, s, &at);
	count_code(g, s);
	if (r == 0 && g->rows.n)
		r = take_processes(g, s, &at);
	if (r == 0 && g->rows.n) {
		gpus_take_ends(g, s);
		sum_up(g);
		sum_busy(g, s);
	}
	map_done(&at);
	return r;
}

void gpus_done(struct gpus *g)
{
	vec_done(&g->rows);
	vec_done(&g->processes);
}

/* SPDX-License-Identifier: MIT */
#include "explain/scene.h"

#include "explain/activity_part.h"
#include "model/node.h"

#include <errno.h>
#include <math.h>

/* The run's ends and the window's may differ by a tick of a slow recorder. */
static const int64_t edge_ns = 2000000000;

bool scene_growth(const struct window *w, enum metric_id m, uint32_t entity, double *ret)
{
	struct series_stat st;
	uint64_t readings;

	if (window_stat(w, m, entity, &st) < 0)
		return false;
	/* One reading says where a counter stands, not that it stands still. */
	readings = st.n + (st.from_ns <= w->from_ns);
	if (readings < 2 && st.delta == 0)
		return false;
	*ret = st.delta;
	return true;
}

bool scene_rate(const struct window *w, enum metric_id m, uint32_t entity, double *ret)
{
	struct series_stat st;
	double growth;

	if (!scene_growth(w, m, entity, &growth) || window_stat(w, m, entity, &st) < 0 ||
	    st.to_ns <= st.from_ns)
		return false;
	*ret = growth / ((double)(st.to_ns - st.from_ns) / 1e9);
	return true;
}

static double max_or_nan(const struct window *w, enum metric_id m, uint32_t id)
{
	double v;

	return window_max(w, m, id, &v) ? v : NAN;
}

static double delta_or_nan(const struct window *w, enum metric_id m, uint32_t id)
{
	double v;

	return window_delta(w, m, id, &v) ? v : NAN;
}

static void add(double *sum, double v)
{
	if (isfinite(v))
		*sum = isfinite(*sum) ? *sum + v : v;
}

/* Seconds of [from, to] in which it lived. */
static double seconds_alive(const struct entity *e, int64_t from, int64_t to)
{
	int64_t a = e->born_ns > from ? e->born_ns : from;
	int64_t b = e->gone_ns && e->gone_ns < to ? e->gone_ns : to;

	return b > a ? (double)(b - a) / 1e9 : 0;
}

static bool lived_in(const struct entity *e, const struct window *w)
{
	return e->born_ns <= w->to_ns && (!e->gone_ns || e->gone_ns > w->from_ns);
}

static int add_member(struct scene *s, const struct entity *e)
{
	struct member *m = vec_push(&s->members);

	if (!m || !map_put(&s->by_id, e->id, (uint32_t)(s->members.n - 1)))
		return -ENOMEM;
	*m = (struct member){
		.id = e->id,
		.name = e->name,
		.pid = e->key,
		.is_main = e->id == s->main_proc,
		.born_ns = e->born_ns,
		.gone_ns = e->gone_ns,
		.alive_s = seconds_alive(e, s->steady.from_ns, s->steady.to_ns),
		.cpu = delta_or_nan(&s->steady, M_PROC_CPU, e->id),
		.kernel_cpu = delta_or_nan(&s->steady, M_PROC_CPU_SYSTEM, e->id),
		.threads = max_or_nan(&s->steady, M_PROC_THREADS, e->id),
		.major_faults = delta_or_nan(&s->steady, M_PROC_MAJOR_FAULTS, e->id),
		.swap = max_or_nan(&s->steady, M_PROC_SWAP, e->id),
		.thread_cpu = NAN,
		.ready_cpu = NAN,
		.delay = NAN,
		.slices = NAN,
		.alone = NAN,
		.rss_max = max_or_nan(s->whole, M_PROC_RSS, e->id),
		.rss_peak = max_or_nan(s->whole, M_PROC_RSS_PEAK, e->id),
		.read = delta_or_nan(s->whole, M_PROC_READ_BYTES, e->id),
		.written = delta_or_nan(s->whole, M_PROC_WRITTEN_BYTES, e->id),
	};
	return 0;
}

/* With a CPU whenever it wants one, a thread does the same in the time it ran and slept, and is ready
 * for the share of it that it ran. */
static double ready_alone(double cpu, double delay, double alive)
{
	double slept = alive - cpu - delay;

	return cpu > 0 ? alive * cpu / (cpu + (slept > 0 ? slept : 0)) : 0;
}

static int add_thread(struct scene *s, const struct entity *e)
{
	double alive = seconds_alive(e, s->steady.from_ns, s->steady.to_ns);
	double cpu = delta_or_nan(&s->steady, M_THREAD_CPU, e->id);
	double delay = delta_or_nan(&s->steady, M_THREAD_RUN_DELAY, e->id);
	struct member *m;
	uint32_t at;

	if (!map_get(&s->by_id, e->parent, &at))
		return 0;
	m = &s->members.v[at];
	add(&m->thread_cpu, cpu);
	add(&m->slices, delta_or_nan(&s->steady, M_THREAD_SLICES, e->id));
	if (isfinite(cpu) && isfinite(delay)) {
		add(&m->ready_cpu, cpu);
		add(&m->delay, delay);
		add(&m->alone, ready_alone(cpu, delay, alive));
	} else if (isfinite(cpu) && !s->why_no_delay) {
		s->why_no_delay = window_why_absent(&s->steady, M_THREAD_RUN_DELAY, e->id);
	}
	if (m->is_main && e->key == s->run->pid && !isfinite(s->main_cpu)) {
		s->main_cpu = cpu;
		s->main_delay = delay;
	}
	return activity_thread(&s->activity, e, e->key == m->pid, alive, cpu, delay);
}

/* The first process with the run's pid: a later one got the number again. */
static uint32_t find_main(const struct entity_table *t, int64_t pid)
{
	for (size_t i = 0; i < t->rows.n; i++)
		if (t->rows.v[i].kind == ENTITY_PROC && t->rows.v[i].key == pid)
			return t->rows.v[i].id;
	return 0;
}

/* Of several control groups the one whose limit is tightest; without a limit, the first that
 * answers at all. */
static uint32_t find_group(const struct scene *s, enum metric_id limit, enum metric_id sign)
{
	const struct entity_table *t = window_entities(s->whole);
	uint32_t found = 0, any = 0;
	double tightest = INFINITY, v;

	for (size_t i = 0; i < t->rows.n; i++) {
		const struct entity *e = &t->rows.v[i];

		if (e->kind != ENTITY_CGROUP)
			continue;
		if (window_mean(s->whole, limit, e->id, &v) && v < tightest) {
			tightest = v;
			found = e->id;
		}
		if (!any && window_last(s->whole, sign, e->id, &v))
			any = e->id;
	}
	if (found || any)
		return found ? found : any;
	for (size_t i = 0; i < t->rows.n; i++)
		if (t->rows.v[i].kind == ENTITY_CGROUP)
			return t->rows.v[i].id;
	return 0;
}

static int take_census(struct scene *s)
{
	const struct entity_table *t = window_entities(s->whole);

	for (size_t i = 0; i < t->rows.n; i++) {
		const struct entity *e = &t->rows.v[i];

		if (e->kind == ENTITY_PROC && lived_in(e, s->whole) && add_member(s, e) < 0)
			return -ENOMEM;
	}
	for (size_t i = 0; i < t->rows.n; i++)
		if (t->rows.v[i].kind == ENTITY_THREAD && lived_in(&t->rows.v[i], &s->steady) &&
		    add_thread(s, &t->rows.v[i]) < 0)
			return -ENOMEM;
	return 0;
}

int scene_open(struct scene *s, const struct window *whole, int64_t from_ns, int64_t to_ns)
{
	const struct run_info *run = window_run(whole);
	int r;

	*s = (struct scene){ .whole = whole,
			     .steady = *whole,
			     .run = run,
			     .whole_seconds = window_seconds(whole),
			     .main_cpu = NAN,
			     .main_delay = NAN };
	s->steady.from_ns = from_ns;
	s->steady.to_ns = to_ns;
	s->seconds = window_seconds(&s->steady);
	s->covers_run = whole->from_ns - edge_ns <= run->started_mono_ns &&
			(run->state == RUN_GOING || whole->to_ns + edge_ns >= run->ended_mono_ns);
	s->main_proc = find_main(window_entities(whole), run->pid);
	/* What all machines use together is not to be held against the limit of one. */
	if (!node_several(window_entities(whole))) {
		s->cg_cpu = find_group(s, M_CG_CPU_QUOTA, M_CG_CPU_PERIODS);
		s->cg_mem = find_group(s, M_CG_MEM_LIMIT, M_CG_MEM_USED);
	}
	r = take_census(s);
	if (r == 0)
		r = gpus_take(&s->gpus, s);
	return r < 0 ? r : activity_open(s);
}

void scene_done(struct scene *s)
{
	vec_done(&s->members);
	map_done(&s->by_id);
	gpus_done(&s->gpus);
	activity_done(&s->activity);
}

const struct member *scene_member(const struct scene *s, uint32_t id)
{
	uint32_t at;

	return map_get(&s->by_id, id, &at) ? &s->members.v[at] : NULL;
}

/* SPDX-License-Identifier: MIT */
#include "tui/snapshot.h"

#include <errno.h>
#include <math.h>
#include <string.h>

/* Older readings of proportional memory are not about now. */
static const int64_t pss_fresh_ns = 20000000000;

/* What the first tick saw had happened before it: growth counts from just behind it, so that a
 * process that is new to us is not taken for one that has just started. */
static double rate(const struct window *w, enum metric_id m, uint32_t id)
{
	double v = NAN, seconds = window_seconds(w);
	struct window behind = *w;

	behind.from_ns++;
	/* A counter that slipped back shows as nothing until it has caught up. */
	return seconds > 0 && window_delta(&behind, m, id, &v) ? fmax(0, v) / seconds : NAN;
}

static double last(const struct window *w, enum metric_id m, uint32_t id)
{
	double v = NAN;

	window_last(w, m, id, &v);
	return v;
}

static double plus(double a, double b)
{
	return isnan(a) ? b : isnan(b) ? a : a + b;
}

bool snapshot_shows(const struct snapshot *v, const struct window *w, const struct entity *e)
{
	if (e->born_ns > w->to_ns)
		return false;
	return !e->gone_ns || (v->flags & SNAPSHOT_PAST && e->gone_ns > w->from_ns);
}

/* Disks made of other disks are listed beside them: only in the sum when they are all there is. */
static bool is_stacked(const char *name)
{
	return strncmp(name, "dm-", 3) == 0 ||
	       (strncmp(name, "md", 2) == 0 && name[2] >= '0' && name[2] <= '9');
}

static void add_devices(const struct window *w, const struct snapshot *v, struct snap_machine *m)
{
	const struct entity_table *all = window_entities(w);
	bool plain_disk = false;

	for (size_t i = 0; i < all->rows.n; i++)
		plain_disk |=
		    all->rows.v[i].kind == ENTITY_DISK && !is_stacked(all->rows.v[i].name);
	for (size_t i = 0; i < all->rows.n; i++) {
		const struct entity *e = &all->rows.v[i];

		if (!snapshot_shows(v, w, e))
			continue;
		if (e->kind == ENTITY_DISK && !(plain_disk && is_stacked(e->name))) {
			m->disk_read = plus(m->disk_read, rate(w, M_DISK_READ, e->id));
			m->disk_written = plus(m->disk_written, rate(w, M_DISK_WRITTEN, e->id));
		}
		if (e->kind == ENTITY_NIC) {
			m->net_rx = plus(m->net_rx, rate(w, M_NET_RX, e->id));
			m->net_tx = plus(m->net_tx, rate(w, M_NET_TX, e->id));
		}
	}
}

static void take_machine(const struct window *w, struct snapshot *v)
{
	struct snap_machine *m = &v->machine;

	*m = (struct snap_machine){
		.cpus = last(w, M_CPU_ONLINE, ID_HOST),
		.user = plus(rate(w, M_CPU_USER, ID_HOST), rate(w, M_CPU_NICE, ID_HOST)),
		.kernel = plus(plus(rate(w, M_CPU_SYSTEM, ID_HOST), rate(w, M_CPU_IRQ, ID_HOST)),
			       rate(w, M_CPU_SOFTIRQ, ID_HOST)),
		.iowait = rate(w, M_CPU_IOWAIT, ID_HOST),
		.steal = rate(w, M_CPU_STEAL, ID_HOST),
		.memory_total = last(w, M_MEM_TOTAL, ID_HOST),
		.load1 = last(w, M_LOAD_1, ID_HOST),
		.load5 = last(w, M_LOAD_5, ID_HOST),
		.load15 = last(w, M_LOAD_15, ID_HOST),
		.running = last(w, M_HOST_RUNNING, ID_HOST),
		.psi_cpu = rate(w, M_PSI_CPU_SOME, ID_HOST),
		.psi_memory = rate(w, M_PSI_MEM_SOME, ID_HOST),
		.psi_io = rate(w, M_PSI_IO_SOME, ID_HOST),
		.disk_read = NAN,
		.disk_written = NAN,
		.net_rx = NAN,
		.net_tx = NAN,
	};
	m->cores_used = plus(m->user, m->kernel);
	m->memory_used = m->memory_total - last(w, M_MEM_AVAILABLE, ID_HOST);
	m->swap_used = last(w, M_SWAP_TOTAL, ID_HOST) - last(w, M_SWAP_FREE, ID_HOST);
	add_devices(w, v, m);
}

/* The least of what the groups above the job allow, NAN: none limits it. */
static double least_of_groups(const struct window *w, enum metric_id m)
{
	const struct entity_table *all = window_entities(w);
	double least = NAN;

	for (size_t i = 0; i < all->rows.n; i++)
		if (all->rows.v[i].kind == ENTITY_CGROUP)
			least = fmin(least, last(w, m, all->rows.v[i].id));
	return least;
}

static double throttled(const struct window *w)
{
	const struct entity_table *all = window_entities(w);
	double sum = NAN;

	for (size_t i = 0; i < all->rows.n; i++)
		if (all->rows.v[i].kind == ENTITY_CGROUP)
			sum = plus(sum, rate(w, M_CG_CPU_THROTTLED, all->rows.v[i].id));
	return sum;
}

/* Which of the three the number of cores comes from. Quotas are told in thousandths. */
static const char *cpu_limit(const struct window *w, double allowed, double machine)
{
	const double near = 0.001;

	if (isnan(allowed) || isnan(machine))
		return NULL;
	if (allowed >= machine - near)
		return "machine";
	return allowed >= last(w, M_JOB_CORES_AFFINITY, ID_JOB) - near ? "affinity" : "quota";
}

/* Resident memory counts a page for each process that has it; proportional memory does not, but is read
 * only every few seconds, and a job that has just started has little of it. */
static void take_memory(const struct window *w, struct snap_job *j)
{
	struct window recent = { w->ops, w->src, w->to_ns - pss_fresh_ns, w->to_ns };
	struct series_stat s;

	j->memory = j->rss;
	if (j->processes <= 1)
		return;
	j->memory_at_most = !(window_stat(&recent, M_JOB_PSS, ID_JOB, &s) == 0 && s.n > 0);
	if (!j->memory_at_most || isnan(j->rss))
		j->memory = j->pss;
}

static void take_job(const struct window *w, struct snapshot *v)
{
	struct snap_job *j = &v->job;
	double group = least_of_groups(w, M_CG_MEM_LIMIT);

	*j = (struct snap_job){
		.present = true,
		.cores = rate(w, M_JOB_CPU, ID_JOB),
		.cores_allowed = last(w, M_JOB_CORES_ALLOWED, ID_JOB),
		.rss = last(w, M_JOB_RSS, ID_JOB),
		.pss = last(w, M_JOB_PSS, ID_JOB),
		.processes = last(w, M_JOB_PROCESSES, ID_JOB),
		.threads = last(w, M_JOB_THREADS, ID_JOB),
		.memory_allowed = fmin(group, v->machine.memory_total),
		.read = NAN,
		.written = NAN,
		.throttled = throttled(w),
	};
	take_memory(w, j);
	j->cpu_limit = cpu_limit(w, j->cores_allowed, v->machine.cpus);
	if (!isnan(j->memory_allowed))
		j->memory_limit = group < v->machine.memory_total ? "cgroup" : "machine";
	for (size_t i = 0; i < v->processes.n; i++) {
		j->read = plus(j->read, v->processes.v[i].read);
		j->written = plus(j->written, v->processes.v[i].written);
	}
}

static int by_number(const void *a, const void *b)
{
	const struct snap_core *x = a, *y = b;

	return x->key < y->key ? -1 : x->key > y->key;
}

static int take_cores(const struct window *w, struct snapshot *v)
{
	const struct entity_table *all = window_entities(w);

	for (size_t i = 0; i < all->rows.n; i++) {
		const struct entity *e = &all->rows.v[i];
		struct snap_core *c;

		if (e->kind != ENTITY_CPU || !snapshot_shows(v, w, e))
			continue;
		c = vec_push(&v->cores);
		if (!c)
			return -ENOMEM;
		*c = (struct snap_core){
			.key = e->key,
			.busy = plus(rate(w, M_CORE_USER, e->id), rate(w, M_CORE_SYSTEM, e->id)),
			.steal = rate(w, M_CORE_STEAL, e->id),
		};
	}
	if (v->cores.n)
		qsort(v->cores.v, v->cores.n, sizeof(*v->cores.v), by_number);
	return 0;
}

static char state_letter(double code)
{
	return code >= 'A' && code <= 'z' ? (char)code : 0;
}

static void fill_process(const struct window *w, const struct entity *e, struct snap_task *t)
{
	t->entity = e;
	t->cores = rate(w, M_PROC_CPU, e->id);
	t->run_delay = NAN;
	t->rss = last(w, M_PROC_RSS, e->id);
	t->pss = last(w, M_PROC_PSS, e->id);
	t->threads = last(w, M_PROC_THREADS, e->id);
	t->read = rate(w, M_PROC_READ_BYTES, e->id);
	t->written = rate(w, M_PROC_WRITTEN_BYTES, e->id);
	t->gpu_memory = NAN;
	t->state = state_letter(last(w, M_PROC_STATE, e->id));
}

static void fill_thread(const struct window *w, const struct entity *e, struct snap_task *t)
{
	t->entity = e;
	t->cores = rate(w, M_THREAD_CPU, e->id);
	t->run_delay = rate(w, M_THREAD_RUN_DELAY, e->id);
	t->rss = t->pss = t->threads = t->read = t->written = t->gpu_memory = NAN;
	t->state = state_letter(last(w, M_THREAD_STATE, e->id));
}

/* Busiest first; then larger first; then by number, so that idle ones do not dance. */
static int by_use(const void *a, const void *b)
{
	const struct snap_task *x = a, *y = b;
	double cx = isnan(x->cores) ? -1 : x->cores, cy = isnan(y->cores) ? -1 : y->cores;
	double mx = isnan(x->rss) ? -1 : x->rss, my = isnan(y->rss) ? -1 : y->rss;

	if (cx != cy)
		return cx < cy ? 1 : -1;
	if (mx != my)
		return mx < my ? 1 : -1;
	return x->entity->key < y->entity->key ? -1 : x->entity->key > y->entity->key;
}

static int by_owner_and_use(const void *a, const void *b)
{
	const struct snap_task *x = a, *y = b;

	if (x->entity->parent != y->entity->parent)
		return x->entity->parent < y->entity->parent ? -1 : 1;
	return by_use(a, b);
}

static void hand_out_threads(struct snapshot *v)
{
	/* Threads of a process lie side by side. */
	for (size_t i = 0, n; i < v->threads.n; i += n) {
		uint32_t owner = v->threads.v[i].entity->parent;

		for (n = 1; i + n < v->threads.n; n++)
			if (v->threads.v[i + n].entity->parent != owner)
				break;
		for (size_t p = 0; p < v->processes.n; p++) {
			if (v->processes.v[p].entity->id != owner)
				continue;
			v->processes.v[p].first_thread = i;
			v->processes.v[p].n_threads = n;
			break;
		}
	}
}

static int take_tasks(const struct window *w, bool job, struct snapshot *v)
{
	const struct entity_table *all = window_entities(w);

	for (size_t i = 0; i < all->rows.n; i++) {
		const struct entity *e = &all->rows.v[i];
		struct snap_task *t;

		if (!snapshot_shows(v, w, e) ||
		    !(e->kind == ENTITY_PROC || (job && e->kind == ENTITY_THREAD)))
			continue;
		t = e->kind == ENTITY_PROC ? vec_push(&v->processes) : vec_push(&v->threads);
		if (!t)
			return -ENOMEM;
		if (e->kind == ENTITY_PROC)
			fill_process(w, e, t);
		else
			fill_thread(w, e, t);
	}
	if (v->processes.n)
		qsort(v->processes.v, v->processes.n, sizeof(*v->processes.v), by_use);
	if (v->threads.n)
		qsort(v->threads.v, v->threads.n, sizeof(*v->threads.v), by_owner_and_use);
	hand_out_threads(v);
	return 0;
}

int snapshot_take(const struct window *w, int64_t wall_ns, unsigned flags, struct snapshot *ret)
{
	bool job = flags & SNAPSHOT_JOB;
	struct snapshot v = { .wall_ns = wall_ns, .seconds = window_seconds(w), .flags = flags };
	int r;

	take_machine(w, &v);
	r = take_tasks(w, job, &v);
	if (job && r == 0)
		take_job(w, &v);
	if (r == 0)
		r = take_cores(w, &v);
	if (r == 0)
		r = snapshot_take_gpus(w, job, &v);
	if (r < 0)
		snapshot_done(&v);
	else
		*ret = v;
	return r;
}

void snapshot_done(struct snapshot *v)
{
	vec_done(&v->processes);
	vec_done(&v->threads);
	vec_done(&v->cores);
	vec_done(&v->gpus);
}

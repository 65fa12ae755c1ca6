/* SPDX-License-Identifier: MIT */
#include "cli/top_view.h"

#include <errno.h>
#include <math.h>
#include <string.h>

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

/* Disks made of other disks are listed beside them: only in the sum when they are all there is. */
static bool is_stacked(const char *name)
{
	return strncmp(name, "dm-", 3) == 0 ||
	       (strncmp(name, "md", 2) == 0 && name[2] >= '0' && name[2] <= '9');
}

static void add_devices(const struct window *w, struct top_machine *m)
{
	const struct entity_table *all = window_entities(w);
	bool plain_disk = false;

	for (size_t i = 0; i < all->rows.n; i++)
		plain_disk |=
		    all->rows.v[i].kind == ENTITY_DISK && !is_stacked(all->rows.v[i].name);
	for (size_t i = 0; i < all->rows.n; i++) {
		const struct entity *e = &all->rows.v[i];

		if (e->gone_ns)
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

static void fill_machine(const struct window *w, struct top_machine *m)
{
	*m = (struct top_machine){
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
	add_devices(w, m);
}

static void fill_job(const struct window *w, struct top_job *j)
{
	*j = (struct top_job){
		.present = true,
		.cores = rate(w, M_JOB_CPU, ID_JOB),
		.cores_allowed = last(w, M_JOB_CORES_ALLOWED, ID_JOB),
		.rss = last(w, M_JOB_RSS, ID_JOB),
		.processes = last(w, M_JOB_PROCESSES, ID_JOB),
		.threads = last(w, M_JOB_THREADS, ID_JOB),
	};
}

static char state_letter(double code)
{
	return code >= 'A' && code <= 'z' ? (char)code : 0;
}

static void fill_process(const struct window *w, const struct entity *e, struct top_task *t)
{
	t->entity = e;
	t->cores = rate(w, M_PROC_CPU, e->id);
	t->run_delay = NAN;
	t->rss = last(w, M_PROC_RSS, e->id);
	t->pss = last(w, M_PROC_PSS, e->id);
	t->threads = last(w, M_PROC_THREADS, e->id);
	t->read = rate(w, M_PROC_READ_BYTES, e->id);
	t->written = rate(w, M_PROC_WRITTEN_BYTES, e->id);
	t->state = state_letter(last(w, M_PROC_STATE, e->id));
}

static void fill_thread(const struct window *w, const struct entity *e, struct top_task *t)
{
	t->entity = e;
	t->cores = rate(w, M_THREAD_CPU, e->id);
	t->run_delay = rate(w, M_THREAD_RUN_DELAY, e->id);
	t->rss = t->pss = t->threads = t->read = t->written = NAN;
	t->state = state_letter(last(w, M_THREAD_STATE, e->id));
}

/* Busiest first; then larger first; then by number, so that idle ones do not dance. */
static int by_use(const void *a, const void *b)
{
	const struct top_task *x = a, *y = b;
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
	const struct top_task *x = a, *y = b;

	if (x->entity->parent != y->entity->parent)
		return x->entity->parent < y->entity->parent ? -1 : 1;
	return by_use(a, b);
}

static void hand_out_threads(struct top_view *v)
{
	for (size_t p = 0; p < v->processes.n; p++) {
		struct top_task *owner = &v->processes.v[p];

		for (size_t i = 0; i < v->threads.n; i++) {
			if (v->threads.v[i].entity->parent != owner->entity->id)
				continue;
			if (!owner->n_threads++)
				owner->first_thread = i;
		}
	}
}

int top_view_fill(const struct window *w, int64_t wall_ns, bool job, struct top_view *ret)
{
	const struct entity_table *all = window_entities(w);
	struct top_view v = { .wall_ns = wall_ns, .seconds = window_seconds(w) };

	fill_machine(w, &v.machine);
	if (job)
		fill_job(w, &v.job);
	for (size_t i = 0; i < all->rows.n; i++) {
		const struct entity *e = &all->rows.v[i];
		struct top_task *t;

		if (e->gone_ns || !(e->kind == ENTITY_PROC || (job && e->kind == ENTITY_THREAD)))
			continue;
		t = e->kind == ENTITY_PROC ? vec_push(&v.processes) : vec_push(&v.threads);
		if (!t) {
			top_view_done(&v);
			return -ENOMEM;
		}
		if (e->kind == ENTITY_PROC)
			fill_process(w, e, t);
		else
			fill_thread(w, e, t);
	}
	if (v.processes.n)
		qsort(v.processes.v, v.processes.n, sizeof(*v.processes.v), by_use);
	if (v.threads.n)
		qsort(v.threads.v, v.threads.n, sizeof(*v.threads.v), by_owner_and_use);
	hand_out_threads(&v);
	if (top_fill_gpus(w, job, &v) < 0) {
		top_view_done(&v);
		return -ENOMEM;
	}
	*ret = v;
	return 0;
}

void top_view_done(struct top_view *v)
{
	vec_done(&v->processes);
	vec_done(&v->threads);
	vec_done(&v->gpus);
}

/* SPDX-License-Identifier: MIT */
#include "agent/agent.h"

#include "agent/jobs.h"
#include "agent/series.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/scan.h"
#include "base/text.h"
#include "engine/sampler.h"
#include "model/gpu_tag.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct agent {
	struct host host;
	struct sampler *sampler; /* NULL: a replay */
	struct frame frame;
	struct world world;
	struct notes notes;
	struct jobs jobs;
	struct records *records; /* NULL on a fixture that is no replay */
	struct host_file statm;
	struct map gpu_thing; /* entity -> place in the view's things */
	int64_t start_ms;
	uint64_t ticks, skipped;
	double dropped_things;
	size_t most_dropped;

	bool (*more)(const struct agent_view *v, series_fn fn, void *arg, void *more_arg);
	void *more_arg;

	pthread_mutex_t lock; /* for what follows */
	struct agent_view view;
};

/* All but the control group of a job, of which a machine has many. */
static const char *const wanted[] = { "proc", "cpu",  "psi",   "mem", "vmstat", "disk",
				      "net",  "load", "mount", "gpu", NULL };

static const int64_t look_ns = 2 * NS_PER_S;

int agent_open(const struct agent_options *o, struct agent **ret, struct err *e)
{
	struct sampler_options so = { .only = wanted, .nvml = o->nvml };
	struct agent *a = calloc(1, sizeof(*a));
	int r;

	if (!a)
		return err_set(e, -ENOMEM, "out of memory");
	a->host.root = a->host.base = a->statm.fd = -1;
	a->more = o->more;
	a->more_arg = o->more_arg;
	pthread_mutex_init(&a->lock, NULL);
	r = host_open(&a->host, o->root, e);
	if (r == 0 && !o->replay)
		r = sampler_open(&a->host, &so, &a->sampler, e);
	if (r == 0 && (a->host.live || o->replay))
		r = records_open(&(struct records_options){ .look_ns = look_ns,
							    .judge_ns = o->judge_ns,
							    .folder = o->records,
							    .thread = !o->once },
				 &a->records, e);
	if (r < 0) {
		agent_close(a);
		return r;
	}
	notes_open(&a->notes, &a->host);
	machine_read(&a->host, &a->view.machine);
	text_safe_copy(a->view.node, sizeof(a->view.node),
		       o->node && o->node[0] ? o->node : a->view.machine.hostname);
	text_copy(a->view.version, sizeof(a->view.version), SPOTTER_VERSION);
	*ret = a;
	return 0;
}

void agent_close(struct agent *a)
{
	if (!a)
		return;
	records_close(a->records);
	sampler_close(a->sampler);
	notes_done(&a->notes);
	jobs_done(&a->jobs);
	world_done(&a->world);
	frame_done(&a->frame);
	map_done(&a->gpu_thing);
	agent_view_done(&a->view);
	host_file_close(&a->statm);
	host_close(&a->host);
	pthread_mutex_destroy(&a->lock);
	free(a);
}

void agent_describe_gpu(const struct entity *e, struct view_thing *t)
{
	struct gpu_tag tag;

	gpu_tag_read(e->detail, &tag);
	if (e->key < GPU_PARTITION_KEY) {
		snprintf(t->gpu, sizeof(t->gpu), "%d", (int)(e->key % GPU_PARTITION_KEY));
	} else {
		snprintf(t->gpu, sizeof(t->gpu), "%d",
			 (int)(e->key / GPU_PARTITION_KEY % 100000) - 1);
		snprintf(t->partition, sizeof(t->partition), "%d",
			 (int)(e->key % GPU_PARTITION_KEY));
	}
	text_safe_copy(t->uuid, sizeof(t->uuid), tag.uuid);
	text_safe_copy(t->name, sizeof(t->name), e->name);
	text_safe_copy(t->vendor, sizeof(t->vendor), tag.vendor);
	text_safe_copy(t->driver, sizeof(t->driver), tag.driver);
	text_safe_copy(t->pci, sizeof(t->pci), tag.pci);
	t->simulated = tag.simulated;
}

static int take_values(struct agent *a, const struct entity *e, size_t thing)
{
	for (int m = 1; m < METRICS; m++) {
		struct view_value *v;
		int64_t raw;

		if (metrics[m].entity != e->kind || !metrics[m].prometheus[0] ||
		    !world_raw(&a->world, (enum metric_id)m, e->id, &raw))
			continue;
		v = vec_push(&a->view.values);
		if (!v)
			return -ENOMEM;
		*v = (struct view_value){ .metric = (enum metric_id)m,
					  .thing = thing,
					  .value = metric_value((enum metric_id)m, raw) };
	}
	return 0;
}

static bool is_thing(const struct entity *e)
{
	return e->kind == ENTITY_HOST || e->kind == ENTITY_DISK || e->kind == ENTITY_NIC ||
	       e->kind == ENTITY_MOUNT || e->kind == ENTITY_GPU;
}

static int take_things(struct agent *a)
{
	const struct entity_table *t = &a->world.entities;
	size_t too_many = 0;

	map_clear(&a->gpu_thing);
	for (size_t i = 0; i < t->rows.n; i++) {
		const struct entity *e = &t->rows.v[i];
		struct view_thing *x;

		if (!is_thing(e))
			continue;
		if (a->view.things.n >= VIEW_THINGS_MAX) {
			too_many++;
			continue;
		}
		x = vec_push(&a->view.things);
		if (!x)
			return -ENOMEM;
		x->kind = e->kind;
		if (e->kind == ENTITY_GPU) {
			agent_describe_gpu(e, x);
			if (!map_put(&a->gpu_thing, e->id, (uint32_t)a->view.things.n - 1))
				return -ENOMEM;
		} else if (e->kind != ENTITY_HOST) {
			text_safe_copy(x->device, sizeof(x->device), e->name);
		}
		if (take_values(a, e, a->view.things.n - 1) < 0)
			return -ENOMEM;
	}
	if (too_many > a->most_dropped) {
		a->dropped_things += (double)(too_many - a->most_dropped);
		a->most_dropped = too_many;
	}
	a->view.dropped_things = a->dropped_things;
	return 0;
}

/* "5236 1789 1510 ..." in pages: the second is what is resident. */
static double own_rss(struct agent *a)
{
	char text[128];
	ssize_t n = host_read(&a->host, &a->statm, "proc/self/statm", text, sizeof(text));
	struct scan s = scan_of(text, n > 0 ? (size_t)n : 0);
	uint64_t pages;

	if (!scan_skip(&s, 1) || !scan_u64(&s, &pages))
		return NAN;
	return (double)pages * (double)a->host.page_bytes +
	       (double)sampler_helpers_rss_bytes(a->sampler);
}

/* What this costs, on the machine it costs it. */
static int take_self(struct agent *a)
{
	const struct {
		enum metric_id metric;
		double value;
	} rows[] = {
		{ M_SELF_CPU,
		  (double)(clock_self_cpu_ns() + sampler_helpers_cpu_ns(a->sampler)) / 1e9 },
		{ M_SELF_RSS, own_rss(a) },
		{ M_SELF_TICKS, (double)a->ticks },
		{ M_SELF_SKIPPED, (double)a->skipped },
	};
	struct view_thing *t = vec_push(&a->view.things);

	for (size_t i = 0; t && i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct view_value *v = vec_push(&a->view.values);

		if (!v)
			return -ENOMEM;
		t->kind = ENTITY_SELF;
		*v = (struct view_value){ rows[i].metric, a->view.things.n - 1, rows[i].value };
	}
	return t ? 0 : -ENOMEM;
}

static int make_view(struct agent *a, int64_t wall_ns)
{
	struct agent_view *v = &a->view;
	int r;

	agent_view_reset(v);
	v->time_ms = wall_ns / NS_PER_MS;
	v->start_ms = a->start_ms;
	r = take_things(a);
	if (r == 0)
		r = jobs_view(&a->jobs, &a->notes, &a->world, a->records, &a->gpu_thing, v);
	/* A captured machine costs nothing. */
	return r < 0 || !a->host.live ? r : take_self(a);
}

/* boot_ns: since the machine started, at the time of the frame. */
static int take_frame(struct agent *a, const struct frame *f, int64_t boot_ns)
{
	int r;

	a->ticks++;
	if (!a->start_ms)
		a->start_ms = f->wall_ns / NS_PER_MS;
	r = world_frame(&a->world, f);
	if (r == 0)
		r = notes_tick(&a->notes, &a->world, f, a->records);
	if (r == 0)
		r = jobs_tick(&a->jobs, &a->notes, &a->world, f, boot_ns, a->records);
	if (r < 0)
		return r;
	pthread_mutex_lock(&a->lock);
	r = make_view(a, f->wall_ns);
	pthread_mutex_unlock(&a->lock);
	return r;
}

int agent_tick(struct agent *a)
{
	int64_t mono, wall, boot;
	int r = sampler_tick(a->sampler, &a->frame);

	if (r < 0)
		return r;
	host_clock(&a->host, &mono, &wall, &boot);
	return take_frame(a, &a->frame, boot - (mono - a->frame.mono_ns));
}

/* Of a machine that never slept. */
int agent_replay(struct agent *a, const struct frame *f)
{
	return take_frame(a, f, f->mono_ns);
}

bool agent_follow(struct agent *a, const char *path)
{
	return a->records && records_offer(a->records, getpid(), geteuid(), path, true);
}

void agent_skip(struct agent *a, uint64_t ticks)
{
	a->skipped += ticks;
}

bool agent_advance(struct agent *a)
{
	return !a->host.live && host_advance(&a->host);
}

void agent_look_at_records(struct agent *a)
{
	if (a->records)
		records_look(a->records);
}

bool agent_has_gpus(const struct agent *a)
{
	return a->gpu_thing.n > 0;
}

void agent_expose(struct agent *a, enum exposition_format format, struct buf *out)
{
	struct exposition x;

	exposition_begin(&x, out, format);
	pthread_mutex_lock(&a->lock);
	if (agent_series_each(&a->view, exposition_sample, &x) && a->more)
		(void)a->more(&a->view, exposition_sample, &x, a->more_arg);
	pthread_mutex_unlock(&a->lock);
	exposition_end(&x);
}

void agent_with_view(struct agent *a, void (*fn)(const struct agent_view *v, void *arg), void *arg)
{
	pthread_mutex_lock(&a->lock);
	fn(&a->view, arg);
	pthread_mutex_unlock(&a->lock);
}

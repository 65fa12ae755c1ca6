/* SPDX-License-Identifier: MIT */
#include "engine/gpu_watch.h"

#include "base/err.h"
#include "base/text.h"
#include "engine/gpu_seen.h"
#include "model/gpu_tag.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DETAIL = 512 };

int gpu_watch_open(const struct host *host, const char *nvml, struct gpu_watch **ret, struct err *e)
{
	struct gpu_client_options o = { .nvml = nvml, .fixture = !host->live, .depth = GPU_SLOW };
	struct gpu_watch *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return err_set(e, -ENOMEM, "out of memory");
	w->host = host;
	r = gpu_client_open(&o, &w->client, e);
	if (r < 0) {
		free(w);
		return r;
	}
	gpu_job_init(&w->job, host->root);
	*ret = w;
	return 0;
}

static enum gap_why gap_of(uint8_t have)
{
	switch (have) {
	case GPU_NO_PERMISSION:
		return GAP_NO_PERMISSION;
	case GPU_LOST:
	case GPU_NEEDS_RESET:
	case GPU_HUNG:
		return GAP_LOST;
	default:
		return GAP_NOT_SUPPORTED;
	}
}

static bool answers(uint8_t state)
{
	return state == GPU_KNOWN;
}

static void describe(const struct gpu_device *d, char *ret, size_t size)
{
	struct gpu_tag t = { .simulated = d->simulated,
			     .unified = d->unified,
			     .partitioned = d->partitioned };

	text_safe_copy(t.uuid, sizeof(t.uuid), d->uuid);
	text_safe_copy(t.pci, sizeof(t.pci), d->pci);
	text_safe_copy(t.vendor, sizeof(t.vendor), gpu_vendor_name(d->vendor));
	text_safe_copy(t.driver, sizeof(t.driver), d->driver);
	text_safe_copy(t.runtime, sizeof(t.runtime), d->runtime);
	text_safe_copy(t.mode, sizeof(t.mode), d->mode);
	text_safe_copy(t.profile, sizeof(t.profile), d->profile);
	gpu_tag_write(&t, ret, size);
}

static void bear(struct gpu_watch *w, struct collect *c, struct frame *f, struct seen_gpu *g,
		 const struct gpu_device *d)
{
	uint32_t parent = ID_HOST;
	char detail[DETAIL], name[96];

	if (d->parent >= 0 && w->row_of[d->parent] >= 0 && w->gpus.v[w->row_of[d->parent]].id)
		parent = w->gpus.v[w->row_of[d->parent]].id;
	describe(d, detail, sizeof(detail));
	text_safe_copy(name, sizeof(name), d->name[0] ? d->name : "GPU");
	g->id = g->last_id = collect_id(c);
	g->allowed = -1;
	memset(g->have, 0, sizeof(g->have));
	frame_life(f,
		   &(struct life){ .change = LIFE_BORN,
				   .id = g->id,
				   .parent = parent,
				   .kind = ENTITY_GPU,
				   .key = gpu_key(g->number, d->partition) },
		   name, detail);
}

static void end_gpu(struct gpu_watch *w, struct frame *f, struct seen_gpu *g)
{
	for (size_t i = 0; i < w->processes.n; i++)
		if (w->processes.v[i].gpu == g->id)
			w->processes.v[i].met = 0; /* swept below */
	frame_life(f, &(struct life){ .change = LIFE_GONE, .id = g->id, .kind = ENTITY_GPU }, "gpu",
		   NULL);
	g->id = 0;
}

static bool same(const struct seen_gpu *g, const struct gpu_device *d)
{
	if (g->vendor != d->vendor || g->partition != d->partition)
		return false;
	/* A GPU that does not answer may have no uuid; its place on the bus it has. */
	return d->pci[0] ? strcmp(g->pci, d->pci) == 0 : g->index == d->index;
}

static int find_gpu(struct gpu_watch *w, const struct gpu_device *d)
{
	struct seen_gpu *g;

	for (size_t i = 0; i < w->gpus.n; i++)
		if (same(&w->gpus.v[i], d))
			return (int)i;
	g = vec_push(&w->gpus);
	if (!g)
		return -1;
	*g = (struct seen_gpu){ .vendor = d->vendor,
				.index = d->index,
				.partition = d->partition,
				.state = GPU_KNOWN,
				.allowed = -1 };
	text_copy(g->pci, sizeof(g->pci), d->pci);
	text_copy(g->uuid, sizeof(g->uuid), d->uuid);
	return (int)(w->gpus.n - 1);
}

static void put_metrics(struct frame *f, struct seen_gpu *g, const struct gpu_device *d)
{
	for (int i = 0; i < GPU_METRICS; i++) {
		enum metric_id m = (enum metric_id)(GPU_METRIC_FIRST + i);
		const struct gpu_cell *cell = &d->metric[i];
		uint8_t before = g->have[i];

		if (cell->have == GPU_NOT_ASKED)
			continue;
		if (cell->have == GPU_KNOWN) {
			if (before > GPU_KNOWN)
				frame_gap(f, m, g->id, GAP_OVER);
			frame_put(f, m, g->id, cell->raw);
		} else if (cell->have != before) {
			frame_gap(f, m, g->id, gap_of(cell->have));
		}
		g->have[i] = cell->have;
	}
}

static void tell_state(struct frame *f, const struct seen_gpu *g, const struct gpu_device *d)
{
	if (d->state == GPU_LOST)
		frame_event(f, EVENT_GPU_LOST, g->id, 0, "GPU %d is lost: it fell off the bus",
			    d->index);
	else if (d->state == GPU_NEEDS_RESET)
		frame_event(f, EVENT_GPU_LOST, g->id, 0, "GPU %d needs a reset", g->number);
	else if (d->state != GPU_HUNG) /* the call that hangs has been told */
		frame_event(f, EVENT_NOTE, g->id, 0, "GPU %d %s", g->number,
			    d->state == GPU_NO_PERMISSION ? "may not be read by this user"
							  : "cannot be read");
}

/* Its number as everybody counts; another when that was given away before this one was seen (a driver
 * that came up late). What once had a number keeps it. */
static int free_number(const struct gpu_watch *w, const struct seen_gpu *g,
		       const struct gpu_snapshot *s, int row)
{
	int parent = s->device[row].parent, number = gpu_number(s, row);

	if (g->partition >= 0 && parent >= 0 && w->row_of[parent] >= 0)
		return w->gpus.v[w->row_of[parent]].number;
	for (size_t i = 0; i < w->gpus.n; i++) {
		const struct seen_gpu *o = &w->gpus.v[i];

		if (o == g || o->partition >= 0 || !o->last_id || o->number != number)
			continue;
		number++;
		i = (size_t)-1; /* from the start again */
	}
	return number;
}

static void take_device(struct gpu_watch *w, struct collect *c, struct frame *f,
			const struct gpu_snapshot *s, int row)
{
	const struct gpu_device *d = &s->device[row];
	struct seen_gpu *g;
	int at = find_gpu(w, d);

	w->row_of[row] = at;
	if (at < 0)
		return;
	g = &w->gpus.v[at];
	if (!g->last_id)
		g->number = free_number(w, g, s, row);
	g->met = s->number;
	/* One that never answered is in the record too: with its reason and without figures. */
	if (!g->id && (answers(d->state) || answers(g->state)))
		bear(w, c, f, g, d);
	if (!answers(d->state) && g->id) {
		if (answers(g->state))
			tell_state(f, g, d);
		frame_gap(f, M_GPU_AGE, g->id, gap_of(d->state)); /* none of them is read */
		end_gpu(w, f, g);
	} else if (g->id) {
		put_metrics(f, g, d);
		frame_put(f, M_GPU_AGE, g->id, f->mono_ns - s->taken_ns);
	}
	g->state = d->state;
}

/* What the newest reading does not have any more. */
static void sweep(struct gpu_watch *w, struct frame *f, const struct gpu_snapshot *s)
{
	for (size_t i = 0; i < w->gpus.n; i++) {
		struct seen_gpu *g = &w->gpus.v[i];

		if (g->met == s->number || !g->id)
			continue;
		/* A partition that was taken away is no fault; a GPU that vanished is. */
		if (g->partition < 0)
			frame_event(f, EVENT_GPU_LOST, g->id, 0,
				    "GPU %d is gone: its driver does not list it any more",
				    g->number);
		end_gpu(w, f, g);
		g->state = GPU_LOST;
	}
	gpu_sweep_processes(w, f, s); /* after their GPUs */
}

static void take(struct gpu_watch *w, struct collect *c, struct frame *f,
		 const struct gpu_snapshot *s)
{
	bool grew = false;

	for (int i = 0; i < s->n_devices; i++) {
		size_t before = w->gpus.n;

		take_device(w, c, f, s, i);
		grew |= w->gpus.n != before;
	}
	for (int i = 0; i < s->n_processes; i++)
		gpu_take_process(w, c, f, s, &s->process[i]);
	sweep(w, f, s);
	if (grew)
		gpu_job_forget_masks(&w->job);
	if (s->processes_left_out && !w->left_out_told) {
		frame_event(f, EVENT_NOTE, ID_HOST, s->processes_left_out,
			    "%d processes on GPUs are more than can be followed: they are left out",
			    s->processes_left_out);
		w->left_out_told = true;
	}
	w->any = s->n_devices > 0;
}

/* The record says so once when it begins and once when it is over. */
static void watch_age(struct gpu_watch *w, struct frame *f, bool fresh)
{
	bool stale =
	    !fresh && gpu_client_last(w->client) && gpu_client_stale(w->client, f->mono_ns);

	if (stale == w->stale)
		return;
	w->stale = stale;
	for (size_t i = 0; i < w->gpus.n; i++)
		if (w->gpus.v[i].id)
			frame_gap(f, M_GPU_AGE, w->gpus.v[i].id, stale ? GAP_STALE : GAP_OVER);
}

static uint32_t entity_of(const struct gpu_watch *w, const struct gpu_event *e)
{
	for (size_t i = 0; i < w->gpus.n; i++) {
		const struct seen_gpu *g = &w->gpus.v[i];

		if (g->partition < 0 && g->last_id &&
		    (e->pci[0] ? strcmp(g->pci, e->pci) == 0 : g->index == e->index))
			return g->last_id;
	}
	return ID_HOST;
}

static void tell_events(struct gpu_watch *w, struct frame *f)
{
	struct gpu_event e;

	while (gpu_client_event(w->client, &e)) {
		switch (e.kind) {
		case GPU_EVENT_HANG:
		case GPU_EVENT_RETURNED:
			frame_event(f, EVENT_GPU_HANG, entity_of(w, &e), e.seconds, "%s", e.text);
			break;
		case GPU_EVENT_XID:
			frame_event(f, EVENT_XID, entity_of(w, &e), (double)e.code, "%s", e.text);
			break;
		case GPU_EVENT_LOST:
		case GPU_EVENT_BACK:
			break; /* the row's state says it, too */
		default:
			frame_event(f, EVENT_GPU_HELPER, entity_of(w, &e), (double)e.code, "%s",
				    e.text);
		}
	}
}

/* "CUDA_VISIBLE_DEVICES=0,1 leaves 2 of 8 GPUs to the job" */
static void tell_mask(struct gpu_watch *w, struct frame *f, const struct gpu_visible *v,
		      const struct gpu_snapshot *s)
{
	int left = 0, all = 0, vendor = -1;

	for (int i = 0; i < GPU_VENDORS && vendor < 0; i++)
		if (v->masked[i])
			vendor = i;
	if (vendor < 0 || w->mask_told)
		return;
	for (int i = 0; i < s->n_devices; i++) {
		if (s->device[i].vendor != vendor || s->device[i].partitioned)
			continue;
		all++;
		left += v->allowed[i] == GPU_ALLOWED_YES;
	}
	w->mask_told = true;
	if (v->why[0])
		frame_event(f, EVENT_LIMIT, ID_JOB, 0, "%s=%s: %s", v->variable[vendor],
			    v->value[vendor], v->why);
	else
		frame_event(f, EVENT_LIMIT, ID_JOB, left, "%s=%s leaves %d of %d GPUs to the job",
			    v->variable[vendor], v->value[vendor], left, all);
}

/* Said only where a mask is set: without one every GPU is visible, and that says nothing of what the
 * job was given. */
static void put_allowed(struct gpu_watch *w, struct frame *f, const struct gpu_snapshot *s)
{
	struct gpu_visible v;

	if (!gpu_job_visible(&w->job, &v))
		return;
	tell_mask(w, f, &v, s);
	for (int i = 0; i < s->n_devices; i++) {
		struct seen_gpu *g = w->row_of[i] >= 0 ? &w->gpus.v[w->row_of[i]] : NULL;
		int8_t allowed = v.allowed[i] == GPU_ALLOWED_YES ? 1 : 0;

		if (!g || !g->id || !v.masked[s->device[i].vendor] ||
		    v.allowed[i] == GPU_ALLOWED_UNKNOWN || g->allowed == allowed)
			continue;
		frame_put(f, M_GPU_ALLOWED, g->id, allowed);
		g->allowed = allowed;
	}
}

void gpu_watch_tick(struct gpu_watch *w, struct collect *c, struct frame *f, bool last)
{
	const struct gpu_snapshot *s = gpu_client_poll(w->client, w->host->root, f->mono_ns);

	gpu_client_set_thrift(w->client, c->thrift);
	if (c->job.root)
		gpu_job_follow(&w->job, f);
	if (s)
		take(w, c, f, s);
	watch_age(w, f, s);
	if (last)
		gpu_client_retell(w->client, f->mono_ns);
	tell_events(w, f);
	s = gpu_client_last(w->client);
	if (!s || !w->any || !c->job.root)
		return;
	if (gpu_job_look(&w->job, s, w->host->root, f))
		put_allowed(w, f, s);
}

int64_t gpu_watch_cpu_ns(const struct gpu_watch *w)
{
	int64_t ns = w ? gpu_client_cpu_ns(w->client) : 0;

	return ns > 0 ? ns : 0;
}

int64_t gpu_watch_rss_bytes(const struct gpu_watch *w)
{
	int64_t bytes = w ? gpu_client_rss_bytes(w->client) : 0;

	return bytes > 0 ? bytes : 0;
}

void gpu_watch_close(struct gpu_watch *w)
{
	if (!w)
		return;
	gpu_client_close(w->client);
	gpu_job_done(&w->job);
	vec_done(&w->gpus);
	vec_done(&w->processes);
	free(w);
}

/* SPDX-License-Identifier: MIT */
#include "gpu/reader.h"

#include "base/auto.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/text.h"
#include "gpu/shared.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* A driver may be loaded, or a permission given, while we run. */
#define RETRY_NS (10 * NS_PER_S)

struct part {
	const struct gpu_backend *b;
	void *state;
	bool open;
	int64_t retry_ns;
	pthread_mutex_t lock; /* open, close and crawl: never during a reading */
};

struct gpu_reader {
	struct gpu_world *w;
	size_t n;
	struct part part[GPU_READER_MAX];
	bool left_alone[GPU_VENDORS];
	char problem[GPU_VENDORS][160];
	uint64_t number;
	struct gpu_snapshot two[2]; /* the one being made and the one before */
	int last;
	/* While one is being made. */
	struct part *at;
	struct gpu_snapshot *making, *partial;
	void (*tell)(void *arg, const struct gpu_snapshot *s);
	void *tell_arg;
};

int gpu_reader_open(struct gpu_world *w, struct gpu_reader **ret)
{
	struct gpu_reader *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->w = w;
	for (const struct gpu_backend *const *b = gpu_backends; *b && r->n < GPU_READER_MAX; b++) {
		struct part *p = &r->part[r->n++];

		p->b = *b;
		p->retry_ns = INT64_MIN;
		(void)pthread_mutex_init(&p->lock, NULL);
		p->state = calloc(1, (*b)->state_size + 1);
		if (p->state)
			continue;
		gpu_reader_close(r);
		return -ENOMEM;
	}
	*ret = r;
	return 0;
}

void gpu_reader_leave_alone(struct gpu_reader *r, enum gpu_vendor v, const char *why)
{
	r->left_alone[v] = true;
	text_safe_copy(r->problem[v], sizeof(r->problem[v]), why);
}

static void set_open(struct part *p, bool open)
{
	(void)pthread_mutex_lock(&p->lock);
	if (!open && p->open && p->b->close)
		p->b->close(p->state);
	if (!open)
		memset(p->state, 0, p->b->state_size);
	p->open = open;
	(void)pthread_mutex_unlock(&p->lock);
}

static void try_open(struct gpu_reader *r, struct part *p, int64_t now_ns)
{
	char *problem = r->problem[p->b->vendor];
	struct err e = { 0 };
	int error;

	if (p->open || now_ns < p->retry_ns || r->left_alone[p->b->vendor])
		return;
	/* A fixture's next state may have what this one lacks: it is looked at each time. */
	p->retry_ns = r->w->live ? now_ns + RETRY_NS : now_ns;
	r->w->vendor = p->b->vendor;
	r->w->opening = true;
	/* For what the back-end does not name itself. */
	gpu_call_begin(r->w, 0, p->b->name, NULL, -1);
	error = p->b->open(r->w, p->state, &e);
	gpu_call_end(r->w, 0);
	r->w->opening = false;
	problem[0] = '\0';
	if (error < 0 && error != -ENOENT)
		text_safe_copy(problem, sizeof(r->problem[0]), e.text);
	set_open(p, error == 0);
}

static void read_part(struct gpu_reader *r, struct part *p, enum gpu_depth depth,
		      struct gpu_snapshot *s, int64_t now_ns)
{
	int devices = s->n_devices, processes = s->n_processes, error;

	r->at = p;
	try_open(r, p, now_ns);
	if (!p->open)
		return;
	r->w->vendor = p->b->vendor;
	error = p->b->read(r->w, p->state, depth, s);
	if (error == 0)
		return;
	s->n_devices = devices;
	s->n_processes = processes;
	set_open(p, false);
	p->retry_ns = now_ns + NS_PER_S;
}

/* The row of the vendor's GPU `i`, new when it has none yet. */
static struct gpu_device *row_of(struct gpu_snapshot *s, enum gpu_vendor v, int i)
{
	struct gpu_device *d;

	for (int k = 0; k < s->n_devices; k++)
		if (s->device[k].vendor == v && s->device[k].index == i &&
		    s->device[k].partition < 0)
			return &s->device[k];
	d = gpu_add_device(s, v);
	if (d)
		d->index = (int16_t)i;
	return d;
}

static void progress(void *arg)
{
	struct gpu_reader *r = arg;
	struct gpu_snapshot *s = r->partial;
	const struct gpu_backend *b = r->at ? r->at->b : NULL;

	if (!r->making || !s || !b || !b->identify)
		return;
	gpu_snapshot_copy(s, r->making);
	for (int i = 0;; i++) {
		int before = s->n_devices;
		struct gpu_device *d = row_of(s, b->vendor, i);

		if (d && b->identify(r->at->state, i, d))
			continue;
		s->n_devices = before;
		break;
	}
	memcpy(s->problem, r->problem, sizeof(s->problem));
	s->whole = false;
	s->ended_ns = clock_mono_ns();
	r->tell(r->tell_arg, s);
}

void gpu_reader_tell(struct gpu_reader *r, void (*tell)(void *arg, const struct gpu_snapshot *s),
		     void *arg)
{
	free(r->partial);
	r->partial = tell ? calloc(1, sizeof(*r->partial)) : NULL;
	r->tell = tell;
	r->tell_arg = arg;
	r->w->progress = r->partial ? progress : NULL;
	r->w->progress_arg = r;
	r->w->progress_index = -1;
}

void gpu_reader_restart(struct gpu_reader *r)
{
	for (size_t i = 0; i < r->n; i++) {
		struct part *p = &r->part[i];

		r->w->vendor = p->b->vendor;
		if (p->open) {
			gpu_call_begin(r->w, 0, p->b->name, NULL, -1);
			set_open(p, false);
			gpu_call_end(r->w, 0);
		}
		p->retry_ns = INT64_MIN;
		if (r->left_alone[p->b->vendor])
			r->problem[p->b->vendor][0] = '\0';
		r->left_alone[p->b->vendor] = false;
	}
}

static const struct gpu_device *same_device(const struct gpu_snapshot *s, int guess,
					    const struct gpu_device *d)
{
	for (int k = 0; k < s->n_devices; k++) {
		const struct gpu_device *o = &s->device[(guess + k) % s->n_devices];

		if (o->vendor == d->vendor && o->index == d->index &&
		    o->partition == d->partition && o->instance == d->instance &&
		    o->compute_instance == d->compute_instance && strcmp(o->pci, d->pci) == 0)
			return o;
	}
	return NULL;
}

static void carry_device(struct gpu_device *d, const struct gpu_device *o)
{
	bool fine = d->state == GPU_KNOWN;

	for (int m = 0; m < GPU_METRICS; m++) {
		if (d->metric[m].have != GPU_NOT_ASKED)
			continue;
		if (!fine)
			d->metric[m].have = d->state;
		else if (o)
			d->metric[m] = o->metric[m];
	}
	for (int p = 0; p < GPU_PROPERTIES; p++) {
		if (d->property[p].have != GPU_NOT_ASKED)
			continue;
		if (!fine)
			d->property[p].have = d->state;
		else if (o && o->property[p].have != GPU_NOT_ASKED)
			d->property[p] = o->property[p];
	}
}

void gpu_carry_over(struct gpu_snapshot *now, const struct gpu_snapshot *before, bool processes)
{
	int16_t row[GPU_DEVICES]; /* of `before` -> of `now` */

	for (int i = 0; i < GPU_DEVICES; i++)
		row[i] = -1;
	for (int i = 0; i < now->n_devices; i++) {
		struct gpu_device *d = &now->device[i];
		const struct gpu_device *o = same_device(before, i, d);

		carry_device(d, o);
		/* A GPU that came back: what it said before the loss is not taken for fresh. */
		if (o && d->state == GPU_KNOWN)
			row[o - before->device] = (int16_t)i;
	}
	for (int i = 0; processes && i < before->n_processes; i++) {
		const struct gpu_process *o = &before->process[i];
		struct gpu_process *p;

		if (row[o->device] < 0)
			continue;
		p = gpu_add_process(now, row[o->device], o->pid);
		if (!p)
			break;
		*p = *o;
		p->device = row[o->device];
	}
	if (processes)
		now->processes_left_out += before->processes_left_out;
}

static void count_processes(struct gpu_snapshot *s)
{
	int64_t n[GPU_DEVICES] = { 0 };

	for (int i = 0; i < s->n_processes; i++) {
		n[s->process[i].device]++;
		/* A partition's processes are its GPU's too. */
		if (s->device[s->process[i].device].parent >= 0)
			n[s->device[s->process[i].device].parent]++;
	}
	for (int i = 0; i < s->n_devices; i++)
		if (s->device[i].state == GPU_KNOWN &&
		    gpu_metric(&s->device[i], M_GPU_PROCESSES)->have == GPU_NOT_ASKED)
			gpu_put(&s->device[i], M_GPU_PROCESSES, n[i]);
}

const struct gpu_snapshot *gpu_reader_read(struct gpu_reader *r, enum gpu_depth depth,
					   int64_t now_ns)
{
	struct gpu_snapshot *before = &r->two[r->last], *s = &r->two[!r->last];
	bool middle = depth >= GPU_MIDDLE;

	memset(s, 0, offsetof(struct gpu_snapshot, device));
	memcpy(s->note, before->note, sizeof(s->note));
	s->number = ++r->number;
	s->taken_ns = now_ns;
	r->making = s;
	for (size_t i = 0; i < r->n; i++)
		read_part(r, &r->part[i], depth, s, now_ns);
	r->making = NULL;
	gpu_snapshot_check(s);
	if (middle)
		count_processes(s); /* where the back-end did not say, or say why it cannot */
	gpu_carry_over(s, before, !middle);
	memcpy(s->problem, r->problem, sizeof(s->problem));
	s->whole = true;
	s->ended_ns = r->w->live ? clock_mono_ns() : now_ns;
	r->last = !r->last;
	return s;
}

bool gpu_reader_crawls(struct gpu_reader *r)
{
	for (size_t i = 0; i < r->n; i++)
		if (r->part[i].open && r->part[i].b->crawl)
			return true;
	return false;
}

void gpu_reader_crawl(struct gpu_reader *r, struct gpu_world *own)
{
	for (size_t i = 0; i < r->n; i++) {
		struct part *p = &r->part[i];

		if (!p->b->crawl)
			continue;
		own->vendor = p->b->vendor;
		(void)pthread_mutex_lock(&p->lock);
		if (p->open)
			p->b->crawl(own, p->state);
		(void)pthread_mutex_unlock(&p->lock);
	}
}

void gpu_reader_close(struct gpu_reader *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->n; i++) {
		if (r->part[i].open)
			set_open(&r->part[i], false);
		free(r->part[i].state);
		(void)pthread_mutex_destroy(&r->part[i].lock);
	}
	free(r->partial);
	free(r);
}

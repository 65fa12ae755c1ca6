/* SPDX-License-Identifier: MIT
 *
 * The queues of a device: one list for each engine, in order of submission. An op's start and end are
 * known as soon as it is queued, because nothing overtakes within an engine; they change only when a
 * process dies and its work falls out.
 */
#include "layout.h"

#include <errno.h>

static int64_t later(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

int64_t queue_end(const struct shared *s, struct vgpu_ref ref)
{
	const struct op *op;

	if (!ref.id || ref.slot < 0 || ref.slot >= VGPU_OPS || ref.device < 0 ||
	    ref.device >= s->scenario.n_devices)
		return 0;
	op = &s->device[ref.device].op[ref.slot];
	return op->id == ref.id ? op->end : 0;
}

/* When it runs, given who is before it. */
static void schedule(struct shared *s, int device, struct op *op, int64_t engine_free, int64_t now)
{
	const struct scenario_device *d = &s->scenario.device[device];
	struct vgpu_ref previous = { device, op->previous_slot, op->previous };

	op->start = later(later(now, engine_free), op->not_before);
	op->start = later(op->start, queue_end(s, previous));
	if (op->engine >= ENGINE_COMPUTE)
		op->end = model_finish(d, op->start, op->work);
	else
		op->end = op->start + (op->work < 9e17 ? (int64_t)op->work : INT64_MAX / 4);
}

int queue_put(struct shared *s, int device, const struct op *want, struct vgpu_ref after,
	      struct vgpu_ref *ret)
{
	struct device_state *d = &s->device[device];
	struct client_device *c = &s->client[want->client].device[device];
	int slot = d->free, tail = d->tail[want->engine];
	struct op *op;

	if (slot < 0 || c->pending >= VGPU_QUEUE)
		return -EAGAIN;
	op = &d->op[slot];
	d->free = op->next;
	*op = *want;
	op->next = -1;
	op->previous = after.device == device ? after.id : 0;
	op->previous_slot = (int16_t)after.slot;
	if (after.device != device)
		op->not_before = later(op->not_before, queue_end(s, after));
	schedule(s, device, op, tail >= 0 ? d->op[tail].end : 0, d->time);
	op->id = ++d->next_id;
	if (tail >= 0)
		d->op[tail].next = (int16_t)slot;
	else
		d->head[op->engine] = (int16_t)slot;
	d->tail[op->engine] = (int16_t)slot;
	c->pending++;
	*ret = (struct vgpu_ref){ device, slot, op->id };
	return 0;
}

static void release(struct shared *s, int device, int slot)
{
	struct device_state *d = &s->device[device];
	struct op *op = &d->op[slot];

	s->client[op->client].device[device].pending--;
	op->id = 0;
	op->next = d->free;
	d->free = (int16_t)slot;
}

void queue_retire(struct shared *s, int device)
{
	struct device_state *d = &s->device[device];

	for (int e = 0; e < VGPU_ENGINES; e++) {
		while (d->head[e] >= 0 && d->op[d->head[e]].end <= d->time) {
			int slot = d->head[e];

			d->head[e] = d->op[slot].next;
			if (d->head[e] < 0)
				d->tail[e] = -1;
			release(s, device, slot);
		}
	}
}

/* The op submitted first among the cursors, which then moves on; -1 at the end. */
static int take_first(const struct device_state *d, int16_t cursor[VGPU_ENGINES])
{
	int best = -1, slot;

	for (int e = 0; e < VGPU_ENGINES; e++)
		if (cursor[e] >= 0 && (best < 0 || d->op[cursor[e]].id < d->op[cursor[best]].id))
			best = e;
	if (best < 0)
		return -1;
	slot = cursor[best];
	cursor[best] = d->op[slot].next;
	return slot;
}

/* All that has not started yet moves up, in the order of submission. */
static void move_up(struct shared *s, int device)
{
	struct device_state *d = &s->device[device];
	int16_t cursor[VGPU_ENGINES];
	int64_t engine_free[VGPU_ENGINES] = { 0 };
	int slot;

	memcpy(cursor, d->head, sizeof(cursor));
	while ((slot = take_first(d, cursor)) >= 0) {
		struct op *op = &d->op[slot];

		if (op->start > d->time)
			schedule(s, device, op, engine_free[op->engine], d->time);
		engine_free[op->engine] = op->end;
	}
}

void queue_cut(struct shared *s, int device, int client)
{
	struct device_state *d = &s->device[device];
	bool any = false;

	for (int e = 0; e < VGPU_ENGINES; e++) {
		int16_t *link = &d->head[e];

		d->tail[e] = -1;
		while (*link >= 0) {
			int slot = *link;

			if (d->op[slot].client == client) {
				*link = d->op[slot].next;
				release(s, device, slot);
				any = true;
			} else {
				d->tail[e] = (int16_t)slot;
				link = &d->op[slot].next;
			}
		}
	}
	if (any)
		move_up(s, device);
}

static bool sound(const struct op *op, uint64_t next_id, int devices)
{
	return op->id && op->id <= next_id && op->engine >= 0 && op->engine < VGPU_ENGINES &&
	       op->client >= 0 && op->client < VGPU_CLIENTS && op->start <= op->end &&
	       op->peer >= 0 && op->peer <= devices;
}

/* Puts an op into its engine's list by id; the lists grow at the end in most cases. */
static void insert(struct device_state *d, int slot)
{
	struct op *op = &d->op[slot];
	int16_t *link = &d->head[op->engine];

	if (d->tail[op->engine] >= 0 && d->op[d->tail[op->engine]].id < op->id)
		link = &d->op[d->tail[op->engine]].next;
	while (*link >= 0 && d->op[*link].id < op->id)
		link = &d->op[*link].next;
	op->next = *link;
	*link = (int16_t)slot;
	if (op->next < 0)
		d->tail[op->engine] = (int16_t)slot;
}

void queue_repair(struct shared *s, int device)
{
	struct device_state *d = &s->device[device];

	for (int e = 0; e < VGPU_ENGINES; e++)
		d->head[e] = d->tail[e] = -1;
	for (int i = 0; i < VGPU_CLIENTS; i++)
		s->client[i].device[device].pending = 0;
	d->free = -1;
	for (int slot = VGPU_OPS - 1; slot >= 0; slot--) {
		struct op *op = &d->op[slot];

		if (sound(op, d->next_id, s->scenario.n_devices)) {
			s->client[op->client].device[device].pending++;
			insert(d, slot);
		} else {
			op->id = 0;
			op->next = d->free;
			d->free = (int16_t)slot;
		}
	}
}

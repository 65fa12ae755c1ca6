/* SPDX-License-Identifier: MIT
 *
 * The rows of snapshots from one helper to the next.
 */
#include "gpu/client_state.h"

#include <string.h>

static bool same_gpu(const struct gpu_device *a, const struct gpu_device *b)
{
	if (a->vendor != b->vendor || a->partition >= 0 || b->partition >= 0)
		return false;
	if (a->pci[0] && b->pci[0])
		return strcmp(a->pci, b->pci) == 0;
	return a->index == b->index;
}

bool gpu_is_skipped(const struct gpu_client *c, const struct gpu_device *d)
{
	for (int i = 0; i < c->n_skips; i++) {
		const struct gpu_skip *s = &c->skip[i];

		if (s->vendor == d->vendor &&
		    (s->vendor_whole ||
		     (s->pci[0] && d->pci[0] ? strcmp(s->pci, d->pci) == 0 : s->index == d->index)))
			return true;
	}
	return false;
}

/* Who it is, without what it does. */
static void copy_identity(struct gpu_device *to, const struct gpu_device *from)
{
	to->index = from->index;
	to->simulated = from->simulated;
	to->unified = from->unified;
	to->partitioned = from->partitioned;
	/* One that hung early has not told all of it. */
	if (from->name[0])
		memcpy(to->name, from->name, sizeof(to->name));
	if (from->uuid[0])
		memcpy(to->uuid, from->uuid, sizeof(to->uuid));
	if (from->pci[0])
		memcpy(to->pci, from->pci, sizeof(to->pci));
	memcpy(to->driver, from->driver, sizeof(to->driver));
	memcpy(to->runtime, from->runtime, sizeof(to->runtime));
}

static void set_state(struct gpu_device *d, enum gpu_have state)
{
	d->state = (uint8_t)state;
	for (int m = 0; m < GPU_METRICS; m++)
		d->metric[m].have = d->state;
	for (int p = 0; p < GPU_PROPERTIES; p++)
		d->property[p].have = d->state;
}

static void add_missing(struct gpu_client *c, const struct gpu_device *was)
{
	struct gpu_device *d = gpu_add_device(c->next, (enum gpu_vendor)was->vendor);

	if (!d)
		return;
	copy_identity(d, was);
	set_state(d, gpu_is_skipped(c, was) ? GPU_HUNG : GPU_LOST);
}

static void keep_index(struct gpu_snapshot *s, int row, int16_t index)
{
	s->device[row].index = index;
	for (int i = 0; i < s->n_devices; i++)
		if (s->device[i].parent == row)
			s->device[i].index = index;
}

static int row_of(const struct gpu_snapshot *s, const struct gpu_device *d, int guess)
{
	for (int k = 0; k < s->n_devices; k++)
		if (same_gpu(&s->device[(guess + k) % s->n_devices], d))
			return (guess + k) % s->n_devices;
	return -1;
}

/* A GPU once seen stays, with its name and number, whatever becomes of it: one that hung, and one the
 * driver counts no more, are rows that say so. Nobody else moves up into their number. */
void gpu_keep_known(struct gpu_client *c)
{
	for (int i = 0; c->given && i < c->last->n_devices; i++) {
		const struct gpu_device *was = &c->last->device[i];
		int row;

		if (was->partition >= 0)
			continue;
		row = row_of(c->next, was, i);
		/* In a part of a reading it was only announced: a driver that then takes no call has
		 * none. */
		if (row < 0 && (c->last->whole || gpu_is_skipped(c, was)))
			add_missing(c, was);
		else if (row < 0)
			continue;
		else if (c->next->device[row].state == GPU_KNOWN)
			keep_index(c->next, row, was->index);
		else
			copy_identity(&c->next->device[row], was);
	}
}

static bool was_read(const struct gpu_device *d)
{
	for (int m = 0; m < GPU_METRICS; m++)
		if (d->metric[m].have != GPU_NOT_ASKED)
			return true;
	return false;
}

void gpu_mark_skipped(struct gpu_client *c)
{
	for (int i = 0; c->given && !c->last->whole && i < c->last->n_devices; i++)
		if (gpu_is_skipped(c, &c->last->device[i]))
			set_state(&c->last->device[i], GPU_HUNG);
}

void gpu_take_part(struct gpu_client *c)
{
	struct gpu_snapshot *part = c->next;

	if (c->given && c->last->whole)
		return;
	/* The helper before this one may have come further. */
	for (int i = 0; c->given && i < c->last->n_devices; i++) {
		const struct gpu_device *was = &c->last->device[i];
		int row = was->partition < 0 ? row_of(part, was, i) : -1;
		struct gpu_device *d = row >= 0 ? &part->device[row] : NULL;

		if (was->partition >= 0)
			continue;
		if (!d) {
			d = gpu_add_device(part, (enum gpu_vendor)was->vendor);
			if (d)
				*d = *was;
			continue;
		}
		copy_identity(d, was);
		if (d->state != GPU_KNOWN || was_read(d))
			continue;
		memcpy(d->metric, was->metric, sizeof(d->metric));
		memcpy(d->property, was->property, sizeof(d->property));
	}
	part->number = ++c->given;
	c->next = c->last;
	c->last = part;
	gpu_mark_skipped(c);
}

/* SPDX-License-Identifier: MIT
 *
 * The processes that use the devices: their rows, their memory, and what becomes of it when they die.
 */
#include "layout.h"

#include "base/io.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>

/* A death is noticed at the latest this long after it when somebody looks. */
static const int64_t reap_every_ns = 20000000;

static void own_name(char *ret, size_t size)
{
	char text[256];
	ssize_t n = io_read(AT_FDCWD, "/proc/self/cmdline", text, sizeof(text));

	text_safe_copy(ret, size, n > 0 ? text : "?");
}

bool client_is_ours(const struct vgpu *v)
{
	return v->client >= 0 && v->s->client[v->client].used &&
	       v->s->client[v->client].ticket == v->ticket;
}

int client_join(struct vgpu *v)
{
	struct shared *s = v->s;
	struct client *c = NULL;
	int row = 0;

	if (client_is_ours(v))
		return 0;
	client_reap(v, vgpu_age(v), true);
	/* A row may be free but held: by a copy of its dead owner's descriptor, made without fork(). */
	while (row < VGPU_CLIENTS && (s->client[row].used || !life_hold(v, row)))
		row++;
	if (row == VGPU_CLIENTS)
		return -EUSERS;
	c = &s->client[row];
	memset(c, 0, sizeof(*c));
	life_begin(c);
	c->ticket = ++s->tickets;
	for (int i = 0; i < VGPU_DEVICES; i++)
		c->device[i].partition = -1;
	own_name(c->name, sizeof(c->name));
	c->used = true;
	v->client = row;
	v->ticket = c->ticket;
	return 0;
}

uint64_t client_memory(const struct shared *s, int device, int partition)
{
	uint64_t sum = 0;

	for (int i = 0; i < VGPU_CLIENTS; i++)
		if (s->client[i].used &&
		    (partition < 0 || s->client[i].device[device].partition == partition))
			sum += s->client[i].device[device].memory;
	return sum;
}

void client_show_partitions(struct shared *s, int device)
{
	struct scenario_device *d = &s->scenario.device[device];

	for (int i = 0; i < d->about.n_partitions; i++) {
		struct vgpu_partition *p = &d->about.partition[i];

		p->memory_used = client_memory(s, device, i);
		for (int k = 0; k < d->n_guests; k++)
			if (d->guest[k].gi == p->gi && d->guest[k].memory != UINT64_MAX)
				p->memory_used += d->guest[k].memory * (uint64_t)d->guest[k].count;
	}
}

void client_drop(struct shared *s, int client)
{
	for (int i = 0; i < s->scenario.n_devices; i++)
		queue_cut(s, i, client);
	s->client[client].used = false;
	for (int i = 0; i < s->scenario.n_devices; i++)
		client_show_partitions(s, i);
}

void client_reap(struct vgpu *v, int64_t now, bool must)
{
	struct shared *s = v->s;

	if ((!must && now - s->last_reap < reap_every_ns) || !life_can_tell(v))
		return;
	s->last_reap = now;
	for (int i = 0; i < VGPU_CLIENTS; i++) {
		if (!s->client[i].used || !life_gone(v, i))
			continue;
		for (int d = 0; d < s->scenario.n_devices; d++)
			model_advance(s, d, now);
		client_drop(s, i);
	}
}

static uint64_t room(const struct shared *s, int device, int partition)
{
	const struct scenario_device *d = &s->scenario.device[device];
	uint64_t taken = client_memory(s, device, partition), total = d->about.memory_total;

	if (partition >= 0)
		total = d->about.partition[partition].memory_total;
	else
		taken += d->about.memory_reserved + d->ghost;
	for (int i = 0; i < d->n_guests; i++) {
		const struct scenario_guest *g = &d->guest[i];
		bool here = partition < 0 || g->gi == d->about.partition[partition].gi;

		if (g->memory != UINT64_MAX && here)
			taken += g->memory * (uint64_t)g->count;
	}
	return taken < total ? total - taken : 0;
}

uint64_t client_room(const struct shared *s, int device, int partition)
{
	return room(s, device, partition);
}

int client_alloc(struct vgpu *v, int device, uint64_t bytes)
{
	struct shared *s = v->s;
	struct client_device *c = &s->client[v->client].device[device];

	if (bytes > room(s, device, c->partition))
		client_reap(v, vgpu_age(v), true);
	if (bytes > room(s, device, c->partition))
		return -ENOMEM;
	c->memory += bytes;
	client_show_partitions(s, device);
	return 0;
}

void client_free(struct vgpu *v, int device, uint64_t bytes)
{
	struct client_device *c = &v->s->client[v->client].device[device];

	c->memory -= bytes < c->memory ? bytes : c->memory;
	client_show_partitions(v->s, device);
}

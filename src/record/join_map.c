/* SPDX-License-Identifier: MIT
 *
 * Which things of the records are things of the joined run, and what they are called there.
 */
#include "record/join_part.h"

#include "model/gpu_tag.h"
#include "model/node.h"

#include <errno.h>

/* One boot is one kernel, so a second container there has measured the same host, unless each is shown a share of it only
 * (lxcfs): then they have different cores and memory. */
size_t join_same_host(const struct join *j, size_t machine)
{
	const struct join_machine *m = &j->machines.v[machine];
	const struct machine *x = &record_run(j->parts.v[m->part].record)->machine;

	for (size_t i = 0; i < machine; i++) {
		const struct machine *y =
		    &record_run(j->parts.v[j->machines.v[i].part].record)->machine;

		if (j->machines.v[i].clock == m->clock && x->cpus == y->cpus &&
		    x->memory_bytes == y->memory_bytes)
			return j->machines.v[i].same;
	}
	return machine;
}

bool join_is_of_machine(enum entity_kind kind)
{
	switch (kind) {
	case ENTITY_HOST:
	case ENTITY_CPU:
	case ENTITY_DISK:
	case ENTITY_NIC:
	case ENTITY_MOUNT:
	case ENTITY_GPU:
	case ENTITY_GPU_PROC:
		return true;
	default:
		return false;
	}
}

static int gpu_index(int64_t key)
{
	int64_t index = key >= GPU_PARTITION_KEY ? key / GPU_PARTITION_KEY - 1 : key;

	return index >= 0 && index < GPU_PARTITION_KEY ? (int)index : -1;
}

/* GPUs are numbered through all machines. Beyond a thousand a number would mean a partition. */
static void number_gpus(struct join *j)
{
	int base = 0;

	for (size_t i = 0; i < j->machines.n; i++) {
		struct join_machine *m = &j->machines.v[i];
		struct window w = record_window(j->parts.v[m->part].record, 0, 0);
		const struct entity_table *t = window_entities(&w);
		int most = -1;

		for (size_t k = 0; k < t->rows.n; k++)
			if (t->rows.v[k].kind == ENTITY_GPU && gpu_index(t->rows.v[k].key) > most)
				most = gpu_index(t->rows.v[k].key);
		m->gpu_base = base;
		if (base + most >= GPU_PARTITION_KEY) {
			m->gpu_base = -1;
			join_note(j, "GPUs of %.60s are left out: there are more than %d", m->name,
				  GPU_PARTITION_KEY);
		} else if (most >= 0) {
			if (base && most)
				join_note(j, "GPUs %d to %d are those of %.60s", base, base + most,
					  m->name);
			else if (base)
				join_note(j, "GPU %d is that of %.60s", base, m->name);
			base += most + 1;
		}
	}
}

bool join_is_kept(const struct join *j, size_t part, const struct entity *e)
{
	const struct join_machine *m = &j->machines.v[j->parts.v[part].machine];

	if (e->kind == ENTITY_NONE || (join_is_of_machine(e->kind) && m->part != part))
		return false;
	if (e->kind == ENTITY_GPU || e->kind == ENTITY_GPU_PROC)
		return m->gpu_base >= 0 && (e->kind == ENTITY_GPU_PROC || gpu_index(e->key) >= 0);
	return true;
}

int64_t join_key(const struct join *j, size_t part, const struct entity *e)
{
	size_t machine = j->parts.v[part].machine;
	int base = j->machines.v[machine].gpu_base;

	switch (e->kind) {
	case ENTITY_HOST:
		return (int64_t)machine + 1;
	case ENTITY_JOB:
	case ENTITY_SELF:
		return (int64_t)part + 1;
	case ENTITY_GPU:
		return gpu_key(base + gpu_index(e->key), e->key >= GPU_PARTITION_KEY
							     ? (int)(e->key % GPU_PARTITION_KEY)
							     : -1);
	case ENTITY_PROC:
	case ENTITY_THREAD:
	case ENTITY_CPU:
	case ENTITY_GPU_PROC:
		return node_key((unsigned)machine, e->key);
	default:
		return e->key;
	}
}

static const struct entity_table *entities_of(const struct join *j, size_t part)
{
	struct window w = record_window(j->parts.v[part].record, 0, 0);

	return window_entities(&w);
}

int join_give_ids(struct join *j)
{
	uint32_t last = ID_FIRST_FREE;

	number_gpus(j);
	for (size_t i = 0; i < j->parts.n; i++) {
		const struct entity_table *t = entities_of(j, i);
		struct join_part *p = &j->parts.v[i];

		for (size_t k = 0; k < t->rows.n; k++) {
			const struct entity *e = &t->rows.v[k];
			struct join_machine *m = &j->machines.v[p->machine];
			uint32_t id = e->kind == ENTITY_HOST && m->host ? m->host : 0;

			if (!id && join_is_kept(j, i, e))
				id = ++last;
			if (e->kind == ENTITY_HOST && !m->host)
				m->host = id;
			if (id && !map_put(&p->ids, e->id, id))
				return -ENOMEM;
		}
	}
	return 0;
}

/* SPDX-License-Identifier: MIT
 *
 * Partitions (MIG): rows of their own behind their GPU. The driver has no busy share for them; activity
 * comes from GPM where there is any.
 */
#include "gpu/nvml.h"

#include "base/text.h"

#include <string.h>

/* "NVIDIA H100 80GB HBM3 MIG 3g.40gb" -> "3g.40gb"; else from what it has. */
static void name_profile(struct nvml_at *a, struct nvml_part *p)
{
	struct nvml_mig_attributes m = { 0 };
	const char *mig = strstr(p->name, "MIG ");

	if (mig) {
		text_safe_copy(p->profile, sizeof(p->profile), mig + 4);
		return;
	}
	if (NVML_CALL(a, mig_attributes, p->handle, &m) != 0 || m.gi_slices > 16 ||
	    m.ci_slices > 16 || m.memory_mib > 1u << 30)
		return;
	if (m.ci_slices && m.ci_slices < m.gi_slices)
		snprintf(p->profile, sizeof(p->profile), "%uc.%ug.%llugb", m.ci_slices, m.gi_slices,
			 (m.memory_mib + 1023) / 1024);
	else
		snprintf(p->profile, sizeof(p->profile), "%ug.%llugb", m.gi_slices,
			 (m.memory_mib + 1023) / 1024);
}

static bool find_part(struct nvml_at *a, unsigned number, struct nvml_part *p)
{
	char text[NVML_UUID_MAX + 1] = "";
	unsigned id = 0;

	if (NVML_CALL(a, mig_handle, a->g->handle, number, &p->handle) != 0)
		return false;
	p->number = (int)number;
	p->gi = NVML_CALL(a, mig_gi, p->handle, &id) == 0 && id < 1024 ? (int)id : -1;
	p->ci = NVML_CALL(a, mig_ci, p->handle, &id) == 0 && id < 1024 ? (int)id : -1;
	if (NVML_CALL(a, uuid, p->handle, text, NVML_UUID_MAX) == 0)
		text_safe_copy(p->uuid, sizeof(p->uuid), text);
	memset(text, 0, sizeof(text));
	if (NVML_CALL(a, name, p->handle, text, NVML_NAME_MAX) == 0)
		text_safe_copy(p->name, sizeof(p->name), text);
	name_profile(a, p);
	return true;
}

/* They can be made and removed while the GPU is idle: looked for with each slow reading. */
void nvml_find_parts(struct nvml_at *a)
{
	struct nvml_gpu *g = a->g;
	unsigned current = 0, pending = 0, max = 0;
	int n = 0;

	g->mig = NVML_TRY(a, mig_mode, g->handle, &current, &pending) == 0 && current == 1;
	if (g->mig && NVML_CALL(a, mig_count, g->handle, &max) != 0)
		max = 0;
	for (unsigned i = 0; i < max && i < 64 && n < NVML_PARTITIONS; i++) {
		struct nvml_part p = { 0 };

		if (!find_part(a, i, &p))
			continue;
		/* The samples stay with the instance they are of. */
		if (n < g->n_parts && g->part[n].gi == p.gi && g->part[n].ci == p.ci)
			p.gpm = g->part[n].gpm;
		else if (n < g->n_parts)
			nvml_gpm_done(a->n, &g->part[n].gpm);
		g->part[n++] = p;
	}
	for (int i = n; i < g->n_parts; i++)
		nvml_gpm_done(a->n, &g->part[i].gpm);
	g->n_parts = n;
}

static void read_part(struct nvml_at *a, struct nvml_part *p, int parent)
{
	struct gpu_device *d = gpu_add_device(a->s, GPU_NVIDIA);

	if (!d)
		return;
	a->row = (int)(d - a->s->device);
	d->index = (int16_t)a->g->index;
	d->partition = (int16_t)p->number;
	d->parent = (int16_t)parent;
	d->instance = p->gi;
	d->compute_instance = p->ci;
	d->simulated = a->n->simulated;
	d->unified = a->g->unified;
	text_safe_copy(d->name, sizeof(d->name), p->name[0] ? p->name : a->g->name);
	text_safe_copy(d->uuid, sizeof(d->uuid), p->uuid);
	text_safe_copy(d->pci, sizeof(d->pci), a->g->pci);
	text_safe_copy(d->profile, sizeof(d->profile), p->profile);
	text_safe_copy(d->driver, sizeof(d->driver), a->n->driver);
	text_safe_copy(d->runtime, sizeof(d->runtime), a->n->cuda);
	memcpy(d->mode, a->g->mode, sizeof(d->mode));
	gpu_lacks(d, M_GPU_BUSY, GPU_NOT_SUPPORTED);
	gpu_lacks(d, M_GPU_MEM_BUSY, GPU_NOT_SUPPORTED);
	nvml_read_memory(a, p->handle);
	if (p->gi >= 0)
		nvml_read_gpm(a, &p->gpm, p->gi);
	if (a->depth >= GPU_MIDDLE)
		nvml_read_processes(a, p->handle, false);
	if (a->g->state != GPU_KNOWN)
		d->state = (uint8_t)a->g->state;
}

void nvml_read_parts(struct nvml_at *a)
{
	int parent = a->row;

	for (int i = 0; i < a->g->n_parts && a->g->state == GPU_KNOWN; i++)
		read_part(a, &a->g->part[i], parent);
	a->row = parent;
}

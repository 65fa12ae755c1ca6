/* SPDX-License-Identifier: MIT
 *
 * Critical errors (XID) as the driver reports them to whoever registered: none is missed between two
 * looks, and the look itself never waits (timeout 0).
 */
#include "gpu/nvml.h"

#include <string.h>

void nvml_watch_events(struct nvml_at *a)
{
	if (a->n->has_events && !a->g->watched)
		a->g->watched =
		    NVML_CALL(a, event_register, a->g->handle, NVML_EVENT_XID, a->n->events) == 0;
}

static void take(struct nvml *n, const struct nvml_event *e)
{
	for (int i = 0; i < n->n_gpus; i++) {
		struct nvml_gpu *g = &n->gpu[i];

		if (g->handle != e->device)
			continue;
		g->xids++;
		if (g->n_pending < NVML_XIDS_PENDING)
			g->pending[g->n_pending++] = (int64_t)(e->data & 0xffffffff);
	}
}

void nvml_take_events(struct nvml_at *a)
{
	/* A storm of them is taken over several readings. */
	for (int i = 0; a->n->has_events && i < 64; i++) {
		struct nvml_event e;

		memset(&e, 0, sizeof(e));
		if (NVML_CALL(a, event_wait, a->n->events, &e, 0) != 0)
			return;
		if (e.type & NVML_EVENT_XID)
			take(a->n, &e);
	}
}

void nvml_tell_events(struct nvml_at *a)
{
	struct nvml_gpu *g = a->g;

	for (int i = 0; i < g->n_pending; i++)
		gpu_note(a->s, GPU_NOTE_XID, a->row, g->pending[i]);
	g->n_pending = 0;
	if (a->depth < GPU_MIDDLE)
		return;
	if (g->watched)
		gpu_put(nvml_row(a), M_GPU_XIDS, g->xids);
	else
		gpu_lacks(nvml_row(a), M_GPU_XIDS, GPU_NOT_SUPPORTED);
}

/* SPDX-License-Identifier: MIT
 *
 * Who the GPUs are, from what has been found out so far: for when the reading that would tell hangs.
 */
#include "gpu/nvml.h"

#include "base/text.h"

bool nvml_identify(const void *state, int i, struct gpu_device *ret)
{
	const struct nvml *n = state;
	const struct nvml_gpu *g;

	if (i < 0 || i >= n->n_gpus)
		return false;
	g = &n->gpu[i];
	ret->simulated = n->simulated;
	text_safe_copy(ret->driver, sizeof(ret->driver), n->driver);
	text_safe_copy(ret->runtime, sizeof(ret->runtime), n->cuda);
	text_safe_copy(ret->name, sizeof(ret->name), g->name);
	text_safe_copy(ret->uuid, sizeof(ret->uuid), g->uuid);
	text_safe_copy(ret->pci, sizeof(ret->pci), g->pci);
	if (g->skipped)
		ret->state = GPU_HUNG;
	else if (g->state != GPU_NOT_ASKED) /* its turn has come in open() */
		ret->state = (uint8_t)g->state;
	return true;
}

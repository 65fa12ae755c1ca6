/* SPDX-License-Identifier: MIT
 *
 * One call that no real driver has: tests read exact figures through it, and sim/python knows by it that
 * it has not caught a real GPU's driver.
 */
#include "cuda_local.h"

#include "base/auto.h"

/* A figure of a device (by its place in the scenario): 0, or 1 when there is no such one. */
CUDA_API int vgpuFigure(int device, const char *name, double *ret);

int vgpuFigure(int device, const char *name, double *ret)
{
	CUresult error;
	struct cuda *p = cuda_process(&error);
	struct vgpu_now now;
	int processes;

	if (!p || !name || !ret || !vgpu_now(p->v, device, &now))
		return 1;
	processes = vgpu_processes(p->v, device, NULL, 0);
	if (processes < 0)
		return 1;
	const struct {
		const char *name;
		double value;
	} figures[] = {
		{ "busy", now.busy },
		{ "busy_s", now.busy_s },
		{ "sm_s", now.sm_s },
		{ "tensor_s", now.tensor_s },
		{ "dram_s", now.dram_s },
		{ "energy_j", (double)now.energy_mj / 1e3 },
		{ "power_w", now.power_mw / 1e3 },
		{ "memory_used", (double)now.memory_used },
		{ "clock_sm", now.clock_sm },
		{ "rx_bytes", (double)now.pcie_rx_bytes },
		{ "tx_bytes", (double)now.pcie_tx_bytes },
		{ "link_tx_kib", (double)now.nvlink_tx_kib },
		{ "link_rx_kib", (double)now.nvlink_rx_kib },
		{ "processes", processes },
	};
	for (size_t i = 0; i < ARRAY_LEN(figures); i++) {
		if (strcmp(figures[i].name, name) != 0)
			continue;
		*ret = figures[i].value;
		return 0;
	}
	return 1;
}

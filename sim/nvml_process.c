/* SPDX-License-Identifier: MIT
 *
 * The virtual libnvidia-ml.so.1: who is on the GPU, in every layout that drivers had:
 *
 *	nvmlDeviceGetComputeRunningProcesses      16 bytes a row
 *	..._v2                                    24: MIG ids
 *	..._v3                                    24 today; 32 in drivers 535.43 - 535.86, which callers
 *	                                          cannot see and which made their lists garbage
 *
 * All of them take the number of rows there is place for and answer INSUFFICIENT_SIZE with the number
 * needed; with no process they succeed.
 */
#include "nvml_sim.h"

#include <stdlib.h>
#include <string.h>

enum kind { KIND_COMPUTE, KIND_GRAPHICS, KIND_MPS };
enum layout { LAYOUT_16, LAYOUT_24, LAYOUT_32 };

static bool listed(const struct nvml_call *c, const struct vgpu_process *p, enum kind kind)
{
	if (kind == KIND_MPS || p->graphics != (kind == KIND_GRAPHICS))
		return false;
	return c->part < 0 || p->gi == c->about->partition[c->part].gi;
}

static void put(void *rows, unsigned int i, enum layout layout, const struct vgpu_process *p)
{
	unsigned int gi = p->gi < 0 ? NVML_NO_INSTANCE : (unsigned int)p->gi;
	unsigned int ci = p->ci < 0 ? NVML_NO_INSTANCE : (unsigned int)p->ci;

	if (layout == LAYOUT_16)
		((struct nvml_process_v1 *)rows)[i] = (struct nvml_process_v1){ p->pid, p->memory };
	else if (layout == LAYOUT_24)
		((struct nvml_process *)rows)[i] =
		    (struct nvml_process){ p->pid, p->memory, gi, ci };
	else
		((struct nvml_process_detail *)rows)[i] =
		    (struct nvml_process_detail){ p->pid, p->memory, gi, ci, 0 };
}

static int list(struct nvml_call *c, enum kind kind, enum layout layout, unsigned int *count,
		void *rows)
{
	struct vgpu_process *all;
	unsigned int n = 0, space = rows ? *count : 0;
	int n_all, rc = nvml_process_rows(c, &all, &n_all);

	if (rc)
		return rc;
	for (int i = 0; i < n_all; i++) {
		if (!listed(c, &all[i], kind))
			continue;
		if (n < space)
			put(rows, n, layout, &all[i]);
		n++;
	}
	free(all);
	*count = n;
	return n > space ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

/* version: 1, 2, 3 as in the symbol's name. */
static int running(const char *symbol, nvml_device h, enum kind kind, int version,
		   unsigned int *count, void *rows)
{
	struct nvml_call c;
	enum layout layout = version == 1 ? LAYOUT_16 : LAYOUT_24;
	int rc = nvml_enter_mig(&c, symbol, h);

	if (rc)
		return rc;
	if (!count)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (c.driver->process_layout == 535 && version == 3)
		layout = LAYOUT_32;
	else if (c.driver->process_layout < version)
		return NVML_ERROR_FUNCTION_NOT_FOUND;
	return list(&c, kind, layout, count, rows);
}

#define RUNNING(name, kind, version)                                     \
	NVML_API name(nvml_device h, unsigned int *count, void *rows)    \
	{                                                                \
		return running(__func__, h, kind, version, count, rows); \
	}
RUNNING(nvmlDeviceGetComputeRunningProcesses, KIND_COMPUTE, 1)
RUNNING(nvmlDeviceGetComputeRunningProcesses_v2, KIND_COMPUTE, 2)
RUNNING(nvmlDeviceGetComputeRunningProcesses_v3, KIND_COMPUTE, 3)
RUNNING(nvmlDeviceGetGraphicsRunningProcesses, KIND_GRAPHICS, 1)
RUNNING(nvmlDeviceGetGraphicsRunningProcesses_v2, KIND_GRAPHICS, 2)
RUNNING(nvmlDeviceGetGraphicsRunningProcesses_v3, KIND_GRAPHICS, 3)
RUNNING(nvmlDeviceGetMPSComputeRunningProcesses, KIND_MPS, 1)
RUNNING(nvmlDeviceGetMPSComputeRunningProcesses_v2, KIND_MPS, 2)
RUNNING(nvmlDeviceGetMPSComputeRunningProcesses_v3, KIND_MPS, 3)

NVML_API nvmlDeviceGetRunningProcessDetailList(nvml_device h, struct nvml_process_detail_list *ret)
{
	struct nvml_call c;
	int rc = nvml_enter_mig(&c, __func__, h);

	if (rc)
		return rc;
	if (!ret || ret->mode > KIND_MPS)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (c.driver->process_layout != 3)
		return NVML_ERROR_FUNCTION_NOT_FOUND;
	rc = nvml_version(&c, ret->version, NVML_VERSION(struct nvml_process_detail_list, 1));
	if (rc)
		return rc;
	return list(&c, (enum kind)ret->mode, LAYOUT_32, &ret->n, ret->processes);
}

/* Utilisation by process is a property of the whole GPU: with MIG there is none. */
static int usage_rows(struct nvml_call *c, const char *symbol, nvml_device h, const void *ret,
		      struct vgpu_process **rows, int *n)
{
	int rc = nvml_enter(c, symbol, h);

	if (rc)
		return rc;
	if (!ret)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (c->about->mig || c->driver->no_process_utilization)
		return NVML_ERROR_NOT_SUPPORTED;
	return nvml_process_rows(c, rows, n);
}

/* Without a buffer the answer is always INSUFFICIENT_SIZE and a number of rows that will do; nvtop
 * gives up on any other code. NOT_FOUND: no sample newer than `since`. */
NVML_API nvmlDeviceGetProcessUtilization(nvml_device h, struct nvml_process_sample *ret,
					 unsigned int *count, unsigned long long since_us)
{
	struct nvml_call c;
	struct vgpu_process *rows;
	unsigned int filled = 0;
	int n, rc = usage_rows(&c, __func__, h, count, &rows, &n);

	if (rc)
		return rc;
	if (!ret || *count < (unsigned int)n) {
		*count = n ? (unsigned int)n : 1;
		free(rows);
		return NVML_ERROR_INSUFFICIENT_SIZE;
	}
	for (int i = 0; i < n; i++) {
		unsigned long long time_us = (unsigned long long)rows[i].sampled_ns / 1000;

		if (rows[i].sampled_ns <= 0 || time_us <= since_us)
			continue;
		ret[filled++] = (struct nvml_process_sample){
			.pid = rows[i].pid,
			.time_us = time_us,
			.sm = nvml_percent(rows[i].busy),
			.memory = nvml_percent(rows[i].memory_busy),
			.encoder = nvml_percent(rows[i].encoder),
			.decoder = nvml_percent(rows[i].decoder),
		};
	}
	*count = filled;
	free(rows);
	return filled ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
}

NVML_API nvmlDeviceGetProcessesUtilizationInfo(nvml_device h, struct nvml_processes_usage *ret)
{
	struct nvml_call c;
	struct vgpu_process *rows;
	unsigned int filled = 0;
	int n, rc = usage_rows(&c, __func__, h, ret, &rows, &n);

	if (rc)
		return rc;
	rc = nvml_version(&c, ret->version, NVML_VERSION(struct nvml_processes_usage, 1));
	if (!rc && (!ret->samples || ret->n < (unsigned int)n)) {
		ret->n = n ? (unsigned int)n : 1;
		rc = NVML_ERROR_INSUFFICIENT_SIZE;
	}
	for (int i = 0; !rc && i < n; i++) {
		unsigned long long time_us = (unsigned long long)rows[i].sampled_ns / 1000;

		if (rows[i].sampled_ns <= 0 || time_us <= ret->last_seen_us)
			continue;
		ret->samples[filled++] = (struct nvml_process_usage){
			.time_us = time_us,
			.pid = rows[i].pid,
			.sm = nvml_percent(rows[i].busy),
			.memory = nvml_percent(rows[i].memory_busy),
			.encoder = nvml_percent(rows[i].encoder),
			.decoder = nvml_percent(rows[i].decoder),
		};
	}
	free(rows);
	if (rc)
		return rc;
	ret->n = filled;
	return filled ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
}

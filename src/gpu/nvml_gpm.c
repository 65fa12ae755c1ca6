/* SPDX-License-Identifier: MIT
 *
 * Activity counters (GPM: Hopper and newer, driver 520 and newer): the mean between two samples, so none
 * of the time between readings is missed. Needs no lock and no root, unlike the profiler of older GPUs.
 */
#include "gpu/nvml.h"

#include "base/auto.h"
#include "base/clock.h"

#include <math.h>
#include <string.h>

static const struct {
	enum metric_id m;
	unsigned id;
} wanted[] = {
	{ M_GPU_SM_ACTIVE, NVML_GPM_SM_UTIL },
	{ M_GPU_SM_OCCUPANCY, NVML_GPM_SM_OCCUPANCY },
	{ M_GPU_TENSOR_ACTIVE, NVML_GPM_ANY_TENSOR_UTIL },
	{ M_GPU_DRAM_ACTIVE, NVML_GPM_DRAM_BW_UTIL },
	{ M_GPU_FP16_ACTIVE, NVML_GPM_FP16_UTIL },
	{ M_GPU_FP32_ACTIVE, NVML_GPM_FP32_UTIL },
};

static void lack(struct nvml_at *a, int result)
{
	for (size_t i = 0; i < ARRAY_LEN(wanted); i++)
		gpu_lacks(nvml_row(a), wanted[i].m, nvml_have(result));
}

static int prepare(struct nvml_at *a, struct nvml_activity *g)
{
	struct nvml_gpm_support s = { .version = NVML_GPM_SUPPORT_VERSION };

	if (g->asked)
		return g->supported ? 0 : NVML_ERROR_NOT_SUPPORTED;
	g->asked = true;
	if (NVML_CALL(a, gpm_support, a->g->handle, &s) != 0 || !s.supported)
		return NVML_ERROR_NOT_SUPPORTED;
	if (NVML_CALL(a, gpm_alloc, &g->before) != 0)
		return NVML_ERROR_NOT_SUPPORTED;
	if (NVML_CALL(a, gpm_alloc, &g->after) != 0) {
		(void)NVML_CALL(a, gpm_free, g->before);
		return NVML_ERROR_NOT_SUPPORTED;
	}
	g->supported = true;
	return 0;
}

static void put(struct nvml_at *a, size_t i, const struct nvml_gpm_metric *m)
{
	int result = m->result;

	if (result == 0 && (!isfinite(m->value) || m->value < -0.5 || m->value > 1e4))
		result = NVML_ERROR_UNKNOWN;
	/* A hair above 100 is rounding of the counters; on MIG far more was seen (DCGM #152). */
	nvml_put(a, wanted[i].m, result,
		 result ? 0 : (int64_t)lrint(fmin(fmax(m->value, 0), 100) * 100));
}

static void put_between(struct nvml_at *a, const struct nvml_activity *g)
{
	/* The vendor's struct is longer than what we ask for, and how long depends on its header; the
	 * library may copy all of it. Room for the longest known. */
	union {
		struct nvml_gpm_get get;
		char room[sizeof(struct nvml_gpm_get) + 333 * sizeof(struct nvml_gpm_metric)];
	} m;
	int result;

	memset(&m, 0, sizeof(m.get) + (ARRAY_LEN(wanted) + 1) * sizeof(m.get.metrics[0]));
	m.get.version = NVML_GPM_VERSION;
	m.get.n = ARRAY_LEN(wanted);
	m.get.before = g->before;
	m.get.after = g->after;
	for (size_t i = 0; i < ARRAY_LEN(wanted); i++)
		m.get.metrics[i].id = wanted[i].id;
	result = NVML_CALL(a, gpm_metrics, &m.get);
	if (result != 0) {
		lack(a, result);
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(wanted); i++)
		put(a, i, &m.get.metrics[i]);
}

/* gi: of a partition, -1: the whole GPU. */
void nvml_read_gpm(struct nvml_at *a, struct nvml_activity *g, int gi)
{
	int result = prepare(a, g);
	nvml_gpm_sample swap;
	int64_t now = clock_mono_ns();

	/* Two samples closer than this are mostly noise; what stands is taken over. */
	if (result == 0 && g->has_before && now - g->before_ns < 50 * NS_PER_MS)
		return;
	if (result == 0)
		result = gi < 0
			     ? NVML_CALL(a, gpm_sample, a->g->handle, g->after)
			     : NVML_CALL(a, gpm_mig_sample, a->g->handle, (unsigned)gi, g->after);
	if (result != 0) {
		lack(a, result);
		g->has_before = false;
		return;
	}
	if (g->has_before)
		put_between(a, g);
	swap = g->before;
	g->before = g->after;
	g->after = swap;
	g->before_ns = now;
	g->has_before = true;
}

void nvml_gpm_done(struct nvml *n, struct nvml_activity *g)
{
	if (g->supported && n->lib.gpm_free) {
		(void)n->lib.gpm_free(g->before);
		(void)n->lib.gpm_free(g->after);
	}
	*g = (struct nvml_activity){ 0 };
}

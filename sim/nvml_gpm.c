/* SPDX-License-Identifier: MIT
 *
 * The virtual libnvidia-ml.so.1: GPM, the counters of what the units inside really do (Hopper and
 * newer). A sample is a copy of exact integrals; a metric is the difference of two over the time
 * between them. Nothing behind numMetrics is touched: callers were built with arrays of different
 * lengths under one version number.
 */
#include "nvml_sim.h"

#include <stdlib.h>
#include <string.h>

#define SAMPLE_MAGIC 0x6770736du /* "mspg" */

struct nvml_gpm_sample {
	uint32_t magic;
	int device; /* -1: still empty */
	int gi;     /* -1: the whole GPU */
	struct vgpu_now now;
};

static bool is_sample(nvml_gpm_sample s)
{
	return s && s->magic == SAMPLE_MAGIC;
}

NVML_API nvmlGpmSampleAlloc(nvml_gpm_sample *ret)
{
	struct nvml_call c;
	struct nvml_gpm_sample *s;
	int rc = nvml_enter_system(&c, __func__);

	if (rc)
		return rc;
	if (!ret)
		return NVML_ERROR_INVALID_ARGUMENT;
	s = calloc(1, sizeof(*s));
	if (!s)
		return NVML_ERROR_MEMORY;
	s->magic = SAMPLE_MAGIC;
	s->device = -1;
	*ret = s;
	return NVML_SUCCESS;
}

NVML_API nvmlGpmSampleFree(nvml_gpm_sample s)
{
	if (!is_sample(s))
		return NVML_ERROR_INVALID_ARGUMENT;
	s->magic = 0;
	free(s);
	return NVML_SUCCESS;
}

static int take(struct nvml_call *c, nvml_gpm_sample s, int gi)
{
	int rc;

	if (!is_sample(s))
		return NVML_ERROR_INVALID_ARGUMENT;
	if (!c->about->gpm)
		return NVML_ERROR_NOT_SUPPORTED;
	rc = nvml_now(c, &s->now);
	if (rc)
		return rc;
	s->device = c->device;
	s->gi = gi;
	return NVML_SUCCESS;
}

/* With MIG the whole GPU has no such figures: ask an instance. */
NVML_API nvmlGpmSampleGet(nvml_device h, nvml_gpm_sample s)
{
	struct nvml_call c;
	int rc = nvml_enter(&c, __func__, h);

	if (!rc && c.about->mig)
		rc = NVML_ERROR_NOT_SUPPORTED;
	return rc ? rc : take(&c, s, -1);
}

NVML_API nvmlGpmMigSampleGet(nvml_device h, unsigned int gi, nvml_gpm_sample s)
{
	struct nvml_call c;
	int rc = nvml_enter(&c, __func__, h);

	if (rc)
		return rc;
	for (int i = 0; c.about->mig && i < c.about->n_partitions; i++)
		if ((unsigned int)c.about->partition[i].gi == gi)
			return take(&c, s, (int)gi);
	return c.about->mig ? NVML_ERROR_INVALID_ARGUMENT : NVML_ERROR_NOT_SUPPORTED;
}

NVML_API nvmlGpmQueryDeviceSupport(nvml_device h, struct nvml_gpm_support *ret)
{
	struct nvml_call c;
	int rc = nvml_enter_mig(&c, __func__, h);

	if (rc)
		return rc;
	if (!ret)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (c.driver->strict_versions && ret->version != NVML_GPM_SUPPORT_VERSION)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	ret->supported = c.about->gpm;
	return NVML_SUCCESS;
}

NVML_API nvmlGpmQueryIfStreamingEnabled(nvml_device h, unsigned int *ret)
{
	struct nvml_call c;
	int rc = nvml_enter(&c, __func__, h);

	if (rc)
		return rc;
	if (!ret)
		return NVML_ERROR_INVALID_ARGUMENT;
	*ret = 0;
	return NVML_SUCCESS;
}

static double share(double before, double after, double seconds)
{
	double percent = (after - before) / seconds * 100;

	return percent < 0 ? 0 : percent > 100 ? 100 : percent;
}

static double mib_per_second(uint64_t before, uint64_t after, double unit, double seconds)
{
	return after < before ? 0 : (double)(after - before) * unit / (1 << 20) / seconds;
}

/* Percent, or MiB/s where the name says per second. */
static int metric_value(const struct vgpu_now *a, const struct vgpu_now *b, unsigned int id,
			double *ret)
{
	double s = (double)(b->time_ns - a->time_ns) / 1e9;

	switch (id) {
	case NVML_GPM_GRAPHICS_UTIL:
		*ret = share(a->busy_s, b->busy_s, s);
		return NVML_SUCCESS;
	case NVML_GPM_SM_UTIL:
		*ret = share(a->sm_s, b->sm_s, s);
		return NVML_SUCCESS;
	case NVML_GPM_SM_OCCUPANCY:
		*ret = b->sm_occupancy * 100;
		return NVML_SUCCESS;
	case NVML_GPM_ANY_TENSOR_UTIL:
	case NVML_GPM_HMMA_TENSOR_UTIL:
		*ret = share(a->tensor_s, b->tensor_s, s);
		return NVML_SUCCESS;
	case NVML_GPM_DRAM_BW_UTIL:
		*ret = share(a->dram_s, b->dram_s, s);
		return NVML_SUCCESS;
	case NVML_GPM_FP32_UTIL:
		*ret = b->fp32_active * 100;
		return NVML_SUCCESS;
	case NVML_GPM_FP16_UTIL:
		*ret = b->fp16_active * 100;
		return NVML_SUCCESS;
	case NVML_GPM_INTEGER_UTIL:
	case NVML_GPM_DFMA_TENSOR_UTIL:
	case NVML_GPM_DMMA_TENSOR_UTIL:
	case NVML_GPM_IMMA_TENSOR_UTIL:
	case NVML_GPM_FP64_UTIL:
		*ret = 0;
		return NVML_SUCCESS;
	case NVML_GPM_PCIE_TX_PER_SEC:
		*ret = mib_per_second(a->pcie_tx_bytes, b->pcie_tx_bytes, 1, s);
		return NVML_SUCCESS;
	case NVML_GPM_PCIE_RX_PER_SEC:
		*ret = mib_per_second(a->pcie_rx_bytes, b->pcie_rx_bytes, 1, s);
		return NVML_SUCCESS;
	case NVML_GPM_NVLINK_TOTAL_TX_PER_SEC:
		*ret = mib_per_second(a->nvlink_tx_kib, b->nvlink_tx_kib, 1024, s);
		return NVML_SUCCESS;
	case NVML_GPM_NVLINK_TOTAL_RX_PER_SEC:
		*ret = mib_per_second(a->nvlink_rx_kib, b->nvlink_rx_kib, 1024, s);
		return NVML_SUCCESS;
	}
	return NVML_ERROR_NOT_SUPPORTED;
}

static void name_metric(struct nvml_gpm_metric *m)
{
	static const struct {
		unsigned int id;
		const char *short_name, *long_name, *unit;
	} names[] = {
		{ NVML_GPM_GRAPHICS_UTIL, "gract", "Graphics Engine Active", "%" },
		{ NVML_GPM_SM_UTIL, "smact", "SM Active", "%" },
		{ NVML_GPM_SM_OCCUPANCY, "smocc", "SM Occupancy", "%" },
		{ NVML_GPM_ANY_TENSOR_UTIL, "tensor", "Tensor Active", "%" },
		{ NVML_GPM_DRAM_BW_UTIL, "drama", "DRAM Active", "%" },
		{ NVML_GPM_PCIE_TX_PER_SEC, "pcitx", "PCIe TX", "MiB/s" },
		{ NVML_GPM_PCIE_RX_PER_SEC, "pcirx", "PCIe RX", "MiB/s" },
	};

	m->short_name = m->long_name = m->unit = "";
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].id == m->id) {
			m->short_name = names[i].short_name;
			m->long_name = names[i].long_name;
			m->unit = names[i].unit;
		}
}

NVML_API nvmlGpmMetricsGet(struct nvml_gpm_get *get)
{
	struct nvml_call c;
	int rc = nvml_enter_system(&c, __func__);

	if (rc)
		return rc;
	if (!get || !is_sample(get->before) || !is_sample(get->after))
		return NVML_ERROR_INVALID_ARGUMENT;
	if (get->version != NVML_GPM_VERSION)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	if (get->before->device < 0 || get->before->device != get->after->device ||
	    get->before->gi != get->after->gi)
		return NVML_ERROR_INVALID_ARGUMENT;
	for (unsigned int i = 0; i < get->n; i++) {
		struct nvml_gpm_metric *m = &get->metrics[i];

		if (get->after->now.time_ns <= get->before->now.time_ns)
			m->result = NVML_ERROR_NO_DATA;
		else
			m->result =
			    metric_value(&get->before->now, &get->after->now, m->id, &m->value);
		name_metric(m);
	}
	return NVML_SUCCESS;
}

/* SPDX-License-Identifier: MIT
 *
 * The NVIDIA back-end on a driver that answers anything: functions here stand in for the library's. And
 * the names the virtual driver has to have.
 */
#include "../unit.h"

#include "base/auto.h"
#include "gpu/nvml.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>

static struct {
	unsigned mw, mhz, percent;
	unsigned long long mj;
} told;

static int tell_mw(nvml_device h, unsigned *ret)
{
	(void)h;
	*ret = told.mw;
	return NVML_SUCCESS;
}

static int tell_mj(nvml_device h, unsigned long long *ret)
{
	(void)h;
	*ret = told.mj;
	return NVML_SUCCESS;
}

static int tell_mhz(nvml_device h, unsigned clock, unsigned *ret)
{
	(void)h;
	(void)clock;
	*ret = told.mhz;
	return NVML_SUCCESS;
}

static int tell_percent(nvml_device h, unsigned *ret)
{
	(void)h;
	*ret = told.percent;
	return NVML_SUCCESS;
}

struct liar {
	struct gpu_world w;
	struct nvml n;
	struct gpu_snapshot s;
	struct nvml_at a;
};

static const struct gpu_device *ask(struct liar *l)
{
	l->s.n_devices = 0;
	l->a = (struct nvml_at){
		.w = &l->w, .n = &l->n, .g = &l->n.gpu[0], .depth = GPU_ALL, .s = &l->s
	};
	assert_non_null(gpu_add_device(&l->s, GPU_NVIDIA));
	nvml_read_device(&l->a);
	return &l->s.device[0];
}

static struct liar *liar_open(void)
{
	struct liar *l = calloc(1, sizeof(*l));

	assert_non_null(l);
	l->n.n_gpus = 1;
	l->n.gpu[0].state = GPU_KNOWN;
	l->n.lib.power = l->n.lib.power_limit = tell_mw;
	l->n.lib.limit_default = tell_mw;
	l->n.lib.energy = tell_mj;
	l->n.lib.clock = l->n.lib.clock_max = tell_mhz;
	l->n.lib.fan = l->n.lib.pcie_gen = l->n.lib.pcie_width = tell_percent;
	return l;
}

static void liar_close(struct liar *l)
{
	free(l->n.rows);
	free(l->n.samples);
	free(l);
}

static void test_absurd_values(void **state)
{
	static const enum metric_id all[] = {
		M_GPU_POWER, M_GPU_POWER_LIMIT, M_GPU_ENERGY,   M_GPU_CLOCK_SM,  M_GPU_CLOCK_SM_MAX,
		M_GPU_FAN,   M_GPU_CLOCK_MEM,   M_GPU_PCIE_GEN, M_GPU_PCIE_WIDTH
	};
	struct liar *l = liar_open();
	const struct gpu_device *d;

	(void)state;
	told.mw = 10000001;
	told.mhz = 20001;
	told.percent = 201;
	told.mj = 1ull << 62;
	atomic_store(&l->n.gpu[0].pcie_tx, 4000000000ll);
	d = ask(l);
	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		assert_int_equal(gpu_metric(d, all[i])->have, GPU_FAILED);
	assert_int_equal(gpu_metric(d, M_GPU_PCIE_TX)->have, GPU_FAILED);
	assert_int_equal(d->property[GPU_P_POWER_LIMIT_DEFAULT].have, GPU_FAILED);
	assert_int_equal(d->property[GPU_P_CLOCK_GRAPHICS_MAX].have, GPU_FAILED);
	told.mw = 10000000;
	told.mhz = 20000;
	told.percent = 16;
	told.mj = 5;
	(void)ask(l); /* the energy falls */
	d = ask(l);
	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		assert_int_equal(gpu_metric(d, all[i])->have, GPU_KNOWN);
	assert_int_equal(gpu_metric(d, M_GPU_FAN)->raw, 1600);
	liar_close(l);
}

static void test_energy_that_jumps(void **state)
{
	static const struct {
		unsigned long long mj;
		enum gpu_have have;
	} steps[] = {
		{ 1000000000, GPU_KNOWN },  { 1000000000, GPU_KNOWN },
		{ 1000700000, GPU_KNOWN },  { 1000600000, GPU_FAILED }, /* back */
		{ 1000700000, GPU_KNOWN },  { 9000700000, GPU_FAILED }, /* 8 MJ at once */
		{ 1000700001, GPU_FAILED },                             /* and back again */
		{ 1000700002, GPU_KNOWN },
	};
	struct liar *l = liar_open();

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
		told.mj = steps[i].mj;
		if (gpu_metric(ask(l), M_GPU_ENERGY)->have != steps[i].have)
			fail_msg("step %zu: %d", i,
				 gpu_metric(&l->s.device[0], M_GPU_ENERGY)->have);
	}
	liar_close(l);
}

/* Names that nvidia-ml-py 13.615 looks up and that driver 590 does not have. */
static void test_names_of_newer_bindings(void **state)
{
	static const char *const names[] = {
		"nvmlDeviceGetAccountingStats_v2",
		"nvmlDeviceGetAdaptiveTgpModeInfo_v1",
		"nvmlDeviceGetBBXTimeData_v1",
		"nvmlDeviceGetBankRemapperStatus_v1",
		"nvmlDeviceGetGpuFabricInfo_v4",
		"nvmlDeviceGetMemoryLimits_v1",
		"nvmlDeviceGetNvLinkTelemetrySamples_v1",
		"nvmlDeviceGetRemappedRows_v2",
		"nvmlDeviceGetVgpuSchedulerLog_v2",
		"nvmlDeviceGetVgpuSchedulerState_v2",
		"nvmlDevicePerfMetricsGetSamples_v1",
		"nvmlDeviceSetAdaptiveTgpMode_v1",
		"nvmlDeviceSetMemoryLimits_v1",
		"nvmlDeviceSetNvlinkBwModeAsync_v1",
		"nvmlDeviceSetVgpuSchedulerState_v2",
		"nvmlDeviceVgpuForceGspUnload",
		"nvmlEventSetGetContextCount_v1",
		"nvmlEventSetGetContextData_v1",
		"nvmlEventSetGetContextInfo_v1",
		"nvmlEventSetGetGpuOperationalEventContextLegacyXid_v1",
		"nvmlEventSetRegisterGpuOperationalEvents_v1",
		"nvmlEventSetWait_v3",
		"nvmlGpuInstanceGetVgpuSchedulerLog_v2",
		"nvmlGpuInstanceGetVgpuSchedulerState_v2",
		"nvmlGpuInstanceSetVgpuSchedulerState_v2",
		"nvmlSystemGetCPER_v1",
	};
	void *library = dlopen(VIRTUAL_NVML, RTLD_NOW | RTLD_LOCAL);

	(void)state;
	assert_non_null(library);
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (!dlsym(library, names[i]))
			fail_msg("%s is not exported", names[i]);
	dlclose(library);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_absurd_values),
		cmocka_unit_test(test_energy_that_jumps),
		cmocka_unit_test(test_names_of_newer_bindings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

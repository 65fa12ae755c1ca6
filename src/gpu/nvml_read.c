/* SPDX-License-Identifier: MIT
 *
 * The metrics of one GPU.
 */
#include "gpu/nvml.h"

#include "base/auto.h"
#include "base/clock.h"

#include <limits.h>
#include <math.h>
#include <string.h>

/* As NVML_MOST_MW. */
enum {
	MOST_FAN = 200 * 100, /* 1e-4; above 100 % of what it was meant for is possible */
	MOST_CELSIUS = 300,
	MOST_PCIE_GEN = 16,
	MOST_PCIE_LANES = 64,
	MOST_PCIE_KBS = 1000 * 1000 * 1000, /* 1 TB/s; 128 GB/s is x16 of generation 6 */
};
#define MOST_MJ          10000000000000000ull /* 10 kW for 31 years */
#define ENERGY_UNEVEN_NS NS_PER_S             /* the counter moves in steps of up to 0.1 s or so */

void nvml_put(const struct nvml_at *a, enum metric_id m, int result, int64_t raw)
{
	if (result == 0)
		gpu_put(nvml_row(a), m, raw);
	else
		gpu_lacks(nvml_row(a), m, nvml_have(result));
}

/* Drivers have been seen to say 255 % for "no idea". */
void nvml_put_percent(const struct nvml_at *a, enum metric_id m, int result, unsigned percent)
{
	if (result == 0 && percent > 100)
		result = NVML_ERROR_UNKNOWN;
	nvml_put(a, m, result, (int64_t)percent * 100);
}

void nvml_put_up_to(const struct nvml_at *a, enum metric_id m, int result, int64_t raw,
		    int64_t most)
{
	if (result == 0 && (raw < 0 || raw > most))
		result = NVML_ERROR_UNKNOWN;
	nvml_put(a, m, result, raw);
}

int nvml_field(const struct nvml_field_value *v, int64_t *ret)
{
	if (v->result != 0)
		return v->result;
	switch (v->type) {
	case NVML_TYPE_DOUBLE:
		if (!isfinite(v->value.d) || fabs(v->value.d) > 9e18)
			return NVML_ERROR_UNKNOWN;
		*ret = (int64_t)v->value.d;
		return 0;
	case NVML_TYPE_UINT:
		*ret = v->value.ui;
		return 0;
	case NVML_TYPE_INT:
		*ret = v->value.si;
		return 0;
	case NVML_TYPE_USHORT:
		*ret = v->value.us;
		return 0;
	case NVML_TYPE_ULONG:
	case NVML_TYPE_ULLONG:
	case NVML_TYPE_LLONG:
		*ret = v->value.sll;
		return *ret < 0 && v->type != NVML_TYPE_LLONG ? NVML_ERROR_UNKNOWN : 0;
	default:
		return NVML_ERROR_UNKNOWN;
	}
}

static void read_busy(struct nvml_at *a)
{
	struct nvml_utilization u = { 0 };
	int result = NVML_TRY(a, utilization, a->g->handle, &u);

	nvml_put_percent(a, M_GPU_BUSY, result, u.gpu);
	nvml_put_percent(a, M_GPU_MEM_BUSY, result, u.memory);
}

static void put_memory(struct nvml_at *a, int result, const struct nvml_memory_v2 *m, bool v2)
{
	bool sane = m->total <= (1ull << 52) && m->used <= m->total && m->free <= m->total &&
		    m->reserved <= m->total;

	if (result == 0 && !sane)
		result = NVML_ERROR_UNKNOWN;
	nvml_put(a, M_GPU_MEM_TOTAL, result, (int64_t)(m->total / 1024));
	nvml_put(a, M_GPU_MEM_USED, result, (int64_t)(m->used / 1024));
	nvml_put(a, M_GPU_MEM_FREE, result, (int64_t)(m->free / 1024));
	/* The old call counts it as used and does not say how much it is. */
	nvml_put(a, M_GPU_MEM_RESERVED, v2 || result ? result : NVML_ERROR_NOT_SUPPORTED,
		 (int64_t)(m->reserved / 1024));
}

void nvml_read_memory(struct nvml_at *a, nvml_device handle)
{
	struct nvml_memory_v2 m = { .version = NVML_VERSION(struct nvml_memory_v2, 2) };
	struct nvml_memory old = { 0 };
	int result = NVML_ERROR_FUNCTION_NOT_FOUND;

	if (!a->g->no_memory_v2)
		result = NVML_CALL(a, memory_v2, handle, &m);
	if (result == 0 || result == NVML_ERROR_NO_PERMISSION || result == NVML_ERROR_GPU_IS_LOST ||
	    result == NVML_ERROR_RESET_REQUIRED) {
		put_memory(a, result, &m, true);
		return;
	}
	/* A driver before 510 lacks it; others may refuse the version. */
	a->g->no_memory_v2 = result == NVML_ERROR_FUNCTION_NOT_FOUND ||
			     result == NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	result = NVML_CALL(a, memory, handle, &old);
	m.total = old.total;
	m.used = old.used;
	m.free = old.free;
	m.reserved = 0;
	put_memory(a, result, &m, false);
}

static void read_device_memory(struct nvml_at *a)
{
	/* GB10, Jetson: the GPU works in the machine's memory and has none to count. */
	if (a->g->unified && a->depth < GPU_SLOW) {
		put_memory(a, NVML_ERROR_NOT_SUPPORTED, &(struct nvml_memory_v2){ 0 }, true);
		return;
	}
	nvml_read_memory(a, a->g->handle);
	a->g->unified = gpu_metric(nvml_row(a), M_GPU_MEM_TOTAL)->have == GPU_NOT_SUPPORTED;
	a->g->memory_total = gpu_metric(nvml_row(a), M_GPU_MEM_TOTAL)->have == GPU_KNOWN
				 ? gpu_metric(nvml_row(a), M_GPU_MEM_TOTAL)->raw
				 : -1;
}

/* Counted since the driver was loaded: it neither falls nor grows faster than power can be drawn. The
 * next one is compared with this one either way, so that a counter that begins anew costs one reading. */
static bool energy_plausible(struct nvml_gpu *g, unsigned long long mj)
{
	unsigned long long before = g->energy_mj;
	int64_t now = clock_mono_ns(), passed = now - g->energy_ns + ENERGY_UNEVEN_NS;
	bool first = g->energy_ns == 0;

	g->energy_mj = mj;
	g->energy_ns = now;
	if (mj > MOST_MJ || first)
		return mj <= MOST_MJ;
	return mj >= before &&
	       (double)(mj - before) <= (double)NVML_MOST_MW * ((double)passed / NS_PER_S);
}

static void read_power(struct nvml_at *a)
{
	unsigned long long mj = 0;
	unsigned mw = 0;
	int result = NVML_TRY(a, power, a->g->handle, &mw);

	nvml_put_up_to(a, M_GPU_POWER, result, mw, NVML_MOST_MW);
	result = NVML_TRY(a, energy, a->g->handle, &mj);
	if (result == 0 && !energy_plausible(a->g, mj))
		result = NVML_ERROR_UNKNOWN;
	nvml_put(a, M_GPU_ENERGY, result, (int64_t)mj);
}

static void read_clock(struct nvml_at *a, unsigned clock, enum metric_id m)
{
	unsigned mhz = 0;
	int result = NVML_CALL(a, clock, a->g->handle, clock, &mhz);

	nvml_put_up_to(a, m, result, mhz, NVML_MOST_MHZ);
}

static void read_reasons(struct nvml_at *a)
{
	static const struct {
		enum metric_id m;
		unsigned long long bits;
	} slow[] = {
		{ M_GPU_SLOW_IDLE, NVML_REASON_IDLE },
		{ M_GPU_SLOW_SETTING, NVML_REASON_APP_CLOCKS | NVML_REASON_DISPLAY_CLOCK },
		{ M_GPU_SLOW_POWER, NVML_REASON_SW_POWER_CAP },
		{ M_GPU_SLOW_BRAKE, NVML_REASON_HW_BRAKE },
		{ M_GPU_SLOW_HEAT, NVML_REASON_SW_THERMAL },
		{ M_GPU_SLOW_HEAT_HW, NVML_REASON_HW_THERMAL },
		{ M_GPU_SLOW_HW, NVML_REASON_HW_SLOWDOWN },
		{ M_GPU_SLOW_SYNC, NVML_REASON_SYNC_BOOST },
	};
	unsigned long long bits = 0;
	int result = NVML_TRY(a, reasons, a->g->handle, &bits);

	for (size_t i = 0; i < ARRAY_LEN(slow); i++)
		nvml_put(a, slow[i].m, result, (bits & slow[i].bits) != 0);
	if (result == 0)
		gpu_put_number(nvml_row(a), GPU_P_REASONS, (int64_t)bits);
	else
		gpu_lacks_property(nvml_row(a), GPU_P_REASONS, nvml_have(result));
}

static void read_temperature(struct nvml_at *a)
{
	struct nvml_temperature v = { .version = NVML_VERSION(struct nvml_temperature, 1),
				      .sensor = NVML_TEMPERATURE_GPU };
	unsigned t = 0;
	int result = NVML_TRY(a, temperature, a->g->handle, NVML_TEMPERATURE_GPU, &t);

	v.temperature = (int)t;
	/* Deprecated since driver 570, and gone one day. */
	if (nvml_have(result) == GPU_NOT_SUPPORTED || result == NVML_ERROR_DEPRECATED)
		result = NVML_TRY(a, temperature_v, a->g->handle, &v);
	if (result == 0 && (v.temperature < -100 || v.temperature > MOST_CELSIUS))
		result = NVML_ERROR_UNKNOWN;
	nvml_put(a, M_GPU_TEMPERATURE, result, v.temperature);
}

/* Several in one call: each has a result of its own. */
static void read_fields(struct nvml_at *a)
{
	static const struct {
		enum metric_id m;
		unsigned field, scope;
		bool slow;
	} wanted[] = {
		{ M_GPU_TEMP_MEM, NVML_FI_DEV_MEMORY_TEMP, 0, false },
		{ M_GPU_HELD_POWER, NVML_FI_DEV_PERF_POLICY_POWER, 0, false },
		{ M_GPU_HELD_HEAT, NVML_FI_DEV_PERF_POLICY_THERMAL, 0, false },
		{ M_GPU_NVLINK_TX, NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, UINT_MAX, false },
		{ M_GPU_NVLINK_RX, NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX, UINT_MAX, false },
		{ M_GPU_PCIE_REPLAYS, NVML_FI_DEV_PCIE_REPLAY_COUNTER, 0, true },
	};
	struct nvml_field_value v[ARRAY_LEN(wanted)] = { 0 };
	int n = ARRAY_LEN(wanted) - (a->depth < GPU_SLOW), result;

	for (int i = 0; i < n; i++)
		v[i] = (struct nvml_field_value){ .id = wanted[i].field,
						  .scope = wanted[i].scope,
						  .result = NVML_ERROR_NOT_SUPPORTED };
	result = NVML_TRY(a, fields, a->g->handle, n, v);
	for (int i = 0; i < n; i++) {
		int64_t value = 0;
		int own = result == 0 ? nvml_field(&v[i], &value) : result;

		/* A field this driver does not know. */
		if (own == NVML_ERROR_INVALID_ARGUMENT)
			own = NVML_ERROR_NOT_SUPPORTED;
		nvml_put(a, wanted[i].m, own, value);
	}
}

static void read_violation(struct nvml_at *a, unsigned policy, enum metric_id m)
{
	struct nvml_violation v = { 0 };
	int result;

	if (gpu_metric(nvml_row(a), m)->have == GPU_KNOWN)
		return;
	result = NVML_TRY(a, violation, a->g->handle, policy, &v);
	nvml_put(a, m, result == 0 && v.violation_ns > INT64_MAX ? NVML_ERROR_UNKNOWN : result,
		 (int64_t)v.violation_ns);
}

static void read_ecc(struct nvml_at *a, unsigned type, enum metric_id m)
{
	unsigned long long n = 0;
	int result = NVML_TRY(a, ecc_total, a->g->handle, type, NVML_ECC_VOLATILE, &n);

	nvml_put(a, m, result == 0 && n > INT64_MAX ? NVML_ERROR_UNKNOWN : result, (int64_t)n);
}

static void put_throughput(struct nvml_at *a, enum metric_id m, int64_t kbs)
{
	if (kbs >= 0)
		nvml_put_up_to(a, m, NVML_SUCCESS, kbs, MOST_PCIE_KBS);
	else
		gpu_lacks(nvml_row(a), m, (enum gpu_have)(-1 - kbs));
}

static void read_fast(struct nvml_at *a)
{
	read_busy(a);
	read_device_memory(a);
	read_power(a);
	read_clock(a, NVML_CLOCK_SM, M_GPU_CLOCK_SM);
	read_reasons(a);
	if (!a->g->mig)
		nvml_read_gpm(a, &a->g->gpm, -1);
}

static void read_middle(struct nvml_at *a)
{
	unsigned percent = 0, period;
	int result = NVML_TRY(a, encoder, a->g->handle, &percent, &period);

	nvml_put_percent(a, M_GPU_ENCODER, result, percent);
	result = NVML_TRY(a, decoder, a->g->handle, &percent, &period);
	nvml_put_percent(a, M_GPU_DECODER, result, percent);
	result = NVML_TRY(a, fan, a->g->handle, &percent);
	nvml_put_up_to(a, M_GPU_FAN, result, (int64_t)percent * 100, MOST_FAN);
	read_temperature(a);
	read_clock(a, NVML_CLOCK_MEM, M_GPU_CLOCK_MEM);
	read_clock(a, NVML_CLOCK_GRAPHICS, M_GPU_CLOCK_GRAPHICS);
	read_clock(a, NVML_CLOCK_VIDEO, M_GPU_CLOCK_VIDEO);
	read_fields(a);
	read_violation(a, NVML_POLICY_POWER, M_GPU_HELD_POWER);
	read_violation(a, NVML_POLICY_THERMAL, M_GPU_HELD_HEAT);
	read_ecc(a, NVML_ECC_CORRECTED, M_GPU_ECC_CORRECTED);
	read_ecc(a, NVML_ECC_UNCORRECTED, M_GPU_ECC_UNCORRECTED);
	put_throughput(a, M_GPU_PCIE_TX, atomic_load(&a->g->pcie_tx));
	put_throughput(a, M_GPU_PCIE_RX, atomic_load(&a->g->pcie_rx));
}

static void read_slow(struct nvml_at *a)
{
	unsigned v = 0;
	int result = NVML_TRY(a, power_limit, a->g->handle, &v);

	nvml_put_up_to(a, M_GPU_POWER_LIMIT, result, v, NVML_MOST_MW);
	result = NVML_CALL(a, clock_max, a->g->handle, NVML_CLOCK_SM, &v);
	nvml_put_up_to(a, M_GPU_CLOCK_SM_MAX, result, v, NVML_MOST_MHZ);
	result = NVML_CALL(a, clock_max, a->g->handle, NVML_CLOCK_MEM, &v);
	nvml_put_up_to(a, M_GPU_CLOCK_MEM_MAX, result, v, NVML_MOST_MHZ);
	result = NVML_CALL(a, threshold, a->g->handle, NVML_THRESHOLD_SLOWDOWN, &v);
	nvml_put_up_to(a, M_GPU_TEMP_SLOWDOWN, result, v, MOST_CELSIUS);
	result = NVML_TRY(a, pcie_gen, a->g->handle, &v);
	nvml_put_up_to(a, M_GPU_PCIE_GEN, result, v, MOST_PCIE_GEN);
	result = NVML_TRY(a, pcie_width, a->g->handle, &v);
	nvml_put_up_to(a, M_GPU_PCIE_WIDTH, result, v, MOST_PCIE_LANES);
	if (gpu_metric(nvml_row(a), M_GPU_PCIE_REPLAYS)->have != GPU_KNOWN) {
		result = NVML_TRY(a, pcie_replays, a->g->handle, &v);
		nvml_put(a, M_GPU_PCIE_REPLAYS, result, v);
	}
	nvml_find_parts(a);
}

static void read_mode(struct nvml_at *a)
{
	struct gpu_device *d = nvml_row(a);
	unsigned mode = 0;
	int result = NVML_TRY(a, compute_mode, a->g->handle, &mode);

	if (result == 0 && gpu_compute_mode_name(mode))
		snprintf(a->g->mode, sizeof(a->g->mode), "%s", gpu_compute_mode_name(mode));
	if (result == 0)
		gpu_put_number(d, GPU_P_COMPUTE_MODE, mode);
	else
		gpu_lacks_property(d, GPU_P_COMPUTE_MODE, nvml_have(result));
}

void nvml_read_device(struct nvml_at *a)
{
	/* In the order of depth; a GPU found lost on the way is asked no more. */
	read_fast(a);
	if (a->depth >= GPU_MIDDLE && a->g->state == GPU_KNOWN)
		read_middle(a);
	if (a->depth >= GPU_SLOW && a->g->state == GPU_KNOWN) {
		read_slow(a);
		read_mode(a);
	}
	/* Behind read_slow(), which finds the partitions whose processes are listed with them. */
	if (a->depth >= GPU_MIDDLE && a->g->state == GPU_KNOWN && !a->g->n_parts)
		nvml_read_processes(a, a->g->handle, true);
	if (a->depth >= GPU_ALL && a->g->state == GPU_KNOWN)
		nvml_read_properties(a);
	memcpy(nvml_row(a)->mode, a->g->mode, sizeof(nvml_row(a)->mode));
}

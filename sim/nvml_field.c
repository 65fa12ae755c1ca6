/* SPDX-License-Identifier: MIT
 *
 * The virtual libnvidia-ml.so.1: nvmlDeviceGetFieldValues, the call that reads a list of numbered
 * values. Each has its own return code; the call itself succeeds.
 */
#include "nvml_sim.h"

enum { LINK_SPEED_MBPS = 25000, ALL_LINKS = -1 };

static int put_uint(struct nvml_field_value *f, uint64_t value)
{
	f->type = NVML_TYPE_UINT;
	f->value = (union nvml_value){ .ui = (unsigned int)value };
	return NVML_SUCCESS;
}

static int put_ullong(struct nvml_field_value *f, uint64_t value)
{
	f->type = NVML_TYPE_ULLONG;
	f->value = (union nvml_value){ .ull = value };
	return NVML_SUCCESS;
}

static int put_int(struct nvml_field_value *f, int value)
{
	f->type = NVML_TYPE_INT;
	f->value = (union nvml_value){ .si = value };
	return NVML_SUCCESS;
}

static int ecc_field(const struct nvml_call *c, const struct vgpu_now *now,
		     struct nvml_field_value *f)
{
	bool rows = c->about->architecture >= NVML_ARCH_AMPERE;

	if (!c->about->ecc)
		return NVML_ERROR_NOT_SUPPORTED;
	switch (f->id) {
	case NVML_FI_DEV_ECC_CURRENT:
	case NVML_FI_DEV_ECC_PENDING:
		return put_uint(f, 1);
	case NVML_FI_DEV_ECC_SBE_VOL_TOTAL:
	case NVML_FI_DEV_ECC_SBE_AGG_TOTAL:
		return put_ullong(f, now->ecc_corrected);
	case NVML_FI_DEV_ECC_DBE_VOL_TOTAL:
	case NVML_FI_DEV_ECC_DBE_AGG_TOTAL:
		return put_ullong(f, now->ecc_uncorrected);
	case NVML_FI_DEV_RETIRED_SBE:
		return rows ? NVML_ERROR_NOT_SUPPORTED : put_uint(f, now->retired_single);
	case NVML_FI_DEV_RETIRED_DBE:
		return rows ? NVML_ERROR_NOT_SUPPORTED : put_uint(f, now->retired_double);
	case NVML_FI_DEV_RETIRED_PENDING:
		return rows ? NVML_ERROR_NOT_SUPPORTED : put_uint(f, now->needs_reset);
	case NVML_FI_DEV_REMAPPED_COR:
		return rows ? put_uint(f, now->remapped_correctable) : NVML_ERROR_NOT_SUPPORTED;
	case NVML_FI_DEV_REMAPPED_UNC:
		return rows ? put_uint(f, now->remapped_uncorrectable) : NVML_ERROR_NOT_SUPPORTED;
	case NVML_FI_DEV_REMAPPED_PENDING:
		return rows ? put_uint(f, now->needs_reset) : NVML_ERROR_NOT_SUPPORTED;
	case NVML_FI_DEV_REMAPPED_FAILURE:
		return rows ? put_uint(f, 0) : NVML_ERROR_NOT_SUPPORTED;
	}
	return NVML_ERROR_NOT_SUPPORTED;
}

/* Nanoseconds the clocks were held back. */
static int held_field(const struct vgpu_now *now, struct nvml_field_value *f)
{
	switch (f->id) {
	case NVML_FI_DEV_PERF_POLICY_POWER:
		return put_ullong(f, now->held_power_ns);
	case NVML_FI_DEV_PERF_POLICY_THERMAL:
		return put_ullong(f, now->held_heat_ns);
	case NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN:
		return put_ullong(f, now->held_heat_sw_ns);
	case NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN:
		return put_ullong(f, now->held_heat_hw_ns);
	case NVML_FI_DEV_PERF_POLICY_SYNC_BOOST:
		return put_ullong(f, now->held_sync_ns);
	case NVML_FI_DEV_PERF_POLICY_BOARD_LIMIT:
	case NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN:
		return put_ullong(f, now->held_brake_ns);
	case NVML_FI_DEV_PERF_POLICY_LOW_UTILIZATION:
	case NVML_FI_DEV_PERF_POLICY_RELIABILITY:
	case NVML_FI_DEV_PERF_POLICY_TOTAL_APP_CLOCKS:
	case NVML_FI_DEV_PERF_POLICY_TOTAL_BASE_CLOCKS:
		return put_ullong(f, 0);
	}
	return NVML_ERROR_NOT_SUPPORTED;
}

static int power_field(const struct nvml_call *c, const struct vgpu_now *now,
		       struct nvml_field_value *f)
{
	const struct vgpu_about *a = c->about;

	switch (f->id) {
	case NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION:
	case NVML_FI_DEV_ENERGY:
		return put_ullong(f, now->energy_mj);
	case NVML_FI_DEV_POWER_AVERAGE: /* scope 0: the GPU; modules and memory have no sensor here */
		return f->scope ? NVML_ERROR_NOT_SUPPORTED : put_uint(f, now->power_mw);
	case NVML_FI_DEV_POWER_INSTANT:
		return f->scope ? NVML_ERROR_NOT_SUPPORTED : put_uint(f, now->power_instant_mw);
	case NVML_FI_DEV_POWER_MIN_LIMIT:
		return f->scope ? NVML_ERROR_NOT_SUPPORTED : put_uint(f, a->power_min_mw);
	case NVML_FI_DEV_POWER_MAX_LIMIT:
	case NVML_FI_DEV_POWER_DEFAULT_LIMIT:
		return f->scope ? NVML_ERROR_NOT_SUPPORTED : put_uint(f, a->power_max_mw);
	case NVML_FI_DEV_POWER_CURRENT_LIMIT:
	case NVML_FI_DEV_POWER_REQUESTED_LIMIT:
		return f->scope ? NVML_ERROR_NOT_SUPPORTED : put_uint(f, a->power_limit_mw);
	}
	return NVML_ERROR_NOT_SUPPORTED;
}

/* Limits are given as degrees under the maximal operating temperature, slowdown - 2. */
static int heat_field(const struct nvml_call *c, const struct vgpu_now *now,
		      struct nvml_field_value *f)
{
	const struct vgpu_about *a = c->about;

	if (f->id == NVML_FI_DEV_MEMORY_TEMP)
		return now->temperature_memory > 0 ? put_uint(f, (uint64_t)now->temperature_memory)
						   : NVML_ERROR_NOT_SUPPORTED;
	if (a->architecture < NVML_ARCH_ADA || !a->temp_slowdown)
		return NVML_ERROR_NOT_SUPPORTED;
	switch (f->id) {
	case NVML_FI_DEV_TEMPERATURE_SHUTDOWN_TLIMIT:
		return a->temp_shutdown ? put_int(f, a->temp_slowdown - 2 - a->temp_shutdown)
					: NVML_ERROR_NOT_SUPPORTED;
	case NVML_FI_DEV_TEMPERATURE_SLOWDOWN_TLIMIT:
		return put_int(f, -2);
	case NVML_FI_DEV_TEMPERATURE_MEM_MAX_TLIMIT:
	case NVML_FI_DEV_TEMPERATURE_GPU_MAX_TLIMIT:
		return put_int(f, 0);
	}
	return NVML_ERROR_NOT_SUPPORTED;
}

/* The traffic is shared evenly by the links; scope ALL_LINKS asks for the sum. */
static int link_field(const struct nvml_call *c, const struct vgpu_now *now,
		      struct nvml_field_value *f)
{
	int n = c->about->nvlinks;
	bool all = f->scope == (unsigned int)ALL_LINKS;

	if (!n)
		return NVML_ERROR_NOT_SUPPORTED;
	if (f->id == NVML_FI_DEV_NVLINK_LINK_COUNT)
		return put_uint(f, (uint64_t)n);
	if (f->id == NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON)
		return put_uint(f, LINK_SPEED_MBPS);
	if (!all && f->scope >= (unsigned int)n)
		return NVML_ERROR_INVALID_ARGUMENT;
	switch (f->id) {
	case NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX:
	case NVML_FI_DEV_NVLINK_THROUGHPUT_RAW_TX:
		return put_ullong(f, now->nvlink_tx_kib / (all ? 1 : (unsigned int)n));
	case NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX:
	case NVML_FI_DEV_NVLINK_THROUGHPUT_RAW_RX:
		return put_ullong(f, now->nvlink_rx_kib / (all ? 1 : (unsigned int)n));
	case NVML_FI_DEV_NVLINK_GET_SPEED:
		return put_uint(f, LINK_SPEED_MBPS);
	case NVML_FI_DEV_NVLINK_GET_STATE:
		return put_uint(f, 1);
	}
	return NVML_ERROR_NOT_SUPPORTED;
}

static int other_field(const struct nvml_call *c, const struct vgpu_now *now,
		       struct nvml_field_value *f)
{
	switch (f->id) {
	case NVML_FI_DEV_PCIE_REPLAY_COUNTER:
		return put_uint(f, now->pcie_replays);
	case NVML_FI_DEV_PCIE_REPLAY_ROLLOVER_COUNTER:
		return put_uint(f, 0);
	case NVML_FI_DEV_PCIE_COUNT_TX_BYTES:
		return put_ullong(f, now->pcie_tx_bytes);
	case NVML_FI_DEV_PCIE_COUNT_RX_BYTES:
		return put_ullong(f, now->pcie_rx_bytes);
	case NVML_FI_DEV_C2C_LINK_COUNT:
		return put_uint(f, 0);
	case NVML_FI_DEV_IS_RESETLESS_MIG_SUPPORTED:
		return put_uint(f, c->about->architecture >= NVML_ARCH_HOPPER);
	case NVML_FI_DEV_RESET_STATUS:
		return put_uint(f, now->needs_reset);
	case NVML_FI_DEV_DRAIN_AND_RESET_STATUS:
		return put_uint(f, 0);
	case NVML_FI_DEV_GET_GPU_RECOVERY_ACTION:
		return put_uint(f, now->needs_reset);
	}
	return NVML_ERROR_NOT_SUPPORTED;
}

static int field(const struct nvml_call *c, const struct vgpu_now *now, struct nvml_field_value *f)
{
	static int (*const groups[])(const struct nvml_call *, const struct vgpu_now *,
				     struct nvml_field_value *) = { power_field, heat_field,
								    link_field, ecc_field,
								    other_field };
	int rc = held_field(now, f);

	for (size_t i = 0; rc == NVML_ERROR_NOT_SUPPORTED && i < sizeof(groups) / sizeof(groups[0]);
	     i++)
		rc = groups[i](c, now, f);
	return rc;
}

NVML_API nvmlDeviceGetFieldValues(nvml_device h, int n, struct nvml_field_value *fields)
{
	struct nvml_call c;
	struct vgpu_now now;
	int rc = nvml_enter_now(&c, __func__, h, fields, &now);

	if (rc)
		return rc;
	if (n <= 0)
		return NVML_ERROR_INVALID_ARGUMENT;
	for (int i = 0; i < n; i++) {
		fields[i].time_us = now.time_ns / 1000;
		fields[i].latency_us = 1;
		fields[i].result = field(&c, &now, &fields[i]);
	}
	return NVML_SUCCESS;
}

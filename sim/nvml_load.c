/* SPDX-License-Identifier: MIT
 *
 * The virtual libnvidia-ml.so.1: how busy, how hot, how fast, at what power, and what holds it back.
 */
#include "nvml_sim.h"

enum { PERIOD_US = 166667 }; /* the driver's sampling period */

NVML_API nvmlDeviceGetUtilizationRates(nvml_device h, struct nvml_utilization *ret)
{
	struct nvml_call c;
	struct vgpu_now now;
	int rc = nvml_enter_now(&c, __func__, h, ret, &now);

	if (rc)
		return rc;
	if (c.about->mig)
		return NVML_ERROR_NOT_SUPPORTED;
	*ret = (struct nvml_utilization){ nvml_percent(now.busy), nvml_percent(now.memory_busy) };
	return NVML_SUCCESS;
}

static int engine(const char *symbol, nvml_device h, size_t member, unsigned int *ret,
		  unsigned int *period)
{
	struct nvml_call c;
	struct vgpu_now now;
	int rc = nvml_enter_now(&c, symbol, h, ret, &now);

	if (rc)
		return rc;
	if (!period)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (c.about->mig)
		return NVML_ERROR_NOT_SUPPORTED;
	*ret = member ? nvml_percent(*(const double *)((const char *)&now + member)) : 0;
	*period = PERIOD_US;
	return NVML_SUCCESS;
}

NVML_API nvmlDeviceGetEncoderUtilization(nvml_device h, unsigned int *ret, unsigned int *period)
{
	return engine(__func__, h, offsetof(struct vgpu_now, encoder), ret, period);
}

NVML_API nvmlDeviceGetDecoderUtilization(nvml_device h, unsigned int *ret, unsigned int *period)
{
	return engine(__func__, h, offsetof(struct vgpu_now, decoder), ret, period);
}

NVML_API nvmlDeviceGetJpgUtilization(nvml_device h, unsigned int *ret, unsigned int *period)
{
	return engine(__func__, h, 0, ret, period);
}

NVML_API nvmlDeviceGetOfaUtilization(nvml_device h, unsigned int *ret, unsigned int *period)
{
	return engine(__func__, h, 0, ret, period);
}

NVML_API nvmlDeviceGetEncoderStats(nvml_device h, unsigned int *sessions, unsigned int *fps,
				   unsigned int *latency_us)
{
	struct nvml_call c;
	int rc = nvml_enter(&c, __func__, h);

	if (rc)
		return rc;
	if (!sessions || !fps || !latency_us)
		return NVML_ERROR_INVALID_ARGUMENT;
	*sessions = *fps = *latency_us = 0;
	return NVML_SUCCESS;
}

/* One sample, the newest: a driver keeps some seconds of them. */
static int sample_value(const struct vgpu_now *now, unsigned int type, unsigned int *ret)
{
	switch (type) {
	case NVML_SAMPLES_POWER:
		*ret = now->power_mw;
		return NVML_SUCCESS;
	case NVML_SAMPLES_GPU:
		*ret = nvml_percent(now->busy);
		return NVML_SUCCESS;
	case NVML_SAMPLES_MEMORY:
		*ret = nvml_percent(now->memory_busy);
		return NVML_SUCCESS;
	case NVML_SAMPLES_ENCODER:
		*ret = nvml_percent(now->encoder);
		return NVML_SUCCESS;
	case NVML_SAMPLES_DECODER:
		*ret = nvml_percent(now->decoder);
		return NVML_SUCCESS;
	case NVML_SAMPLES_CLOCK:
		*ret = now->clock_sm;
		return NVML_SUCCESS;
	case NVML_SAMPLES_MEMORY_CLOCK:
		*ret = now->clock_mem;
		return NVML_SUCCESS;
	}
	return type < NVML_SAMPLES_COUNT ? NVML_ERROR_NOT_SUPPORTED : NVML_ERROR_INVALID_ARGUMENT;
}

NVML_API nvmlDeviceGetSamples(nvml_device h, unsigned int type, unsigned long long since_us,
			      unsigned int *value_type, unsigned int *count,
			      struct nvml_sample *ret)
{
	struct nvml_call c;
	struct vgpu_now now;
	unsigned long long time_us;
	unsigned int value;
	int rc = nvml_enter_now(&c, __func__, h, count, &now);

	if (!rc)
		rc = value_type ? sample_value(&now, type, &value) : NVML_ERROR_INVALID_ARGUMENT;
	if (rc)
		return rc;
	*value_type = NVML_TYPE_UINT;
	if (!ret) {
		*count = 1;
		return NVML_SUCCESS;
	}
	time_us = (unsigned long long)now.time_ns / 1000 / PERIOD_US * PERIOD_US;
	if (time_us <= since_us || !*count)
		return NVML_ERROR_NOT_FOUND;
	*count = 1;
	ret->time_us = time_us;
	ret->value = (union nvml_value){ .ui = value };
	return NVML_SUCCESS;
}

/* Clocks. */

static int clock_now(const struct vgpu_now *now, unsigned int type, unsigned int *ret)
{
	const unsigned int clocks[] = { now->clock_sm, now->clock_sm, now->clock_mem,
					now->clock_video };

	if (type > NVML_CLOCK_VIDEO)
		return NVML_ERROR_INVALID_ARGUMENT;
	*ret = clocks[type];
	return NVML_SUCCESS;
}

static int clock_max(const struct vgpu_about *a, unsigned int type, unsigned int *ret)
{
	const unsigned int clocks[] = { a->clock_sm_max, a->clock_sm_max, a->clock_mem_max,
					a->clock_video_max };

	if (type > NVML_CLOCK_VIDEO)
		return NVML_ERROR_INVALID_ARGUMENT;
	*ret = clocks[type];
	return NVML_SUCCESS;
}

NVML_API nvmlDeviceGetClockInfo(nvml_device h, unsigned int type, unsigned int *ret)
{
	struct nvml_call c;
	struct vgpu_now now;
	int rc = nvml_enter_now(&c, __func__, h, ret, &now);

	return rc ? rc : clock_now(&now, type, ret);
}

NVML_API nvmlDeviceGetMaxClockInfo(nvml_device h, unsigned int type, unsigned int *ret)
{
	struct nvml_call c;
	struct vgpu_now now;
	int rc = nvml_enter_now(&c, __func__, h, ret, &now);

	return rc ? rc : clock_max(c.about, type, ret);
}

NVML_API nvmlDeviceGetMaxCustomerBoostClock(nvml_device h, unsigned int type, unsigned int *ret)
{
	struct nvml_call c;
	struct vgpu_now now;
	int rc = nvml_enter_now(&c, __func__, h, ret, &now);

	if (rc)
		return rc;
	return type == NVML_CLOCK_VIDEO ? NVML_ERROR_NOT_SUPPORTED : clock_max(c.about, type, ret);
}

/* Application clocks: gone in 590, the maximum before. */
static int application_clock(const char *symbol, nvml_device h, unsigned int type,
			     unsigned int *ret)
{
	struct nvml_call c;
	struct vgpu_now now;
	int rc = nvml_enter_now(&c, symbol, h, ret, &now);

	if (rc)
		return rc;
	if (nvml_driver_branch(&c) >= 590)
		return NVML_ERROR_DEPRECATED;
	if (!c.about->ecc || type == NVML_CLOCK_VIDEO)
		return NVML_ERROR_NOT_SUPPORTED;
	return clock_max(c.about, type, ret);
}

NVML_API nvmlDeviceGetApplicationsClock(nvml_device h, unsigned int type, unsigned int *ret)
{
	return application_clock(__func__, h, type, ret);
}

NVML_API nvmlDeviceGetDefaultApplicationsClock(nvml_device h, unsigned int type, unsigned int *ret)
{
	return application_clock(__func__, h, type, ret);
}

NVML_API nvmlDeviceGetClock(nvml_device h, unsigned int type, unsigned int id, unsigned int *ret)
{
	if (id == NVML_CLOCK_ID_CURRENT)
		return nvmlDeviceGetClockInfo(h, type, ret);
	if (id == NVML_CLOCK_ID_BOOST_MAX)
		return nvmlDeviceGetMaxCustomerBoostClock(h, type, ret);
	return application_clock(__func__, h, type, ret);
}

static int reasons(const char *symbol, nvml_device h, bool supported, unsigned long long *ret)
{
	struct nvml_call c;
	struct vgpu_now now;
	int rc = nvml_enter_now(&c, symbol, h, ret, &now);

	if (!rc)
		*ret = supported ? NVML_REASON_ALL : now.reasons;
	return rc;
}

#define REASONS(name, supported)                              \
	NVML_API name(nvml_device h, unsigned long long *ret) \
	{                                                     \
		return reasons(__func__, h, supported, ret);  \
	}
REASONS(nvmlDeviceGetCurrentClocksEventReasons, false)
REASONS(nvmlDeviceGetCurrentClocksThrottleReasons, false)
REASONS(nvmlDeviceGetSupportedClocksEventReasons, true)
REASONS(nvmlDeviceGetSupportedClocksThrottleReasons, true)

NVML_API nvmlDeviceGetViolationStatus(nvml_device h, unsigned int policy,
				      struct nvml_violation *ret)
{
	struct nvml_call c;
	struct vgpu_now now;
	uint64_t held = 0;
	int rc = nvml_enter_now(&c, __func__, h, ret, &now);

	if (rc)
		return rc;
	switch (policy) {
	case NVML_POLICY_POWER:
		held = now.held_power_ns;
		break;
	case NVML_POLICY_THERMAL:
		held = now.held_heat_ns;
		break;
	case NVML_POLICY_SYNC_BOOST:
		held = now.held_sync_ns;
		break;
	case NVML_POLICY_BOARD_LIMIT:
		held = now.held_brake_ns;
		break;
	case NVML_POLICY_LOW_UTILIZATION:
	case NVML_POLICY_RELIABILITY:
	case NVML_POLICY_APP_CLOCKS:
	case NVML_POLICY_BASE_CLOCKS:
		break;
	default:
		return NVML_ERROR_INVALID_ARGUMENT;
	}
	*ret = (struct nvml_violation){ (unsigned long long)now.time_ns / 1000, held };
	return NVML_SUCCESS;
}

static int pstate(const char *symbol, nvml_device h, unsigned int *ret)
{
	struct nvml_call c;
	struct vgpu_now now;
	int rc = nvml_enter_now(&c, symbol, h, ret, &now);

	if (!rc)
		*ret = now.pstate < 0 ? NVML_PSTATE_UNKNOWN : (unsigned int)now.pstate;
	return rc;
}

NVML_API nvmlDeviceGetPerformanceState(nvml_device h, unsigned int *ret)
{
	return pstate(__func__, h, ret);
}

NVML_API nvmlDeviceGetPowerState(nvml_device h, unsigned int *ret)
{
	return pstate(__func__, h, ret);
}

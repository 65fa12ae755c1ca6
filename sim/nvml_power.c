/* SPDX-License-Identifier: MIT
 *
 * The virtual libnvidia-ml.so.1: power, energy, temperature, fans.
 */
#include "nvml_sim.h"

NVML_API nvmlDeviceGetTemperature(nvml_device h, unsigned int sensor, unsigned int *ret)
{
	struct nvml_call c;
	struct vgpu_now now;
	int rc = nvml_enter_now(&c, __func__, h, ret, &now);

	if (rc)
		return rc;
	if (sensor != NVML_TEMPERATURE_GPU)
		return NVML_ERROR_INVALID_ARGUMENT;
	*ret = (unsigned int)now.temperature;
	return NVML_SUCCESS;
}

NVML_API nvmlDeviceGetTemperatureV(nvml_device h, struct nvml_temperature *ret)
{
	struct nvml_call c;
	struct vgpu_now now;
	int rc = nvml_enter_now(&c, __func__, h, ret, &now);

	if (!rc)
		rc = nvml_version(&c, ret->version, NVML_VERSION(struct nvml_temperature, 1));
	if (rc)
		return rc;
	if (ret->sensor != NVML_TEMPERATURE_GPU)
		return NVML_ERROR_INVALID_ARGUMENT;
	ret->temperature = now.temperature;
	return NVML_SUCCESS;
}

NVML_API nvmlDeviceGetTemperatureThreshold(nvml_device h, unsigned int which, unsigned int *ret)
{
	struct nvml_call c;
	struct vgpu_now now;
	int value = 0, rc = nvml_enter_now(&c, __func__, h, ret, &now);

	if (rc)
		return rc;
	if (which >= NVML_THRESHOLD_COUNT)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (which == NVML_THRESHOLD_SHUTDOWN)
		value = c.about->temp_shutdown;
	else if (which == NVML_THRESHOLD_SLOWDOWN)
		value = c.about->temp_slowdown;
	else if (which == NVML_THRESHOLD_MEM_MAX)
		value = c.about->temp_mem_max;
	else if (which == NVML_THRESHOLD_GPU_MAX)
		value = c.about->temp_slowdown ? c.about->temp_slowdown - 2 : 0;
	if (value <= 0)
		return NVML_ERROR_NOT_SUPPORTED;
	*ret = (unsigned int)value;
	return NVML_SUCCESS;
}

/* Degrees below the maximal operating temperature, which is 2 under the slowdown. */
NVML_API nvmlDeviceGetMarginTemperature(nvml_device h, struct nvml_margin *ret)
{
	struct nvml_call c;
	struct vgpu_now now;
	int rc = nvml_enter_now(&c, __func__, h, ret, &now);

	if (!rc)
		rc = nvml_version(&c, ret->version, NVML_VERSION(struct nvml_margin, 1));
	if (rc)
		return rc;
	if (c.about->architecture < NVML_ARCH_ADA || !c.about->temp_slowdown)
		return NVML_ERROR_NOT_SUPPORTED;
	ret->margin = c.about->temp_slowdown - 2 - now.temperature;
	return NVML_SUCCESS;
}

/* One of the numbers of now or of the limits, in mW. */
static int milliwatts(const char *symbol, nvml_device h, unsigned int *ret, size_t of_now,
		      size_t of_about)
{
	struct nvml_call c;
	struct vgpu_now now;
	const char *base;
	int rc = nvml_enter_now(&c, symbol, h, ret, &now);

	if (rc)
		return rc;
	base = of_now ? (const char *)&now + of_now : (const char *)c.about + of_about;
	if (!of_now && !*(const uint32_t *)base)
		return NVML_ERROR_NOT_SUPPORTED;
	*ret = *(const uint32_t *)base;
	return NVML_SUCCESS;
}

NVML_API nvmlDeviceGetPowerUsage(nvml_device h, unsigned int *ret)
{
	return milliwatts(__func__, h, ret, offsetof(struct vgpu_now, power_mw), 0);
}

NVML_API nvmlDeviceGetPowerManagementLimit(nvml_device h, unsigned int *ret)
{
	return milliwatts(__func__, h, ret, 0, offsetof(struct vgpu_about, power_limit_mw));
}

NVML_API nvmlDeviceGetEnforcedPowerLimit(nvml_device h, unsigned int *ret)
{
	return milliwatts(__func__, h, ret, 0, offsetof(struct vgpu_about, power_limit_mw));
}

NVML_API nvmlDeviceGetPowerManagementDefaultLimit(nvml_device h, unsigned int *ret)
{
	return milliwatts(__func__, h, ret, 0, offsetof(struct vgpu_about, power_max_mw));
}

NVML_API nvmlDeviceGetPowerManagementLimitConstraints(nvml_device h, unsigned int *min,
						      unsigned int *max)
{
	int rc = milliwatts(__func__, h, max, 0, offsetof(struct vgpu_about, power_max_mw));

	return rc ? rc : milliwatts(__func__, h, min, 0, offsetof(struct vgpu_about, power_min_mw));
}

NVML_API nvmlDeviceGetPowerManagementMode(nvml_device h, unsigned int *ret)
{
	int rc = milliwatts(__func__, h, ret, 0, offsetof(struct vgpu_about, power_limit_mw));

	if (!rc)
		*ret = 1;
	return rc;
}

NVML_API nvmlDeviceGetTotalEnergyConsumption(nvml_device h, unsigned long long *ret)
{
	struct nvml_call c;
	struct vgpu_now now;
	int rc = nvml_enter_now(&c, __func__, h, ret, &now);

	if (rc)
		return rc;
	if (c.about->architecture < NVML_ARCH_VOLTA)
		return NVML_ERROR_NOT_SUPPORTED;
	*ret = now.energy_mj;
	return NVML_SUCCESS;
}

static int fan(const char *symbol, nvml_device h, unsigned int number, unsigned int *ret)
{
	struct nvml_call c;
	struct vgpu_now now;
	int rc = nvml_enter_now(&c, symbol, h, ret, &now);

	if (rc)
		return rc;
	if (!c.about->fans)
		return NVML_ERROR_NOT_SUPPORTED;
	if (number >= (unsigned int)c.about->fans)
		return NVML_ERROR_INVALID_ARGUMENT;
	*ret = (unsigned int)now.fan_percent;
	return NVML_SUCCESS;
}

NVML_API nvmlDeviceGetFanSpeed(nvml_device h, unsigned int *ret)
{
	return fan(__func__, h, 0, ret);
}

NVML_API nvmlDeviceGetFanSpeed_v2(nvml_device h, unsigned int number, unsigned int *ret)
{
	return fan(__func__, h, number, ret);
}

NVML_API nvmlDeviceGetTargetFanSpeed(nvml_device h, unsigned int number, unsigned int *ret)
{
	return fan(__func__, h, number, ret);
}

NVML_API nvmlDeviceGetNumFans(nvml_device h, unsigned int *ret)
{
	struct nvml_call c;
	struct vgpu_now now;
	int rc = nvml_enter_now(&c, __func__, h, ret, &now);

	if (!rc)
		*ret = (unsigned int)c.about->fans;
	return rc;
}

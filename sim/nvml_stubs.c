/* SPDX-License-Identifier: MIT
 *
 * The virtual libnvidia-ml.so.1: the rest of the names (nvml_symbols.def). Arguments beyond the first
 * differ and are not looked at.
 */
#include "nvml_sim.h"

static int device_stub(const char *symbol, nvml_device h)
{
	struct nvml_call c;
	int rc = nvml_enter_mig(&c, symbol, h);

	return rc ? rc : NVML_ERROR_NOT_SUPPORTED;
}

static int other_stub(const char *symbol)
{
	struct nvml_call c;
	int rc = nvml_enter_system(&c, symbol);

	return rc ? rc : NVML_ERROR_NOT_SUPPORTED;
}

#define NVML_REAL(name)
#define NVML_DEVICE(name)                        \
	NVML_API name(nvml_device h)             \
	{                                        \
		return device_stub(__func__, h); \
	}
#define NVML_OTHER(name)                     \
	NVML_API name(void)                  \
	{                                    \
		return other_stub(__func__); \
	}
#include "nvml_symbols.def"

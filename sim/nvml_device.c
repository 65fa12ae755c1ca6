/* SPDX-License-Identifier: MIT
 *
 * The virtual libnvidia-ml.so.1: what a GPU is: names, numbers, modes.
 */
#include "nvml_sim.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

NVML_API nvmlDeviceGetName(nvml_device h, char *ret, unsigned int size)
{
	struct nvml_call c;
	char name[160];
	int rc = nvml_enter_mig(&c, __func__, h);

	if (rc)
		return rc;
	if (c.part < 0)
		return nvml_text(ret, size, c.about->name);
	snprintf(name, sizeof(name), "%s MIG %s", c.about->name,
		 c.about->partition[c.part].profile);
	return nvml_text(ret, size, name);
}

NVML_API nvmlDeviceGetUUID(nvml_device h, char *ret, unsigned int size)
{
	struct nvml_call c;
	int rc = nvml_enter_mig(&c, __func__, h);

	if (rc)
		return rc;
	return nvml_text(ret, size, c.part < 0 ? c.about->uuid : c.about->partition[c.part].uuid);
}

/* Of a whole GPU its number, of a MIG instance its number on its GPU. */
NVML_API nvmlDeviceGetIndex(nvml_device h, unsigned int *ret)
{
	struct nvml_call c;
	int rc = nvml_enter_mig(&c, __func__, h);

	if (rc)
		return rc;
	if (!ret)
		return NVML_ERROR_INVALID_ARGUMENT;
	*ret = (unsigned int)(c.part < 0 ? c.device : c.part);
	return NVML_SUCCESS;
}

static int text(const char *symbol, nvml_device h, size_t member, char *ret, unsigned int size)
{
	struct nvml_call c;
	const char *value;
	int rc = nvml_enter(&c, symbol, h);

	if (rc)
		return rc;
	value = (const char *)c.about + member;
	return *value ? nvml_text(ret, size, value) : NVML_ERROR_NOT_SUPPORTED;
}

NVML_API nvmlDeviceGetSerial(nvml_device h, char *ret, unsigned int size)
{
	return text(__func__, h, offsetof(struct vgpu_about, serial), ret, size);
}

NVML_API nvmlDeviceGetVbiosVersion(nvml_device h, char *ret, unsigned int size)
{
	return text(__func__, h, offsetof(struct vgpu_about, vbios), ret, size);
}

/* Texts that are the same for all virtual GPUs. */
static int fixed_text(const char *symbol, nvml_device h, const char *value, char *ret,
		      unsigned int size)
{
	struct nvml_call c;
	int rc = nvml_enter(&c, symbol, h);

	return rc ? rc : nvml_text(ret, size, value);
}

NVML_API nvmlDeviceGetBoardPartNumber(nvml_device h, char *ret, unsigned int size)
{
	return fixed_text(__func__, h, "900-VGPU0-0000-000", ret, size);
}

NVML_API nvmlDeviceGetInforomImageVersion(nvml_device h, char *ret, unsigned int size)
{
	return fixed_text(__func__, h, "VGPU.0000.00.01", ret, size);
}

NVML_API nvmlDeviceGetInforomVersion(nvml_device h, unsigned int object, char *ret,
				     unsigned int size)
{
	struct nvml_call c;
	int rc = nvml_enter(&c, __func__, h);

	if (rc)
		return rc;
	if (object > NVML_INFOROM_DEN)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (object == NVML_INFOROM_OEM)
		return nvml_text(ret, size, "2.1");
	if (object == NVML_INFOROM_ECC && c.about->ecc)
		return nvml_text(ret, size, "7.16");
	return NVML_ERROR_NOT_SUPPORTED;
}

NVML_API nvmlDeviceValidateInforom(nvml_device h)
{
	struct nvml_call c;

	return nvml_enter(&c, __func__, h);
}

NVML_API nvmlDeviceGetInforomConfigurationChecksum(nvml_device h, unsigned int *ret)
{
	struct nvml_call c;
	int rc = nvml_enter(&c, __func__, h);

	if (rc)
		return rc;
	if (!ret)
		return NVML_ERROR_INVALID_ARGUMENT;
	*ret = 0x76677075u + (unsigned int)c.device;
	return NVML_SUCCESS;
}

static int pci(const char *symbol, nvml_device h, struct nvml_pci *ret)
{
	struct nvml_call c;
	const struct vgpu_about *a;
	int rc = nvml_enter_mig(&c, symbol, h);

	if (rc)
		return rc;
	if (!ret)
		return NVML_ERROR_INVALID_ARGUMENT;
	a = c.about;
	*ret = (struct nvml_pci){ .domain = a->domain,
				  .bus = a->bus,
				  .device = a->device,
				  .pci_id = a->pci_id,
				  .subsystem_id = a->subsystem_id };
	snprintf(ret->bus_id, sizeof(ret->bus_id), "%08X:%02X:%02X.0", a->domain, a->bus,
		 a->device);
	snprintf(ret->bus_id_legacy, sizeof(ret->bus_id_legacy), "%04X:%02X:%02X.0",
		 a->domain & 0xffff, a->bus & 0xff, a->device & 0xff);
	return NVML_SUCCESS;
}

NVML_API nvmlDeviceGetPciInfo(nvml_device h, struct nvml_pci *ret)
{
	return pci(__func__, h, ret);
}

NVML_API nvmlDeviceGetPciInfo_v2(nvml_device h, struct nvml_pci *ret)
{
	return pci(__func__, h, ret);
}

NVML_API nvmlDeviceGetPciInfo_v3(nvml_device h, struct nvml_pci *ret)
{
	return pci(__func__, h, ret);
}

NVML_API nvmlDeviceGetPciInfoExt(nvml_device h, struct nvml_pci_ext *ret)
{
	struct nvml_call c;
	struct nvml_pci p;
	int rc = nvml_enter(&c, __func__, h);

	if (rc)
		return rc;
	if (!ret)
		return NVML_ERROR_INVALID_ARGUMENT;
	rc = nvml_version(&c, ret->version, NVML_VERSION(struct nvml_pci_ext, 1));
	if (!rc)
		rc = pci(__func__, h, &p);
	if (rc)
		return rc;
	*ret = (struct nvml_pci_ext){ ret->version,
				      p.domain,
				      p.bus,
				      p.device,
				      p.pci_id,
				      p.subsystem_id,
				      3,
				      2, /* 3D controller */
				      "" };
	memcpy(ret->bus_id, p.bus_id, sizeof(ret->bus_id));
	return NVML_SUCCESS;
}

/* Numbers that do not change. `at` is one of those below. */
enum fact {
	FACT_MINOR,
	FACT_CORES,
	FACT_ARCHITECTURE,
	FACT_BRAND,
	FACT_BOARD,
	FACT_MODULE,
	FACT_NUMA,
	FACT_BUS_WIDTH,
	FACT_IRQ,
	FACT_PERSISTENCE,
	FACT_COMPUTE_MODE,
	FACT_ZERO,
	FACT_BUS_TYPE,
	FACT_VIRTUALIZATION,
};

/* GeForce, RTX, Tesla... as the driver files products; 14 is plain "NVIDIA". */
static unsigned int brand(const char *name)
{
	if (strstr(name, "GeForce"))
		return strstr(name, "RTX") ? 15 : 5;
	if (strstr(name, "TITAN"))
		return strstr(name, "RTX") ? 16 : 6;
	if (strstr(name, "Quadro"))
		return strstr(name, "RTX") ? 12 : 1;
	if (strstr(name, "RTX"))
		return 13;
	return strstr(name, "Tesla") ? 2 : 14;
}

static int fact_value(const struct nvml_call *c, enum fact fact, unsigned int *ret)
{
	const struct vgpu_about *a = c->about;

	switch (fact) {
	case FACT_MINOR:
		*ret = (unsigned int)a->minor;
		return NVML_SUCCESS;
	case FACT_CORES:
		*ret = (unsigned int)a->cores;
		return a->cores ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
	case FACT_ARCHITECTURE:
		*ret = (unsigned int)a->architecture;
		return NVML_SUCCESS;
	case FACT_BRAND:
		*ret = brand(a->name);
		return NVML_SUCCESS;
	case FACT_BOARD:
		*ret = a->domain << 16 | a->bus << 8 | a->device;
		return NVML_SUCCESS;
	case FACT_MODULE:
		*ret = (unsigned int)c->device + 1;
		return NVML_SUCCESS;
	case FACT_NUMA:
		*ret = (unsigned int)a->numa_node;
		return a->numa_node < 0 ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
	case FACT_BUS_WIDTH:
		*ret = a->ecc ? 5120 : 256;
		return NVML_SUCCESS;
	case FACT_IRQ:
		*ret = 100 + (unsigned int)c->device;
		return NVML_SUCCESS;
	case FACT_PERSISTENCE:
		*ret = a->persistence;
		return NVML_SUCCESS;
	case FACT_COMPUTE_MODE:
		*ret = (unsigned int)a->compute_mode;
		return NVML_SUCCESS;
	case FACT_BUS_TYPE: /* PCI express */
		*ret = 2;
		return NVML_SUCCESS;
	case FACT_VIRTUALIZATION:
	case FACT_ZERO:
		*ret = 0;
		return NVML_SUCCESS;
	}
	return NVML_ERROR_UNKNOWN;
}

static int fact(const char *symbol, nvml_device h, enum fact which, unsigned int *ret)
{
	struct nvml_call c;
	unsigned int value;
	int rc = nvml_enter(&c, symbol, h);

	if (rc)
		return rc;
	if (!ret)
		return NVML_ERROR_INVALID_ARGUMENT;
	rc = fact_value(&c, which, &value);
	if (!rc)
		*ret = value;
	return rc;
}

#define FACT(name, which)                               \
	NVML_API name(nvml_device h, unsigned int *ret) \
	{                                               \
		return fact(__func__, h, which, ret);   \
	}
FACT(nvmlDeviceGetMinorNumber, FACT_MINOR)
FACT(nvmlDeviceGetNumGpuCores, FACT_CORES)
FACT(nvmlDeviceGetArchitecture, FACT_ARCHITECTURE)
FACT(nvmlDeviceGetBrand, FACT_BRAND)
FACT(nvmlDeviceGetBoardId, FACT_BOARD)
FACT(nvmlDeviceGetModuleId, FACT_MODULE)
FACT(nvmlDeviceGetNumaNodeId, FACT_NUMA)
FACT(nvmlDeviceGetMemoryBusWidth, FACT_BUS_WIDTH)
FACT(nvmlDeviceGetIrqNum, FACT_IRQ)
FACT(nvmlDeviceGetPersistenceMode, FACT_PERSISTENCE)
FACT(nvmlDeviceGetComputeMode, FACT_COMPUTE_MODE)
FACT(nvmlDeviceGetDisplayMode, FACT_ZERO)
FACT(nvmlDeviceGetDisplayActive, FACT_ZERO)
FACT(nvmlDeviceGetMultiGpuBoard, FACT_ZERO)
FACT(nvmlDeviceGetAccountingMode, FACT_ZERO)
FACT(nvmlDeviceGetBusType, FACT_BUS_TYPE)
FACT(nvmlDeviceGetVirtualizationMode, FACT_VIRTUALIZATION)
FACT(nvmlDeviceGetPowerSource, FACT_ZERO)

NVML_API nvmlDeviceGetCudaComputeCapability(nvml_device h, int *major, int *minor)
{
	struct nvml_call c;
	int rc = nvml_enter_mig(&c, __func__, h);

	if (rc)
		return rc;
	if (!major || !minor)
		return NVML_ERROR_INVALID_ARGUMENT;
	*major = c.about->cc_major;
	*minor = c.about->cc_minor;
	return NVML_SUCCESS;
}

NVML_API nvmlDeviceGetGspFirmwareMode(nvml_device h, unsigned int *enabled, unsigned int *standard)
{
	struct nvml_call c;
	int rc = nvml_enter(&c, __func__, h);

	if (rc)
		return rc;
	if (!enabled || !standard)
		return NVML_ERROR_INVALID_ARGUMENT;
	*enabled = *standard = c.about->architecture >= NVML_ARCH_TURING;
	return NVML_SUCCESS;
}

NVML_API nvmlDeviceGetGspFirmwareVersion(nvml_device h, char *ret)
{
	struct nvml_call c;
	int rc = nvml_enter(&c, __func__, h);

	return rc ? rc : nvml_text(ret, 64, c.driver->version);
}

NVML_API nvmlDeviceGetC2cModeInfoV(nvml_device h, struct nvml_c2c *ret)
{
	struct nvml_call c;
	int rc = nvml_enter(&c, __func__, h);

	if (rc)
		return rc;
	if (!ret)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (c.about->architecture < NVML_ARCH_HOPPER)
		return NVML_ERROR_NOT_SUPPORTED;
	ret->enabled = c.about->unified;
	return NVML_SUCCESS;
}

NVML_API nvmlDeviceGetAddressingMode(nvml_device h, struct nvml_addressing *ret)
{
	struct nvml_call c;
	int rc = nvml_enter(&c, __func__, h);

	if (rc)
		return rc;
	if (!ret)
		return NVML_ERROR_INVALID_ARGUMENT;
	rc = nvml_version(&c, ret->version, NVML_VERSION(struct nvml_addressing, 1));
	if (!rc)
		ret->mode = c.about->unified ? 2 : 0;
	return rc;
}

NVML_API nvmlDeviceOnSameBoard(nvml_device a, nvml_device b, int *ret)
{
	struct nvml_call ca, cb;
	int rc = nvml_enter(&ca, __func__, a);

	if (!rc)
		rc = nvml_enter(&cb, __func__, b);
	if (rc)
		return rc;
	if (!ret)
		return NVML_ERROR_INVALID_ARGUMENT;
	*ret = ca.device == cb.device;
	return NVML_SUCCESS;
}

/* Accounting is off and stays off. */
NVML_API nvmlDeviceGetAccountingBufferSize(nvml_device h, unsigned int *ret)
{
	int rc = fact(__func__, h, FACT_ZERO, ret);

	if (!rc)
		*ret = 4000;
	return rc;
}

NVML_API nvmlDeviceGetAccountingPids(nvml_device h, unsigned int *count, unsigned int *pids)
{
	(void)pids;
	return fact(__func__, h, FACT_ZERO, count);
}

NVML_API nvmlDeviceGetAccountingStats(nvml_device h, unsigned int pid, struct nvml_accounting *ret)
{
	struct nvml_call c;
	int rc = nvml_enter(&c, __func__, h);

	(void)pid;
	if (rc)
		return rc;
	return ret ? NVML_ERROR_NOT_FOUND : NVML_ERROR_INVALID_ARGUMENT;
}

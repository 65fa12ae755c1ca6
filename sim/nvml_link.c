/* SPDX-License-Identifier: MIT
 *
 * The virtual libnvidia-ml.so.1: PCIe, NVLink, and where the GPU sits in the machine.
 */
#include "nvml_sim.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

enum pcie { PCIE_GEN, PCIE_GEN_MAX, PCIE_WIDTH, PCIE_WIDTH_MAX, PCIE_REPLAYS, PCIE_SPEED };

/* MT/s of a lane by generation. */
static unsigned int lane_speed(int gen)
{
	return gen < 1 ? 0 : gen == 1 ? 2500 : gen == 2 ? 5000 : 8000u << (gen - 3);
}

static unsigned int pcie_value(const struct vgpu_about *a, const struct vgpu_now *now,
			       enum pcie which)
{
	switch (which) {
	case PCIE_GEN:
		return (unsigned int)now->pcie_gen;
	case PCIE_GEN_MAX:
		return (unsigned int)a->pcie_gen_max;
	case PCIE_WIDTH:
		return (unsigned int)now->pcie_width;
	case PCIE_WIDTH_MAX:
		return (unsigned int)a->pcie_width_max;
	case PCIE_REPLAYS:
		return now->pcie_replays;
	case PCIE_SPEED:
		return lane_speed(now->pcie_gen);
	}
	return 0;
}

static int pcie(const char *symbol, nvml_device h, enum pcie which, unsigned int *ret)
{
	struct nvml_call c;
	struct vgpu_now now;
	int rc = nvml_enter_now(&c, symbol, h, ret, &now);

	if (!rc)
		*ret = pcie_value(c.about, &now, which);
	return rc;
}

#define PCIE(name, which)                               \
	NVML_API name(nvml_device h, unsigned int *ret) \
	{                                               \
		return pcie(__func__, h, which, ret);   \
	}
PCIE(nvmlDeviceGetCurrPcieLinkGeneration, PCIE_GEN)
PCIE(nvmlDeviceGetCurrPcieLinkWidth, PCIE_WIDTH)
PCIE(nvmlDeviceGetMaxPcieLinkGeneration, PCIE_GEN_MAX)
PCIE(nvmlDeviceGetGpuMaxPcieLinkGeneration, PCIE_GEN_MAX)
PCIE(nvmlDeviceGetMaxPcieLinkWidth, PCIE_WIDTH_MAX)
PCIE(nvmlDeviceGetPcieReplayCounter, PCIE_REPLAYS)
PCIE(nvmlDeviceGetPcieSpeed, PCIE_SPEED)

/* An enumeration in the real one: 0 invalid, then 2500, 5000, 8000, 16000, 32000, 64000 MB/s. */
NVML_API nvmlDeviceGetPcieLinkMaxSpeed(nvml_device h, unsigned int *ret)
{
	return pcie(__func__, h, PCIE_GEN_MAX, ret);
}

/* The real call counts bytes for 20 ms and answers then: so does this one. */
NVML_API nvmlDeviceGetPcieThroughput(nvml_device h, unsigned int counter, unsigned int *ret)
{
	struct nvml_call c;
	struct vgpu_now now;
	struct timespec wait;
	uint64_t kbs;
	int rc = nvml_enter(&c, __func__, h);

	if (rc)
		return rc;
	if (!ret || counter > NVML_PCIE_RX)
		return NVML_ERROR_INVALID_ARGUMENT;
	wait = (struct timespec){ c.driver->pcie_read_ms / 1000,
				  c.driver->pcie_read_ms % 1000 * 1000000L };
	while (nanosleep(&wait, &wait))
		;
	rc = nvml_now(&c, &now);
	if (rc)
		return rc;
	kbs = counter == NVML_PCIE_TX ? now.pcie_tx_kbs : now.pcie_rx_kbs;
	*ret = kbs > UINT32_MAX ? UINT32_MAX : (unsigned int)kbs;
	return NVML_SUCCESS;
}

/* NVLink: all links of a GPU are alike and up. */
static int link_of(struct nvml_call *c, const char *symbol, nvml_device h, unsigned int number,
		   const void *ret)
{
	int rc = nvml_enter(c, symbol, h);

	if (rc)
		return rc;
	if (!c->about->nvlinks)
		return NVML_ERROR_NOT_SUPPORTED;
	return !ret || number >= (unsigned int)c->about->nvlinks ? NVML_ERROR_INVALID_ARGUMENT
								 : NVML_SUCCESS;
}

NVML_API nvmlDeviceGetNvLinkState(nvml_device h, unsigned int number, unsigned int *ret)
{
	struct nvml_call c;
	int rc = link_of(&c, __func__, h, number, ret);

	if (!rc)
		*ret = 1;
	return rc;
}

/* 3.0 with Ampere, 4.0 with Hopper, 5.0 with Blackwell, in the vendor's numbering. */
NVML_API nvmlDeviceGetNvLinkVersion(nvml_device h, unsigned int number, unsigned int *ret)
{
	struct nvml_call c;
	int rc = link_of(&c, __func__, h, number, ret);

	if (!rc)
		*ret = c.about->architecture >= NVML_ARCH_BLACKWELL ? 7
		       : c.about->architecture >= NVML_ARCH_HOPPER  ? 6
								    : 4;
	return rc;
}

NVML_API nvmlDeviceGetNvLinkErrorCounter(nvml_device h, unsigned int number, unsigned int which,
					 unsigned long long *ret)
{
	struct nvml_call c;
	int rc = link_of(&c, __func__, h, number, ret);

	if (!rc && which > 4)
		rc = NVML_ERROR_INVALID_ARGUMENT;
	if (!rc)
		*ret = 0;
	return rc;
}

NVML_API nvmlDeviceGetNvLinkCapability(nvml_device h, unsigned int number, unsigned int which,
				       unsigned int *ret)
{
	struct nvml_call c;
	int rc = link_of(&c, __func__, h, number, ret);

	if (!rc && which > 5)
		rc = NVML_ERROR_INVALID_ARGUMENT;
	if (!rc)
		*ret = which != 4; /* everything but the SLI bridge */
	return rc;
}

NVML_API nvmlDeviceGetNvLinkRemoteDeviceType(nvml_device h, unsigned int number, unsigned int *ret)
{
	struct nvml_call c;
	int rc = link_of(&c, __func__, h, number, ret);

	if (!rc)
		*ret = 2; /* a switch */
	return rc;
}

/* Affinity: the virtual machine's CPUs are all near. */
static int cpus(const char *symbol, nvml_device h, unsigned int words, unsigned long *ret)
{
	struct nvml_call c;
	long n = sysconf(_SC_NPROCESSORS_ONLN);
	const unsigned int bits = 8 * sizeof(*ret);
	int rc = nvml_enter_mig(&c, symbol, h);

	if (rc)
		return rc;
	if (!ret || !words)
		return NVML_ERROR_INVALID_ARGUMENT;
	memset(ret, 0, words * sizeof(*ret));
	for (unsigned int i = 0; i < (n < 1 ? 1 : (unsigned long)n) && i / bits < words; i++)
		ret[i / bits] |= 1ul << i % bits;
	return NVML_SUCCESS;
}

NVML_API nvmlDeviceGetCpuAffinity(nvml_device h, unsigned int words, unsigned long *ret)
{
	return cpus(__func__, h, words, ret);
}

NVML_API nvmlDeviceGetCpuAffinityWithinScope(nvml_device h, unsigned int words, unsigned long *ret,
					     unsigned int scope)
{
	return scope > 1 ? NVML_ERROR_INVALID_ARGUMENT : cpus(__func__, h, words, ret);
}

NVML_API nvmlDeviceGetMemoryAffinity(nvml_device h, unsigned int words, unsigned long *ret,
				     unsigned int scope)
{
	struct nvml_call c;
	unsigned int node;
	int rc = nvml_enter_mig(&c, __func__, h);

	if (rc)
		return rc;
	node = c.about->numa_node < 0 ? 0 : (unsigned int)c.about->numa_node;
	if (!ret || scope > 1 || node / (8 * sizeof(*ret)) >= words)
		return NVML_ERROR_INVALID_ARGUMENT;
	memset(ret, 0, words * sizeof(*ret));
	ret[node / (8 * sizeof(*ret))] |= 1ul << node % (8 * sizeof(*ret));
	return NVML_SUCCESS;
}

/* 0 the same board, 30 one host bridge, 50 across sockets. */
NVML_API nvmlDeviceGetTopologyCommonAncestor(nvml_device a, nvml_device b, unsigned int *ret)
{
	struct nvml_call ca, cb;
	int rc = nvml_enter(&ca, __func__, a);

	if (!rc)
		rc = nvml_enter(&cb, __func__, b);
	if (rc)
		return rc;
	if (!ret)
		return NVML_ERROR_INVALID_ARGUMENT;
	*ret = ca.device == cb.device ? 0 : ca.about->numa_node == cb.about->numa_node ? 30 : 50;
	return NVML_SUCCESS;
}

NVML_API nvmlDeviceGetP2PStatus(nvml_device a, nvml_device b, unsigned int what, unsigned int *ret)
{
	struct nvml_call ca, cb;
	int rc = nvml_enter(&ca, __func__, a);

	if (!rc)
		rc = nvml_enter(&cb, __func__, b);
	if (rc)
		return rc;
	if (!ret || what > 5)
		return NVML_ERROR_INVALID_ARGUMENT;
	*ret = what == 2 && !(ca.about->nvlinks && cb.about->nvlinks) ? 5 : 0; /* 5 not supported */
	return NVML_SUCCESS;
}

/* SPDX-License-Identifier: MIT
 *
 * The virtual libnvidia-ml.so.1: the driver as a whole, and finding GPUs.
 */
#include "nvml_sim.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The driver's own words: tools print them and scripts look for them. */
static const char *error_text(int code)
{
	static const char *const texts[] = {
		[NVML_SUCCESS] = "Success",
		[NVML_ERROR_UNINITIALIZED] = "Uninitialized",
		[NVML_ERROR_INVALID_ARGUMENT] = "Invalid Argument",
		[NVML_ERROR_NOT_SUPPORTED] = "Not Supported",
		[NVML_ERROR_NO_PERMISSION] = "Insufficient Permissions",
		[NVML_ERROR_ALREADY_INITIALIZED] = "Already Initialized",
		[NVML_ERROR_NOT_FOUND] = "Not Found",
		[NVML_ERROR_INSUFFICIENT_SIZE] = "Insufficient Size",
		[NVML_ERROR_INSUFFICIENT_POWER] = "Insufficient External Power",
		[NVML_ERROR_DRIVER_NOT_LOADED] = "Driver Not Loaded",
		[NVML_ERROR_TIMEOUT] = "Timeout",
		[NVML_ERROR_IRQ_ISSUE] = "Interrupt Request Issue",
		[NVML_ERROR_LIBRARY_NOT_FOUND] = "NVML Shared Library Not Found",
		[NVML_ERROR_FUNCTION_NOT_FOUND] = "Function Not Found",
		[NVML_ERROR_CORRUPTED_INFOROM] = "Corrupted infoROM",
		[NVML_ERROR_GPU_IS_LOST] = "GPU is lost",
		[NVML_ERROR_RESET_REQUIRED] = "GPU requires reset",
		[NVML_ERROR_OPERATING_SYSTEM] = "GPU access blocked by the operating system",
		[NVML_ERROR_LIB_RM_VERSION_MISMATCH] = "Driver/library version mismatch",
		[NVML_ERROR_IN_USE] = "In use by another client",
		[NVML_ERROR_MEMORY] = "Insufficient Memory",
		[NVML_ERROR_NO_DATA] = "No data",
		[NVML_ERROR_VGPU_ECC_NOT_SUPPORTED] = "vGPU with ECC not supported",
		[NVML_ERROR_INSUFFICIENT_RESOURCES] = "Insufficient Resources",
		[NVML_ERROR_FREQ_NOT_SUPPORTED] = "Frequency not supported",
		[NVML_ERROR_ARGUMENT_VERSION_MISMATCH] = "Argument version mismatch",
		[NVML_ERROR_DEPRECATED] = "Requested functionality has been deprecated",
		[NVML_ERROR_NOT_READY] = "System is not ready",
		[NVML_ERROR_GPU_NOT_FOUND] = "GPU not found",
		[NVML_ERROR_INVALID_STATE] = "Invalid state",
	};

	if (code < 0 || (size_t)code >= sizeof(texts) / sizeof(texts[0]))
		return "Unknown Error";
	return texts[code];
}

__attribute__((visibility("default"))) const char *nvmlErrorString(int code)
{
	return error_text(code);
}

NVML_API nvmlSystemGetDriverVersion(char *ret, unsigned int size)
{
	struct nvml_call c;
	int rc = nvml_enter_system(&c, __func__);

	return rc ? rc : nvml_text(ret, size, c.driver->version);
}

NVML_API nvmlSystemGetNVMLVersion(char *ret, unsigned int size)
{
	struct nvml_call c;
	int rc = nvml_enter_system(&c, __func__);

	return rc ? rc : nvml_text(ret, size, c.driver->nvml_version);
}

static int cuda_version(const char *symbol, int *ret)
{
	struct nvml_call c;
	int rc = nvml_enter_system(&c, symbol);

	if (rc)
		return rc;
	if (!ret)
		return NVML_ERROR_INVALID_ARGUMENT;
	*ret = c.driver->cuda;
	return NVML_SUCCESS;
}

NVML_API nvmlSystemGetCudaDriverVersion(int *ret)
{
	return cuda_version(__func__, ret);
}

NVML_API nvmlSystemGetCudaDriverVersion_v2(int *ret)
{
	return cuda_version(__func__, ret);
}

/* nvmlSystemDriverBranchInfo_v1_t: "r590_48" of 590.48.01. */
struct branch {
	unsigned int version;
	char text[80];
};

NVML_API nvmlSystemGetDriverBranch(struct branch *ret, unsigned int size)
{
	struct nvml_call c;
	char text[40];
	int rc = nvml_enter_system(&c, __func__);

	if (rc)
		return rc;
	if (!ret)
		return NVML_ERROR_INVALID_ARGUMENT;
	rc = nvml_version(&c, ret->version, NVML_VERSION(struct branch, 1));
	if (rc)
		return rc;
	snprintf(text, sizeof(text), "r%d_00", nvml_driver_branch(&c));
	return nvml_text(ret->text, size < sizeof(ret->text) ? size : sizeof(ret->text), text);
}

/* As the real one: the command line up to its first space-separated word. For processes that only
 * the scenario knows, its name. */
static bool process_name(struct nvml_call *c, unsigned int pid, char *ret, size_t size)
{
	char path[32];
	ssize_t n = -1;
	int fd, count = 0, i;
	struct vgpu_process *rows;

	snprintf(path, sizeof(path), "/proc/%u/cmdline", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, ret, size - 1);
		close(fd);
	}
	if (n > 0) {
		ret[n] = '\0';
		return true;
	}
	for (int device = 0; device < vgpu_count(c->v); device++) {
		c->device = device;
		if (nvml_process_rows(c, &rows, &count))
			return false;
		for (i = 0; i < count; i++)
			if (rows[i].pid == pid) {
				snprintf(ret, size, "%s", rows[i].name);
				free(rows);
				return true;
			}
		free(rows);
	}
	return false;
}

NVML_API nvmlSystemGetProcessName(unsigned int pid, char *ret, unsigned int size)
{
	struct nvml_call c;
	char name[1024];
	int rc = nvml_enter_system(&c, __func__);

	if (rc)
		return rc;
	if (!ret || !size)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (!process_name(&c, pid, name, sizeof(name)))
		return NVML_ERROR_NOT_FOUND;
	snprintf(ret, size, "%s", name); /* cut, not refused */
	return NVML_SUCCESS;
}

/* No units (S-class boxes), no excluded GPUs. */
static int none(const char *symbol, unsigned int *ret)
{
	struct nvml_call c;
	int rc = nvml_enter_system(&c, symbol);

	if (rc)
		return rc;
	if (!ret)
		return NVML_ERROR_INVALID_ARGUMENT;
	*ret = 0;
	return NVML_SUCCESS;
}

NVML_API nvmlUnitGetCount(unsigned int *ret)
{
	return none(__func__, ret);
}

NVML_API nvmlGetExcludedDeviceCount(unsigned int *ret)
{
	return none(__func__, ret);
}

NVML_API nvmlGetBlacklistDeviceCount(unsigned int *ret)
{
	return none(__func__, ret);
}

static int count(const char *symbol, unsigned int *ret)
{
	struct nvml_call c;
	int rc = nvml_enter_system(&c, symbol);

	if (rc)
		return rc;
	if (!ret)
		return NVML_ERROR_INVALID_ARGUMENT;
	*ret = (unsigned int)vgpu_count(c.v);
	return NVML_SUCCESS;
}

NVML_API nvmlDeviceGetCount(unsigned int *ret)
{
	return count(__func__, ret);
}

NVML_API nvmlDeviceGetCount_v2(unsigned int *ret)
{
	return count(__func__, ret);
}

static int by_index(const char *symbol, unsigned int index, nvml_device *ret)
{
	struct nvml_call c;
	int rc = nvml_enter_index(&c, symbol, index);

	if (rc)
		return rc;
	if (!ret)
		return NVML_ERROR_INVALID_ARGUMENT;
	*ret = nvml_handle(c.device, -1);
	return NVML_SUCCESS;
}

NVML_API nvmlDeviceGetHandleByIndex(unsigned int index, nvml_device *ret)
{
	return by_index(__func__, index, ret);
}

NVML_API nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvml_device *ret)
{
	return by_index(__func__, index, ret);
}

/* -1: no such GPU. `part` of a MIG UUID. */
static int find_uuid(struct vgpu *v, const char *uuid, int *part)
{
	for (int i = 0; i < vgpu_count(v); i++) {
		const struct vgpu_about *about = vgpu_about(v, i);

		*part = -1;
		if (!strcmp(about->uuid, uuid))
			return i;
		for (*part = 0; about->mig && *part < about->n_partitions; (*part)++)
			if (!strcmp(about->partition[*part].uuid, uuid))
				return i;
	}
	return -1;
}

NVML_API nvmlDeviceGetHandleByUUID(const char *uuid, nvml_device *ret)
{
	struct nvml_call c;
	int device, part, rc = nvml_enter_system(&c, __func__);

	if (rc)
		return rc;
	if (!uuid || !ret)
		return NVML_ERROR_INVALID_ARGUMENT;
	device = find_uuid(c.v, uuid, &part);
	if (device < 0)
		return NVML_ERROR_NOT_FOUND;
	rc = nvml_enter_index(&c, __func__, (unsigned int)device);
	if (!rc)
		*ret = nvml_handle(device, part);
	return rc;
}

NVML_API nvmlDeviceGetHandleBySerial(const char *serial, nvml_device *ret)
{
	struct nvml_call c;
	int rc = nvml_enter_system(&c, __func__);

	if (rc)
		return rc;
	if (!serial || !ret)
		return NVML_ERROR_INVALID_ARGUMENT;
	for (int i = 0; i < vgpu_count(c.v); i++)
		if (!strcmp(vgpu_about(c.v, i)->serial, serial))
			return by_index(__func__, (unsigned int)i, ret);
	return NVML_ERROR_NOT_FOUND;
}

/* "00000000:83:00.0", "0000:83:00.0", "83:00.0", hex in either case. */
static bool same_address(const struct vgpu_about *about, const char *text)
{
	unsigned long part[4] = { 0 };
	int n = 0;
	char *end;

	do {
		if (n == 4)
			return false;
		part[n++] = strtoul(text, &end, 16);
		if (end == text || (*end && *end != ':' && *end != '.'))
			return false;
		text = end + 1;
	} while (*end);
	if (n == 3) {
		memmove(part + 1, part, 3 * sizeof(part[0]));
		part[0] = 0;
	}
	return n >= 3 && part[0] == about->domain && part[1] == about->bus &&
	       part[2] == about->device && !part[3];
}

static int by_address(const char *symbol, const char *text, nvml_device *ret)
{
	struct nvml_call c;
	int rc = nvml_enter_system(&c, symbol);

	if (rc)
		return rc;
	if (!text || !ret)
		return NVML_ERROR_INVALID_ARGUMENT;
	for (int i = 0; i < vgpu_count(c.v); i++)
		if (same_address(vgpu_about(c.v, i), text))
			return by_index(symbol, (unsigned int)i, ret);
	return NVML_ERROR_NOT_FOUND;
}

NVML_API nvmlDeviceGetHandleByPciBusId(const char *text, nvml_device *ret)
{
	return by_address(__func__, text, ret);
}

NVML_API nvmlDeviceGetHandleByPciBusId_v2(const char *text, nvml_device *ret)
{
	return by_address(__func__, text, ret);
}

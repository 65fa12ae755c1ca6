/* SPDX-License-Identifier: MIT
 *
 * A vendor library that misbehaves on purpose: libnvidia-ml.so with a few calls, three GPUs and
 * $FAKE_NVML = "hang|crash|error|exit|group|fork SYMBOL GPU FROM VALUE [TO]", where GPU -1 is any, FROM the number of the
 * call from which on it happens, VALUE milliseconds or an error code, and TO the number of the call from
 * which on all is well again. "exit" ends the process, "group" sends SIGTERM to the process group and looks for
 * a terminal, "fork" leaves a child behind. With $FAKE_NVML_ODD the GPUs 1, 3... alone. $FAKE_NVML_GPUS counts them,
 * $FAKE_NVML_HIDE leaves one out, so that those behind it move up, $FAKE_NVML_DRIVER is its version.
 */
#include "gpu/nvml_abi.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define CALL(name, ...)               \
	EXPORT int name(__VA_ARGS__); \
	EXPORT int name(__VA_ARGS__)

static long number(const char *name, long fallback)
{
	const char *v = getenv(name);

	return v && *v ? strtol(v, NULL, 10) : fallback;
}

static void sleep_ms(long ms)
{
	struct timespec t = { ms / 1000, ms % 1000 * 1000000 };

	while (nanosleep(&t, &t) < 0 && errno == EINTR)
		;
}

/* What $FAKE_NVML says about this call: an error code, 0 to go on. */
static int trouble(const char *symbol, int gpu)
{
	static int calls; /* of the one symbol and GPU that are in trouble; one thread makes them */
	const char *v = getenv("FAKE_NVML");
	char what[8], who[64];
	char *end;
	long on, from, value, to;

	if (!v)
		return 0;
	snprintf(what, sizeof(what), "%.*s", (int)strcspn(v, " "), v);
	v += strcspn(v, " ") + 1;
	snprintf(who, sizeof(who), "%.*s", (int)strcspn(v, " "), v);
	v += strcspn(v, " ") + 1;
	on = strtol(v, &end, 10);
	from = strtol(end, &end, 10);
	value = strtol(end, &end, 10);
	to = strtol(end, &end, 10);
	if (strcmp(who, symbol) != 0 || (on >= 0 && on != gpu) || ++calls < from ||
	    (to > 0 && calls >= to) || (getenv("FAKE_NVML_ODD") && gpu % 2 == 0))
		return 0;
	if (strcmp(what, "exit") == 0)
		_exit((int)value);
	if (strcmp(what, "group") == 0) {
		(void)kill(0, SIGTERM);
		return open("/dev/tty", O_RDWR | O_NOCTTY) < 0 ? 0 : 1;
	}
	if (strcmp(what, "fork") == 0) {
		if (calls == from && fork() == 0)
			sleep_ms(value), _exit(0);
		return 0;
	}
	if (strcmp(what, "error") == 0)
		return (int)value;
	if (strcmp(what, "crash") == 0)
		(void)raise(SIGSEGV);
	sleep_ms(value);
	return 0;
}

static int gpu_of(nvml_device d)
{
	return (int)((size_t)d / 16) - 1;
}

CALL(nvmlInit_v2, void)
{
	return trouble("nvmlInit_v2", -1);
}

CALL(nvmlShutdown, void)
{
	return 0;
}

CALL(nvmlDeviceGetCount_v2, unsigned *n)
{
	*n = (unsigned)number("FAKE_NVML_GPUS", 3) - (getenv("FAKE_NVML_HIDE") != NULL);
	return 0;
}

CALL(nvmlDeviceGetHandleByIndex_v2, unsigned i, nvml_device *ret)
{
	long hidden = number("FAKE_NVML_HIDE", 1000);

	*ret = (nvml_device)(((size_t)i + 1 + (i >= (unsigned long)hidden)) * 16);
	return trouble("nvmlDeviceGetHandleByIndex_v2", gpu_of(*ret));
}

CALL(nvmlDeviceGetName, nvml_device d, char *text, unsigned n)
{
	snprintf(text, n, "Fake GPU %d", gpu_of(d));
	return 0;
}

CALL(nvmlDeviceGetUUID, nvml_device d, char *text, unsigned n)
{
	snprintf(text, n, "GPU-%d", gpu_of(d));
	return 0;
}

CALL(nvmlDeviceGetPciInfo_v3, nvml_device d, struct nvml_pci *p)
{
	memset(p, 0, sizeof(*p));
	snprintf(p->bus_id, sizeof(p->bus_id), "00000000:%02X:00.0", 0x10 + gpu_of(d));
	return 0;
}

CALL(nvmlDeviceGetUtilizationRates, nvml_device d, struct nvml_utilization *u)
{
	u->gpu = 10 * ((unsigned)gpu_of(d) + 1);
	u->memory = 255; /* nonsense that real drivers were seen to say */
	return trouble("nvmlDeviceGetUtilizationRates", gpu_of(d));
}

CALL(nvmlDeviceGetTemperature, nvml_device d, unsigned sensor, unsigned *t)
{
	(void)sensor;
	*t = 40;
	return trouble("nvmlDeviceGetTemperature", gpu_of(d));
}

CALL(nvmlDeviceGetPcieThroughput, nvml_device d, unsigned direction, unsigned *kbs)
{
	*kbs = 1000 + direction;
	return trouble("nvmlDeviceGetPcieThroughput", gpu_of(d));
}

/* Different in every place, so that none can be taken for another. */
CALL(nvmlDeviceGetSramEccErrorStatus, nvml_device d, struct nvml_sram *s)
{
	(void)d;
	if (s->version != NVML_VERSION(struct nvml_sram, 1))
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	*s = (struct nvml_sram){ .version = s->version,
				 .ever_parity = 1,
				 .ever_secded = 2,
				 .ever_corrected = 3,
				 .parity = 4,
				 .secded = 5,
				 .corrected = 6,
				 .l2 = 7,
				 .sm = 8,
				 .pcie = 9,
				 .mcu = 10,
				 .other = ~0ull,
				 .threshold_exceeded = 12 };
	return 0;
}

CALL(nvmlDeviceGetRowRemapperHistogram, nvml_device d, struct nvml_remap_histogram *h)
{
	(void)d;
	*h = (struct nvml_remap_histogram){ 640, 5, 4, 3, 2 };
	return 0;
}

/* One GPU that is registered, one that is not yet, one without a fabric; the second one's driver does not
 * know the newer call. */
CALL(nvmlDeviceGetGpuFabricInfo, nvml_device d, struct nvml_fabric *f)
{
	*f = (struct nvml_fabric){ .status = 999, .clique = 7, .state = NVML_FABRIC_IN_PROGRESS };
	return gpu_of(d) == 1 ? 0 : NVML_ERROR_NOT_SUPPORTED;
}

CALL(nvmlDeviceGetGpuFabricInfoV, nvml_device d, struct nvml_fabric_v2 *f)
{
	if (f->version != NVML_VERSION(struct nvml_fabric_v2, 2))
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	f->cluster[0] = 0xab;
	f->cluster[15] = 0x1f;
	f->status = 0;
	f->clique = 3;
	f->state = gpu_of(d) == 0 ? NVML_FABRIC_COMPLETED : NVML_FABRIC_NONE;
	return gpu_of(d) == 1 ? NVML_ERROR_ARGUMENT_VERSION_MISMATCH : 0;
}

/* As on driver 590 with a headless H200. */
CALL(nvmlDeviceGetDisplayMode, nvml_device d, unsigned *mode)
{
	(void)d;
	*mode = 1;
	return 0;
}

CALL(nvmlDeviceGetDisplayActive, nvml_device d, unsigned *active)
{
	(void)d;
	*active = 0;
	return 0;
}

CALL(nvmlSystemGetDriverVersion, char *text, unsigned n)
{
	const char *v = getenv("FAKE_NVML_DRIVER");

	snprintf(text, n, "%s", v ? v : "590.48.01");
	return 0;
}

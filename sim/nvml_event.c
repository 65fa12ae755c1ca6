/* SPDX-License-Identifier: MIT
 *
 * The virtual libnvidia-ml.so.1: event sets. The events of a scenario are its XIDs.
 */
#include "nvml_sim.h"

#include <stdlib.h>
#include <time.h>

#define SET_MAGIC 0x65767431u

enum { LOOK_MS = 5 };

struct nvml_event_set {
	uint32_t magic;
	uint64_t after;
	uint64_t types[VGPU_DEVICES];
};

static bool is_set(nvml_event_set set)
{
	return set && set->magic == SET_MAGIC;
}

NVML_API nvmlEventSetCreate(nvml_event_set *ret)
{
	struct nvml_call c;
	struct vgpu_xid old[VGPU_XIDS];
	struct nvml_event_set *set;
	int rc = nvml_enter_system(&c, __func__);

	if (rc)
		return rc;
	if (!ret)
		return NVML_ERROR_INVALID_ARGUMENT;
	set = calloc(1, sizeof(*set));
	if (!set)
		return NVML_ERROR_MEMORY;
	set->magic = SET_MAGIC;
	/* What happened before is not reported, as with the real one. */
	while (vgpu_xids(c.v, &set->after, old, VGPU_XIDS) == VGPU_XIDS)
		;
	*ret = set;
	return NVML_SUCCESS;
}

NVML_API nvmlEventSetFree(nvml_event_set set)
{
	if (!is_set(set))
		return NVML_ERROR_INVALID_ARGUMENT;
	set->magic = 0;
	free(set);
	return NVML_SUCCESS;
}

NVML_API nvmlDeviceGetSupportedEventTypes(nvml_device h, unsigned long long *ret)
{
	struct nvml_call c;
	int rc = nvml_enter(&c, __func__, h);

	if (rc)
		return rc;
	if (!ret)
		return NVML_ERROR_INVALID_ARGUMENT;
	*ret = NVML_EVENT_XID;
	return NVML_SUCCESS;
}

NVML_API nvmlDeviceRegisterEvents(nvml_device h, unsigned long long types, nvml_event_set set)
{
	struct nvml_call c;
	int rc = nvml_enter(&c, __func__, h);

	if (rc)
		return rc;
	if (!is_set(set))
		return NVML_ERROR_INVALID_ARGUMENT;
	if (types & ~NVML_EVENT_XID)
		return NVML_ERROR_NOT_SUPPORTED;
	set->types[c.device] |= types;
	return NVML_SUCCESS;
}

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* The next XID of a registered GPU, if one is due. */
static bool next(struct vgpu *v, nvml_event_set set, struct vgpu_xid *ret)
{
	while (vgpu_xids(v, &set->after, ret, 1) > 0)
		if (ret->device >= 0 && ret->device < VGPU_DEVICES &&
		    set->types[ret->device] & NVML_EVENT_XID)
			return true;
	return false;
}

static int wait_event(const char *symbol, nvml_event_set set, struct nvml_event *ret,
		      unsigned int ms, bool with_instance)
{
	struct nvml_call c;
	struct vgpu_xid xid;
	const struct timespec pause = { 0, LOOK_MS * 1000000L };
	int64_t end;
	int rc = nvml_enter_system(&c, symbol);

	if (rc)
		return rc;
	if (!is_set(set) || !ret)
		return NVML_ERROR_INVALID_ARGUMENT;
	end = now_ms() + ms;
	while (!next(c.v, set, &xid)) {
		if (now_ms() >= end)
			return NVML_ERROR_TIMEOUT;
		nanosleep(&pause, NULL);
	}
	ret->device = nvml_handle(xid.device, -1);
	ret->type = NVML_EVENT_XID;
	ret->data = xid.code;
	if (with_instance)
		ret->gi = ret->ci = NVML_NO_INSTANCE;
	return NVML_SUCCESS;
}

/* The first version's struct ends before the MIG ids. */
NVML_API nvmlEventSetWait(nvml_event_set set, struct nvml_event *ret, unsigned int ms)
{
	return wait_event(__func__, set, ret, ms, false);
}

NVML_API nvmlEventSetWait_v2(nvml_event_set set, struct nvml_event *ret, unsigned int ms)
{
	return wait_event(__func__, set, ret, ms, true);
}

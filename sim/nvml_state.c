/* SPDX-License-Identifier: MIT
 *
 * The virtual libnvidia-ml.so.1: life of the library, handles, and the gate every call goes through.
 */
#include "nvml_sim.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { PLACES = 1 + VGPU_PARTITIONS };

/* The interface has no context argument: a library of this ABI cannot do without one global. */
static struct {
	pthread_mutex_t lock;
	unsigned int inits;  /* nvmlInit calls not yet undone */
	unsigned int inside; /* calls that may be blocked by the scenario right now */
	struct vgpu *v;
} library = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* Never read or written: its addresses are the handles. */
static char handles[VGPU_DEVICES * PLACES];

nvml_device nvml_handle(int device, int part)
{
	return (nvml_device)(void *)&handles[device * PLACES + part + 1];
}

bool nvml_handle_place(nvml_device handle, int *device, int *part)
{
	uintptr_t at = (uintptr_t)handle, first = (uintptr_t)handles;

	if (at < first || at >= first + sizeof(handles))
		return false;
	*device = (int)((at - first) / PLACES);
	*part = (int)((at - first) % PLACES) - 1;
	return true;
}

/* The state may be used outside the lock: a call that hangs must not stop the others. Shutdown leaves
 * the mapping to calls that are still inside. */
static struct vgpu *hold(void)
{
	struct vgpu *v = NULL;

	pthread_mutex_lock(&library.lock);
	if (library.inits) {
		v = library.v;
		library.inside++;
	}
	pthread_mutex_unlock(&library.lock);
	return v;
}

static void release(void)
{
	pthread_mutex_lock(&library.lock);
	library.inside--;
	pthread_mutex_unlock(&library.lock);
}

static int ask(struct nvml_call *c, struct vgpu *v, const char *symbol, int device, int part)
{
	int rc = NVML_ERROR_INVALID_ARGUMENT;

	*c = (struct nvml_call){ .v = v, .device = device, .part = part };
	if (device >= vgpu_count(v))
		goto out;
	c->driver = vgpu_driver(v);
	if (device >= 0)
		c->about = vgpu_about(v, device);
	if (part >= 0 && (!c->about->mig || part >= c->about->n_partitions))
		goto out;
	rc = vgpu_call(v, symbol, device);
out:
	release();
	return rc;
}

int nvml_enter_mig(struct nvml_call *c, const char *symbol, nvml_device handle)
{
	struct vgpu *v = hold();
	int device, part;

	if (!v)
		return NVML_ERROR_UNINITIALIZED;
	if (!nvml_handle_place(handle, &device, &part)) {
		release();
		return NVML_ERROR_INVALID_ARGUMENT;
	}
	return ask(c, v, symbol, device, part);
}

int nvml_enter(struct nvml_call *c, const char *symbol, nvml_device handle)
{
	int rc = nvml_enter_mig(c, symbol, handle);

	return !rc && c->part >= 0 ? NVML_ERROR_NOT_SUPPORTED : rc;
}

int nvml_enter_system(struct nvml_call *c, const char *symbol)
{
	struct vgpu *v = hold();

	return v ? ask(c, v, symbol, -1, -1) : NVML_ERROR_UNINITIALIZED;
}

int nvml_enter_index(struct nvml_call *c, const char *symbol, unsigned int index)
{
	struct vgpu *v = hold();

	if (!v)
		return NVML_ERROR_UNINITIALIZED;
	return ask(c, v, symbol, index < VGPU_DEVICES ? (int)index : VGPU_DEVICES, -1);
}

int nvml_now(const struct nvml_call *c, struct vgpu_now *ret)
{
	return vgpu_now(c->v, c->device, ret) ? NVML_SUCCESS : NVML_ERROR_TIMEOUT;
}

int nvml_enter_now(struct nvml_call *c, const char *symbol, nvml_device handle, const void *ret,
		   struct vgpu_now *now)
{
	int rc = nvml_enter(c, symbol, handle);

	if (rc)
		return rc;
	if (!ret)
		return NVML_ERROR_INVALID_ARGUMENT;
	return nvml_now(c, now);
}

static int init(const char *symbol)
{
	int rc = NVML_SUCCESS;

	pthread_mutex_lock(&library.lock);
	if (!library.inits) {
		struct vgpu *v = vgpu_open();

		if (!v)
			rc = errno == EACCES ? NVML_ERROR_NO_PERMISSION : NVML_ERROR_UNKNOWN;
		else
			rc = vgpu_driver(v)->init_error;
		if (!rc)
			rc = vgpu_call(v, symbol, -1);
		if (rc && v)
			vgpu_close(v);
		if (!rc)
			library.v = v;
	}
	if (!rc)
		library.inits++;
	pthread_mutex_unlock(&library.lock);
	return rc;
}

NVML_API nvmlInit(void)
{
	return init(__func__);
}

NVML_API nvmlInit_v2(void)
{
	return init(__func__);
}

NVML_API nvmlInitWithFlags(unsigned int flags)
{
	(void)flags;
	return init(__func__);
}

NVML_API nvmlShutdown(void)
{
	int rc = NVML_ERROR_UNINITIALIZED;

	pthread_mutex_lock(&library.lock);
	if (library.inits) {
		rc = NVML_SUCCESS;
		if (!--library.inits) {
			if (!library.inside)
				vgpu_close(library.v);
			library.v = NULL;
		}
	}
	pthread_mutex_unlock(&library.lock);
	return rc;
}

/* How Spotter tells this driver from a real one: figures it gives are labelled simulated. */
NVML_API nvmlVirtualDriver(void)
{
	return 1;
}

int nvml_text(char *ret, unsigned int size, const char *text)
{
	size_t n = strlen(text) + 1;

	if (!ret)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (size < n)
		return NVML_ERROR_INSUFFICIENT_SIZE;
	memcpy(ret, text, n);
	return NVML_SUCCESS;
}

int nvml_version(const struct nvml_call *c, unsigned int given, unsigned int wanted)
{
	return c->driver->strict_versions && given != wanted ? NVML_ERROR_ARGUMENT_VERSION_MISMATCH
							     : NVML_SUCCESS;
}

unsigned int nvml_percent(double ratio)
{
	if (!(ratio > 0)) /* also not a number */
		return 0;
	return ratio >= 1 ? 100 : (unsigned int)(ratio * 100 + 0.5);
}

int nvml_driver_branch(const struct nvml_call *c)
{
	return (int)strtol(c->driver->version, NULL, 10);
}

bool nvml_mig_capable(const struct vgpu_about *about)
{
	return about->mig || (about->ecc && about->cc_minor == 0 && about->cc_major >= 8);
}

int nvml_process_rows(struct nvml_call *c, struct vgpu_process **ret, int *n)
{
	struct vgpu_process *rows = calloc(VGPU_PROCESSES, sizeof(*rows));

	*ret = NULL;
	*n = 0;
	if (!rows)
		return NVML_ERROR_MEMORY;
	*n = vgpu_processes(c->v, c->device, rows, VGPU_PROCESSES);
	if (*n < 0) {
		*n = 0;
		free(rows);
		return NVML_ERROR_TIMEOUT;
	}
	*n = *n > VGPU_PROCESSES ? VGPU_PROCESSES : *n;
	*ret = rows;
	return NVML_SUCCESS;
}

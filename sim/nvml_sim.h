/* SPDX-License-Identifier: MIT
 *
 * Inside of the virtual libnvidia-ml.so.1: what every exported call does first, and small answers.
 *
 * A handle is the address of a byte of one table: it is checked without being followed, is the same in
 * a child after fork, and says which GPU and which MIG instance it is by its place alone.
 */
#ifndef VGPU_NVML_SIM_H
#define VGPU_NVML_SIM_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu/nvml_abi.h"
#include "vgpu.h"

/* The vendor's names are public; nobody includes a header of ours to call them. */
#define NVML_API __attribute__((visibility("default"))) int
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

/* One call: which GPU, which of its MIG instances (-1: the whole GPU). */
struct nvml_call {
	struct vgpu *v;
	const struct vgpu_about *about;
	const struct vgpu_driver *driver;
	int device, part;
};

/* Each returns the code to answer with, 0 to go on: not initialised, bad handle, the scenario's word.
 * nvml_enter is for whole GPUs and answers NOT_SUPPORTED to the handle of a MIG instance; nvml_enter_mig
 * takes both; nvml_enter_system has no handle. */
int nvml_enter(struct nvml_call *c, const char *symbol, nvml_device handle);
int nvml_enter_mig(struct nvml_call *c, const char *symbol, nvml_device handle);
int nvml_enter_system(struct nvml_call *c, const char *symbol);
/* As nvml_enter for a GPU named by its number. */
int nvml_enter_index(struct nvml_call *c, const char *symbol, unsigned int index);

nvml_device nvml_handle(int device, int part);
/* False when it is no handle of ours. */
bool nvml_handle_place(nvml_device handle, int *device, int *part);

/* TIMEOUT when the state is out of reach. */
int nvml_now(const struct nvml_call *c, struct vgpu_now *ret);
/* The figures of now: nvml_enter and one pointer the caller gave, then vgpu_now. */
int nvml_enter_now(struct nvml_call *c, const char *symbol, nvml_device handle, const void *ret,
		   struct vgpu_now *now);

/* INVALID_ARGUMENT without a buffer, INSUFFICIENT_SIZE when it is too small. */
int nvml_text(char *ret, unsigned int size, const char *text);

/* What a struct's version field means: 0, or ARGUMENT_VERSION_MISMATCH where the scenario is strict. */
int nvml_version(const struct nvml_call *c, unsigned int given, unsigned int wanted);

unsigned int nvml_percent(double ratio);
/* 590 of "590.48.01". */
int nvml_driver_branch(const struct nvml_call *c);
/* Data-centre parts since Ampere can be partitioned. */
bool nvml_mig_capable(const struct vgpu_about *about);
/* Allocated rows of vgpu_processes; n of them. MEMORY or TIMEOUT (the state is out of reach), and then
 * none and NULL. */
int nvml_process_rows(struct nvml_call *c, struct vgpu_process **ret, int *n);

#endif

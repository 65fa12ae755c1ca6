/* SPDX-License-Identifier: MIT
 *
 * The job as GPUs see it: its processes with what is needed to tell whether a process that a driver
 * lists is one of them, and which GPUs their environment leaves them. Built from the lives of the
 * frames; files of a process are read a few times in its life, at most GPU_JOB_LOOKS processes a slow
 * tick (maps of a training process: about 1 ms).
 */
#ifndef SPOTTER_ENGINE_GPU_JOB_H
#define SPOTTER_ENGINE_GPU_JOB_H

#include "base/map.h"
#include "base/vec.h"
#include "collect/collector.h"
#include "gpu/owner.h"
#include "gpu/visible.h"

enum { GPU_JOB_LOOKS = 8 };

struct gpu_member {
	uint32_t id; /* entity of the process */
	struct gpu_candidate is;
	bool named;              /* NSpid has been read */
	bool told;               /* what is.gpu_code says is in the record */
	int64_t look_ns;         /* next look at its memory map */
	int64_t wait_ns;         /* after which time again: doubles */
	struct gpu_visible sees; /* by its environment */
	bool sees_known;
};

struct gpu_job {
	VEC(struct gpu_member) members;
	struct map by_entity;
	bool first_namespace;
};

void gpu_job_init(struct gpu_job *j, int root);
void gpu_job_done(struct gpu_job *j);
/* Takes births, changes and ends of processes from the frame. */
void gpu_job_follow(struct gpu_job *j, const struct frame *f);
/* Looks at some processes that are due and puts proc.gpu_code. True when something was learned. */
bool gpu_job_look(struct gpu_job *j, const struct gpu_snapshot *s, int root, struct frame *f);
/* The environment decides anew: GPUs have come or gone. */
void gpu_job_forget_masks(struct gpu_job *j);
/* What the job as a whole may use: the union over its processes with GPU code, or over all when none
 * has any. False when no environment could be read. */
bool gpu_job_visible(const struct gpu_job *j, struct gpu_visible *ret);
/* Whose pid is it? */
struct gpu_owner gpu_job_owner(struct gpu_job *j, int root, int32_t driver_pid);

#endif

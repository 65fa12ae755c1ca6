/* SPDX-License-Identifier: MIT
 *
 * Whose pid is it? A driver reports process ids as its own pid namespace counts them. In the first
 * namespace that is ours; in a container ours may be another, and a number that happens to exist here
 * proves nothing. Where it cannot be known the answer is 0 and the reason.
 */
#ifndef SPOTTER_GPU_OWNER_H
#define SPOTTER_GPU_OWNER_H

#include "gpu/gpu.h"

/* One process we can see: what the job's table and /proc say. */
struct gpu_candidate {
	pid_t pid;      /* here */
	pid_t inner[4]; /* NSpid: from outside in, without the first; 0: none */
	bool gpu_code;  /* has a GPU runtime loaded or a GPU's device file open */
	bool gpu_known; /* gpu_code could be looked up */
};

struct gpu_owner {
	pid_t pid;       /* 0: not known */
	const char *why; /* static; when not known */
};

/* NSpid of /proc/PID/status: "NSpid:\t4312\t17\n". Fills inner; false when the line is missing. */
bool gpu_nspid(const char *status, size_t n, struct gpu_candidate *ret);
/* first_namespace: this process is in the machine's first pid namespace (host). */
struct gpu_owner gpu_owner_find(int32_t driver_pid, bool first_namespace,
				const struct gpu_candidate *all, size_t n);
/* Is the caller's pid namespace the first one? /proc/self/ns/pid is pid:[4026531836] there. */
bool gpu_first_namespace(int root);
/* Does /proc/PID/maps name a GPU runtime (libcuda.so, libamdhip64.so, libze_loader.so, ...)? 1, 0, or
 * -errno when it cannot be read. Reads at most 4 MB of it. */
int gpu_code_loaded(int root, pid_t pid);

#endif

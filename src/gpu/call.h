/* SPDX-License-Identifier: MIT
 *
 * The driver calls in flight, one cell a lane, readable by the recorder while the helper is stuck.
 */
#ifndef SPOTTER_GPU_CALL_H
#define SPOTTER_GPU_CALL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { GPU_LANES = 2 };

struct gpu_call_cell {
	_Atomic uint32_t sequence;  /* odd while the text is written */
	_Atomic int64_t started_ns; /* monotonic clock; 0: no call in flight */
	/* The last call that took longer than GPU_SLOW_CALL_NS: how long a stuck one truly took is
	 * still known when others came after it. */
	_Atomic int64_t slow_started_ns, slow_ns;
	int32_t vendor, index;
	bool patient; /* a library is being initialised: that may take its time */
	char what[64], pci[24];
};

struct gpu_calls {
	struct gpu_call_cell lane[GPU_LANES];
	_Atomic uint32_t
	    retired; /* by the client: 1 + lane whose call is given up. It returned? Then that lane
		      * waits for what the client makes of it: its end, or a zero here. */
	_Atomic uint32_t crashed; /* by the helper's fault handler: 1 + lane */
};

#define GPU_SLOW_CALL_NS 500000000ll

/* A copy for the reader, texts ended, numbers as found. */
struct gpu_call {
	int64_t started_ns;
	int32_t vendor, index;
	bool patient;
	char what[64], pci[24];
};

/* The call in flight; false when there is none or it is just changing. */
bool gpu_call_read(struct gpu_calls *calls, int lane, struct gpu_call *ret);
/* How long the call begun at started_ns took, when it has come back and was slow; else -1. */
int64_t gpu_call_took_ns(struct gpu_calls *calls, int lane, int64_t started_ns);

#endif

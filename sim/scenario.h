/* SPDX-License-Identifier: MIT
 *
 * Scenario files: what the virtual driver and its GPUs are like. One statement a line, "#" starts a
 * comment, sizes take K M G T (1024), times ms s m, ratios are 0..1 or percent. `gpu` starts a device and the
 * indented lines after it are about that device; the others are about the driver. A wrong line is an
 * error with its number: never a guess.
 *
 *	driver 590.48.01            version; also nvml VERSION, cuda 13.1
 *	init_error 9                nvmlInit answers this
 *	process_layout 3            3, 2, 1, 535 (vgpu.h)
 *	strict_versions             version fields must be exact
 *	pcie_read 20ms              how long a PCIe throughput call takes
 *	call_time 50us              how long every call takes
 *	no_process_utilization
 *	pids offset 100000          the driver's pids are ours plus this; also: pids inner (as the
 *	                            process itself counts: its innermost namespace), pids hidden (none listed)
 *	gpu "NVIDIA A100-SXM4-80GB" x 2     two alike; defaults by the words A100, H100, T4, RTX... in it
 *	  memory 80G                total; also reserved SIZE, used SIZE (held by nobody: ghost)
 *	  uuid GPU-...  pci 0000:83:00.0  serial N  minor N  numa N  arch hopper  cc 9.0
 *	  power idle 60 max 400 limit 400       watts
 *	  clocks sm 1410 memory 1593 idle 210   MHz
 *	  temperature idle 30 full 75 slowdown 90
 *	  unified                   no memory of its own: memory calls are not supported
 *	  mig 3g.40gb 2g.20gb       partitions
 *	  compute_mode exclusive_process
 *	  no_ecc   no_gpm   nvlinks 12   fan
 *	  load 0.6 [sm 0.5] [tensor 0.3] [from 5s] [for 10s]      work of nobody (another driver client)
 *	  process 4711 "python" memory 3G busy 0.4 [graphics] [gi 1] [x 300]     listed beside real ones
 *	  slow thermal|hw_thermal|power|brake|sync|setting clock 510 [from 5s] [for 10s]   kernels take longer
 *	  lost [from 10s]           every call answers GPU_IS_LOST (15); also reset_required (16)
 *	  hang nvmlDeviceGetTemperature [from 5s] [for 42s]       the call blocks; `any` for all calls
 *	  error nvmlDeviceGetPowerUsage 3 [from 5s]               the call answers this code
 *	  xid 79 [from 3s]          and: ecc corrected 3 uncorrected 1 [from 2s]
 *
 * Times are since the state was made.
 */
#ifndef VGPU_SCENARIO_H
#define VGPU_SCENARIO_H

#include "vgpu.h"

struct err;

enum {
	SCENARIO_BYTES = 1 << 20, /* a longer file is refused */
	SCENARIO_WINDOWS = 8,     /* loads, slow times and ECC rows of one device */
	SCENARIO_CALLS = 16,      /* hang and error rows of one device */
	SCENARIO_GUESTS = 32,     /* `process` rows of one device */
};

/* From..until in ns since the state was made; without `for` until is INT64_MAX. */
struct scenario_window {
	int64_t from, until;
};

static inline bool scenario_open(const struct scenario_window *w, int64_t age)
{
	return age >= w->from && age < w->until;
}

struct scenario_load {
	struct scenario_window when;
	double busy, sm, tensor;
};

struct scenario_slow {
	struct scenario_window when;
	uint64_t reasons; /* NVML's bits */
	uint32_t clock;   /* MHz */
};

struct scenario_ecc {
	struct scenario_window when;
	uint64_t corrected, uncorrected;
};

/* A call that hangs (answer 0) or answers a code. */
struct scenario_call {
	struct scenario_window when;
	char symbol[64]; /* "any": all */
	int answer;
};

struct scenario_guest {
	uint32_t pid;
	int count; /* pid, pid + 1, ... */
	char name[64];
	uint64_t memory;
	double busy;
	bool graphics;
	int gi; /* -1 without */
};

struct scenario_xid {
	struct scenario_window when;
	uint32_t code;
};

struct scenario_device {
	struct vgpu_about about;
	uint64_t ghost; /* bytes held by nobody */
	int temp_idle, temp_full;
	int n_loads, n_slows, n_eccs, n_calls, n_guests, n_xids;
	struct scenario_load load[SCENARIO_WINDOWS];
	struct scenario_slow slow[SCENARIO_WINDOWS];
	struct scenario_ecc ecc[SCENARIO_WINDOWS];
	struct scenario_call call[SCENARIO_CALLS];
	struct scenario_guest guest[SCENARIO_GUESTS];
	struct scenario_xid xid[SCENARIO_WINDOWS];
	bool has_lost, has_reset;
	struct scenario_window lost, reset;
};

enum scenario_pids { PIDS_SEEN, PIDS_OFFSET, PIDS_INNER, PIDS_HIDDEN };

struct scenario {
	struct vgpu_driver driver;
	enum scenario_pids pids;
	int64_t pid_offset;
	int n_devices;
	struct scenario_device device[VGPU_DEVICES];
};

/* The whole text: 0, or -EINVAL with "line 3: ..." in e. *ret is plain data: no pointers. */
int scenario_parse(const char *text, size_t n, struct scenario *ret, struct err *e);
/* What a product of this name is like (scenario_product.c); an unknown one gets middling figures. */
void scenario_product(const char *name, struct scenario_device *ret);

#endif

/* SPDX-License-Identifier: MIT
 *
 * The virtual GPU: one shared state, written by libcuda.so.1 (cuda*.c) and read by libnvidia-ml.so.1
 * (nvml*.c). What programs submit through the first is what the second reports.
 *
 * The state is a file in shared memory named by $VGPU_STATE (and the user's id), laid out by the first
 * to open it from the scenario $VGPU_SCENARIO (text: scenario.h; one plain GPU without it). There is no
 * process behind it: figures are functions of the work queued and of the clock, brought up to date by
 * whoever looks, under a robust lock. Everything dies with the last file name: `vgpu_remove`.
 */
#ifndef VGPU_H
#define VGPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { VGPU_DEVICES = 16, VGPU_PARTITIONS = 8, VGPU_PROCESSES = 512, VGPU_XIDS = 32 };

struct vgpu; /* the mapped state; one for each process and library */

/* Opens or creates. NULL with errno; EINVAL: the scenario is wrong, the line is on standard error. */
struct vgpu *vgpu_open(void);
void vgpu_close(struct vgpu *v);

struct vgpu_partition { /* a MIG instance */
	int gi, ci;
	char profile[32]; /* "3g.40gb" */
	char uuid[64];    /* "MIG-..." */
	int slices;       /* of 7 */
	uint64_t memory_total, memory_used;
};

/* What does not change. */
struct vgpu_about {
	char name[96], uuid[64], serial[32], vbios[32];
	uint32_t domain, bus, device, pci_id, subsystem_id;
	int architecture, cc_major, cc_minor, cores; /* NVML's numbers: 9 Hopper, 8 Ada, 7 Ampere */
	bool gpm;                                    /* Hopper and newer */
	bool unified;                                /* memory calls answer NOT_SUPPORTED */
	bool mig;
	int n_partitions;
	struct vgpu_partition partition[VGPU_PARTITIONS];
	uint64_t memory_total, memory_reserved;
	uint32_t power_idle_mw, power_max_mw, power_limit_mw, power_min_mw;
	uint32_t clock_sm_max, clock_mem_max, clock_video_max, clock_sm_idle; /* MHz */
	int temp_slowdown, temp_shutdown, temp_mem_max;
	int pcie_gen_max, pcie_width_max, nvlinks, fans, minor, numa_node;
	bool ecc, persistence;
	int compute_mode;
};

/* What it does now. Ratios 0..1. */
struct vgpu_now {
	int64_t time_ns; /* CLOCK_REALTIME of it */
	bool lost, needs_reset;
	double busy,
	    memory_busy; /* over the last sampling period (1/6 s), as the driver would say it */
	double sm_active, sm_occupancy, tensor_active, dram_active, fp16_active, fp32_active;
	double encoder, decoder;
	/* Exact integrals since the state was made, for GPM deltas and for tests: seconds. */
	double busy_s, sm_s, tensor_s, dram_s;
	uint64_t memory_used; /* without reserved */
	uint32_t power_mw, power_instant_mw;
	uint64_t energy_mj;
	uint32_t clock_sm, clock_mem, clock_video;
	int temperature, temperature_memory, fan_percent, pstate;
	uint64_t reasons; /* clock event reasons, NVML's bits */
	uint64_t held_power_ns, held_sync_ns, held_brake_ns;
	uint64_t held_heat_ns, held_heat_sw_ns, held_heat_hw_ns; /* any; software's; hardware's */
	uint64_t pcie_tx_kbs, pcie_rx_kbs;                       /* over the last 20 ms */
	uint64_t pcie_tx_bytes, pcie_rx_bytes;                   /* counters */
	int pcie_gen, pcie_width;
	uint32_t pcie_replays;
	uint64_t nvlink_tx_kib, nvlink_rx_kib;
	uint64_t ecc_corrected, ecc_uncorrected; /* volatile */
	uint64_t retired_single, retired_double, remapped_correctable, remapped_uncorrectable;
};

struct vgpu_process {
	uint32_t pid; /* as the driver reports it (scenario: container pids) */
	bool graphics;
	int gi, ci;                                 /* -1 without MIG */
	uint64_t memory;                            /* UINT64_MAX: the driver does not say */
	double busy, memory_busy, encoder, decoder; /* over the last second */
	int64_t sampled_ns; /* CLOCK_REALTIME of the newest utilisation sample */
	char name[64];
};

struct vgpu_xid {
	uint64_t number;
	int device;
	uint32_t code;
	int64_t time_ns;
};

int vgpu_count(struct vgpu *v);
const struct vgpu_about *vgpu_about(struct vgpu *v, int device);
/* False (and all zero) when the state is out of reach: a process was stopped while it held the lock. */
bool vgpu_now(struct vgpu *v, int device, struct vgpu_now *ret);
/* Number of rows (may be more than max; then only max are filled). Dead processes are not listed,
 * unless the scenario says so. -1 when the state is out of reach, as above. */
int vgpu_processes(struct vgpu *v, int device, struct vgpu_process *ret, int max);
/* XIDs with a number above *after that are due by now; moves *after. */
int vgpu_xids(struct vgpu *v, uint64_t *after, struct vgpu_xid *ret, int max);

/* What the scenario says of the driver as a whole. */
struct vgpu_driver {
	char version[32], nvml_version[32]; /* "590.48.01" */
	int cuda;                           /* 13010 */
	int init_error;                     /* nvmlReturn_t of nvmlInit*, 0 fine */
	/* Layout of nvmlProcessInfo_t: 3 today's (24 bytes), 2 no _v3 symbol works (FUNCTION_NOT_FOUND),
	 * 1 only the oldest (16 bytes), 535 the 32-byte variant behind _v3. */
	int process_layout;
	bool
	    strict_versions; /* version fields must be exact: ARGUMENT_VERSION_MISMATCH otherwise */
	int pcie_read_ms;    /* how long one PCIe throughput call takes (20) */
	int call_us;         /* how long any call takes (0) */
	bool no_process_utilization;
};
const struct vgpu_driver *vgpu_driver(struct vgpu *v);

/* The scenario's word on one NVML call, asked at the start of each: it may sleep here (a hang, for as
 * long as the scenario says), and gives the nvmlReturn_t to answer with, or 0 to go on. */
int vgpu_call(struct vgpu *v, const char *symbol, int device);

/* Deletes the state of this $VGPU_STATE (tests). */
void vgpu_remove(void);

#endif

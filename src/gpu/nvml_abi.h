/* SPDX-License-Identifier: MIT
 *
 * The binary interface of NVIDIA's libnvidia-ml.so.1 as far as we speak it: return codes, numbers and
 * the layouts of what goes through pointers, x86-64 and aarch64. Declared by us from the published
 * interface, so that neither Spotter nor the virtual driver (sim/) needs the vendor's header. Codes and
 * ids keep the vendor's names; structs have ours, the vendor's beside them. Functions are looked up by
 * name and are not declared here: every one returns an int of enum nvml_return.
 */
#ifndef GPU_NVML_ABI_H
#define GPU_NVML_ABI_H

#include <stddef.h>

typedef struct nvml_device *nvml_device; /* nvmlDevice_t, opaque */
typedef struct nvml_event_set *nvml_event_set;
typedef struct nvml_gpm_sample *nvml_gpm_sample;

enum nvml_return {
	NVML_SUCCESS = 0,
	NVML_ERROR_UNINITIALIZED = 1,
	NVML_ERROR_INVALID_ARGUMENT = 2,
	NVML_ERROR_NOT_SUPPORTED = 3,
	NVML_ERROR_NO_PERMISSION = 4,
	NVML_ERROR_ALREADY_INITIALIZED = 5,
	NVML_ERROR_NOT_FOUND = 6,
	NVML_ERROR_INSUFFICIENT_SIZE = 7,
	NVML_ERROR_INSUFFICIENT_POWER = 8,
	NVML_ERROR_DRIVER_NOT_LOADED = 9,
	NVML_ERROR_TIMEOUT = 10,
	NVML_ERROR_IRQ_ISSUE = 11,
	NVML_ERROR_LIBRARY_NOT_FOUND = 12,
	NVML_ERROR_FUNCTION_NOT_FOUND = 13,
	NVML_ERROR_CORRUPTED_INFOROM = 14,
	NVML_ERROR_GPU_IS_LOST = 15,
	NVML_ERROR_RESET_REQUIRED = 16,
	NVML_ERROR_OPERATING_SYSTEM = 17,
	NVML_ERROR_LIB_RM_VERSION_MISMATCH = 18,
	NVML_ERROR_IN_USE = 19,
	NVML_ERROR_MEMORY = 20,
	NVML_ERROR_NO_DATA = 21,
	NVML_ERROR_VGPU_ECC_NOT_SUPPORTED = 22,
	NVML_ERROR_INSUFFICIENT_RESOURCES = 23,
	NVML_ERROR_FREQ_NOT_SUPPORTED = 24,
	NVML_ERROR_ARGUMENT_VERSION_MISMATCH = 25,
	NVML_ERROR_DEPRECATED = 26,
	NVML_ERROR_NOT_READY = 27,
	NVML_ERROR_GPU_NOT_FOUND = 28,
	NVML_ERROR_INVALID_STATE = 29,
	NVML_ERROR_UNKNOWN = 999,
};

/* A struct with a version field wants its size in the low 24 bits and the version above. */
#define NVML_VERSION(type, n) ((unsigned int)(sizeof(type) | (unsigned int)(n) << 24))

/* Buffers the vendor promises to be enough. */
enum {
	NVML_NAME_MAX = 96,
	NVML_UUID_MAX = 96,
	NVML_SERIAL_MAX = 30,
	NVML_VBIOS_MAX = 32,
	NVML_INFOROM_MAX = 16,
	NVML_SYSTEM_VERSION_MAX = 80,
	NVML_PART_NUMBER_MAX = 80,
	NVML_BUS_ID_MAX = 32,
};

enum { NVML_INIT_NO_GPUS = 1, NVML_INIT_NO_ATTACH = 2 }; /* flags of nvmlInitWithFlags */

enum nvml_clock { NVML_CLOCK_GRAPHICS, NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_CLOCK_VIDEO };
enum nvml_clock_id {
	NVML_CLOCK_ID_CURRENT,
	NVML_CLOCK_ID_APP_TARGET,
	NVML_CLOCK_ID_APP_DEFAULT,
	NVML_CLOCK_ID_BOOST_MAX,
};

enum { NVML_TEMPERATURE_GPU = 0 }; /* the only sensor */
enum nvml_threshold {
	NVML_THRESHOLD_SHUTDOWN,
	NVML_THRESHOLD_SLOWDOWN,
	NVML_THRESHOLD_MEM_MAX,
	NVML_THRESHOLD_GPU_MAX,
	NVML_THRESHOLD_ACOUSTIC_MIN,
	NVML_THRESHOLD_ACOUSTIC_CURR,
	NVML_THRESHOLD_ACOUSTIC_MAX,
	NVML_THRESHOLD_GPS_CURR,
	NVML_THRESHOLD_COUNT,
};

enum { NVML_PCIE_TX = 0, NVML_PCIE_RX = 1 }; /* KB/s over 20 ms: the call takes that long */
enum { NVML_PSTATE_UNKNOWN = 32 };
enum nvml_compute_mode {
	NVML_COMPUTE_DEFAULT,
	NVML_COMPUTE_EXCLUSIVE_THREAD,
	NVML_COMPUTE_PROHIBITED,
	NVML_COMPUTE_EXCLUSIVE_PROCESS,
};
enum { NVML_ECC_CORRECTED = 0, NVML_ECC_UNCORRECTED = 1 };
enum { NVML_ECC_VOLATILE = 0, NVML_ECC_AGGREGATE = 1 };
enum nvml_memory_location {
	NVML_LOCATION_L1,
	NVML_LOCATION_L2,
	NVML_LOCATION_DRAM, /* also "device memory" */
	NVML_LOCATION_REGISTER_FILE,
	NVML_LOCATION_TEXTURE,
	NVML_LOCATION_TEXTURE_SHM,
	NVML_LOCATION_CBU,
	NVML_LOCATION_SRAM,
	NVML_LOCATION_COUNT,
};
enum { NVML_INFOROM_OEM, NVML_INFOROM_ECC, NVML_INFOROM_POWER, NVML_INFOROM_DEN };
enum { NVML_RETIRED_SINGLE = 0, NVML_RETIRED_DOUBLE = 1 };
enum nvml_perf_policy { /* nvmlDeviceGetViolationStatus */
			NVML_POLICY_POWER = 0,
			NVML_POLICY_THERMAL = 1,
			NVML_POLICY_SYNC_BOOST = 2,
			NVML_POLICY_BOARD_LIMIT = 3,
			NVML_POLICY_LOW_UTILIZATION = 4,
			NVML_POLICY_RELIABILITY = 5,
			NVML_POLICY_APP_CLOCKS = 10,
			NVML_POLICY_BASE_CLOCKS = 11,
			NVML_POLICY_COUNT,
};
enum nvml_architecture {
	NVML_ARCH_KEPLER = 2,
	NVML_ARCH_MAXWELL,
	NVML_ARCH_PASCAL,
	NVML_ARCH_VOLTA,
	NVML_ARCH_TURING,
	NVML_ARCH_AMPERE,
	NVML_ARCH_ADA,
	NVML_ARCH_HOPPER,
	NVML_ARCH_BLACKWELL,
	NVML_ARCH_UNKNOWN = -1,
};
enum nvml_sampling { /* nvmlDeviceGetSamples */
		     NVML_SAMPLES_POWER,
		     NVML_SAMPLES_GPU,
		     NVML_SAMPLES_MEMORY,
		     NVML_SAMPLES_ENCODER,
		     NVML_SAMPLES_DECODER,
		     NVML_SAMPLES_CLOCK,
		     NVML_SAMPLES_MEMORY_CLOCK,
		     NVML_SAMPLES_MODULE_POWER,
		     NVML_SAMPLES_JPEG,
		     NVML_SAMPLES_OFA,
		     NVML_SAMPLES_COUNT,
};
enum nvml_value_type {
	NVML_TYPE_DOUBLE,
	NVML_TYPE_UINT,
	NVML_TYPE_ULONG,
	NVML_TYPE_ULLONG,
	NVML_TYPE_LLONG,
	NVML_TYPE_INT,
	NVML_TYPE_USHORT,
};

/* Why the clocks are not higher: bits of nvmlDeviceGetCurrentClocksEventReasons (before driver 535:
 * ...ThrottleReasons). */
#define NVML_REASON_IDLE          0x001ull
#define NVML_REASON_APP_CLOCKS    0x002ull
#define NVML_REASON_SW_POWER_CAP  0x004ull
#define NVML_REASON_HW_SLOWDOWN   0x008ull
#define NVML_REASON_SYNC_BOOST    0x010ull
#define NVML_REASON_SW_THERMAL    0x020ull
#define NVML_REASON_HW_THERMAL    0x040ull
#define NVML_REASON_HW_BRAKE      0x080ull
#define NVML_REASON_DISPLAY_CLOCK 0x100ull
#define NVML_REASON_ALL           0x1ffull

/* nvmlDeviceRegisterEvents. */
#define NVML_EVENT_ECC_SINGLE 0x01ull
#define NVML_EVENT_ECC_DOUBLE 0x02ull
#define NVML_EVENT_PSTATE     0x04ull
#define NVML_EVENT_XID        0x08ull
#define NVML_EVENT_CLOCK      0x10ull

#define NVML_NO_MEMORY_VALUE (~0ull) /* usedGpuMemory that the driver does not know */
#define NVML_NO_INSTANCE     (~0u)   /* gpuInstanceId, computeInstanceId without MIG */

/* Fields of nvmlDeviceGetFieldValues. The scope is the link number for NVLink fields. */
enum nvml_field {
	NVML_FI_DEV_ECC_CURRENT = 1,
	NVML_FI_DEV_ECC_PENDING = 2,
	NVML_FI_DEV_ECC_SBE_VOL_TOTAL = 3,
	NVML_FI_DEV_ECC_DBE_VOL_TOTAL = 4,
	NVML_FI_DEV_ECC_SBE_AGG_TOTAL = 5,
	NVML_FI_DEV_ECC_DBE_AGG_TOTAL = 6,
	NVML_FI_DEV_RETIRED_SBE = 29,
	NVML_FI_DEV_RETIRED_DBE = 30,
	NVML_FI_DEV_RETIRED_PENDING = 31,
	NVML_FI_DEV_PERF_POLICY_POWER = 74, /* 74..81: ns the clocks were held back; 74 and 76 are
	                                     * also ..._EVENT_REASON_SW_POWER_CAP, _SYNC_BOOST */
	NVML_FI_DEV_PERF_POLICY_THERMAL = 75,
	NVML_FI_DEV_PERF_POLICY_SYNC_BOOST = 76,
	NVML_FI_DEV_PERF_POLICY_BOARD_LIMIT = 77,
	NVML_FI_DEV_PERF_POLICY_LOW_UTILIZATION = 78,
	NVML_FI_DEV_PERF_POLICY_RELIABILITY = 79,
	NVML_FI_DEV_PERF_POLICY_TOTAL_APP_CLOCKS = 80,
	NVML_FI_DEV_PERF_POLICY_TOTAL_BASE_CLOCKS = 81,
	NVML_FI_DEV_MEMORY_TEMP = 82,
	NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION = 83, /* mJ */
	NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON = 90,
	NVML_FI_DEV_NVLINK_LINK_COUNT = 91,
	NVML_FI_DEV_PCIE_REPLAY_COUNTER = 94,
	NVML_FI_DEV_PCIE_REPLAY_ROLLOVER_COUNTER = 95,
	NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX = 138, /* KiB, a counter; scope UINT_MAX: all links */
	NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX = 139,
	NVML_FI_DEV_NVLINK_THROUGHPUT_RAW_TX = 140,
	NVML_FI_DEV_NVLINK_THROUGHPUT_RAW_RX = 141,
	NVML_FI_DEV_REMAPPED_COR = 142,
	NVML_FI_DEV_REMAPPED_UNC = 143,
	NVML_FI_DEV_REMAPPED_PENDING = 144,
	NVML_FI_DEV_REMAPPED_FAILURE = 145,
	NVML_FI_DEV_NVLINK_GET_SPEED = 164,
	NVML_FI_DEV_NVLINK_GET_STATE = 165,
	NVML_FI_DEV_NVLINK_GET_VERSION = 166,
	NVML_FI_DEV_C2C_LINK_COUNT = 170,
	NVML_FI_DEV_IS_RESETLESS_MIG_SUPPORTED = 184,
	NVML_FI_DEV_POWER_AVERAGE = 185, /* mW, over a second; scope 0 GPU, 1 module, 2 memory */
	NVML_FI_DEV_POWER_INSTANT = 186,
	NVML_FI_DEV_POWER_MIN_LIMIT = 187,
	NVML_FI_DEV_POWER_MAX_LIMIT = 188,
	NVML_FI_DEV_POWER_DEFAULT_LIMIT = 189,
	NVML_FI_DEV_POWER_CURRENT_LIMIT = 190,
	NVML_FI_DEV_ENERGY = 191,
	NVML_FI_DEV_POWER_REQUESTED_LIMIT = 192,
	NVML_FI_DEV_TEMPERATURE_SHUTDOWN_TLIMIT = 193,
	NVML_FI_DEV_TEMPERATURE_SLOWDOWN_TLIMIT = 194,
	NVML_FI_DEV_TEMPERATURE_MEM_MAX_TLIMIT = 195,
	NVML_FI_DEV_TEMPERATURE_GPU_MAX_TLIMIT = 196,
	NVML_FI_DEV_PCIE_COUNT_TX_BYTES = 197, /* bytes, counters: no 20 ms wait */
	NVML_FI_DEV_PCIE_COUNT_RX_BYTES = 198,
	NVML_FI_DEV_RESET_STATUS = 226,
	NVML_FI_DEV_DRAIN_AND_RESET_STATUS = 227,
	NVML_FI_DEV_GET_GPU_RECOVERY_ACTION =
	    230, /* 0 none, 1 reset, 2 reboot, 3 drain, 4 drain+reset */
	NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN = 269, /* 269..271: ns */
	NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN = 270,
	NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN = 271,
};

/* Metrics of nvmlGpmMetricsGet; percent unless said. */
enum nvml_gpm {
	NVML_GPM_GRAPHICS_UTIL = 1,
	NVML_GPM_SM_UTIL = 2,
	NVML_GPM_SM_OCCUPANCY = 3,
	NVML_GPM_INTEGER_UTIL = 4,
	NVML_GPM_ANY_TENSOR_UTIL = 5,
	NVML_GPM_DFMA_TENSOR_UTIL = 6,
	NVML_GPM_HMMA_TENSOR_UTIL = 7,
	NVML_GPM_DMMA_TENSOR_UTIL = 8,
	NVML_GPM_IMMA_TENSOR_UTIL = 9,
	NVML_GPM_DRAM_BW_UTIL = 10,
	NVML_GPM_FP64_UTIL = 11,
	NVML_GPM_FP32_UTIL = 12,
	NVML_GPM_FP16_UTIL = 13,
	NVML_GPM_PCIE_TX_PER_SEC = 20, /* MiB/s */
	NVML_GPM_PCIE_RX_PER_SEC = 21,
	NVML_GPM_NVDEC_0_UTIL = 30,
	NVML_GPM_NVJPG_0_UTIL = 40,
	NVML_GPM_NVOFA_0_UTIL = 50,
	NVML_GPM_NVLINK_TOTAL_RX_PER_SEC = 60, /* MiB/s */
	NVML_GPM_NVLINK_TOTAL_TX_PER_SEC = 61,
	NVML_GPM_NVLINK_L0_RX_PER_SEC = 62,
	NVML_GPM_NVLINK_L17_TX_PER_SEC = 97,
	NVML_GPM_NVENC_0_UTIL = 166,
};
enum { NVML_GPM_VERSION = 1, NVML_GPM_SUPPORT_VERSION = 1 };

struct nvml_pci { /* nvmlPciInfo_t */
	char bus_id_legacy[16];
	unsigned int domain, bus, device;
	unsigned int pci_id; /* device id << 16 | vendor id */
	unsigned int subsystem_id;
	char bus_id[32]; /* "00000000:83:00.0" */
};

struct nvml_pci_ext { /* nvmlPciInfoExt_v1_t */
	unsigned int version;
	unsigned int domain, bus, device, pci_id, subsystem_id, base_class, sub_class;
	char bus_id[32];
};

struct nvml_utilization { /* nvmlUtilization_t */
	unsigned int gpu, memory;
};

struct nvml_memory { /* nvmlMemory_t; used includes what the driver reserves */
	unsigned long long total, free, used;
};

struct nvml_memory_v2 { /* nvmlMemory_v2_t, version 2 */
	unsigned int version;
	unsigned long long total, reserved, free, used;
};

struct nvml_bar1 { /* nvmlBAR1Memory_t */
	unsigned long long total, free, used;
};

struct nvml_process_v1 { /* nvmlProcessInfo_v1_t, what the unversioned calls fill */
	unsigned int pid;
	unsigned long long memory;
};

struct nvml_process { /* nvmlProcessInfo_t: what _v2 and today's _v3 fill */
	unsigned int pid;
	unsigned long long memory;
	unsigned int gi, ci;
};

struct nvml_process_detail { /* nvmlProcessDetail_v1_t; also what _v3 filled in 535.43 - 535.86 */
	unsigned int pid;
	unsigned long long memory;
	unsigned int gi, ci;
	unsigned long long protected_memory;
};

struct nvml_process_detail_list { /* nvmlProcessDetailList_v1_t, version 1 */
	unsigned int version;
	unsigned int mode; /* 0 compute, 1 graphics, 2 MPS */
	unsigned int n;
	struct nvml_process_detail *processes;
};

struct nvml_process_sample { /* nvmlProcessUtilizationSample_t */
	unsigned int pid;
	unsigned long long time_us; /* since 1970 */
	unsigned int sm, memory, encoder, decoder;
};

struct nvml_process_usage { /* nvmlProcessUtilizationInfo_v1_t */
	unsigned long long time_us;
	unsigned int pid, sm, memory, encoder, decoder, jpeg, ofa;
};

struct nvml_processes_usage { /* nvmlProcessesUtilizationInfo_v1_t, version 1 */
	unsigned int version;
	unsigned int n;
	unsigned long long last_seen_us;
	struct nvml_process_usage *samples;
};

struct nvml_temperature { /* nvmlTemperature_v1_t, version 1 */
	unsigned int version;
	unsigned int sensor;
	int temperature;
};

struct nvml_margin { /* nvmlMarginTemperature_v1_t, version 1 */
	unsigned int version;
	int margin;
};

struct nvml_fan_rpm { /* nvmlFanSpeedInfo_v1_t, version 1 */
	unsigned int version, fan, rpm;
};

union nvml_value { /* nvmlValue_t */
	double d;
	int si;
	unsigned int ui;
	unsigned long ul;
	unsigned long long ull;
	signed long long sll;
	unsigned short us;
};

struct nvml_field_value { /* nvmlFieldValue_t */
	unsigned int id, scope;
	long long time_us;
	long long latency_us;
	unsigned int type; /* enum nvml_value_type */
	int result;        /* enum nvml_return of this field */
	union nvml_value value;
};

struct nvml_sample { /* nvmlSample_t */
	unsigned long long time_us;
	union nvml_value value;
};

struct nvml_violation { /* nvmlViolationTime_t */
	unsigned long long reference_us;
	unsigned long long violation_ns;
};

struct nvml_event { /* nvmlEventData_t; _v1 callers give 24 bytes only */
	nvml_device device;
	unsigned long long type;
	unsigned long long data; /* XID number */
	unsigned int gi, ci;
};

struct nvml_accounting { /* nvmlAccountingStats_t */
	unsigned int gpu, memory;
	unsigned long long max_memory, time_ms, start_us;
	unsigned int running;
	unsigned int reserved[5];
};

struct nvml_ecc_counts { /* nvmlEccErrorCounts_t */
	unsigned long long l1, l2, device_memory, register_file;
};

struct nvml_mig_attributes { /* nvmlDeviceAttributes_t */
	unsigned int multiprocessors, copy_engines, decoders, encoders, jpegs, ofas;
	unsigned int gi_slices, ci_slices;
	unsigned long long memory_mib;
};

struct nvml_remap_histogram { /* nvmlRowRemapperHistogramValues_t */
	unsigned int max, high, partial, low, none;
};

/* nvmlEccSramErrorStatus_v1_t, version 1 (driver 550): errors of on-chip memory that were not corrected,
 * unless the name says otherwise. The buckets are since ever. */
struct nvml_sram {
	unsigned int version;
	unsigned long long ever_parity, ever_secded, ever_corrected;
	unsigned long long parity, secded, corrected; /* since the driver was loaded */
	unsigned long long l2, sm, pcie, mcu, other;
	unsigned int threshold_exceeded;
};

enum nvml_fabric_state {
	NVML_FABRIC_NONE,
	NVML_FABRIC_NOT_STARTED,
	NVML_FABRIC_IN_PROGRESS,
	NVML_FABRIC_COMPLETED,
};

struct nvml_fabric { /* nvmlGpuFabricInfo_t (driver 525); status counts when completed only */
	unsigned char cluster[16];
	int status; /* enum nvml_return */
	unsigned int clique;
	unsigned char state; /* enum nvml_fabric_state */
};

struct nvml_fabric_v2 { /* nvmlGpuFabricInfo_v2_t, version 2 (driver 550) */
	unsigned int version;
	unsigned char cluster[16];
	int status;
	unsigned int clique;
	unsigned char state;
	unsigned int health;
};

struct nvml_protected { /* nvmlConfComputeMemSizeInfo_t */
	unsigned long long protected_kib, unprotected_kib;
};

struct nvml_c2c { /* nvmlC2cModeInfo_v1_t: no version field */
	unsigned int enabled;
};

struct nvml_addressing { /* nvmlDeviceAddressingMode_v1_t: 0 none, 1 HMM, 2 ATS */
	unsigned int version, mode;
};

struct nvml_gpm_metric { /* nvmlGpmMetric_t */
	unsigned int id;
	int result;
	double value;
	const char *short_name, *long_name, *unit;
};

/* nvmlGpmMetricsGet_t without its array: the vendor's array length differs from header to header
 * (98, 210, 333) while the version stays 1, so nobody may touch more than n entries. */
struct nvml_gpm_get {
	unsigned int version;
	unsigned int n;
	nvml_gpm_sample before, after;
	struct nvml_gpm_metric metrics[];
};

struct nvml_gpm_support { /* nvmlGpmSupport_t */
	unsigned int version, supported;
};

#define NVML_LAYOUT(type, bytes) _Static_assert(sizeof(type) == (bytes), #type " has another size")
#define NVML_PLACE(type, member, at) \
	_Static_assert(offsetof(type, member) == (at), #type "." #member " is elsewhere")
NVML_LAYOUT(struct nvml_pci, 68);
NVML_PLACE(struct nvml_pci, bus_id, 36);
NVML_LAYOUT(struct nvml_pci_ext, 64);
NVML_LAYOUT(struct nvml_utilization, 8);
NVML_LAYOUT(struct nvml_memory, 24);
NVML_LAYOUT(struct nvml_memory_v2, 40);
NVML_PLACE(struct nvml_memory_v2, used, 32);
NVML_LAYOUT(struct nvml_bar1, 24);
NVML_LAYOUT(struct nvml_process_v1, 16);
NVML_LAYOUT(struct nvml_process, 24);
NVML_PLACE(struct nvml_process, gi, 16);
NVML_LAYOUT(struct nvml_process_detail, 32);
NVML_LAYOUT(struct nvml_process_detail_list, 24);
NVML_PLACE(struct nvml_process_detail_list, processes, 16);
NVML_LAYOUT(struct nvml_process_sample, 32);
NVML_LAYOUT(struct nvml_process_usage, 40);
NVML_LAYOUT(struct nvml_processes_usage, 24);
NVML_LAYOUT(struct nvml_temperature, 12);
NVML_LAYOUT(struct nvml_field_value, 40);
NVML_PLACE(struct nvml_field_value, value, 32);
NVML_LAYOUT(struct nvml_sample, 16);
NVML_LAYOUT(struct nvml_violation, 16);
NVML_LAYOUT(struct nvml_event, 32);
NVML_LAYOUT(struct nvml_accounting, 56);
NVML_LAYOUT(struct nvml_mig_attributes, 40);
NVML_LAYOUT(struct nvml_remap_histogram, 20);
NVML_LAYOUT(struct nvml_sram, 104);
NVML_PLACE(struct nvml_sram, l2, 56);
NVML_PLACE(struct nvml_sram, threshold_exceeded, 96);
NVML_LAYOUT(struct nvml_fabric, 28);
NVML_LAYOUT(struct nvml_fabric_v2, 36);
NVML_PLACE(struct nvml_fabric_v2, health, 32);
NVML_LAYOUT(struct nvml_gpm_metric, 40);
NVML_LAYOUT(struct nvml_gpm_get, 24);

#endif

/* SPDX-License-Identifier: MIT
 *
 * Everything else that can be asked, for `smi` and `doctor`: settings, limits, versions, error counts.
 */
#include "gpu/nvml.h"

#include "base/auto.h"
#include "base/scan.h"

#include <string.h>

static int64_t most_of(enum gpu_property_id p)
{
	switch (p) {
	case GPU_P_POWER_AVERAGE:
	case GPU_P_POWER_INSTANT:
	case GPU_P_POWER_LIMIT_SET:
	case GPU_P_POWER_LIMIT_DEFAULT:
	case GPU_P_POWER_LIMIT_MIN:
	case GPU_P_POWER_LIMIT_MAX:
		return NVML_MOST_MW;
	case GPU_P_CLOCK_APP_GRAPHICS:
	case GPU_P_CLOCK_APP_MEM:
	case GPU_P_CLOCK_APP_DEFAULT_GRAPHICS:
	case GPU_P_CLOCK_APP_DEFAULT_MEM:
	case GPU_P_CLOCK_GRAPHICS_MAX:
	case GPU_P_CLOCK_VIDEO_MAX:
		return NVML_MOST_MHZ;
	default:
		return INT64_MAX;
	}
}

static void put(struct nvml_at *a, enum gpu_property_id p, int result, int64_t v)
{
	if (result == 0 && v > most_of(p))
		result = NVML_ERROR_UNKNOWN;
	if (result == 0)
		gpu_put_number(nvml_row(a), p, v);
	else
		gpu_lacks_property(nvml_row(a), p, nvml_have(result));
}

static void put_text(struct nvml_at *a, enum gpu_property_id p, int result, const char *text)
{
	if (result == 0)
		gpu_put_text(nvml_row(a), p, text);
	else
		gpu_lacks_property(nvml_row(a), p, nvml_have(result));
}

/* One unsigned number for one call. */
#define NUMBERS(X)                            \
	X(PCIE_GEN_MAX, pcie_gen_max)         \
	X(PCIE_GEN_GPU_MAX, pcie_gen_gpu_max) \
	X(PCIE_WIDTH_MAX, pcie_width_max)     \
	X(DISPLAY_ATTACHED, display_mode)     \
	X(DISPLAY_ACTIVE, display_active)     \
	X(PERSISTENCE, persistence)           \
	X(ACCOUNTING, accounting)             \
	X(ACCOUNTING_SIZE, accounting_size)   \
	X(CORES, cores)                       \
	X(POWER_LIMIT_SET, limit_set)         \
	X(POWER_LIMIT_DEFAULT, limit_default) \
	X(RETIRED_PENDING, retired_pending)   \
	X(NUMA_NODE, numa)                    \
	X(MINOR, minor)

static void read_numbers(struct nvml_at *a)
{
	nvml_device h = a->g->handle;
	unsigned v;
	int result;

#define READ(property, id)                \
	v = 0;                            \
	result = NVML_CALL(a, id, h, &v); \
	put(a, GPU_P_##property, result, (int64_t)v);
	NUMBERS(READ)
#undef READ
	put(a, GPU_P_COUNT, 0, a->n->n_gpus);
	put(a, GPU_P_CUDA, a->n->cuda_version > 0 ? 0 : NVML_ERROR_NOT_SUPPORTED,
	    a->n->cuda_version);
	v = NVML_PSTATE_UNKNOWN;
	result = NVML_CALL(a, pstate, h, &v);
	if (result == 0 && v >= NVML_PSTATE_UNKNOWN)
		result = NVML_ERROR_NOT_SUPPORTED;
	put(a, GPU_P_PSTATE, result, v);
	/* No call tells it, and nvidia-smi 590 has "[N/A]" for it too. */
	put(a, GPU_P_PCIE_GEN_HOST_MAX, NVML_ERROR_NOT_SUPPORTED, 0);
}

/* nvidia-smi 590 answers "deprecated" for these two fields, while a monitor is still told by the call
 * that was named after the display's mode: display_attached. */
static void read_deprecated(struct nvml_at *a)
{
	struct scan s = scan_of(a->n->driver, strlen(a->n->driver));
	const struct gpu_property *attached = &nvml_row(a)->property[GPU_P_DISPLAY_ATTACHED];
	uint64_t branch;
	unsigned v = 0;
	int result;

	if (scan_u64(&s, &branch) && branch >= 590) {
		put(a, GPU_P_DISPLAY_MODE, NVML_ERROR_DEPRECATED, 0);
		put(a, GPU_P_POWER_MANAGEMENT, NVML_ERROR_DEPRECATED, 0);
		return;
	}
	nvml_row(a)->property[GPU_P_DISPLAY_MODE] = *attached;
	result = NVML_CALL(a, power_management, a->g->handle, &v);
	put(a, GPU_P_POWER_MANAGEMENT, result, v);
}

#define TEXT_ROOM 96

static void read_texts(struct nvml_at *a)
{
	static const char *const architectures[] = {
		[2] = "Kepler",       [3] = "Maxwell", [4] = "Pascal",
		[5] = "Volta",        [6] = "Turing",  [7] = "Ampere",
		[8] = "Ada Lovelace", [9] = "Hopper",  [10] = "Blackwell"
	};
	nvml_device h = a->g->handle;
	char text[TEXT_ROOM + 1] = "";
	unsigned v = 0;
	int result = NVML_CALL(a, serial, h, text, NVML_SERIAL_MAX);

	put_text(a, GPU_P_SERIAL, result, text);
	memset(text, 0, sizeof(text));
	result = NVML_CALL(a, vbios, h, text, NVML_VBIOS_MAX);
	put_text(a, GPU_P_VBIOS, result, text);
	memset(text, 0, sizeof(text));
	result = NVML_CALL(a, inforom_image, h, text, NVML_INFOROM_MAX);
	put_text(a, GPU_P_INFOROM_IMAGE, result, text);
	for (unsigned i = NVML_INFOROM_OEM; i <= NVML_INFOROM_POWER; i++) {
		memset(text, 0, sizeof(text));
		result = NVML_CALL(a, inforom, h, i, text, NVML_INFOROM_MAX);
		put_text(a, (enum gpu_property_id)(GPU_P_INFOROM_OEM + (int)i), result, text);
	}
	put_text(a, GPU_P_DRIVER, a->n->driver[0] ? 0 : NVML_ERROR_UNKNOWN, a->n->driver);
	result = NVML_CALL(a, architecture, h, &v);
	if (result == 0 && (v >= ARRAY_LEN(architectures) || !architectures[v]))
		result = NVML_ERROR_UNKNOWN;
	put_text(a, GPU_P_ARCHITECTURE, result, result ? "" : architectures[v]);
}

static void read_pci(struct nvml_at *a)
{
	struct nvml_pci_ext ext = { .version = NVML_VERSION(struct nvml_pci_ext, 1) };
	struct nvml_pci pci = { 0 };
	int result = NVML_CALL(a, pci, a->g->handle, &pci);

	put(a, GPU_P_PCI_DOMAIN, result, pci.domain);
	put(a, GPU_P_PCI_BUS, result, pci.bus);
	put(a, GPU_P_PCI_DEVICE, result, pci.device);
	put(a, GPU_P_PCI_DEVICE_ID, result, pci.pci_id);
	put(a, GPU_P_PCI_SUBSYSTEM_ID, result, pci.subsystem_id);
	result = NVML_CALL(a, pci_ext, a->g->handle, &ext);
	put(a, GPU_P_PCI_BASE_CLASS, result, ext.base_class);
	put(a, GPU_P_PCI_SUB_CLASS, result, ext.sub_class);
}

/* Pairs of one call. */
static void read_pairs(struct nvml_at *a)
{
	nvml_device h = a->g->handle;
	unsigned x = 0, y = 0, z = 0;
	int major = 0, minor = 0;
	int result = NVML_CALL(a, ecc_mode, h, &x, &y);

	put(a, GPU_P_ECC_MODE, result, x);
	put(a, GPU_P_ECC_MODE_PENDING, result, y);
	result = NVML_CALL(a, mig_mode, h, &x, &y);
	put(a, GPU_P_MIG_MODE, result, x);
	put(a, GPU_P_MIG_MODE_PENDING, result, y);
	result = NVML_CALL(a, gsp, h, &x, &y);
	put(a, GPU_P_GSP_MODE, result, x);
	put(a, GPU_P_GSP_DEFAULT, result, y);
	result = NVML_CALL(a, limit_range, h, &x, &y);
	put(a, GPU_P_POWER_LIMIT_MIN, result, x);
	put(a, GPU_P_POWER_LIMIT_MAX, result, y);
	result = NVML_CALL(a, compute_cap, h, &major, &minor);
	put(a, GPU_P_COMPUTE_CAP, result, (int64_t)(major & 0xff) << 8 | (minor & 0xff));
	result = NVML_CALL(a, encoder_stats, h, &x, &y, &z);
	put(a, GPU_P_ENCODER_SESSIONS, result, x);
	put(a, GPU_P_ENCODER_FPS, result, y);
	put(a, GPU_P_ENCODER_LATENCY, result, z);
	result = NVML_CALL(a, jpeg, h, &x, &y);
	put(a, GPU_P_JPEG, result, (int64_t)x * 100);
	result = NVML_CALL(a, ofa, h, &x, &y);
	put(a, GPU_P_OFA, result, (int64_t)x * 100);
}

static void read_clocks(struct nvml_at *a)
{
	static const struct {
		enum gpu_property_id p;
		unsigned clock;
		enum { APP, APP_DEFAULT, MAX } kind;
	} clocks[] = {
		{ GPU_P_CLOCK_APP_GRAPHICS, NVML_CLOCK_GRAPHICS, APP },
		{ GPU_P_CLOCK_APP_MEM, NVML_CLOCK_MEM, APP },
		{ GPU_P_CLOCK_APP_DEFAULT_GRAPHICS, NVML_CLOCK_GRAPHICS, APP_DEFAULT },
		{ GPU_P_CLOCK_APP_DEFAULT_MEM, NVML_CLOCK_MEM, APP_DEFAULT },
		{ GPU_P_CLOCK_GRAPHICS_MAX, NVML_CLOCK_GRAPHICS, MAX },
		{ GPU_P_CLOCK_VIDEO_MAX, NVML_CLOCK_VIDEO, MAX },
	};
	nvml_device h = a->g->handle;
	unsigned long long bits = 0;
	int result;

	for (size_t i = 0; i < ARRAY_LEN(clocks); i++) {
		unsigned v = 0, c = clocks[i].clock;

		result = clocks[i].kind == APP   ? NVML_CALL(a, app_clock, h, c, &v)
			 : clocks[i].kind == MAX ? NVML_CALL(a, clock_max, h, c, &v)
						 : NVML_CALL(a, app_clock_default, h, c, &v);
		put(a, clocks[i].p, result, v);
	}
	result = NVML_CALL(a, reasons_supported, h, &bits);
	put(a, GPU_P_REASONS_SUPPORTED, result, (int64_t)bits);
	/* The generation of the GPU's side alone is not told: that of the link is. */
	if (gpu_metric(nvml_row(a), M_GPU_PCIE_GEN)->have == GPU_KNOWN)
		put(a, GPU_P_PCIE_GEN_GPU_CURRENT, 0, gpu_metric(nvml_row(a), M_GPU_PCIE_GEN)->raw);
	else
		put(a, GPU_P_PCIE_GEN_GPU_CURRENT, NVML_ERROR_NOT_SUPPORTED, 0);
}

static void read_memories(struct nvml_at *a)
{
	nvml_device h = a->g->handle;
	struct nvml_addressing m = { .version = NVML_VERSION(struct nvml_addressing, 1) };
	static const char *const modes[] = { "None", "HMM", "ATS" };
	struct nvml_memory mem = { 0 };
	struct nvml_bar1 bar = { 0 };
	struct nvml_c2c c2c = { 0 };
	int result = NVML_CALL(a, bar1, h, &bar);

	put(a, GPU_P_BAR1_TOTAL, result, (int64_t)bar.total);
	put(a, GPU_P_BAR1_USED, result, (int64_t)bar.used);
	result = NVML_CALL(a, protected_memory, h, &mem);
	put(a, GPU_P_PROTECTED_TOTAL, result, (int64_t)mem.total);
	put(a, GPU_P_PROTECTED_USED, result, (int64_t)mem.used);
	put(a, GPU_P_PROTECTED_FREE, result, (int64_t)mem.free);
	result = NVML_CALL(a, c2c, h, &c2c);
	put(a, GPU_P_C2C, result, c2c.enabled);
	result = NVML_CALL(a, addressing, h, &m);
	if (result == 0 && m.mode >= ARRAY_LEN(modes))
		result = NVML_ERROR_UNKNOWN;
	put_text(a, GPU_P_ADDRESSING, result, result ? "" : modes[m.mode]);
}

static void read_health(struct nvml_at *a)
{
	nvml_device h = a->g->handle;
	struct nvml_margin margin = { .version = NVML_VERSION(struct nvml_margin, 1) };
	unsigned v = 0, rows[4] = { 0 };
	int result = NVML_CALL(a, threshold, h, NVML_THRESHOLD_SHUTDOWN, &v);

	put(a, GPU_P_TEMP_SHUTDOWN, result, v);
	result = NVML_CALL(a, margin, h, &margin);
	put(a, GPU_P_TEMP_LIMIT_MARGIN, result, margin.margin);
	result = NVML_CALL(a, inforom_valid, h);
	put(a, GPU_P_INFOROM_VALID, result == NVML_ERROR_CORRUPTED_INFOROM ? 0 : result,
	    result == 0);
	result = NVML_CALL(a, remapped, h, &rows[0], &rows[1], &rows[2], &rows[3]);
	for (int i = 0; i < 4; i++)
		put(a, (enum gpu_property_id)(GPU_P_REMAPPED_CORRECTABLE + i), result, rows[i]);
	for (unsigned cause = NVML_RETIRED_SINGLE; cause <= NVML_RETIRED_DOUBLE; cause++) {
		unsigned n = 0;

		/* With no room it answers "too small" and how many there are. */
		result = NVML_CALL(a, retired, h, cause, &n, NULL);
		put(a, cause == NVML_RETIRED_SINGLE ? GPU_P_RETIRED_SINGLE : GPU_P_RETIRED_DOUBLE,
		    result == NVML_ERROR_INSUFFICIENT_SIZE ? 0 : result, n);
	}
}

static void put_count(struct nvml_at *a, enum gpu_property_id p, int result, unsigned long long v)
{
	put(a, p, result == 0 && v > INT64_MAX ? NVML_ERROR_UNKNOWN : result, (int64_t)v);
}

/* Ampere and later: how many memory banks have how many of their spare rows left, and where errors of
 * on-chip memory were that could not be corrected. */
static void read_spares(struct nvml_at *a)
{
	nvml_device h = a->g->handle;
	struct nvml_remap_histogram banks = { 0 };
	struct nvml_sram s = { .version = NVML_VERSION(struct nvml_sram, 1) };
	int result = NVML_CALL(a, remap_histogram, h, &banks);

	put(a, GPU_P_REMAPPED_BANKS_MAX, result, banks.max);
	put(a, GPU_P_REMAPPED_BANKS_HIGH, result, banks.high);
	put(a, GPU_P_REMAPPED_BANKS_PARTIAL, result, banks.partial);
	put(a, GPU_P_REMAPPED_BANKS_LOW, result, banks.low);
	put(a, GPU_P_REMAPPED_BANKS_NONE, result, banks.none);
	result = NVML_CALL(a, sram, h, &s);
	put_count(a, GPU_P_SRAM_VOLATILE_PARITY, result, s.parity);
	put_count(a, GPU_P_SRAM_VOLATILE_SECDED, result, s.secded);
	put_count(a, GPU_P_SRAM_AGGREGATE_PARITY, result, s.ever_parity);
	put_count(a, GPU_P_SRAM_AGGREGATE_SECDED, result, s.ever_secded);
	put(a, GPU_P_SRAM_THRESHOLD, result, s.threshold_exceeded != 0);
	put_count(a, GPU_P_SRAM_L2, result, s.l2);
	put_count(a, GPU_P_SRAM_SM, result, s.sm);
	put_count(a, GPU_P_SRAM_MCU, result, s.mcu);
	put_count(a, GPU_P_SRAM_PCIE, result, s.pcie);
	put_count(a, GPU_P_SRAM_OTHER, result, s.other);
}

/* As nvmlErrorString() has it. */
static void fabric_status(int status, char *ret, size_t size)
{
	static const struct {
		int code;
		const char *text;
	} known[] = {
		{ NVML_SUCCESS, "Success" },
		{ NVML_ERROR_NOT_SUPPORTED, "Not Supported" },
		{ NVML_ERROR_NO_PERMISSION, "Insufficient Permissions" },
		{ NVML_ERROR_TIMEOUT, "Timeout" },
		{ NVML_ERROR_GPU_IS_LOST, "GPU is lost" },
		{ NVML_ERROR_UNKNOWN, "Unknown Error" },
	};

	snprintf(ret, size, "Error %d", status);
	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (known[i].code == status)
			snprintf(ret, size, "%s", known[i].text);
}

/* "00000000-0000-0000-0000-000000000000" */
static void uuid_text(const unsigned char *bytes, char *ret, size_t size)
{
	size_t n = 0;

	for (int i = 0; i < 16 && n < size; i++)
		n += (size_t)snprintf(ret + n, size - n, "%s%02x",
				      i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", bytes[i]);
}

/* NVSwitch machines: registration of the GPU with the fabric manager. Nothing but the state holds
 * before that has come to its end. */
static void read_fabric(struct nvml_at *a)
{
	static const char *const states[] = { [NVML_FABRIC_NOT_STARTED] = "Not Started",
					      [NVML_FABRIC_IN_PROGRESS] = "In Progress",
					      [NVML_FABRIC_COMPLETED] = "Completed" };
	struct nvml_fabric_v2 v2 = { .version = NVML_VERSION(struct nvml_fabric_v2, 2) };
	struct nvml_fabric f = { 0 };
	char status[32], cluster[40] = "";
	int result = NVML_CALL(a, fabric_v2, a->g->handle, &v2);

	if (result == 0) {
		memcpy(f.cluster, v2.cluster, sizeof(f.cluster));
		f.status = v2.status;
		f.clique = v2.clique;
		f.state = v2.state;
	} else if (a->g->state == GPU_KNOWN) {
		result = NVML_CALL(a, fabric, a->g->handle, &f);
	}
	if (result == 0 && (f.state == NVML_FABRIC_NONE || f.state >= ARRAY_LEN(states)))
		result =
		    f.state == NVML_FABRIC_NONE ? NVML_ERROR_NOT_SUPPORTED : NVML_ERROR_UNKNOWN;
	put_text(a, GPU_P_FABRIC_STATE, result, result ? "" : states[f.state]);
	if (result == 0 && f.state != NVML_FABRIC_COMPLETED)
		result = NVML_ERROR_NOT_SUPPORTED;
	fabric_status(f.status, status, sizeof(status));
	uuid_text(f.cluster, cluster, sizeof(cluster));
	put_text(a, GPU_P_FABRIC_STATUS, result, status);
	put(a, GPU_P_FABRIC_CLIQUE, result, f.clique);
	put_text(a, GPU_P_FABRIC_CLUSTER, result, cluster);
}

static void read_fields(struct nvml_at *a)
{
	static const struct {
		enum gpu_property_id p;
		unsigned field;
		int64_t divide;
	} wanted[] = {
		{ GPU_P_POWER_AVERAGE, NVML_FI_DEV_POWER_AVERAGE, 1 },
		{ GPU_P_POWER_INSTANT, NVML_FI_DEV_POWER_INSTANT, 1 },
		{ GPU_P_NVLINKS, NVML_FI_DEV_NVLINK_LINK_COUNT, 1 },
		{ GPU_P_HELD_POWER_SW, NVML_FI_DEV_PERF_POLICY_POWER, 1000 },
		{ GPU_P_HELD_SYNC, NVML_FI_DEV_PERF_POLICY_SYNC_BOOST, 1000 },
		{ GPU_P_HELD_HEAT_SW, NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN, 1000 },
		{ GPU_P_HELD_HEAT_HW, NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN, 1000 },
		{ GPU_P_HELD_BRAKE, NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN, 1000 },
		{ GPU_P_RECOVERY, NVML_FI_DEV_GET_GPU_RECOVERY_ACTION, 1 },
	};
	static const char *const actions[] = { "None", "Reset", "Reboot", "Drain P2P",
					       "Drain and Reset" };
	struct nvml_field_value v[ARRAY_LEN(wanted)] = { 0 };
	int result;

	for (size_t i = 0; i < ARRAY_LEN(wanted); i++)
		v[i] = (struct nvml_field_value){ .id = wanted[i].field,
						  .result = NVML_ERROR_NOT_SUPPORTED };
	result = NVML_CALL(a, fields, a->g->handle, ARRAY_LEN(wanted), v);
	for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
		int64_t value = 0;
		int own = result ? result : nvml_field(&v[i], &value);

		if (own == NVML_ERROR_INVALID_ARGUMENT)
			own = NVML_ERROR_NOT_SUPPORTED;
		if (wanted[i].p != GPU_P_RECOVERY) {
			put(a, wanted[i].p, own, value / wanted[i].divide);
			continue;
		}
		if (own == 0 && (value < 0 || value >= (int64_t)ARRAY_LEN(actions)))
			own = NVML_ERROR_UNKNOWN;
		put_text(a, GPU_P_RECOVERY, own, own ? "" : actions[value]);
	}
}

/* Four blocks of nine in property.def: corrected and not, since the driver was loaded and ever. */
void nvml_read_ecc_properties(struct nvml_at *a)
{
	static const unsigned places[] = {
		NVML_LOCATION_DRAM, NVML_LOCATION_DRAM, NVML_LOCATION_REGISTER_FILE,
		NVML_LOCATION_L1,   NVML_LOCATION_L2,   NVML_LOCATION_TEXTURE,
		NVML_LOCATION_CBU,  NVML_LOCATION_SRAM
	};
	static const struct {
		enum gpu_property_id first;
		unsigned type, since;
	} blocks[] = {
		{ GPU_P_ECC_CORRECTED_VOLATILE_DEVICE_MEMORY, NVML_ECC_CORRECTED,
		  NVML_ECC_VOLATILE },
		{ GPU_P_ECC_CORRECTED_AGGREGATE_DEVICE_MEMORY, NVML_ECC_CORRECTED,
		  NVML_ECC_AGGREGATE },
		{ GPU_P_ECC_UNCORRECTED_VOLATILE_DEVICE_MEMORY, NVML_ECC_UNCORRECTED,
		  NVML_ECC_VOLATILE },
		{ GPU_P_ECC_UNCORRECTED_AGGREGATE_DEVICE_MEMORY, NVML_ECC_UNCORRECTED,
		  NVML_ECC_AGGREGATE },
	};
	nvml_device h = a->g->handle;

	for (size_t b = 0; b < ARRAY_LEN(blocks); b++) {
		unsigned type = blocks[b].type, since = blocks[b].since;
		unsigned long long n = 0;
		int result;

		for (size_t i = 0; i < ARRAY_LEN(places); i++) {
			n = 0;
			result = NVML_CALL(a, ecc_counter, h, type, since, places[i], &n);
			put(a, (enum gpu_property_id)(blocks[b].first + i), result, (int64_t)n);
		}
		n = 0;
		result = NVML_CALL(a, ecc_total, h, type, since, &n);
		put(a, (enum gpu_property_id)(blocks[b].first + ARRAY_LEN(places)), result,
		    (int64_t)n);
	}
}

void nvml_read_properties(struct nvml_at *a)
{
	void (*const parts[])(struct nvml_at *) = {
		read_numbers, read_deprecated, read_texts,    read_pci,
		read_pairs,   read_clocks,     read_memories, read_health,
		read_spares,  read_fabric,     read_fields,   nvml_read_ecc_properties,
	};

	for (size_t i = 0; i < ARRAY_LEN(parts) && a->g->state == GPU_KNOWN; i++)
		parts[i](a);
}

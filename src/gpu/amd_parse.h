/* SPDX-License-Identifier: MIT
 *
 * Files of amdgpu whose contents have a form of their own.
 */
#ifndef SPOTTER_GPU_AMD_PARSE_H
#define SPOTTER_GPU_AMD_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* pp_dpm_sclk: levels, the one in use marked. "0: 500Mhz \n1: 2365Mhz *\n"; a sleeping MI200 shows
 * "S: 19Mhz *" first. False when there is no level. */
struct amd_clocks {
	int64_t now, max; /* MHz, -1: none is marked */
};
bool amd_clocks_parse(const char *text, size_t n, struct amd_clocks *ret);

/* pp_dpm_pcie: "0: 2.5GT/s, x8 310Mhz \n1: 16.0GT/s, x16 619Mhz *\n". The link a card behind its own
 * switch really has; current_link_speed is that of the switch. False when no level is marked. */
bool amd_link_parse(const char *text, size_t n, int *ret_generation, int *ret_width);

/* gpu_metrics: a table of the power firmware (Linux 5.10), u16 size, u8 format, u8 content revision.
 * 1.3 (discrete) and 2.2 to 2.4 (APU) have throttle reasons that mean the same on every GPU; 1.4 and 1.5
 * (MI300) count energy. Others are not read. False when the header does not fit what was read. */
enum {
	AMD_THROTTLE_POWER = 1,   /* package power, slow and fast limits */
	AMD_THROTTLE_CURRENT = 2, /* of the regulators */
	AMD_THROTTLE_HEAT = 4,
	AMD_THROTTLE_HOT_PIN = 8, /* PROCHOT, VRHOT: told by hardware */
	AMD_THROTTLE_OTHER = 16,
};
struct amd_table {
	bool integrated;   /* an APU's table: format 2 or 3 */
	int throttle;      /* AMD_THROTTLE_*, -1: not told */
	int64_t energy_mj; /* -1: not told */
};
bool amd_table_parse(const void *data, size_t n, struct amd_table *ret);

/* "ue: 0\nce: 3\n" */
bool amd_errors_parse(const char *text, size_t n, uint64_t *ret_ue, uint64_t *ret_ce);

/* pcie_bw: packets received and sent in the last second, and the most bytes one carries:
 * "123456 654321 256". Bytes a second. */
bool amd_traffic_parse(const char *text, size_t n, int64_t *ret_rx, int64_t *ret_tx);

#endif

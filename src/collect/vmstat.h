/* SPDX-License-Identifier: MIT
 *
 * /proc/vmstat as numbers; see vmstat.c.
 */
#ifndef SPOTTER_COLLECT_VMSTAT_H
#define SPOTTER_COLLECT_VMSTAT_H

#include "collect/collector.h"

enum vmstat_key {
	VMSTAT_SWAP_IN,  /* pages */
	VMSTAT_SWAP_OUT, /* pages */
	VMSTAT_FAULTS,
	VMSTAT_MAJOR_FAULTS,
	VMSTAT_SCAN_DIRECT,
	VMSTAT_SCAN_KSWAPD,
	VMSTAT_RECLAIMED,
	VMSTAT_REFAULT_FILE,
	VMSTAT_REFAULT_ANON,
	VMSTAT_ALLOC_STALLS,
	VMSTAT_OOM_KILLS,
	VMSTAT_KEYS
};

struct vmstat {
	int64_t value[VMSTAT_KEYS]; /* -1: absent */
};

/* 0, or -EINVAL when none of the keys is there; then *ret is untouched. */
int vmstat_parse(const char *text, size_t n, struct vmstat *ret);

extern const struct collector vmstat_collector;

#endif

/* SPDX-License-Identifier: MIT
 *
 * A list of CPUs as the kernel writes it: "0-3,8" in Cpus_allowed_list of /proc/PID/status, in
 * cpuset.cpus.effective and in sys/devices/system/cpu/online.
 */
#ifndef SPOTTER_COLLECT_CPULIST_H
#define SPOTTER_COLLECT_CPULIST_H

#include "base/scan.h"

enum { CPULIST_CPUS = 8192 };

struct cpulist {
	uint64_t bits[CPULIST_CPUS / 64];
};

/* Takes the list and leaves the scan behind it; an empty one is a list too. False when it is
 * malformed or names a CPU past CPULIST_CPUS; then *ret is untouched. */
bool cpulist_parse(struct scan *s, struct cpulist *ret);
unsigned cpulist_count(const struct cpulist *l);
/* CPUs that are in both. */
unsigned cpulist_count_both(const struct cpulist *a, const struct cpulist *b);

#endif

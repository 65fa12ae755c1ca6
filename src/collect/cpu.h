/* SPDX-License-Identifier: MIT
 *
 * /proc/stat as numbers; see cpu.c.
 */
#ifndef SPOTTER_COLLECT_CPU_H
#define SPOTTER_COLLECT_CPU_H

#include "base/scan.h"
#include "collect/collector.h"

enum { CPU_NUMBER_MAX = 8191 }; /* NR_CPUS of the largest kernels is 8192 */

/* Order of the columns. Guest time is inside user and nice. */
enum cpu_column {
	CPU_USER,
	CPU_NICE,
	CPU_SYSTEM,
	CPU_IDLE,
	CPU_IOWAIT,
	CPU_IRQ,
	CPU_SOFTIRQ,
	CPU_STEAL,
	CPU_COLUMNS
};

struct cpu_times {
	int64_t ticks[CPU_COLUMNS]; /* of 1/100 s */
	unsigned n;                 /* columns this kernel has; the rest is absent */
};

struct cpu_stat {
	struct cpu_times total;
	int64_t switches, forks, running, blocked; /* -1: absent */
};

/* 0, or -EINVAL without a whole line for the sum of all CPUs; then *ret is untouched. */
int cpu_parse(const char *text, size_t n, struct cpu_stat *ret);
/* The next CPU of the same text; false behind the last. Lines that make no sense are passed over. */
bool cpu_next(struct scan *s, unsigned *ret_cpu, struct cpu_times *ret);

extern const struct collector cpu_collector;

#endif

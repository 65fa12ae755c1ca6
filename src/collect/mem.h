/* SPDX-License-Identifier: MIT
 *
 * /proc/meminfo as numbers; see mem.c.
 */
#ifndef SPOTTER_COLLECT_MEM_H
#define SPOTTER_COLLECT_MEM_H

#include "collect/collector.h"

enum { MEM_KEYS = 12 };

struct mem {
	int64_t kib[MEM_KEYS]; /* in the order of mem_metrics; -1: absent */
};

extern const enum metric_id mem_metrics[MEM_KEYS];

/* 0, or -EINVAL when not even MemTotal is there; then *ret is untouched. */
int mem_parse(const char *text, size_t n, struct mem *ret);

extern const struct collector mem_collector;

#endif

/* SPDX-License-Identifier: MIT
 *
 * /proc/loadavg as numbers; see load.c.
 */
#ifndef SPOTTER_COLLECT_LOAD_H
#define SPOTTER_COLLECT_LOAD_H

#include "collect/collector.h"

struct load {
	int64_t avg[3]; /* over 1, 5 and 15 minutes, in hundredths */
};

/* 0, or -EINVAL; then *ret is untouched. */
int load_parse(const char *text, size_t n, struct load *ret);

extern const struct collector load_collector;

#endif

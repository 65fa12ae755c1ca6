/* SPDX-License-Identifier: MIT
 *
 * Pressure files as numbers: /proc/pressure/NAME and NAME.pressure of a v2 control group have the
 * same form; see psi.c.
 */
#ifndef SPOTTER_COLLECT_PSI_H
#define SPOTTER_COLLECT_PSI_H

#include "collect/collector.h"

struct psi {
	int64_t some_us, full_us; /* -1: absent */
};

/* 0, or -EINVAL when neither line is there; then *ret is untouched. */
int psi_parse(const char *text, size_t n, struct psi *ret);

extern const struct collector psi_collector;

#endif

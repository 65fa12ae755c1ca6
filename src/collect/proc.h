/* SPDX-License-Identifier: MIT */
#ifndef SPOTTER_COLLECT_PROC_H
#define SPOTTER_COLLECT_PROC_H

#include "collect/collector.h"

extern const struct collector proc_collector;

#endif

/* SPDX-License-Identifier: MIT
 *
 * Space on the file systems that matter to a job; see mount.c. The parser is mountinfo.h.
 */
#ifndef SPOTTER_COLLECT_MOUNT_H
#define SPOTTER_COLLECT_MOUNT_H

#include "collect/collector.h"

extern const struct collector mount_collector;

#endif

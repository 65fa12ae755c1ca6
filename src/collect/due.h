/* SPDX-License-Identifier: MIT
 *
 * Whether it is time again for a part of a collector that runs less often than the collector.
 */
#ifndef SPOTTER_COLLECT_DUE_H
#define SPOTTER_COLLECT_DUE_H

#include <stdbool.h>
#include <stdint.h>

/* *next_ns starts at 0, which is due at once. Ticks jitter, so up to a twentieth too early is on
 * time; a clock that went back is due too, or the part would stand still until it caught up. */
static inline bool due(int64_t *next_ns, int64_t now_ns, int64_t every_ns)
{
	if (*next_ns && now_ns + every_ns / 20 < *next_ns && now_ns > *next_ns - 2 * every_ns)
		return false;
	*next_ns = now_ns + every_ns;
	return true;
}

#endif

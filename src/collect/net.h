/* SPDX-License-Identifier: MIT
 *
 * /proc/net/dev as numbers; see net.c.
 */
#ifndef SPOTTER_COLLECT_NET_H
#define SPOTTER_COLLECT_NET_H

#include "base/scan.h"
#include "collect/collector.h"

enum { NET_NAME_BYTES = 16 }; /* IFNAMSIZ, with the NUL */

struct net {
	char name[NET_NAME_BYTES];
	int64_t rx_bytes, rx_packets, tx_bytes, tx_packets;
	int64_t errors; /* errors and drops, both directions */
};

/* The next interface of the text; false behind the last. The two head lines and lines that make no
 * sense are passed over. */
bool net_next(struct scan *s, struct net *ret);

extern const struct collector net_collector;

#endif

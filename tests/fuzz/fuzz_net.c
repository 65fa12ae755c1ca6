/* SPDX-License-Identifier: MIT
 *
 * /proc/net/dev: names are short and terminated, counters not negative, and the walk ends.
 */
#include "collect/net.h"
#include "fuzz.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct scan s = scan_of((const char *)data, n);
	struct net net;

	while (net_next(&s, &net)) {
		must(memchr(net.name, '\0', sizeof(net.name)), "a name is a short text");
		must(net.rx_bytes >= 0 && net.tx_bytes >= 0 && net.errors >= 0,
		     "counters are not negative");
	}
	must(scan_end(&s), "the walk ends at the end");
	return 0;
}

/* SPDX-License-Identifier: MIT
 *
 * /proc/diskstats: names are short, terminated and not empty, and the walk ends.
 */
#include "collect/disk.h"
#include "fuzz.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct scan s = scan_of((const char *)data, n);
	struct disk d;

	while (disk_next(&s, &d)) {
		must(d.name[0] && memchr(d.name, '\0', sizeof(d.name)), "a name is a short text");
		(void)disk_name_counts(d.name);
	}
	must(scan_end(&s), "the walk ends at the end");
	return 0;
}

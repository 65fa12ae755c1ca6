/* SPDX-License-Identifier: MIT
 *
 * /proc/PID/io: what is accepted is what scan_key finds under each name.
 */
#include "base/scan.h"
#include "collect/proc_parse.h"
#include "fuzz.h"

#include <string.h>

static void is_key(struct scan text, const char *key, int64_t want)
{
	uint64_t v;

	must(scan_key_u64(text, key, &v) && (int64_t)v == want, "each number is its line's");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	char *text = malloc(n + 1);
	struct proc_io io;

	if (!text)
		return 0;
	memcpy(text, data, n);
	text[n] = '\0';
	if (proc_io_parse(text, n, &io)) {
		struct scan s = scan_of(text, n);

		is_key(s, "rchar", io.rchar);
		is_key(s, "wchar", io.wchar);
		is_key(s, "syscr", io.syscr);
		is_key(s, "syscw", io.syscw);
		is_key(s, "read_bytes", io.read_bytes);
		is_key(s, "write_bytes", io.write_bytes);
		is_key(s, "cancelled_write_bytes", io.cancelled);
	}
	free(text);
	return 0;
}

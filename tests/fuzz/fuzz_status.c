/* SPDX-License-Identifier: MIT
 *
 * /proc/PID/status: lines by name, in any order, any of them absent.
 */
#include "collect/proc_parse.h"
#include "fuzz.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	char *text = malloc(n + 1);
	struct proc_status s = { 42, 42, 42, 42 };

	if (!text)
		return 0;
	memcpy(text, data, n);
	text[n] = '\0';
	if (proc_status_parse(text, n, &s)) {
		must(s.peak_kb >= 0 || s.swap_kb >= 0 || s.switches >= 0 || s.preemptions >= 0,
		     "success is at least one line");
		must(s.peak_kb >= -1 && s.swap_kb >= -1 && s.switches >= -1 && s.preemptions >= -1,
		     "absent is -1");
	} else {
		must(s.peak_kb == 42 && s.preemptions == 42, "a result is written only on success");
	}
	free(text);
	return 0;
}

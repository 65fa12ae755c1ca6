/* SPDX-License-Identifier: MIT
 *
 * /proc/PID/smaps_rollup.
 */
#include "collect/proc_parse.h"
#include "fuzz.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	char *text = malloc(n + 1);
	struct proc_smaps s = { -1, -1 };

	if (!text)
		return 0;
	memcpy(text, data, n);
	text[n] = '\0';
	if (proc_smaps_parse(text, n, &s))
		must(s.pss_kb >= 0 && s.private_kb >= 0, "sizes are not negative");
	else
		must(s.pss_kb == -1 && s.private_kb == -1, "a result is written only on success");
	free(text);
	return 0;
}

/* SPDX-License-Identifier: MIT
 *
 * /proc/PID/stat. What the fast parser accepts, a slow one built on scan.h must read the same way.
 */
#include "base/scan.h"
#include "collect/proc_parse.h"
#include "fuzz.h"

#include <string.h>

static void compare(const struct proc_stat *s, const char *end)
{
	const int64_t want[] = { s->ppid,
				 -1,
				 -1,
				 -1,
				 -1,
				 (int64_t)s->flags,
				 s->minor_faults,
				 -1,
				 s->major_faults,
				 -1,
				 s->utime,
				 s->stime,
				 s->child_utime,
				 s->child_stime,
				 -1,
				 -1,
				 s->threads,
				 -1,
				 (int64_t)s->start };
	struct scan rest = { .p = s->head.rest, .end = end };

	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		uint64_t v;

		if (want[i] < 0) {
			/* One blank a field, so that an empty one is a field too. */
			must(rest.p < end && *rest.p == ' ', "fields are parted by a blank");
			for (rest.p++; rest.p < end && (unsigned char)*rest.p > ' ';)
				rest.p++;
			continue;
		}
		must(scan_u64(&rest, &v) && (int64_t)v == want[i], "each number is the text's");
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	char *text = malloc(n + 1);
	struct proc_stat s;
	int64_t code = -1;

	if (!text)
		return 0;
	memcpy(text, data, n);
	text[n] = '\0';
	if (proc_stat_parse(text, n, &s)) {
		must(s.head.name >= text && s.head.name + s.head.name_n < text + n,
		     "the name is part of the text");
		must(s.head.name[s.head.name_n] == ')', "the name ends at a bracket");
		must(!memchr(s.head.rest, ')', (size_t)(text + n - s.head.rest)) || n > 85,
		     "and at the last one");
		compare(&s, text + n);
	}
	if (proc_stat_exit_code(text, n, &code))
		must(code >= 0, "an exit code is not negative");
	free(text);
	return 0;
}

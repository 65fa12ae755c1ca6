/* SPDX-License-Identifier: MIT
 *
 * schedstat, statm and loadavg: a line of numbers each.
 */
#include "base/scan.h"
#include "collect/proc_parse.h"
#include "fuzz.h"

#include <string.h>

static void is_number(struct scan *s, int64_t want)
{
	uint64_t v;

	must(scan_u64(s, &v) && (int64_t)v == want, "each number is the text's");
	must(!scan_end(s) && (*s->p == ' ' || *s->p == '\n'), "and is whole");
	s->p++;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	char *text = malloc(n + 1);
	struct schedstat t;
	struct proc_statm m;
	int64_t pid = -1;
	struct scan s;

	if (!text)
		return 0;
	memcpy(text, data, n);
	text[n] = '\0';
	s = scan_of(text, n);
	if (schedstat_parse(text, n, &t)) {
		is_number(&s, t.run_ns);
		is_number(&s, t.delay_ns);
		is_number(&s, t.slices);
	}
	s = scan_of(text, n);
	if (proc_statm_parse(text, n, &m)) {
		is_number(&s, m.size);
		is_number(&s, m.resident);
		is_number(&s, m.shared);
	}
	if (last_pid_parse(text, n, &pid))
		must(pid >= 0, "a pid is not negative");
	else
		must(pid == -1, "a result is written only on success");
	free(text);
	return 0;
}

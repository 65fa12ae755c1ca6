/* SPDX-License-Identifier: MIT
 *
 * /proc/PID/mountinfo: fields lie inside the text, escapes come undone into no more than there is
 * room for, and the search for the mount of a path ends, with one of the mounts of the text.
 */
#include "collect/mountinfo.h"
#include "fuzz.h"

#include <string.h>

static void inside(struct scan field, const uint8_t *data, size_t n)
{
	const char *text = (const char *)data;
	char small[8];

	must(field.p >= text && field.p <= field.end && field.end <= text + n,
	     "a field is part of the text");
	if (mountinfo_unescape(field, small, sizeof(small)))
		must(strlen(small) <= (size_t)(field.end - field.p), "unescaped is not longer");
	else
		must(!small[0], "what does not fit is empty");
	(void)mountinfo_has(field, "cpu");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct scan s = scan_of((const char *)data, n);
	struct mountinfo m;
	bool local, listed = false;

	while (mountinfo_next(&s, &m)) {
		inside(m.root, data, n);
		inside(m.point, data, n);
		inside(m.type, data, n);
		inside(m.source, data, n);
		inside(m.options, data, n);
		listed = true;
	}
	if (mountinfo_find((const char *)data, n, "/dev/shm", &m, &local)) {
		must(listed, "what is found is listed");
		inside(m.point, data, n);
	}
	return 0;
}

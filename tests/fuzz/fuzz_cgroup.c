/* SPDX-License-Identifier: MIT
 *
 * Control groups. The input is /proc/PID/cgroup, a line "--", and mountinfo; all of it is also every
 * one of the small files. A folder that is found lies below its mount point and does not lead out of it.
 */
#include "collect/cgroup.h"
#include "fuzz.h"

#include <string.h>

static void find(const char *text, size_t n)
{
	const char *cut = memmem(text, n, "\n--\n", 4);
	size_t groups = cut ? (size_t)(cut - text) + 1 : n;
	size_t mounts = cut ? groups + 3 : n;
	struct cgroup_where w;

	if (cgroup_find(text, groups, text + mounts, n - mounts, &w) < 0)
		return;
	must(cgroup_name(&w)[0] == '/', "a group is called by its path");
	for (int i = 0; i < CGROUP_PARTS; i++) {
		struct cgroup_place *p = &w.at[i];

		if (!p->version)
			continue;
		must(p->version == 1 || p->version == 2, "there are two versions");
		must(p->path[0] == '/' && strlen(p->dir) >= p->top, "a folder is below its mount");
		must(!strstr(p->dir + p->top, "/../"), "a folder does not lead out of its mount");
		while (cgroup_up(p->dir, p->top))
			must(strlen(p->dir) >= p->top, "the way up ends at the mount");
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	const char *text = (const char *)data;
	struct cgroup_memory_stat m;
	struct cgroup_cpu_stat c;
	struct cgroup_events e;
	pid_t pids[4];
	int64_t v;

	find(text, n);
	if (cgroup_quota_parse(text, n, &v) == 0)
		must(v >= -1, "a quota is none or not negative");
	if (cgroup_bytes_parse(text, n, &v) == 0)
		must(v >= -1, "a limit is none or not negative");
	if (cgroup_cpu_stat_parse(text, n, &c) == 0)
		must(c.usage_ns >= -1 && c.periods >= -1 && c.throttled_ns >= -1,
		     "a counter is absent or not negative");
	if (cgroup_memory_stat_parse(text, n, &m) == 0)
		must(m.anon_kib >= -1 && m.refaults >= -1 && m.limit_kib >= -1,
		     "a counter is absent or not negative");
	if (cgroup_events_parse(text, n, &e) == 0)
		must(e.oom_kills >= 0 || e.limit_hits >= 0, "one of the two is there");
	(void)cgroup_procs_parse(text, n, pids, 4);
	return 0;
}

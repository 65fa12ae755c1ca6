/* SPDX-License-Identifier: MIT
 *
 * The tightest limits on the way from a job's groups up to the root of what can be seen. A group is
 * bound by every group above it, so its own figures alone tell nothing: a container without a limit
 * in a pod with one is limited. Cost: 5 us a file and level, three files, once a second.
 */
#include "collect/cgroup.h"

#include "base/io.h"
#include "base/scan.h"
#include "base/text.h"
#include "collect/cpulist.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { LEVELS_MAX = 64 };

static ssize_t read_file(const struct host *h, const char *dir, const char *file, char *buf,
			 size_t size)
{
	char path[CGROUP_PATH + 64];

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	return io_read(h->root, path, buf, size);
}

static int read_number(const struct host *h, const char *dir, const char *file, int64_t *ret)
{
	char text[64];
	ssize_t n = read_file(h, dir, file, text, sizeof(text));
	struct scan s;

	if (n < 0)
		return (int)n;
	s = scan_of(text, (size_t)n);
	return scan_i64(&s, ret) ? 0 : -EINVAL;
}

/* Each gives the limit one group sets itself, -1 for none: 0 or -errno. */

static int quota_of(const struct host *h, const char *dir, int version, int64_t *ret)
{
	char text[64];
	int64_t quota, period;
	ssize_t n;
	int r;

	if (version == 2) {
		n = read_file(h, dir, "cpu.max", text, sizeof(text));
		return n < 0 ? (int)n : cgroup_quota_parse(text, (size_t)n, ret);
	}
	r = read_number(h, dir, "cpu.cfs_quota_us", &quota);
	if (r == 0)
		r = read_number(h, dir, "cpu.cfs_period_us", &period);
	if (r < 0)
		return r;
	*ret = cgroup_quota_v1(quota, period);
	return 0;
}

static int memory_of(const struct host *h, const char *dir, int version, int64_t *ret)
{
	char text[64];
	ssize_t n = read_file(h, dir, version == 2 ? "memory.max" : "memory.limit_in_bytes", text,
			      sizeof(text));

	return n < 0 ? (int)n : cgroup_bytes_parse(text, (size_t)n, ret);
}

/* A group without the file sets no limit (the root of v2; a controller that is not switched on). */
static void tightest(const struct host *h, const struct cgroup_place *p,
		     int (*limit_of)(const struct host *, const char *, int, int64_t *),
		     struct cgroup_limit *l)
{
	char dir[CGROUP_PATH];

	*l = (struct cgroup_limit){ .known = CGROUP_FREE };
	if (!p->version) {
		*l = (struct cgroup_limit){ .known = CGROUP_UNKNOWN, .why = -ENOENT };
		return;
	}
	text_copy(dir, sizeof(dir), p->dir);
	for (int level = 0; level < LEVELS_MAX; level++) {
		int64_t value = -1;
		int r = limit_of(h, dir, p->version, &value);

		if (r < 0 && r != -ENOENT && l->known != CGROUP_LIMITED) {
			l->known = CGROUP_UNKNOWN;
			l->why = r;
		}
		if (value >= 0 && (l->known != CGROUP_LIMITED || value < l->value)) {
			l->known = CGROUP_LIMITED;
			l->value = value;
			text_copy(l->dir, sizeof(l->dir), dir);
		}
		if (!cgroup_up(dir, p->top))
			break;
	}
	/* None above says nothing of those between there and the job. */
	if (p->above && l->known == CGROUP_FREE)
		*l = (struct cgroup_limit){ .known = CGROUP_UNKNOWN, .why = -ENOENT };
}

/* v1 says itself what holds: also from groups above what we can see, and without those above a
 * group whose memory.use_hierarchy is 0. */
static void trust_hierarchical(const struct host *h, const struct cgroup_place *p,
			       struct cgroup_limit *l)
{
	char text[8192];
	struct cgroup_memory_stat stat;
	ssize_t n;

	if (p->version != 1 || p->above)
		return;
	n = read_file(h, p->dir, "memory.stat", text, sizeof(text));
	if (n < 0 || cgroup_memory_stat_parse(text, (size_t)n, &stat) < 0 || !stat.has_limit)
		return;
	if (stat.limit_kib < 0) {
		*l = (struct cgroup_limit){ .known = CGROUP_FREE };
		return;
	}
	if (l->known == CGROUP_LIMITED && l->value == stat.limit_kib)
		return;
	*l = (struct cgroup_limit){ .known = CGROUP_LIMITED, .value = stat.limit_kib };
}

/* The effective set of a group is already within those above it; where the controller is not
 * switched on (v2) or the set is empty (v1), the group above counts. */
static int64_t cpuset_size(const struct host *h, const struct cgroup_place *p)
{
	static const char *const files[3][2] = {
		[1] = { "cpuset.effective_cpus", "cpuset.cpus" },
		[2] = { "cpuset.cpus.effective", "cpuset.cpus" },
	};
	char dir[CGROUP_PATH], text[4096];

	text_copy(dir, sizeof(dir), p->dir);
	for (int level = 0; p->version && !p->above && level < LEVELS_MAX; level++) {
		for (int i = 0; i < 2; i++) {
			ssize_t n = read_file(h, dir, files[p->version][i], text, sizeof(text));
			struct scan s = scan_of(text, n > 0 ? (size_t)n : 0);
			struct cpulist l;

			if (n > 0 && cpulist_parse(&s, &l) && cpulist_count(&l))
				return cpulist_count(&l);
		}
		if (!cgroup_up(dir, p->top))
			break;
	}
	return -1;
}

void cgroup_limits_read(const struct host *h, const struct cgroup_where *w,
			struct cgroup_limits *ret)
{
	tightest(h, &w->at[CGROUP_CPU], quota_of, &ret->quota);
	tightest(h, &w->at[CGROUP_MEMORY], memory_of, &ret->memory);
	trust_hierarchical(h, &w->at[CGROUP_MEMORY], &ret->memory);
	ret->cpuset = cpuset_size(h, &w->at[CGROUP_CPUSET]);
}

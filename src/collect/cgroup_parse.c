/* SPDX-License-Identifier: MIT
 *
 * The texts of control groups. Memory is in bytes, read here as KiB.
 *
 * v2 (kernel 4.5; cpu.max 4.15, oom_kill in memory.events 4.13):
 *	cpu.max		150000 100000			or: max 100000
 *	cpu.stat	usage_usec 107842897		without the cpu controller only the first three
 *			user_usec 73943085
 *			system_usec 33899812
 *			nr_periods 1204
 *			nr_throttled 310
 *			throttled_usec 45112870
 *	memory.max	4294967296			or: max
 *	memory.events	low 0
 *			high 0
 *			max 118
 *			oom 1
 *			oom_kill 1
 *	memory.stat	anon 1773568
 *			file 409600
 *			workingset_refault_anon 0	one "workingset_refault" before 5.9
 *			workingset_refault_file 489
 *			pgmajfault 15
 * v1:
 *	cpu.cfs_quota_us -1	cpu.cfs_period_us 100000
 *	cpu.stat	nr_periods 1204
 *			nr_throttled 310
 *			throttled_time 45112870331	nanoseconds
 *	cpuacct.usage	112357534449			nanoseconds
 *	memory.limit_in_bytes 9223372036854771712	no limit: the largest number of whole pages
 *	memory.oom_control	oom_kill_disable 0
 *			under_oom 0
 *			oom_kill 0			since 4.13
 *	memory.stat	cache 409600			this group alone, then with all below it:
 *			rss 1773568
 *			pgmajfault 15
 *			hierarchical_memory_limit 9223372036854771712
 *			total_cache 409600
 *			total_rss 1773568
 *			total_swap 0			only with swap accounting
 *			total_workingset_refault_file 489
 *			total_pgmajfault 15
 */
#include "collect/cgroup.h"

#include "base/scan.h"
#include "collect/whole.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int64_t cgroup_quota_v1(int64_t quota_us, int64_t period_us)
{
	double mcores;

	if (quota_us <= 0 || period_us <= 0)
		return -1;
	mcores = (double)quota_us * 1000 / (double)period_us + 0.5;
	/* The kernel takes quotas no machine can use up; they are no limit. */
	return mcores < 1e15 ? (int64_t)mcores : -1;
}

int cgroup_quota_parse(const char *text, size_t n, int64_t *ret_mcores)
{
	struct scan s = scan_of(text, n);
	int64_t quota = -1, period;

	if (!scan_lit(&s, "max ") && (!scan_i64(&s, &quota) || quota <= 0))
		return -EINVAL;
	if (!scan_i64(&s, &period) || period <= 0)
		return -EINVAL;
	*ret_mcores = cgroup_quota_v1(quota, period);
	return 0;
}

int cgroup_bytes_parse(const char *text, size_t n, int64_t *ret_kib)
{
	struct scan s = scan_of(text, n);
	uint64_t bytes;

	if (scan_lit(&s, "max")) {
		*ret_kib = -1;
		return 0;
	}
	if (!scan_u64(&s, &bytes))
		return -EINVAL;
	*ret_kib = bytes >= 1ull << 62 ? -1 : (int64_t)(bytes / 1024);
	return 0;
}

/* A key and where its number goes. */
struct slot {
	const char *key;
	int64_t *to;
};

/* Fills what is there; the rest stays. Returns how many there were. */
static int parse_slots(const char *text, size_t n, const struct slot *slots, size_t n_slots)
{
	struct scan s = scan_of(text, n), line;
	int found = 0;

	while (whole_line(&s, &line)) {
		const char *name;
		size_t len;
		int64_t v;

		if (!scan_word(&line, &name, &len) || !scan_i64(&line, &v) || v < 0)
			continue;
		for (size_t i = 0; i < n_slots; i++) {
			if (strlen(slots[i].key) != len || memcmp(slots[i].key, name, len) != 0)
				continue;
			*slots[i].to = v;
			found++;
		}
	}
	return found;
}

static int64_t us_to_ns(int64_t us)
{
	int64_t ns;

	return us < 0 || __builtin_mul_overflow(us, 1000, &ns) ? -1 : ns;
}

int cgroup_cpu_stat_parse(const char *text, size_t n, struct cgroup_cpu_stat *ret)
{
	struct cgroup_cpu_stat c = { -1, -1, -1, -1 };
	int64_t usage_us = -1, throttled_us = -1;
	const struct slot slots[] = {
		{ "usage_usec", &usage_us },           { "nr_periods", &c.periods },
		{ "nr_throttled", &c.throttled },      { "throttled_usec", &throttled_us },
		{ "throttled_time", &c.throttled_ns },
	};

	if (!parse_slots(text, n, slots, sizeof(slots) / sizeof(slots[0])))
		return -EINVAL;
	c.usage_ns = us_to_ns(usage_us);
	if (c.throttled_ns < 0)
		c.throttled_ns = us_to_ns(throttled_us);
	*ret = c;
	return 0;
}

/* -1 stays -1. */
static int64_t to_kib(int64_t bytes)
{
	return bytes < 0 ? -1 : bytes / 1024;
}

static int64_t first_known(int64_t a, int64_t b)
{
	return a >= 0 ? a : b;
}

static int64_t sum_known(int64_t a, int64_t b)
{
	int64_t sum;

	if (a < 0 || b < 0)
		return first_known(a, b);
	return __builtin_add_overflow(a, b, &sum) ? -1 : sum;
}

/* One of these for the group alone, one for it with all below ("total_" of v1). */
struct memory_slots {
	int64_t anon, file, swap, faults, refault, refault_anon, refault_file;
};

static int64_t slots_refaults(const struct memory_slots *m)
{
	return first_known(sum_known(m->refault_anon, m->refault_file), m->refault);
}

int cgroup_memory_stat_parse(const char *text, size_t n, struct cgroup_memory_stat *ret)
{
	struct memory_slots a = { -1, -1, -1, -1, -1, -1, -1 }, t = a;
	int64_t limit = -1;
	const struct slot slots[] = {
		{ "anon", &a.anon },
		{ "rss", &a.anon },
		{ "file", &a.file },
		{ "cache", &a.file },
		{ "swap", &a.swap },
		{ "pgmajfault", &a.faults },
		{ "workingset_refault", &a.refault },
		{ "workingset_refault_anon", &a.refault_anon },
		{ "workingset_refault_file", &a.refault_file },
		{ "total_rss", &t.anon },
		{ "total_cache", &t.file },
		{ "total_swap", &t.swap },
		{ "total_pgmajfault", &t.faults },
		{ "total_workingset_refault", &t.refault },
		{ "total_workingset_refault_anon", &t.refault_anon },
		{ "total_workingset_refault_file", &t.refault_file },
		{ "hierarchical_memory_limit", &limit },
	};

	if (!parse_slots(text, n, slots, sizeof(slots) / sizeof(slots[0])))
		return -EINVAL;
	*ret = (struct cgroup_memory_stat){
		.anon_kib = to_kib(first_known(t.anon, a.anon)),
		.file_kib = to_kib(first_known(t.file, a.file)),
		.swap_kib = to_kib(first_known(t.swap, a.swap)),
		.major_faults = first_known(t.faults, a.faults),
		.refaults = first_known(slots_refaults(&t), slots_refaults(&a)),
		.limit_kib = limit >= 1ll << 62 ? -1 : to_kib(limit),
		.has_limit = limit >= 0,
	};
	return 0;
}

int cgroup_events_parse(const char *text, size_t n, struct cgroup_events *ret)
{
	struct cgroup_events e = { -1, -1 };
	const struct slot slots[] = { { "oom_kill", &e.oom_kills }, { "max", &e.limit_hits } };

	if (!parse_slots(text, n, slots, sizeof(slots) / sizeof(slots[0])))
		return -EINVAL;
	*ret = e;
	return 0;
}

ssize_t cgroup_procs_parse(const char *text, size_t n, pid_t *ret, size_t cap)
{
	struct scan s = scan_of(text, n), line;
	size_t found = 0;

	while (whole_line(&s, &line)) {
		uint64_t pid;

		if (!scan_u64(&line, &pid) || pid > INT32_MAX || !scan_end(&line))
			return -EINVAL;
		if (found < cap)
			ret[found] = (pid_t)pid;
		found++;
	}
	return (ssize_t)found;
}

static bool holds(const pid_t *list, size_t n, pid_t pid)
{
	for (size_t i = 0; i < n; i++)
		if (list[i] == pid)
			return true;
	return false;
}

/* Lists are short where it matters; a group of thousands is rarely a job's own and ends the walk
 * at its first stranger. */
enum cgroup_owner cgroup_owner(const pid_t *group, size_t n_group, const pid_t *job, size_t n_job,
			       const pid_t *us, size_t n_us)
{
	bool members = false, ours = false;

	for (size_t i = 0; i < n_group; i++) {
		if (holds(us, n_us, group[i]))
			ours = true;
		else if (holds(job, n_job, group[i]))
			members = true;
		else
			return CGROUP_SHARED;
	}
	if (!members)
		return CGROUP_SHARED;
	return ours ? CGROUP_OWN_WITH_US : CGROUP_OWN;
}

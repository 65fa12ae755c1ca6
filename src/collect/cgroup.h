/* SPDX-License-Identifier: MIT
 *
 * The control groups of a job: which they are (cgroup_find.c), what limits they and those above them
 * set (cgroup_limit.c), what their counters say (cgroup_parse.c), and the collector that puts it all
 * into frames (cgroup.c). Versions 1, 2, and both at once.
 *
 * A job has one group per controller; with v2 they are the same folder. Spotter shows them as one
 * entity. What is read where:
 *   CPU quota, periods, throttling	the group with the tightest quota, from the job's own upwards
 *   memory limit, limit hits		the group with the tightest limit
 *   memory, anon, file, swap		the same (how full is what is limited), else the job's own
 *   CPU time, faults, refaults, OOM kills, pressure	the job's own group
 * The root group of the machine is nobody's own: its figures are the machine's, and absent here.
 * A quota or memory limit that is absent without a gap is one that does not exist; with a gap it could
 * not be read. Inside a container the groups above its own cannot be seen: what is limited only there
 * is not known, but for v1 memory, where the kernel tells.
 */
#ifndef SPOTTER_COLLECT_CGROUP_H
#define SPOTTER_COLLECT_CGROUP_H

#include "collect/collector.h"

/* Paths longer than this are taken as unreadable. Kubernetes makes some of 250 bytes. */
enum { CGROUP_PATH = 1024 };

enum cgroup_part {
	CGROUP_CPU,
	CGROUP_CPUACCT,
	CGROUP_MEMORY,
	CGROUP_CPUSET,
	CGROUP_UNIFIED, /* the v2 group, for pressure, also where the controllers are v1 */
	CGROUP_PARTS
};

/* Where the group of one controller is. */
struct cgroup_place {
	int version; /* 1 or 2; 0: no such group, or it cannot be seen from here */
	bool above;  /* dir is not the group but one above it, of which only limits hold */
	char path[CGROUP_PATH]; /* as in /proc/PID/cgroup: "/user.slice/job" */
	char dir[CGROUP_PATH];  /* below the host's root: "sys/fs/cgroup/user.slice/job" */
	size_t top;             /* bytes of dir that are the mount point: the way up ends there */
};

struct cgroup_where {
	struct cgroup_place at[CGROUP_PARTS];
};

/* Finds the groups from /proc/PID/cgroup and /proc/self/mountinfo. 0, or -ENOENT when none of them
 * can be seen; then *ret is untouched. */
int cgroup_find(const char *groups, size_t n_groups, const char *mounts, size_t n_mounts,
		struct cgroup_where *ret);
/* The path to call the whole by: of v2, or the first v1 group that is not the root. */
const char *cgroup_name(const struct cgroup_where *w);
/* Cuts the last folder off; false when dir was at `top` already. */
bool cgroup_up(char *dir, size_t top);

/* Whether this folder is the root of the whole hierarchy and not only of what we may see. */
bool cgroup_is_root(const struct host *h, const struct cgroup_place *p);

/* Limits in force, the tightest on the way up. Each has a state of knowledge: */
enum cgroup_known {
	CGROUP_UNKNOWN, /* could not be read: `why` */
	CGROUP_FREE,    /* read, and there is none */
	CGROUP_LIMITED, /* read, and it is this */
};

struct cgroup_limit {
	enum cgroup_known known;
	int why;               /* -errno, with CGROUP_UNKNOWN */
	int64_t value;         /* milli-cores or KiB */
	char dir[CGROUP_PATH]; /* the group that sets it; "" when it is above what we can see */
};

struct cgroup_limits {
	struct cgroup_limit quota, memory;
	int64_t cpuset; /* CPUs; -1: unknown */
};

void cgroup_limits_read(const struct host *h, const struct cgroup_where *w,
			struct cgroup_limits *ret);

/* Pure parsers; 0 or -EINVAL, *ret untouched then. cgroup_parse.c shows the texts. */

/* "max 100000" and "150000 100000" (v2): milli-cores, -1 without a quota. */
int cgroup_quota_parse(const char *text, size_t n, int64_t *ret_mcores);
/* cpu.cfs_quota_us and cpu.cfs_period_us (v1) as milli-cores; -1 without a quota. */
int64_t cgroup_quota_v1(int64_t quota_us, int64_t period_us);
/* "max", "4294967296", or v1's 9223372036854771712 for none: KiB, -1 without a limit. */
int cgroup_bytes_parse(const char *text, size_t n, int64_t *ret_kib);

struct cgroup_cpu_stat {
	int64_t usage_ns, periods, throttled, throttled_ns; /* -1: absent */
};
int cgroup_cpu_stat_parse(const char *text, size_t n, struct cgroup_cpu_stat *ret);

struct cgroup_memory_stat {
	int64_t anon_kib, file_kib, swap_kib, major_faults, refaults; /* -1: absent */
	int64_t limit_kib; /* v1 hierarchical_memory_limit; -1: none or absent */
	bool has_limit;    /* it was there */
};
int cgroup_memory_stat_parse(const char *text, size_t n, struct cgroup_memory_stat *ret);

struct cgroup_events {
	int64_t oom_kills, limit_hits; /* -1: absent */
};
/* memory.events of v2, memory.oom_control of v1. */
int cgroup_events_parse(const char *text, size_t n, struct cgroup_events *ret);

/* cgroup.procs: one pid a line. Fills at most cap and returns how many there are, or -EINVAL. A
 * process of another pid namespace is 0. */
ssize_t cgroup_procs_parse(const char *text, size_t n, pid_t *ret, size_t cap);

/* Whose a group is: decides whether its CPU time can stand for the job's. */
enum cgroup_owner {
	CGROUP_SHARED,      /* somebody else is in it */
	CGROUP_OWN,         /* the job and nobody else */
	CGROUP_OWN_WITH_US, /* the job and Spotter, whose own CPU time is known and can be taken off */
};
/* group: pids in the group's cgroup.procs; job: pids of the job; us: Spotter's own. Any order. An
 * empty group, or one that holds nobody of the job, is not the job's. */
enum cgroup_owner cgroup_owner(const pid_t *group, size_t n_group, const pid_t *job, size_t n_job,
			       const pid_t *us, size_t n_us);
static inline bool cgroup_is_own(const pid_t *group, size_t n_group, const pid_t *job, size_t n_job,
				 const pid_t *us, size_t n_us)
{
	return cgroup_owner(group, n_group, job, n_job, us, n_us) != CGROUP_SHARED;
}

extern const struct collector cgroup_collector;

#endif

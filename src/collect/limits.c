/* SPDX-License-Identifier: MIT
 *
 * /proc/PID/status of the job's first process, for the CPUs its affinity allows:
 *
 *	Cpus_allowed:	3
 *	Cpus_allowed_list:	0-1
 *
 * and sys/devices/system/cpu/online, "0-1": an affinity may hold CPUs that are offline, or that
 * could be plugged in one day. The affinity is within the cpuset already. When the whole machine is
 * watched there is no first process, and the machine and the quota on us are what there is.
 * Cost: 7 us + 2 us, once a second.
 */
#include "collect/limits.h"

#include <errno.h>
#include <stdio.h>

int limits_affinity_parse(const char *text, size_t n, struct cpulist *ret)
{
	struct scan rest;
	struct cpulist l;

	if (!scan_key(scan_of(text, n), "Cpus_allowed_list", &rest) || !cpulist_parse(&rest, &l) ||
	    !cpulist_count(&l))
		return -EINVAL;
	*ret = l;
	return 0;
}

int64_t limits_allowed(int64_t affinity_cpus, int64_t online_cpus, int64_t quota_mcores)
{
	int64_t cpus = affinity_cpus;

	if (cpus < 0 || (online_cpus >= 0 && online_cpus < cpus))
		cpus = online_cpus;
	if (cpus < 0)
		return quota_mcores;
	return quota_mcores >= 0 && quota_mcores < cpus * 1000 ? quota_mcores : cpus * 1000;
}

void limits_init(struct limits *l)
{
	*l = (struct limits){ .affinity = -1 };
	whole_init(&l->status);
	whole_init(&l->online);
}

void limits_done(struct limits *l)
{
	whole_done(&l->status);
	whole_done(&l->online);
}

/* False when the machine does not say. */
static bool read_online(struct collect *c, struct limits *l, struct cpulist *ret)
{
	struct scan s;

	if (whole_read(c->host, &l->online, "sys/devices/system/cpu/online") < 0)
		return false;
	s = scan_of(l->online.text, l->online.n);
	return cpulist_parse(&s, ret) && cpulist_count(ret) > 0;
}

static void read_affinity(struct collect *c, struct limits *l, const struct cpulist *online,
			  struct frame *f)
{
	char path[64];
	struct cpulist allowed;
	int r;

	if (l->gone || c->job.root <= 0)
		return;
	snprintf(path, sizeof(path), "proc/%d/status", (int)c->job.root);
	r = whole_read(c->host, &l->status, path);
	if (r == 0)
		r = limits_affinity_parse(l->status.text, l->status.n, &allowed);
	if (r == 0) {
		l->affinity =
		    online ? cpulist_count_both(&allowed, online) : cpulist_count(&allowed);
		frame_put(f, M_JOB_CORES_AFFINITY, ID_JOB, l->affinity);
		return;
	}
	/* Its number may be another process's soon: never looked at again. */
	l->gone = r == -ENOENT || r == -ESRCH;
	if (l->affinity < 0 && !l->said) {
		enum gap_why why = r == -EACCES || r == -EPERM ? GAP_NO_PERMISSION : GAP_LOST;

		frame_gap(f, M_JOB_CORES_AFFINITY, ID_JOB, why);
		frame_gap(f, M_JOB_CORES_ALLOWED, ID_JOB, why);
		l->said = true;
	}
}

void limits_read(struct collect *c, struct limits *l, const struct cgroup_limit *quota,
		 struct frame *f)
{
	struct cpulist online;
	bool known = read_online(c, l, &online);
	int64_t allowed;

	read_affinity(c, l, known ? &online : NULL, f);
	if (c->job.root > 0 && l->affinity < 0)
		return;
	allowed = limits_allowed(l->affinity, known ? (int64_t)cpulist_count(&online) : -1,
				 quota->known == CGROUP_LIMITED ? quota->value : -1);
	if (allowed >= 0)
		frame_put(f, M_JOB_CORES_ALLOWED, ID_JOB, allowed);
}

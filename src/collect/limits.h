/* SPDX-License-Identifier: MIT
 *
 * How many cores a job may use: the least of its affinity, its quota and the machine; see limits.c.
 * The cgroup collector, which knows the quota, runs it.
 */
#ifndef SPOTTER_COLLECT_LIMITS_H
#define SPOTTER_COLLECT_LIMITS_H

#include "collect/cgroup.h"
#include "collect/cpulist.h"
#include "collect/whole.h"

struct limits {
	struct whole status, online;
	int64_t affinity; /* -1: never read */
	bool said;        /* that it could not be read */
	bool gone;        /* the job's first process ended: what it had last holds */
};

/* The affinity in /proc/PID/status: 0 or -EINVAL; then *ret is untouched. */
int limits_affinity_parse(const char *text, size_t n, struct cpulist *ret);
/* Milli-cores; each argument is -1 when there is no such limit. -1 when all are. */
int64_t limits_allowed(int64_t affinity_cpus, int64_t online_cpus, int64_t quota_mcores);

void limits_init(struct limits *l);
void limits_done(struct limits *l);
void limits_read(struct collect *c, struct limits *l, const struct cgroup_limit *quota,
		 struct frame *f);

#endif

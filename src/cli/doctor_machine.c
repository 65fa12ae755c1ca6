/* SPDX-License-Identifier: MIT
 *
 * What this machine is, what it lets a job use, and what its kernel counts.
 */
#include "cli/doctor.h"

#include "base/auto.h"
#include "base/io.h"
#include "base/num.h"
#include "base/scan.h"
#include "base/text.h"
#include "collect/cgroup.h"
#include "collect/limits.h"
#include "engine/sampler.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool read_line(const struct doctor *d, const char *path, char *ret, size_t size)
{
	ssize_t n = io_read(d->host->root, path, ret, size);

	if (n <= 0)
		return false;
	ret[strcspn(ret, "\n")] = '\0';
	return true;
}

static void look_kernel(const struct doctor *d, struct doctor_row *r)
{
	struct machine m;

	machine_read(d->host, &m);
	if (!m.kernel[0]) {
		doctor_set(r, DOCTOR_UNKNOWN, "unknown");
		return;
	}
	doctor_set(r, DOCTOR_OK, "Linux %s%s%s%s%s", m.kernel, m.cpu_model[0] ? ", " : "",
		   m.cpu_model, m.virtualisation[0] ? ", " : "", m.virtualisation);
}

static int find_groups(const struct doctor *d, struct cgroup_where *ret)
{
	size_t n_groups = 0, n_mounts = 0;
	int error;
	auto_free char *groups =
	    io_slurp(d->host->root, "proc/self/cgroup", 1 << 20, &n_groups, &error);
	auto_free char *mounts =
	    io_slurp(d->host->root, "proc/self/mountinfo", 4 << 20, &n_mounts, &error);

	if (!groups || !mounts)
		return -ENOENT;
	return cgroup_find(groups, n_groups, mounts, n_mounts, ret);
}

/* CPUs in the affinity of the calling process, -1 unknown. */
static int affinity(const struct doctor *d)
{
	char text[8192];
	struct cpulist list;
	ssize_t n = io_read(d->host->root, "proc/self/status", text, sizeof(text));

	if (n <= 0 || limits_affinity_parse(text, (size_t)n, &list) < 0)
		return -1;
	return (int)cpulist_count(&list);
}

static void look_cpus(const struct doctor *d, struct doctor_row *r)
{
	struct cgroup_limits limits = { 0 };
	struct cgroup_where where;
	struct machine m;
	int allowed = affinity(d);
	double quota = -1, least;
	char shown[32];

	machine_read(d->host, &m);
	if (find_groups(d, &where) == 0) {
		cgroup_limits_read(d->host, &where, &limits);
		if (limits.quota.known == CGROUP_LIMITED)
			quota = (double)limits.quota.value / 1000;
	}
	if (m.cpus <= 0) {
		doctor_set(r, DOCTOR_UNKNOWN, "unknown");
		return;
	}
	least = allowed > 0 && allowed < m.cpus ? allowed : m.cpus;
	least = quota > 0 && quota < least ? quota : least;
	doctor_set(r, DOCTOR_OK, "%s of %d cores may be used",
		   num_cores(least, shown, sizeof(shown)), m.cpus);
	if (least < m.cpus) {
		r->status = DOCTOR_LIMITED;
		doctor_effect(
		    r,
		    "the limit is the %s; programs that count the machine's %d CPUs start "
		    "too many threads",
		    quota > 0 && quota <= least ? "control group's CPU quota" : "affinity", m.cpus);
	}
	if (m.threads_per_core > 1) {
		size_t n = strlen(r->value);

		snprintf(r->value + n, sizeof(r->value) - n, "; %d threads share a core",
			 m.threads_per_core);
	}
}

static void look_memory(const struct doctor *d, struct doctor_row *r)
{
	struct cgroup_limits limits = { 0 };
	struct cgroup_where where;
	struct machine m;
	char total[32], limit[32];

	machine_read(d->host, &m);
	if (!m.memory_bytes) {
		doctor_set(r, DOCTOR_UNKNOWN, "unknown");
		return;
	}
	num_bytes((double)m.memory_bytes, total, sizeof(total));
	if (find_groups(d, &where) == 0)
		cgroup_limits_read(d->host, &where, &limits);
	if (limits.memory.known != CGROUP_LIMITED || limits.memory.value * 1024 >= m.memory_bytes) {
		doctor_set(r, DOCTOR_OK, "%s, no tighter limit", total);
		return;
	}
	doctor_set(r, DOCTOR_LIMITED, "%s of %s may be used",
		   num_bytes((double)limits.memory.value * 1024, limit, sizeof(limit)), total);
	doctor_effect(r, "the limit is the control group's: beyond it the kernel kills the job");
}

/* A v2 group has a controller when its parents passed it on. Time is counted with or without. */
static bool has_controller(const struct doctor *d, const struct cgroup_place *p, const char *name)
{
	char path[CGROUP_PATH + 32], text[256];
	const char *word;
	size_t length;
	ssize_t n;

	if (p->version != 2 || strcmp(name, "cpuacct") == 0)
		return p->version != 0;
	snprintf(path, sizeof(path), "%s/cgroup.controllers", p->dir);
	n = io_read(d->host->root, path, text, sizeof(text));
	if (n < 0)
		return true; /* not to be found out: what is read will tell */
	for (struct scan s = scan_of(text, (size_t)n); scan_word(&s, &word, &length);)
		if (length == strlen(name) && memcmp(word, name, length) == 0)
			return true;
	return false;
}

static void look_cgroup(const struct doctor *d, struct doctor_row *r)
{
	static const struct {
		enum cgroup_part part;
		const char *name;
	} parts[] = { { CGROUP_CPU, "cpu" },
		      { CGROUP_CPUACCT, "cpuacct" },
		      { CGROUP_MEMORY, "memory" },
		      { CGROUP_CPUSET, "cpuset" } };
	struct cgroup_where w;
	int lowest = 3, highest = 0;
	char found[80] = "", missing[80] = "";

	if (find_groups(d, &w) < 0) {
		doctor_set(r, DOCTOR_MISSING, "no control group can be seen");
		doctor_effect(r, "quotas, memory limits and OOM kills of the job stay unknown");
		doctor_unlock(r, "mount /sys/fs/cgroup into the container (docker run -v "
				 "/sys/fs/cgroup:/sys/fs/cgroup:ro)");
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		int version = w.at[parts[i].part].version;
		bool has = has_controller(d, &w.at[parts[i].part], parts[i].name);
		char *into = has ? found : missing;
		size_t n = strlen(into);

		if (!has && parts[i].part == CGROUP_CPUSET)
			continue; /* what it would say, the affinity says too */
		snprintf(into + n, sizeof(found) - n, "%s%s", n ? ", " : "", parts[i].name);
		lowest = version && version < lowest ? version : lowest;
		highest = version > highest ? version : highest;
	}
	doctor_set(r, missing[0] ? DOCTOR_LIMITED : DOCTOR_OK, "version %s: %s",
		   lowest == 2                                         ? "2"
		   : highest == 2 || w.at[CGROUP_UNIFIED].version == 2 ? "1 and 2"
								       : "1",
		   found[0] ? found : "none");
	if (missing[0])
		doctor_effect(r, "not available: %s", missing);
}

static void look_psi(const struct doctor *d, struct doctor_row *r)
{
	char text[256];
	ssize_t n = io_read(d->host->root, "proc/pressure/cpu", text, sizeof(text));

	if (n > 0) {
		doctor_set(r, DOCTOR_OK, "readable");
		return;
	}
	doctor_set(r, DOCTOR_MISSING,
		   n == -ENOENT       ? "not in this kernel (since 4.20, CONFIG_PSI)"
		   : n == -EOPNOTSUPP ? "switched off"
				      : "not readable");
	doctor_effect(r,
		      "time lost to waiting for CPU, memory and IO is not measured machine-wide");
	if (n == -EOPNOTSUPP || n == -ENOENT)
		doctor_unlock(r, "boot with psi=1 (GRUB_CMDLINE_LINUX in /etc/default/grub, then "
				 "update-grub)");
}

static void look_schedstat(const struct doctor *d, struct doctor_row *r)
{
	char text[128];
	struct scan s;
	uint64_t ran = 0;
	ssize_t n = io_read(d->host->root, "proc/self/schedstat", text, sizeof(text));

	s = scan_of(text, n > 0 ? (size_t)n : 0);
	if (n > 0 && scan_u64(&s, &ran)) {
		doctor_set(r, DOCTOR_OK, "readable, in nanoseconds");
		return;
	}
	doctor_set(r, DOCTOR_MISSING, "not in this kernel (CONFIG_SCHED_INFO)");
	doctor_effect(r, "time threads wait for a CPU is not known, CPU time only to 10 ms");
}

static void look_clock(const struct doctor *d, struct doctor_row *r)
{
	static const char *const quick[] = { "tsc", "kvm-clock", "arch_sys_counter",
					     "hyperv_clocksource_tsc_page", "xen" };
	char name[64];

	if (!read_line(d, "sys/devices/system/clocksource/clocksource0/current_clocksource", name,
		       sizeof(name))) {
		doctor_set(r, DOCTOR_UNKNOWN, "unknown");
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(quick); i++) {
		if (strcmp(name, quick[i]) != 0)
			continue;
		doctor_set(r, DOCTOR_OK, "%s", name);
		return;
	}
	text_safe_copy(r->value, sizeof(r->value), name);
	r->status = DOCTOR_LIMITED;
	doctor_effect(r, "reading this clock is slow for every program on the machine");
	doctor_unlock(r, "echo tsc | sudo tee /sys/devices/system/clocksource/clocksource0/"
			 "current_clocksource");
}

const struct doctor_check doctor_machine_checks[] = {
	{ "kernel", "Kernel", false, look_kernel },
	{ "cpus", "CPUs", false, look_cpus },
	{ "memory", "Memory", false, look_memory },
	{ "cgroup", "Control groups", false, look_cgroup },
	{ "psi", "Pressure (PSI)", false, look_psi },
	{ "schedstat", "Run delay", false, look_schedstat },
	{ "clock", "Clock source", false, look_clock },
	{ 0 },
};

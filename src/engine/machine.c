/* SPDX-License-Identifier: MIT
 *
 * What this machine is, read once at the start of a record:
 *
 *	proc/sys/kernel/{hostname,osrelease}
 *	proc/cpuinfo                                            "model name\t: Intel(R) Xeon(R) ..."
 *	sys/devices/system/cpu/online                           "0-1"
 *	sys/devices/system/cpu/cpu0/topology/thread_siblings_list   "0,64" or "0-1": two threads a core
 */
#include "engine/sampler.h"

#include "base/auto.h"
#include "base/io.h"
#include "base/scan.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

static void read_line(const struct host *h, const char *path, char *ret, size_t size)
{
	char text[256];
	ssize_t n = io_read(h->root, path, text, sizeof(text));

	if (n <= 0)
		return;
	text[strcspn(text, "\n")] = '\0';
	text_safe_copy(ret, size, text);
}

/* Number of CPUs in "0-3,8,10-11"; 0 when it is not such a list. */
static int count_list(const char *text)
{
	struct scan s = scan_of(text, strlen(text));
	uint64_t a, b;
	int n = 0;

	while (scan_u64(&s, &a)) {
		b = a;
		if (scan_lit(&s, "-") && !scan_u64(&s, &b))
			return 0;
		if (b < a || b - a > 65536)
			return 0;
		n += (int)(b - a) + 1;
		if (!scan_lit(&s, ","))
			break;
	}
	return n;
}

static void read_cpuinfo(const struct host *h, struct machine *m)
{
	size_t n;
	int error;
	auto_free char *text = io_slurp(h->root, "proc/cpuinfo", 1 << 20, &n, &error);
	struct scan line;

	if (!text)
		return;
	if (scan_key(scan_of(text, n), "model name", &line) && scan_after(&line, ':')) {
		scan_blank(&line);
		*(char *)line.end = '\0';
		text_safe_copy(m->cpu_model, sizeof(m->cpu_model), line.p);
	}
}

static bool has_hypervisor_flag(const struct host *h)
{
	char text[8192];
	ssize_t n = io_read(h->root, "proc/cpuinfo", text, sizeof(text));

	return n > 0 && strstr(text, " hypervisor");
}

void machine_read(const struct host *h, struct machine *ret)
{
	struct machine m = { 0 };
	char text[256] = "", list[256] = "";
	uint64_t kib;
	ssize_t n;

	read_line(h, "proc/sys/kernel/hostname", m.hostname, sizeof(m.hostname));
	read_line(h, "proc/sys/kernel/osrelease", m.kernel, sizeof(m.kernel));
	read_cpuinfo(h, &m);
	read_line(h, "sys/devices/system/cpu/online", list, sizeof(list));
	m.cpus = count_list(list);
	read_line(h, "sys/devices/system/cpu/cpu0/topology/thread_siblings_list", text,
		  sizeof(text));
	m.threads_per_core = count_list(text);
	if (has_hypervisor_flag(h))
		text_copy(m.virtualisation, sizeof(m.virtualisation), "virtual machine");
	n = io_read(h->root, "proc/meminfo", text, sizeof(text));
	if (n > 0 && scan_key_u64(scan_of(text, (size_t)n), "MemTotal", &kib))
		m.memory_bytes = (int64_t)kib * 1024;
	*ret = m;
}

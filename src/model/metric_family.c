/* SPDX-License-Identifier: MIT */
#include "model/metric_family.h"

#include <string.h>

/* The first of a family also has what is said of all of it. */
static const struct {
	enum metric_id metric;
	const char *label, *value, *help;
} shared[] = {
	{ M_CPU_USER, "mode", "user", "time of all CPUs by what they did (iowait is approximate)" },
	{ M_CPU_NICE, "mode", "nice", NULL },
	{ M_CPU_SYSTEM, "mode", "system", NULL },
	{ M_CPU_IDLE, "mode", "idle", NULL },
	{ M_CPU_IOWAIT, "mode", "iowait", NULL },
	{ M_CPU_IRQ, "mode", "irq", NULL },
	{ M_CPU_SOFTIRQ, "mode", "softirq", NULL },
	{ M_CPU_STEAL, "mode", "steal", NULL },
	{ M_GPU_CLOCK_SM, "clock", "sm", "clocks of this GPU" },
	{ M_GPU_CLOCK_MEM, "clock", "memory", NULL },
	{ M_GPU_HELD_POWER, "reason", "power", "time something held the clocks of this GPU back" },
	{ M_GPU_HELD_HEAT, "reason", "thermal", NULL },
};

enum { SHARED = sizeof(shared) / sizeof(shared[0]) };

static bool has_family(const struct metric_families *f, const char *name)
{
	for (size_t i = 0; i < f->n; i++)
		if (strcmp(f->v[i].name, name) == 0)
			return true;
	return false;
}

static const char *help_of(const struct metric *m)
{
	for (int i = 0; i < SHARED; i++)
		if (shared[i].metric == m->id && shared[i].help)
			return shared[i].help;
	return m->help;
}

void metric_families(uint32_t kinds, struct metric_families *ret)
{
	ret->n = 0;
	for (int i = 1; i < METRICS; i++) {
		const struct metric *m = &metrics[i];

		if (!m->prometheus[0] || !(kinds & METRIC_KIND(m->entity)) ||
		    has_family(ret, m->prometheus))
			continue;
		ret->v[ret->n++] = (struct series_family){
			.name = m->prometheus,
			.type = m->kind == KIND_COUNTER ? SERIES_COUNTER : SERIES_GAUGE,
			.unit = m->unit == UNIT_COUNT ? "" : metric_unit_name(m->unit),
			.help = help_of(m),
			.opentelemetry = m->opentelemetry,
		};
	}
}

bool metric_family_label(enum metric_id id, struct series_label *ret)
{
	for (int i = 0; i < SHARED; i++) {
		if (shared[i].metric != id)
			continue;
		*ret = (struct series_label){ shared[i].label, shared[i].value };
		return true;
	}
	return false;
}

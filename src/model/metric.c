/* SPDX-License-Identifier: MIT */
#include "model/metric.h"

#include <string.h>

const struct metric metrics[METRICS] = {
#define METRIC(id_, name_, unit_, scale_, kind_, entity_, prom_, otel_, help_)     \
	[M_##id_] = { M_##id_,          name_, UNIT_##unit_, scale_, KIND_##kind_, \
		      ENTITY_##entity_, prom_, otel_,        help_ },
#include "model/metrics.def"
#undef METRIC
};

const struct metric *metric_by_name(const char *name)
{
	for (int i = 1; i < METRICS; i++)
		if (strcmp(metrics[i].name, name) == 0)
			return &metrics[i];
	return NULL;
}

const char *metric_unit_name(enum metric_unit unit)
{
	static const char *const names[] = {
		[UNIT_SECONDS] = "seconds",
		[UNIT_BYTES] = "bytes",
		[UNIT_RATIO] = "ratio",
		[UNIT_HERTZ] = "hertz",
		[UNIT_WATTS] = "watts",
		[UNIT_JOULES] = "joules",
		[UNIT_CELSIUS] = "celsius",
		[UNIT_COUNT] = "count",
		[UNIT_BYTES_PER_SECOND] = "bytes_per_second",
	};

	return names[unit];
}

const char *metric_kind_name(enum metric_kind kind)
{
	return kind == KIND_COUNTER ? "counter" : "gauge";
}

static const char *const kind_names[ENTITY_KINDS] = {
	[ENTITY_NONE] = "none",
	[ENTITY_HOST] = "host",
	[ENTITY_CPU] = "cpu",
	[ENTITY_DISK] = "disk",
	[ENTITY_NIC] = "nic",
	[ENTITY_MOUNT] = "mount",
	[ENTITY_CGROUP] = "cgroup",
	[ENTITY_JOB] = "job",
	[ENTITY_PROC] = "process",
	[ENTITY_THREAD] = "thread",
	[ENTITY_GPU] = "gpu",
	[ENTITY_SELF] = "self",
	[ENTITY_GPU_PROC] = "gpu_process",
};

const char *entity_kind_name(enum entity_kind kind)
{
	return kind_names[kind];
}

enum entity_kind entity_kind_by_name(const char *name)
{
	for (int i = 1; i < ENTITY_KINDS; i++)
		if (strcmp(kind_names[i], name) == 0)
			return (enum entity_kind)i;
	return ENTITY_NONE;
}

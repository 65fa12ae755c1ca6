/* SPDX-License-Identifier: MIT
 *
 * The vocabulary of metrics.def as types and a table. A number is (metric, entity, raw integer);
 * metric_value() turns the integer into the unit people read.
 */
#ifndef SPOTTER_MODEL_METRIC_H
#define SPOTTER_MODEL_METRIC_H

#include <stdint.h>

enum metric_unit {
	UNIT_SECONDS,
	UNIT_BYTES,
	UNIT_RATIO,
	UNIT_HERTZ,
	UNIT_WATTS,
	UNIT_JOULES,
	UNIT_CELSIUS,
	UNIT_COUNT,
	UNIT_BYTES_PER_SECOND,
};

enum metric_kind { KIND_COUNTER, KIND_GAUGE };

/* Things that are measured. Stored by name (entity_kind_name), like metrics. */
enum entity_kind {
	ENTITY_NONE,
	ENTITY_HOST,
	ENTITY_CPU,
	ENTITY_DISK,
	ENTITY_NIC,
	ENTITY_MOUNT,
	ENTITY_CGROUP,
	ENTITY_JOB,
	ENTITY_PROC,
	ENTITY_THREAD,
	ENTITY_GPU,      /* a GPU, or a partition whose parent is the GPU */
	ENTITY_GPU_PROC, /* a process on a GPU: parent the GPU, key its pid here (0: not known) */
	ENTITY_SELF,
	ENTITY_KINDS
};

enum metric_id {
	M_NONE,
#define METRIC(id, ...) M_##id,
#include "model/metrics.def"
#undef METRIC
	METRICS
};

struct metric {
	enum metric_id id;
	const char *name;
	enum metric_unit unit;
	double scale;
	enum metric_kind kind;
	enum entity_kind entity;
	const char *prometheus, *opentelemetry;
	const char *help;
};

/* metrics[M_NONE] is an empty row; valid ids are 1..METRICS-1. */
extern const struct metric metrics[METRICS];

const struct metric *metric_by_name(const char *name);  /* NULL when unknown */
const char *metric_unit_name(enum metric_unit unit);    /* "seconds", "bytes", ... */
const char *metric_kind_name(enum metric_kind kind);    /* "counter", "gauge" */
const char *entity_kind_name(enum entity_kind kind);    /* "host", "process", ... */
enum entity_kind entity_kind_by_name(const char *name); /* ENTITY_NONE when unknown */

static inline double metric_value(enum metric_id id, int64_t raw)
{
	return (double)raw * metrics[id].scale;
}

#endif

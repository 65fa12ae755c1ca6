/* SPDX-License-Identifier: MIT
 *
 * The rows of metrics.def as families of series (model/series.h): one a Prometheus name. Metrics that share
 * a family are told apart by a label: spotter_node_cpu_seconds_total{mode="user"}.
 */
#ifndef SPOTTER_MODEL_METRIC_FAMILY_H
#define SPOTTER_MODEL_METRIC_FAMILY_H

#include "model/metric.h"
#include "model/series.h"

#define METRIC_KIND(kind) (UINT32_C(1) << (kind))

struct metric_families {
	struct series_family v[METRICS];
	size_t n;
};

/* Those of these kinds of things (METRIC_KIND bits), in the order of the table. */
void metric_families(uint32_t kinds, struct metric_families *ret);
/* The label that tells this metric from others of its family; false: it has the family to itself. */
bool metric_family_label(enum metric_id id, struct series_label *ret);

#endif

/* SPDX-License-Identifier: MIT
 *
 * The inside of the openmetrics sink, shared by its files: openmetrics.c (what is written) and
 * openmetrics_take.c (what is read for it).
 */
#ifndef SPOTTER_SINK_OPENMETRICS_H
#define SPOTTER_SINK_OPENMETRICS_H

#include "base/vec.h"
#include "model/metric_family.h"
#include "sink/exposition.h"
#include "sink/sink.h"

struct om_point {
	int64_t ms; /* since 1970 */
	double value;
};

/* One line of a graph, on its way from the record to the text. */
struct om_series {
	const struct series_family *family;
	enum metric_id metric; /* M_NONE: of the run itself or of its steps */
	uint32_t entity;       /* 0: the run */
	int32_t rank;          /* -1: none */
	VEC(struct om_point) points;
};

/* A step in its order: the processes of one rank of one machine are one series, as of a rank that was started again. */
struct om_step {
	uint32_t node,
	    at; /* id of the machine's host, 0: there is one only; place among the steps */
	int32_t rank;
	int64_t end_ns;
};

enum om_stage { OM_RUN, OM_STEPS, OM_METRICS, OM_OVER };

struct openmetrics {
	struct exposition text;
	struct metric_families families;
	enum om_stage stage;
	/* Where reading goes on: family and step; family, metric and thing of metrics. */
	size_t family, at;
	int metric;
	VEC(struct om_step) order; /* steps, by who made them */
	VEC(struct om_series) batch;
	size_t n_batch;       /* in use; the others are kept for their memory */
	size_t series, point; /* of the batch: what is written next */
};

/* Reads the next series into the batch; none there: all were. 0 or -errno. */
int om_take(struct openmetrics *om, const struct sink_source *src);

#endif

/* SPDX-License-Identifier: MIT
 *
 * Samples as the body of a request of OpenTelemetry's OTLP/HTTP (metrics, protobuf), and what a collector answers.
 */
#ifndef SPOTTER_PUSH_OTLP_H
#define SPOTTER_PUSH_OTLP_H

#include "base/buf.h"
#include "model/series.h"

enum { OTLP_BOUNDS_MAX = 64 }; /* of a histogram; what is above is in its last bucket */

/* Who tells: attributes of the resource. NULL: not known, left out. */
struct push_resource {
	const char *host;   /* host.name */
	const char *run_id; /* spotter.run_id, where all samples are of one run */
};

/* Parts of one histogram until they are together. */
struct otlp_histogram {
	struct buf labels; /* as attributes, encoded */
	double bounds[OTLP_BOUNDS_MAX], sum;
	uint64_t counts[OTLP_BOUNDS_MAX + 1]; /* up to each bound; the last one: all */
	size_t n;
	int64_t time_ms, start_ms;
	bool open, summed; /* there is one; its _sum or _count came */
};

/* One request in the making; {0} is an empty one. */
struct otlp {
	struct buf metrics; /* encoded ones, as fields of a scope */
	struct buf points;  /* of the metric in the making */
	struct buf name;    /* of its family; empty: there is none */
	enum series_type type;
	char told[128], unit[16]; /* as OpenTelemetry calls them */
	struct otlp_histogram histogram;
	struct buf point, pair, any; /* scratch */
};

void otlp_done(struct otlp *o);
/* A value that is not a number is not told. False: nothing was added. */
bool otlp_add(struct otlp *o, const struct series_sample *s);
/* Bytes so far. */
size_t otlp_size(const struct otlp *o);
/* Appends a message ExportMetricsServiceRequest to `out`, nothing at all where nothing was added (no empty envelopes),
 * and begins the next one. */
void otlp_end(struct otlp *o, const struct push_resource *who, struct buf *out);

/* How many points a collector that said "200" did not take after all (partial_success). Hostile bytes: 0. */
uint64_t otlp_rejected(const void *answer, size_t n);

#endif

/* SPDX-License-Identifier: MIT
 *
 * A number on its way to a time series database: what /metrics, remote_write, OTLP and files all walk over. Whoever has
 * numbers hands samples to a series_fn, family after family, all samples of a family together; whoever writes
 * a format takes them. Names follow prometheus.io/docs/practices/naming: base units, `_total` on counters.
 */
#ifndef SPOTTER_MODEL_SERIES_H
#define SPOTTER_MODEL_SERIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum series_type {
	SERIES_GAUGE,
	SERIES_COUNTER,   /* only grows while its labels are there; name ends in _total */
	SERIES_HISTOGRAM, /* cumulative buckets: samples _bucket{le=}, _sum, _count */
	SERIES_INFO,      /* always 1, the labels are the news; name ends in _info */
};

/* Which sample of its family; all but the first for histograms only. */
enum series_part { SERIES_VALUE, SERIES_BUCKET, SERIES_SUM, SERIES_COUNT };

struct series_family {
	const char *name; /* with _total or _info; of a histogram without _bucket, _sum, _count */
	enum series_type type;
	const char *unit;          /* "seconds", "bytes", "ratio"...; "" none */
	const char *help;          /* a sentence without a full stop, one line */
	const char *opentelemetry; /* name there; "" none: then a dotted form of `name` */
};

struct series_label {
	const char *name;  /* [a-zA-Z_][a-zA-Z0-9_]* */
	const char *value; /* valid UTF-8 without control characters; not escaped; never "" */
};

enum { SERIES_LABELS_MAX = 14 };

struct series_sample {
	const struct series_family *family;
	const char *name; /* of the sample: the family's, with _bucket, _sum or _count behind it */
	enum series_part part;
	struct series_label labels[SERIES_LABELS_MAX]; /* `le` of a bucket is the last */
	size_t n_labels;
	double value;
	int64_t time_ms;  /* wall clock of the reading, since 1970 */
	int64_t start_ms; /* counters and histograms: since when they count; 0: not known */
};

/* The sample and its texts are good for the call. False stops the walk. */
typedef bool (*series_fn)(const struct series_sample *s, void *arg);

#endif

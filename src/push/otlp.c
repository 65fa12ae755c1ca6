/* SPDX-License-Identifier: MIT
 *
 * The messages of opentelemetry-proto (collector/metrics/v1, metrics/v1, common/v1):
 *
 *	message ExportMetricsServiceRequest { repeated ResourceMetrics resource_metrics = 1; }
 *	message ResourceMetrics { Resource resource = 1; repeated ScopeMetrics scope_metrics = 2; }
 *	message Resource        { repeated KeyValue attributes = 1; }
 *	message ScopeMetrics    { InstrumentationScope scope = 1; repeated Metric metrics = 2; }
 *	message InstrumentationScope { string name = 1; string version = 2; }
 *	message KeyValue        { string key = 1; AnyValue value = 2; }
 *	message AnyValue        { string string_value = 1; }
 *	message Metric          { string name = 1; string unit = 3; Gauge gauge = 5; Sum sum = 7; Histogram histogram = 9; }
 *	message Gauge           { repeated NumberDataPoint data_points = 1; }
 *	message Sum             { repeated NumberDataPoint data_points = 1; temporality = 2; bool is_monotonic = 3; }
 *	message Histogram       { repeated HistogramDataPoint data_points = 1; temporality = 2; }
 *	message NumberDataPoint { fixed64 start_time_unix_nano = 2, time_unix_nano = 3; double as_double = 4;
 *	                          repeated KeyValue attributes = 7; }
 *	message HistogramDataPoint { fixed64 start_time_unix_nano = 2, time_unix_nano = 3; fixed64 count = 4; double sum = 5;
 *	                          repeated fixed64 bucket_counts = 6; repeated double explicit_bounds = 7;
 *	                          repeated KeyValue attributes = 9; }
 *
 * Names are those of Prometheus less _total and unit, spotter.step_duration in "s": what puts them into a Prometheus again
 * (the collector, or Prometheus itself) arrives at the names that the agent's page has. Those of the semantic
 * conventions (hw.power, process.disk.io) would demand their attributes, too (hw.id, disk.io.direction): ours are others,
 * and two of our families would be one of theirs.
 */
#include "push/otlp.h"

#include "base/auto.h"
#include "base/clock.h"
#include "base/num.h"
#include "base/proto.h"
#include "base/text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { REQUEST_RESOURCE = 1, RESOURCE_WHO = 1, RESOURCE_SCOPES = 2, WHO_ATTRIBUTES = 1 };
enum { SCOPE_WHO = 1, SCOPE_METRICS = 2, SCOPE_NAME = 1, SCOPE_VERSION = 2 };
enum { PAIR_KEY = 1, PAIR_VALUE = 2, ANY_TEXT = 1 };
enum { METRIC_NAME = 1, METRIC_UNIT = 3, METRIC_GAUGE = 5, METRIC_SUM = 7, METRIC_HISTOGRAM = 9 };
enum { KIND_POINTS = 1, KIND_TEMPORALITY = 2, KIND_MONOTONIC = 3, CUMULATIVE = 2 };
enum { POINT_START = 2, POINT_TIME = 3, POINT_DOUBLE = 4, POINT_ATTRIBUTES = 7 };
enum {
	POINT_COUNT = 4,
	POINT_SUM = 5,
	POINT_BUCKETS = 6,
	POINT_BOUNDS = 7,
	POINT_H_ATTRIBUTES = 9
};
enum { ANSWER_PARTIAL = 1, PARTIAL_REJECTED = 1 };

/* Base units of Prometheus, and UCUM's names for them. */
static const struct {
	const char *prometheus, *ucum;
} units[] = {
	{ "seconds", "s" }, { "bytes", "By" }, { "ratio", "1" },  { "celsius", "Cel" },
	{ "watts", "W" },   { "joules", "J" }, { "hertz", "Hz" },
};

void otlp_done(struct otlp *o)
{
	buf_done(&o->metrics);
	buf_done(&o->points);
	buf_done(&o->name);
	buf_done(&o->histogram.labels);
	buf_done(&o->point);
	buf_done(&o->pair);
	buf_done(&o->any);
}

size_t otlp_size(const struct otlp *o)
{
	return o->metrics.len + o->points.len;
}

static void cut_end(char *s, const char *end)
{
	size_t n = strlen(s), m = strlen(end);

	if (m && n > m && strcmp(s + n - m, end) == 0)
		s[n - m] = 0;
}

static void name_metric(struct otlp *o, const struct series_family *f)
{
	char unit[40];
	char *first;

	o->unit[0] = 0;
	for (size_t i = 0; f->unit && i < ARRAY_LEN(units); i++)
		if (strcmp(f->unit, units[i].prometheus) == 0)
			text_copy(o->unit, sizeof(o->unit), units[i].ucum);
	text_copy(o->told, sizeof(o->told), f->name);
	cut_end(o->told, "_total");
	snprintf(unit, sizeof(unit), "_%s", o->unit[0] ? f->unit : "");
	cut_end(o->told, o->unit[0] ? unit : "");
	first = strchr(o->told, '_');
	if (first)
		*first = '.';
}

static void put_pair(struct otlp *o, struct buf *into, unsigned field, const char *key,
		     const char *value)
{
	if (!key || !value || !*value)
		return;
	buf_reset(&o->any);
	proto_text(&o->any, ANY_TEXT, value);
	buf_reset(&o->pair);
	proto_text(&o->pair, PAIR_KEY, key);
	proto_message(&o->pair, PAIR_VALUE, &o->any);
	proto_message(into, field, &o->pair);
}

static void put_labels(struct otlp *o, struct buf *into, unsigned field,
		       const struct series_sample *s)
{
	/* `le` of a bucket is the last, and becomes a bound. */
	size_t n = s->n_labels - (s->part == SERIES_BUCKET && s->n_labels);

	for (size_t i = 0; i < n && i < SERIES_LABELS_MAX; i++)
		put_pair(o, into, field, s->labels[i].name, s->labels[i].value);
}

static void put_times(struct buf *point, bool since, int64_t start_ms, int64_t time_ms)
{
	if (since && start_ms > 0)
		proto_fixed64(point, POINT_START, (uint64_t)start_ms * NS_PER_MS);
	proto_fixed64(point, POINT_TIME, (uint64_t)time_ms * NS_PER_MS);
}

/* The histogram that was put together becomes a point. */
static void end_histogram(struct otlp *o)
{
	struct otlp_histogram *h = &o->histogram;
	uint64_t before = 0, counts[OTLP_BOUNDS_MAX + 1];

	if (!h->open)
		return;
	h->open = false;
	for (size_t i = 0; i <= h->n; i++) { /* of each bucket alone; hostile: never below 0 */
		counts[i] = h->counts[i] > before ? h->counts[i] - before : 0;
		before += counts[i];
	}
	buf_reset(&o->point);
	put_times(&o->point, true, h->start_ms, h->time_ms);
	proto_fixed64(&o->point, POINT_COUNT, before);
	if (!isnan(h->sum))
		proto_double(&o->point, POINT_SUM, h->sum);
	proto_bytes(&o->point, POINT_BUCKETS, counts, (h->n + 1) * sizeof(counts[0]));
	if (h->n)
		proto_bytes(&o->point, POINT_BOUNDS, h->bounds, h->n * sizeof(h->bounds[0]));
	buf_put(&o->point, buf_text(&h->labels), h->labels.len);
	proto_message(&o->points, KIND_POINTS, &o->point);
}

static void end_metric(struct otlp *o)
{
	auto_done(buf) struct buf metric = { 0 };
	unsigned field = METRIC_GAUGE;

	end_histogram(o);
	buf_reset(&o->name);
	if (!o->points.len)
		return;
	if (o->type == SERIES_COUNTER || o->type == SERIES_HISTOGRAM) {
		field = o->type == SERIES_COUNTER ? METRIC_SUM : METRIC_HISTOGRAM;
		proto_int(&o->points, KIND_TEMPORALITY, CUMULATIVE);
	}
	if (field == METRIC_SUM)
		proto_int(&o->points, KIND_MONOTONIC, true);
	proto_text(&metric, METRIC_NAME, o->told);
	proto_text(&metric, METRIC_UNIT, o->unit[0] ? o->unit : NULL);
	proto_message(&metric, field, &o->points);
	proto_message(&o->metrics, SCOPE_METRICS, &metric);
	buf_reset(&o->points);
}

static uint64_t to_count(double v)
{
	return v > 0 && v < 9e18 ? (uint64_t)v : 0;
}

static void begin_histogram(struct otlp *o, const struct series_sample *s)
{
	struct otlp_histogram *h = &o->histogram;

	end_histogram(o);
	h->open = true;
	h->summed = false;
	h->n = 0;
	h->sum = NAN;
	memset(h->counts, 0, sizeof(h->counts));
	h->time_ms = s->time_ms;
	h->start_ms = s->start_ms;
	buf_reset(&h->labels);
	put_labels(o, &h->labels, POINT_H_ATTRIBUTES, s);
}

/* Buckets by rising bounds, then _sum and _count: a bucket behind those is another histogram's. */
static void add_part(struct otlp *o, const struct series_sample *s)
{
	struct otlp_histogram *h = &o->histogram;
	const char *le = s->n_labels ? s->labels[s->n_labels - 1].value : "";
	double bound;

	if (!h->open || (s->part == SERIES_BUCKET && h->summed))
		begin_histogram(o, s);
	if (s->part == SERIES_SUM)
		h->sum = s->value;
	if (s->part != SERIES_BUCKET) {
		h->summed = true;
		if (s->part == SERIES_COUNT)
			h->counts[h->n] = to_count(s->value);
		return;
	}
	if (num_parse_double(le, &bound) && isfinite(bound) && h->n < OTLP_BOUNDS_MAX) {
		h->bounds[h->n] = bound;
		h->counts[h->n++] = to_count(s->value);
	}
	h->counts[h->n] = to_count(s->value); /* until the next: all there are */
}

bool otlp_add(struct otlp *o, const struct series_sample *s)
{
	bool since = s->family->type == SERIES_COUNTER;

	if (isnan(s->value))
		return false;
	if (!o->name.len || strcmp(buf_text(&o->name), s->family->name) != 0) {
		end_metric(o);
		buf_str(&o->name, s->family->name);
		o->type = s->family->type;
		name_metric(o, s->family);
	}
	if (s->family->type == SERIES_HISTOGRAM) {
		add_part(o, s);
		return true;
	}
	buf_reset(&o->point);
	put_times(&o->point, since, s->start_ms, s->time_ms);
	proto_double(&o->point, POINT_DOUBLE, s->value);
	put_labels(o, &o->point, POINT_ATTRIBUTES, s);
	proto_message(&o->points, KIND_POINTS, &o->point);
	return true;
}

void otlp_end(struct otlp *o, const struct push_resource *who, struct buf *out)
{
	auto_done(buf) struct buf scope = { 0 }, attributes = { 0 }, all = { 0 };

	end_metric(o);
	if (!o->metrics.len)
		return;
	buf_reset(&o->any);
	proto_text(&o->any, SCOPE_NAME, "spotter");
	proto_text(&o->any, SCOPE_VERSION, SPOTTER_VERSION);
	proto_message(&scope, SCOPE_WHO, &o->any);
	buf_put(&scope, o->metrics.data, o->metrics.len);
	scope.failed |= o->metrics.failed;
	put_pair(o, &attributes, WHO_ATTRIBUTES, "service.name", "spotter");
	put_pair(o, &attributes, WHO_ATTRIBUTES, "service.version", SPOTTER_VERSION);
	put_pair(o, &attributes, WHO_ATTRIBUTES, "host.name", who->host);
	put_pair(o, &attributes, WHO_ATTRIBUTES, "spotter.run_id", who->run_id);
	proto_message(&all, RESOURCE_WHO, &attributes);
	proto_message(&all, RESOURCE_SCOPES, &scope);
	proto_message(out, REQUEST_RESOURCE, &all);
	buf_reset(&o->metrics);
}

/* The first field of this number and kind in a message: false when there is none. */
static bool find_field(const uint8_t **p, const uint8_t *end, uint64_t want_key, uint64_t *ret)
{
	uint64_t key, v;

	while (varint_read(p, end, &key)) {
		size_t skip = 0;

		switch (key & 7) {
		case 0:
		case 2:
			if (!varint_read(p, end, &v))
				return false;
			if (key == want_key) {
				*ret = v;
				return true;
			}
			skip = (key & 7) == 2 ? v : 0;
			break;
		case 1:
			skip = 8;
			break;
		case 5:
			skip = 4;
			break;
		default:
			return false;
		}
		if (skip > (size_t)(end - *p))
			return false;
		*p += skip;
	}
	return false;
}

uint64_t otlp_rejected(const void *answer, size_t n)
{
	const uint8_t *p = answer, *end = p + n;
	uint64_t length, rejected;

	if (!find_field(&p, end, ANSWER_PARTIAL << 3 | 2, &length) || length > (size_t)(end - p))
		return 0;
	end = p + length;
	if (!find_field(&p, end, PARTIAL_REJECTED << 3, &rejected) || rejected > UINT32_MAX)
		return 0;
	return rejected;
}

/* SPDX-License-Identifier: MIT
 *
 * The messages of prometheus/prompb (remote_write specification 1.0):
 *
 *	message WriteRequest { repeated TimeSeries timeseries = 1; }
 *	message TimeSeries   { repeated Label labels = 1; repeated Sample samples = 2; }
 *	message Label        { string name = 1; string value = 2; }
 *	message Sample       { double value = 1; int64 timestamp = 2; }    milliseconds since 1970
 *
 * Labels must be sorted by name, bytewise, each name once, none empty; __name__ is one of them.
 */
#include "push/remote_write.h"

#include "base/proto.h"
#include "push/snappy.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { REQUEST_SERIES = 1 };
enum { SERIES_LABELS = 1, SERIES_SAMPLES = 2 };
enum { LABEL_NAME = 1, LABEL_VALUE = 2 };
enum { SAMPLE_VALUE = 1, SAMPLE_TIME = 2 };

void remote_write_done(struct remote_write *w)
{
	buf_done(&w->request);
	buf_done(&w->series);
	buf_done(&w->part);
}

static int by_name(const void *a, const void *b)
{
	const struct series_label *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static void put_labels(struct remote_write *w, const struct series_sample *s)
{
	struct series_label labels[SERIES_LABELS_MAX + 1] = { { "__name__", s->name } };
	size_t n = 1;

	for (size_t i = 0; i < s->n_labels && i < SERIES_LABELS_MAX; i++)
		if (s->labels[i].value && *s->labels[i].value)
			labels[n++] = s->labels[i];
	qsort(labels, n, sizeof(labels[0]), by_name);
	for (size_t i = 0; i < n; i++) {
		if (i && strcmp(labels[i - 1].name, labels[i].name) == 0)
			continue;
		buf_reset(&w->part);
		proto_text(&w->part, LABEL_NAME, labels[i].name);
		proto_text(&w->part, LABEL_VALUE, labels[i].value);
		proto_message(&w->series, SERIES_LABELS, &w->part);
	}
}

bool remote_write_add(struct remote_write *w, const struct series_sample *s)
{
	if (isnan(s->value))
		return false;
	buf_reset(&w->series);
	put_labels(w, s);
	buf_reset(&w->part);
	proto_double(&w->part, SAMPLE_VALUE, s->value);
	proto_int(&w->part, SAMPLE_TIME, (uint64_t)s->time_ms);
	proto_message(&w->series, SERIES_SAMPLES, &w->part);
	proto_message(&w->request, REQUEST_SERIES, &w->series);
	return true;
}

void remote_write_end(struct remote_write *w, struct buf *out)
{
	out->failed |= w->request.failed;
	snappy_compress(buf_text(&w->request), w->request.len, out);
	buf_reset(&w->request);
}

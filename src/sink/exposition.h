/* SPDX-License-Identifier: MIT
 *
 * Samples as text that Prometheus scrapes or reads from a file: the text format 0.0.4, or OpenMetrics 1.0.0. Any walk over
 * samples will do, as long as a family's come together:
 *
 *	exposition_begin(&x, &out, format);
 *	agent_series_each(view, exposition_sample, &x);
 *	exposition_end(&x);
 */
#ifndef SPOTTER_SINK_EXPOSITION_H
#define SPOTTER_SINK_EXPOSITION_H

#include "model/series.h"

struct buf;

enum exposition_format { EXPOSITION_TEXT, EXPOSITION_OPENMETRICS };

struct exposition {
	struct buf *out;
	enum exposition_format format;
	bool times;                         /* with the time of each sample: for files */
	const struct series_family *family; /* the one that is being written */
};

void exposition_begin(struct exposition *x, struct buf *out, enum exposition_format format);
/* A series_fn; arg is the struct exposition. A value that is not finite is left out: absent is not zero.
 * (OpenMetrics would have NaN, which no reader of ours would know from a measured one.) */
bool exposition_sample(const struct series_sample *s, void *arg);
void exposition_end(struct exposition *x);

/* "text/plain; version=0.0.4; charset=utf-8" */
const char *exposition_content_type(enum exposition_format format);
/* What a request's Accept header asks for; NULL or anything odd: the text format. */
enum exposition_format exposition_wanted(const char *accept);

#endif

/* SPDX-License-Identifier: MIT
 *
 * What a Prometheus-compatible engine answers to an instant query:
 *
 *	{"status":"success","data":{"resultType":"vector","result":[
 *	  {"metric":{"node":"n12","run_id":"4711.0","rank":"3"},"value":[1763280000.123,"0.25"]}]}}
 *
 * and what stands there when it does not: an error in the same form, the page of a login, half of an answer. Pure.
 */
#ifndef SPOTTER_FLEET_ANSWER_H
#define SPOTTER_FLEET_ANSWER_H

#include <stdbool.h>
#include <stddef.h>

struct err;

/* Labels that are looked at; others are passed over. */
enum fleet_label {
	LABEL_NODE,
	LABEL_RUN,
	LABEL_RANK,
	LABEL_GPU,
	LABEL_GPU_UUID,
	LABEL_PARTITION,
	LABEL_NAME,
	LABEL_SOURCE,
	LABEL_FRAMEWORK,
	LABEL_WORLD_SIZE,
	LABEL_CAUSE,
	LABEL_FAMILY,
	LABEL_STATE,
	LABEL_REASON,
	FLEET_LABELS,
};

/* Good for the call. Texts are as they came: nothing in them is safe to show. */
struct fleet_sample {
	const char *labels[FLEET_LABELS]; /* "" where it has none */
	double value;                     /* finite */
};

/* 0 goes on; -errno ends the walk. */
typedef int (*fleet_sample_fn)(const struct fleet_sample *s, void *arg);

struct answer_notes {
	size_t series;
	size_t odd;        /* passed over: no number (NaN, +Inf), or not what a series looks like */
	char warning[200]; /* the first, safe to show; "" none */
};

enum { ANSWER_SERIES_MAX = 400000 };

/* Adds to *notes. -EPROTO with a sentence: not an answer, or one that says what failed. */
int answer_read(const char *body, size_t n, fleet_sample_fn fn, void *arg,
		struct answer_notes *notes, struct err *e);

/* What such an engine says in an answer that is an error: "bad_data: parse error", safe to show; "" when it says
 * nothing of the kind. */
void answer_complaint(const char *body, size_t n, char *ret, size_t size);

#endif

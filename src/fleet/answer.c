/* SPDX-License-Identifier: MIT */
#include "fleet/answer.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PARTS_OF_SERIES = 16 }; /* brackets and commas of one with six labels, and some more */

static const char *const label_names[FLEET_LABELS] = {
	[LABEL_NODE] = "node",           [LABEL_RUN] = "run_id",
	[LABEL_RANK] = "rank",           [LABEL_GPU] = "gpu",
	[LABEL_GPU_UUID] = "gpu_uuid",   [LABEL_PARTITION] = "partition",
	[LABEL_NAME] = "name",           [LABEL_SOURCE] = "source",
	[LABEL_FRAMEWORK] = "framework", [LABEL_WORLD_SIZE] = "world_size",
	[LABEL_CAUSE] = "cause",         [LABEL_FAMILY] = "family",
	[LABEL_STATE] = "state",         [LABEL_REASON] = "reason",
};

static void json_gone(json_t **j)
{
	json_decref(*j);
}
#define auto_json __attribute__((cleanup(json_gone)))

/* A text of nothing but brackets becomes forty times its size in memory: what no answer of this many series has is not
 * taken apart at all. */
static bool too_many_parts(const char *body, size_t n)
{
	size_t parts = 0;

	for (size_t i = 0; i < n; i++)
		parts += body[i] == '[' || body[i] == '{' || body[i] == ',';
	return parts > (size_t)ANSWER_SERIES_MAX * PARTS_OF_SERIES;
}

static json_t *load(const char *body, size_t n)
{
	return body && n && !too_many_parts(body, n) ? json_loadb(body, n, 0, NULL) : NULL;
}

static int too_large(struct err *e)
{
	err_set(e, -E2BIG, "there is more in this engine than fits one look");
	err_hint(e, "ask for one run: --run ID");
	return -E2BIG;
}

/* The text of a member, "" when there is none. */
static const char *text_of(const json_t *object, const char *key)
{
	const char *s = json_string_value(json_object_get(object, key));

	return s ? s : "";
}

/* The start of what came instead, for people: "<!DOCTYPE html>". */
static void shown_start(const char *body, size_t n, char *ret, size_t size)
{
	char plain[48];
	size_t at = 0, len;

	while (at < n && strchr(" \t\r\n", body[at]) && body[at])
		at++;
	len = n - at < sizeof(plain) - 1 ? n - at : sizeof(plain) - 1;
	memcpy(plain, body + at, len);
	plain[len] = '\0';
	plain[strcspn(plain, "\r\n")] = '\0';
	text_safe_copy(ret, size, plain);
}

void answer_complaint(const char *body, size_t n, char *ret, size_t size)
{
	auto_json json_t *root = load(body, n);
	char plain[400];

	ret[0] = '\0';
	if (!root || !text_of(root, "error")[0])
		return;
	snprintf(plain, sizeof(plain), "%s%s%s", text_of(root, "errorType"),
		 text_of(root, "errorType")[0] ? ": " : "", text_of(root, "error"));
	text_safe_copy(ret, size, plain);
}

static int not_an_answer(const char *body, size_t n, struct err *e)
{
	char start[64];

	if (!n)
		err_set(e, -EPROTO, "the engine's answer is empty");
	else {
		shown_start(body, n, start, sizeof(start));
		err_set(e, -EPROTO, "the answer is not what a Prometheus API says: it begins '%s'",
			start);
	}
	err_hint(e,
		 "--prometheus takes the address that has /api/v1/query below it; a page to log in "
		 "at means that credentials are missing");
	return -EPROTO;
}

/* [1763280000.123, "0.25"] */
static bool value_of(const json_t *pair, double *ret)
{
	const char *text = json_string_value(json_array_get(pair, 1));
	char *end;

	if (json_array_size(pair) != 2 || !text || !text[0] || strlen(text) > 64)
		return false;
	*ret = strtod(text, &end); /* the program never leaves the C locale */
	return !*end && isfinite(*ret);
}

static bool take_labels(const json_t *metric, struct fleet_sample *s)
{
	if (!json_is_object(metric))
		return false;
	for (int i = 0; i < FLEET_LABELS; i++)
		s->labels[i] = text_of(metric, label_names[i]);
	return true;
}

static int read_vector(const json_t *result, fleet_sample_fn fn, void *arg,
		       struct answer_notes *notes)
{
	struct fleet_sample s;
	size_t i;
	json_t *row;

	json_array_foreach(result, i, row)
	{
		int r;

		notes->series++;
		if (!take_labels(json_object_get(row, "metric"), &s) ||
		    !value_of(json_object_get(row, "value"), &s.value)) {
			notes->odd++;
			continue;
		}
		r = fn(&s, arg);
		if (r < 0)
			return r;
	}
	return 0;
}

static int read_scalar(const json_t *result, fleet_sample_fn fn, void *arg,
		       struct answer_notes *notes)
{
	struct fleet_sample s = { .value = 0 };

	for (int i = 0; i < FLEET_LABELS; i++)
		s.labels[i] = "";
	notes->series++;
	if (!value_of(result, &s.value)) {
		notes->odd++;
		return 0;
	}
	return fn(&s, arg);
}

/* Engines that are many machines say when one of them was missing. */
static void take_warnings(const json_t *root, struct answer_notes *notes)
{
	const json_t *list = json_object_get(root, "warnings");
	const char *first = json_string_value(json_array_get(list, 0));

	if (notes->warning[0])
		return;
	if (first)
		text_safe_copy(notes->warning, sizeof(notes->warning), first);
	else if (json_is_true(json_object_get(root, "isPartial")))
		text_copy(notes->warning, sizeof(notes->warning),
			  "the answer is partial: a part of the engine did not answer");
}

int answer_read(const char *body, size_t n, fleet_sample_fn fn, void *arg,
		struct answer_notes *notes, struct err *e)
{
	auto_json json_t *root = load(body, n);
	const json_t *data, *result;
	const char *status, *type;
	char complaint[200];
	int r;

	if (!root && n && too_many_parts(body, n))
		return too_large(e);
	if (!root)
		return not_an_answer(body, n, e);
	status = text_of(root, "status");
	if (strcmp(status, "error") == 0) {
		answer_complaint(body, n, complaint, sizeof(complaint));
		return err_set(e, -EPROTO, "the engine says: %s",
			       complaint[0] ? complaint : "error, and not which");
	}
	data = json_object_get(root, "data");
	result = json_object_get(data, "result");
	type = text_of(data, "resultType");
	if (strcmp(status, "success") != 0 || !json_is_array(result))
		return not_an_answer(body, n, e);
	take_warnings(root, notes);
	if (strcmp(type, "vector") == 0)
		r = read_vector(result, fn, arg, notes);
	else if (strcmp(type, "scalar") == 0)
		r = read_scalar(result, fn, arg, notes);
	else
		return not_an_answer(body, n, e);
	if (r == -E2BIG)
		return too_large(e);
	return r < 0 ? err_set(e, r, "out of memory") : 0;
}

/* SPDX-License-Identifier: MIT */
#include "../unit.h"

#include "base/err.h"
#include "fleet/answer.h"

#include <errno.h>
#include <stdlib.h>

struct got {
	size_t n;
	double sum;
	char run[32], rank[8], node[32];
	int stop_with;
};

static int keep(const struct fleet_sample *s, void *arg)
{
	struct got *g = arg;

	g->n++;
	g->sum += s->value;
	snprintf(g->run, sizeof(g->run), "%s", s->labels[LABEL_RUN]);
	snprintf(g->rank, sizeof(g->rank), "%s", s->labels[LABEL_RANK]);
	snprintf(g->node, sizeof(g->node), "%s", s->labels[LABEL_NODE]);
	return g->stop_with;
}

static int ask(const char *body, struct got *g, struct answer_notes *notes, struct err *e)
{
	*g = (struct got){ .stop_with = g->stop_with };
	*notes = (struct answer_notes){ 0 };
	*e = (struct err){ 0 };
	return answer_read(body, strlen(body), keep, g, notes, e);
}

#define VECTOR(rows) \
	"{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[" rows "]}}"
#define ROW(labels, value) "{\"metric\":{" labels "},\"value\":[1763280000.123,\"" value "\"]}"

static void values_and_labels(void **state)
{
	struct got g = { 0 };
	struct answer_notes notes;
	struct err e;

	(void)state;
	assert_int_equal(
	    ask(VECTOR(ROW("\"run_id\":\"a\"", "1.5") "," ROW(
		    "\"run_id\":\"4711.0\",\"rank\":\"3\",\"node\":\"n12\",\"job\":\"x\"", "2e3")),
		&g, &notes, &e),
	    0);
	assert_int_equal(g.n, 2);
	assert_true(g.sum == 2001.5);
	assert_string_equal(g.run, "4711.0");
	assert_string_equal(g.rank, "3");
	assert_string_equal(g.node, "n12");
	assert_int_equal(notes.series, 2);
	assert_int_equal(notes.odd, 0);
	assert_int_equal(ask(VECTOR(""), &g, &notes, &e), 0);
	assert_int_equal(g.n, 0);
	/* Prometheus' answer to "time()"; VictoriaMetrics gives a vector. */
	assert_int_equal(
	    ask("{\"status\":\"success\",\"data\":{\"resultType\":\"scalar\",\"result\":"
		"[1763280000,\"1763280000\"]}}",
		&g, &notes, &e),
	    0);
	assert_true(g.sum == 1763280000.0);
}

static void what_is_no_number_is_passed_over(void **state)
{
	static const char *const rows[] = {
		VECTOR(ROW("", "NaN")),
		VECTOR(ROW("", "+Inf")),
		VECTOR(ROW("", "-Inf")),
		VECTOR(ROW("", "")),
		VECTOR(ROW("", "12 ")),
		VECTOR(ROW("", "1e999")),
		VECTOR("{\"metric\":{},\"value\":[1]}"),
		VECTOR("{\"metric\":{},\"value\":[1,2]}"),
		VECTOR("{\"metric\":{},\"value\":[1,\"2\",\"3\"]}"),
		VECTOR("{\"metric\":[],\"value\":[1,\"2\"]}"),
		VECTOR("{\"value\":[1,\"2\"]}"),
		VECTOR("{\"metric\":{}}"),
		VECTOR("17"),
		VECTOR("null"),
	};
	struct got g = { 0 };
	struct answer_notes notes;
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(ask(rows[i], &g, &notes, &e), 0);
		assert_int_equal(g.n, 0);
		assert_int_equal(notes.odd, 1);
	}
	/* A label that is no text is as good as none. */
	assert_int_equal(ask(VECTOR(ROW("\"run_id\":17,\"node\":null", "1")), &g, &notes, &e), 0);
	assert_int_equal(g.n, 1);
	assert_string_equal(g.run, "");
}

static void what_is_no_answer_is_said(void **state)
{
	static const struct {
		const char *body, *says;
	} cases[] = {
		{ "", "empty" },
		{ "<!DOCTYPE html>\n<title>Log in</title>", "begins '<!DOCTYPE html>'" },
		{ "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"resu",
		  "not what a Prometheus" },
		{ "{}", "not what a Prometheus" },
		{ "[]", "not what a Prometheus" },
		{ "null", "not what a Prometheus" },
		{ "{\"status\":\"success\"}", "not what a Prometheus" },
		{ "{\"status\":\"success\",\"data\":[]}", "not what a Prometheus" },
		{ "{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":[]}}",
		  "not what a Prometheus" },
		{ "{\"status\":\"error\",\"errorType\":\"bad_data\",\"error\":\"parse error\"}",
		  "the engine says: bad_data: parse error" },
		{ "{\"status\":\"error\"}", "the engine says: error" },
		{ "{\"status\":\"error\",\"error\":\"\\u001b[31mred\\u0007\"}",
		  "the engine says: ?[31mred?" },
		{ "\xff\xfe\x01", "begins '" },
	};
	struct got g = { 0 };
	struct answer_notes notes;
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(ask(cases[i].body, &g, &notes, &e), -EPROTO);
		if (!strstr(e.text, cases[i].says))
			fail_msg("'%s' for %s", e.text, cases[i].body);
		for (const char *p = e.text; *p; p++)
			assert_true((unsigned char)*p >= ' ');
		assert_int_equal(g.n, 0);
	}
}

static void warnings_are_kept(void **state)
{
	struct got g = { 0 };
	struct answer_notes notes;
	struct err e;

	(void)state;
	assert_int_equal(ask("{\"status\":\"success\",\"warnings\":[\"store n3 is down\"],"
			     "\"data\":{\"resultType\":\"vector\",\"result\":[]}}",
			     &g, &notes, &e),
			 0);
	assert_string_equal(notes.warning, "store n3 is down");
	assert_int_equal(ask("{\"status\":\"success\",\"isPartial\":true,"
			     "\"data\":{\"resultType\":\"vector\",\"result\":[]}}",
			     &g, &notes, &e),
			 0);
	assert_non_null(strstr(notes.warning, "partial"));
}

static void more_than_fits_is_refused(void **state)
{
	size_t n = (size_t)ANSWER_SERIES_MAX * 16 + 2;
	char *body = malloc(n + 1);
	struct answer_notes notes = { 0 };
	struct got g = { 0 };
	struct err e = { 0 };

	(void)state;
	assert_non_null(body);
	memset(body, '[', n);
	body[n] = '\0';
	assert_int_equal(answer_read(body, n, keep, &g, &notes, &e), -E2BIG);
	free(body);
	/* Deep, but few: the parser's own limit. */
	body = calloc(1, 100001);
	assert_non_null(body);
	memset(body, '[', 100000);
	e = (struct err){ 0 };
	assert_int_equal(answer_read(body, 100000, keep, &g, &notes, &e), -EPROTO);
	free(body);
	/* And whoever takes samples may have enough. */
	g.stop_with = -E2BIG;
	assert_int_equal(ask(VECTOR(ROW("", "1") "," ROW("", "2")), &g, &notes, &e), -E2BIG);
	assert_int_equal(g.n, 1);
	assert_non_null(strstr(e.hint, "--run"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_and_labels),
		cmocka_unit_test(what_is_no_number_is_passed_over),
		cmocka_unit_test(what_is_no_answer_is_said),
		cmocka_unit_test(warnings_are_kept),
		cmocka_unit_test(more_than_fits_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
#include "../unit.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "fleet/answer.h"
#include "fleet/fleet.h"
#include "fleet/http.h"
#include "fleet/query.h"

#include <errno.h>
#include <math.h>

static size_t count(const char *s, char c)
{
	size_t n = 0;

	for (; *s; s++)
		n += *s == c;
	return n;
}

static void every_query_is_whole(void **state)
{
	const char *const matchers[] = { "", "run_id=\"7\"" };

	(void)state;
	for (size_t m = 0; m < 2; m++)
		for (size_t i = 0; i < queries_n; i++) {
			struct query_scope scope = { .window_s = 600, .matcher = matchers[m] };
			auto_done(buf) struct buf text = { 0 };
			const char *s;

			query_text(&queries[i], &scope, &text);
			s = buf_text(&text);
			assert_int_equal(count(s, '('), count(s, ')'));
			assert_int_equal(count(s, '{'), count(s, '}'));
			assert_int_equal(count(s, '"') % 2, 0);
			assert_int_equal(count(s, '$'), 0);
			if (queries[i].of != OF_NOW)
				assert_non_null(strstr(s, "spotter_"));
			/* Whoever asks about one run gets nothing about others. */
			if (m && queries[i].of != OF_NOW)
				assert_non_null(strstr(s, matchers[m]));
		}
}

static void matchers_quote(void **state)
{
	const char *one[] = { "a\"b\\c.d" }, *two[] = { "7001.0", "a|\"\\" };
	auto_done(buf) struct buf out = { 0 };

	(void)state;
	assert_false(query_matcher(one, 0, &out));
	assert_int_equal(out.len, 0);
	assert_true(query_matcher(one, 1, &out));
	assert_string_equal(buf_text(&out), "run_id=\"a\\\"b\\\\c.d\"");
	buf_reset(&out);
	assert_true(query_matcher(two, 2, &out));
	assert_string_equal(buf_text(&out), "run_id=~\"7001\\\\.0|a\\\\|\\\"\\\\\\\\\"");
	buf_reset(&out);
	query_escape("a b+c&d=%\xc3\xa9~", &out);
	assert_string_equal(buf_text(&out), "a%20b%2Bc%26d%3D%25%C3%A9~");
}

static void addresses(void **state)
{
	static const struct {
		const char *given, *base; /* NULL: refused */
	} cases[] = {
		{ "http://prom:9090", "http://prom:9090" },
		{ "http://prom:9090/", "http://prom:9090" },
		{ "https://prom/prometheus/", "https://prom/prometheus" },
		{ "http://prom:9090/api/v1/query", "http://prom:9090" },
		{ "http://prom:9090/api/v1/", "http://prom:9090" },
		{ "prom:9090", NULL },
		{ "ftp://prom", NULL },
		{ "file:///etc/passwd", NULL },
		{ "http://", NULL },
		{ "http:///x", NULL },
		{ "http://user:secret@prom", NULL },
		{ "http://prom?key=secret", NULL },
		{ "http://prom/#x", NULL },
		{ "http://prom /", NULL },
		{ "http://prom\n/", NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		auto_free char *base = NULL;
		struct err e = { 0 };
		int r = http_base(cases[i].given, &base, &e);

		if (cases[i].base) {
			assert_int_equal(r, 0);
			assert_string_equal(base, cases[i].base);
		} else {
			assert_int_equal(r, -EINVAL);
			assert_null(base);
			assert_null(strstr(e.text, "secret"));
			assert_null(strstr(e.hint, "secret"));
		}
	}
}

static const struct query *asking(enum query_of of)
{
	for (size_t i = 0; i < queries_n; i++)
		if (queries[i].of == of)
			return &queries[i];
	fail();
	return NULL;
}

static void odd_labels_are_passed_over(void **state)
{
	static const char *const ranks[] = { "-1", "x", "1e3", "99999999999", "7 ", "2147483647" };
	struct fleet f;
	struct fleet_sample s = { .value = 1 };

	(void)state;
	for (int i = 0; i < FLEET_LABELS; i++)
		s.labels[i] = "";
	fleet_begin(&f, 600);
	assert_int_equal(fleet_take(&f, asking(OF_RUN), &s), 0); /* no run */
	assert_int_equal(fleet_take(&f, asking(OF_GPU), &s), 0); /* no GPU */
	s.labels[LABEL_RUN] = "7";
	assert_int_equal(fleet_take(&f, asking(OF_VERDICT), &s), 0); /* no cause */
	assert_int_equal(f.odd, 3);
	for (size_t i = 0; i < sizeof(ranks) / sizeof(ranks[0]); i++) {
		s.labels[LABEL_RANK] = ranks[i];
		assert_int_equal(fleet_take(&f, asking(OF_RANK), &s), 0);
	}
	assert_int_equal(f.odd, 9);
	assert_int_equal(f.ranks.n, 0);
	s.labels[LABEL_RANK] = "";
	s.labels[LABEL_STATE] = "nonsense";
	assert_int_equal(fleet_take(&f, asking(OF_LEDGER), &s), 0);
	s.labels[LABEL_GPU] = "0";
	s.labels[LABEL_REASON] = "nonsense";
	assert_int_equal(fleet_take(&f, asking(OF_GPU_REASON), &s), 0);
	assert_int_equal(f.odd, 11);
	fleet_done(&f);
}

static void the_same_series_twice_counts_once(void **state)
{
	struct fleet f;
	struct fleet_sample s = { .value = 3 };

	(void)state;
	for (int i = 0; i < FLEET_LABELS; i++)
		s.labels[i] = "";
	s.labels[LABEL_RUN] = "7\033[31m";
	s.labels[LABEL_RANK] = "0";
	s.labels[LABEL_NODE] = "n1";
	fleet_begin(&f, 600);
	for (int i = 0; i < 3; i++, s.value -= 1)
		assert_int_equal(fleet_take(&f, asking(OF_RANK), &s), 0);
	assert_int_equal(f.ranks.n, 1);
	assert_int_equal(f.runs.n, 1);
	assert_true(f.ranks.v[0].steps == 3);
	assert_string_equal(f.runs.v[0].id, "7?[31m");
	assert_non_null(fleet_find(&f, "7\033[31m"));
	assert_null(fleet_find(&f, "7"));
	fleet_done(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_query_is_whole),
		cmocka_unit_test(matchers_quote),
		cmocka_unit_test(addresses),
		cmocka_unit_test(odd_labels_are_passed_over),
		cmocka_unit_test(the_same_series_twice_counts_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
#include "../unit.h"

#include "base/auto.h"
#include "base/buf.h"
#include "sink/exposition.h"

#include <math.h>

static const struct series_family steps = { "spotter_steps_total", SERIES_COUNTER, "",
					    "training steps done", "" };
static const struct series_family energy = { "spotter_gpu_energy_joules_total", SERIES_COUNTER,
					     "joules", "energy \\ used\nsince", "" };
static const struct series_family build = { "spotter_build_info", SERIES_INFO, "", "version", "" };
static const struct series_family size = { "spotter_x_bytes", SERIES_GAUGE, "bytes", "a \"size\"",
					   "" };

static void put(struct exposition *x, const struct series_family *f, const char *label,
		const char *value, double v)
{
	struct series_sample s = { .family = f,
				   .name = f->name,
				   .labels = { { label, value } },
				   .n_labels = label ? 1 : 0,
				   .value = v,
				   .time_ms = 1700000000123 };

	assert_true(exposition_sample(&s, x));
}

static void write_all(struct buf *out, enum exposition_format format, bool times)
{
	struct exposition x;

	exposition_begin(&x, out, format);
	x.times = times;
	put(&x, &build, "version", "1", 1);
	put(&x, &steps, "run_id", "a", 12);
	put(&x, &steps, "run_id", "b", NAN); /* not known: not there */
	put(&x, &steps, "run_id", "c", 1e15 + 1);
	put(&x, &energy, "gpu", "0", 0.1);
	put(&x, &size, NULL, NULL, 4096);
	exposition_end(&x);
}

static void text_format(void **state)
{
	auto_done(buf) struct buf out = { 0 };

	(void)state;
	write_all(&out, EXPOSITION_TEXT, false);
	assert_string_equal(buf_text(&out),
			    "# HELP spotter_build_info version\n"
			    "# TYPE spotter_build_info gauge\n"
			    "spotter_build_info{version=\"1\"} 1\n"
			    "# HELP spotter_steps_total training steps done\n"
			    "# TYPE spotter_steps_total counter\n"
			    "spotter_steps_total{run_id=\"a\"} 12\n"
			    "spotter_steps_total{run_id=\"c\"} 1000000000000001\n"
			    "# HELP spotter_gpu_energy_joules_total energy \\\\ used\\nsince\n"
			    "# TYPE spotter_gpu_energy_joules_total counter\n"
			    "spotter_gpu_energy_joules_total{gpu=\"0\"} 0.1\n"
			    "# HELP spotter_x_bytes a \"size\"\n"
			    "# TYPE spotter_x_bytes gauge\n"
			    "spotter_x_bytes 4096\n");
}

static void open_metrics(void **state)
{
	auto_done(buf) struct buf out = { 0 };

	(void)state;
	write_all(&out, EXPOSITION_OPENMETRICS, true);
	assert_string_equal(buf_text(&out),
			    "# HELP spotter_build version\n"
			    "# TYPE spotter_build info\n"
			    "spotter_build_info{version=\"1\"} 1 1700000000.123\n"
			    "# HELP spotter_steps training steps done\n"
			    "# TYPE spotter_steps counter\n"
			    "spotter_steps_total{run_id=\"a\"} 12 1700000000.123\n"
			    "spotter_steps_total{run_id=\"c\"} 1000000000000001 1700000000.123\n"
			    "# HELP spotter_gpu_energy_joules energy \\\\ used\\nsince\n"
			    "# TYPE spotter_gpu_energy_joules counter\n"
			    "# UNIT spotter_gpu_energy_joules joules\n"
			    "spotter_gpu_energy_joules_total{gpu=\"0\"} 0.1 1700000000.123\n"
			    "# HELP spotter_x_bytes a \\\"size\\\"\n"
			    "# TYPE spotter_x_bytes gauge\n"
			    "# UNIT spotter_x_bytes bytes\n"
			    "spotter_x_bytes 4096 1700000000.123\n"
			    "# EOF\n");
}

/* A name can hold anything; a label takes any text that is UTF-8. */
static void hostile_labels(void **state)
{
	static const struct {
		const char *value, *shown;
	} rows[] = {
		{ "a\"b\\c\nd", "{run_id=\"a\\\"b\\\\c\\nd\"}" },
		{ "caf\xc3\xa9", "{run_id=\"caf\xc3\xa9\"}" },
		{ "\xff\xc3", "{run_id=\"\xef\xbf\xbd\xef\xbf\xbd\"}" },
		{ "} 1\n# EOF", "{run_id=\"} 1\\n# EOF\"}" },
		{ "", "" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		auto_done(buf) struct buf out = { 0 };
		struct exposition x;
		char want[128];

		exposition_begin(&x, &out, EXPOSITION_TEXT);
		put(&x, &steps, "run_id", rows[i].value, 1);
		snprintf(want, sizeof(want), "counter\nspotter_steps_total%s 1\n", rows[i].shown);
		assert_non_null(strstr(buf_text(&out), want));
	}
}

static void negotiation(void **state)
{
	(void)state;
	/* Prometheus 2.42, and one with a weight */
	assert_int_equal(exposition_wanted(
			     "application/openmetrics-text;version=1.0.0,application/"
			     "openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,"
			     "*/*;q=0.1"),
			 EXPOSITION_OPENMETRICS);
	assert_int_equal(exposition_wanted("application/openmetrics-text; version=1.0.0; q=0.4,"
					   "text/plain;q=0.5"),
			 EXPOSITION_TEXT);
	assert_int_equal(exposition_wanted("application/openmetrics-text;version=2.0.0"),
			 EXPOSITION_TEXT);
	assert_int_equal(exposition_wanted("application/openmetrics-text;q=0"), EXPOSITION_TEXT);
	assert_int_equal(exposition_wanted("application/openmetrics-text"), EXPOSITION_OPENMETRICS);
	assert_int_equal(exposition_wanted("*/*"), EXPOSITION_TEXT);
	assert_int_equal(exposition_wanted(",,;q=,;"), EXPOSITION_TEXT);
	assert_int_equal(exposition_wanted(NULL), EXPOSITION_TEXT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_format),
		cmocka_unit_test(open_metrics),
		cmocka_unit_test(hostile_labels),
		cmocka_unit_test(negotiation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

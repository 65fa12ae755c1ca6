/* SPDX-License-Identifier: MIT */
#include "../unit.h"

#include "model/metric.h"

#include <ctype.h>

/* Names are stored in records and typed by people: lower case, dotted, unique. */
static void names(void **state)
{
	(void)state;
	for (int i = 1; i < METRICS; i++) {
		const struct metric *m = &metrics[i];

		assert_int_equal(m->id, i);
		assert_true(m->name[0] && m->help[0] && m->scale > 0);
		assert_non_null(strchr(m->name, '.'));
		for (const char *p = m->name; *p; p++)
			assert_true(islower((unsigned char)*p) || isdigit((unsigned char)*p) ||
				    *p == '.' || *p == '_');
		assert_true(m->entity > ENTITY_NONE && m->entity < ENTITY_KINDS);
		assert_ptr_equal(metric_by_name(m->name), m);
	}
	assert_null(metric_by_name("no.such"));
	assert_null(metric_by_name(""));
}

/* Counters end in _total, units are in the name: what Prometheus' linter asks for. */
static void exporter_names(void **state)
{
	(void)state;
	for (int i = 1; i < METRICS; i++) {
		const struct metric *m = &metrics[i];
		size_t n = strlen(m->prometheus);

		if (!n)
			continue;
		assert_int_equal(strncmp(m->prometheus, "spotter_", 8), 0);
		if (m->kind == KIND_COUNTER && strcmp(m->prometheus + n - 6, "_total") != 0)
			fail_msg("%s: a counter without _total", m->prometheus);
		if (m->unit == UNIT_BYTES && !strstr(m->prometheus, "_bytes"))
			fail_msg("%s: bytes without _bytes", m->prometheus);
		if (m->unit == UNIT_SECONDS && !strstr(m->prometheus, "_seconds"))
			fail_msg("%s: seconds without _seconds", m->prometheus);
	}
}

static void values(void **state)
{
	(void)state;
	assert_true(near(metric_value(M_CPU_USER, 250), 2.5, 1e-12));
	assert_true(near(metric_value(M_JOB_CPU, 1500000000), 1.5, 1e-12));
	assert_true(near(metric_value(M_MEM_TOTAL, 2), 2048, 1e-12));
	assert_true(near(metric_value(M_JOB_CORES_ALLOWED, 2500), 2.5, 1e-12));
}

static void kinds(void **state)
{
	(void)state;
	for (int i = 1; i < ENTITY_KINDS; i++)
		assert_int_equal(entity_kind_by_name(entity_kind_name((enum entity_kind)i)), i);
	assert_int_equal(entity_kind_by_name("nonsense"), ENTITY_NONE);
	for (int i = UNIT_SECONDS; i <= UNIT_COUNT; i++)
		assert_true(metric_unit_name((enum metric_unit)i)[0]);
	assert_string_equal(metric_kind_name(KIND_COUNTER), "counter");
	assert_string_equal(metric_kind_name(KIND_GAUGE), "gauge");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names),
		cmocka_unit_test(exporter_names),
		cmocka_unit_test(values),
		cmocka_unit_test(kinds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

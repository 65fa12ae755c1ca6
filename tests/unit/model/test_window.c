/* SPDX-License-Identifier: MIT */
#include "../unit.h"

#include "model/window.h"

#include <errno.h>

static void counter(void **state)
{
	struct stat_builder b;
	struct series_stat s;

	(void)state;
	stat_begin(&b, M_CPU_USER, false);
	assert_int_equal(stat_finish(&b, 100, &s), -ENODATA);
	stat_add(&b, 10, 5);
	stat_add(&b, 20, 8);
	stat_add(&b, 30, 2); /* started again at 0 */
	assert_int_equal(stat_finish(&b, 40, &s), 0);
	assert_int_equal(s.n, 3);
	assert_true(near(s.delta, 5, 1e-12));
	assert_true(near(s.first, 5, 1e-12) && near(s.last, 2, 1e-12));
	assert_int_equal(s.from_ns, 10);
	assert_int_equal(s.to_ns, 40);
}

static void from_zero(void **state)
{
	struct stat_builder b;
	struct series_stat s;

	(void)state;
	stat_begin(&b, M_PROC_CPU, true);
	stat_add(&b, 10, 5);
	stat_add(&b, 20, 8);
	assert_int_equal(stat_finish(&b, 40, &s), 0);
	assert_true(near(s.delta, 8, 1e-12));
	/* a gauge never grows from 0 */
	stat_begin(&b, M_PROC_RSS, true);
	stat_add(&b, 10, 5);
	stat_add(&b, 20, 8);
	assert_int_equal(stat_finish(&b, 40, &s), 0);
	assert_true(near(s.delta, 3, 1e-12));
}

static void gauge(void **state)
{
	struct stat_builder b;
	struct series_stat s;

	(void)state;
	stat_begin(&b, M_PROC_RSS, false);
	stat_before(&b, 0, 10);
	stat_add(&b, 25, 20);
	stat_add(&b, 75, 0);
	assert_int_equal(stat_finish(&b, 100, &s), 0);
	assert_true(near(s.mean, (10 * 25 + 20 * 50) / 100.0, 1e-12));
	assert_true(s.min == 0 && s.max == 20 && s.first == 10);
	assert_int_equal(s.n, 2);
	assert_int_equal(s.from_ns, 0);
	/* held from before, and nothing since: a value, of 0 samples */
	stat_begin(&b, M_PROC_RSS, false);
	stat_before(&b, 0, 10);
	assert_int_equal(stat_finish(&b, 100, &s), 0);
	assert_true(s.n == 0 && s.mean == 10 && s.last == 10);
	/* a window of no length */
	stat_begin(&b, M_PROC_RSS, false);
	stat_add(&b, 50, 7);
	assert_int_equal(stat_finish(&b, 50, &s), 0);
	assert_true(s.mean == 7);
}

/* The same values as samples and as buckets give the same figures. */
static void buckets(void **state)
{
	static const double v[] = { 3, 4, 9, 9, 2, 6, 7, 7, 20, 21, 22, 30 };
	struct stat_builder a, b;
	struct series_stat x, y;

	(void)state;
	for (int zero = 0; zero < 2; zero++) {
		for (int gauge_too = 0; gauge_too < 2; gauge_too++) {
			enum metric_id m = gauge_too ? M_PROC_RSS : M_PROC_CPU;

			stat_begin(&a, m, zero);
			stat_begin(&b, m, zero);
			for (int i = 0; i < 12; i++)
				stat_add(&a, 10 * i, v[i]);
			for (int i = 0; i < 12; i += 4) {
				double growth = 0, integral = 0, min = v[i], max = v[i];

				for (int k = i; k < i + 4; k++) {
					double was = k ? v[k - 1] : v[0];

					growth += v[k] >= was ? v[k] - was : v[k];
					integral += v[k] * 10;
					min = v[k] < min ? v[k] : min;
					max = v[k] > max ? v[k] : max;
				}
				stat_add_bucket(&b, 10 * i, 10 * i + 40, min, max, v[i + 3], growth,
						integral);
			}
			assert_int_equal(stat_finish(&a, 120, &x), 0);
			assert_int_equal(stat_finish(&b, 120, &y), 0);
			assert_true(near(x.mean, y.mean, 1e-12));
			assert_true(x.min == y.min && x.max == y.max && x.last == y.last);
			assert_int_equal(x.to_ns, y.to_ns);
			/* where a counter began again the first bucket cannot know its first value */
			if (!gauge_too)
				assert_true(near(x.delta, y.delta, 1e-12));
		}
	}
}

static struct {
	struct entity_table entities;
	struct run_info run;
	struct window_gap gaps[4];
	size_t n_gaps;
} world;

static const struct window_gap *gaps_of(void *src, size_t *ret_n)
{
	(void)src;
	*ret_n = world.n_gaps;
	return world.gaps;
}

static void why_absent(void **state)
{
	static const struct window_ops ops = { .gaps = gaps_of };
	struct window w = { &ops, NULL, 0, 1 };

	(void)state;
	world.n_gaps = 0;
	assert_string_equal(window_why_absent(&w, M_PSI_MEM_SOME, ID_HOST), "not recorded");
	world.gaps[0] = (struct window_gap){ M_PSI_MEM_SOME, ID_HOST, GAP_NO_PERMISSION, 0, 0 };
	world.gaps[1] = (struct window_gap){ M_THREAD_RUN_DELAY, ID_JOB, GAP_NOT_SUPPORTED, 0, 0 };
	world.gaps[2] = (struct window_gap){ M_CG_CPU, 0, GAP_LOST, 0, 0 };
	world.gaps[3] = (struct window_gap){ M_PSI_MEM_SOME, ID_HOST, GAP_OVER, 0, 0 };
	world.n_gaps = 4;
	assert_string_equal(window_why_absent(&w, M_PSI_MEM_SOME, ID_HOST), "no permission");
	assert_string_equal(window_why_absent(&w, M_PSI_MEM_FULL, ID_HOST), "not recorded");
	/* of the job: of all its threads */
	assert_string_equal(window_why_absent(&w, M_THREAD_RUN_DELAY, 77), "not supported");
	/* the whole source is missing */
	assert_string_equal(window_why_absent(&w, M_CG_CPU_PERIODS, 40), "lost");
}

static void add(uint32_t id, enum entity_kind kind, int64_t born)
{
	assert_int_equal(
	    entity_table_add(&world.entities, &(struct entity){ .id = id,
								.kind = kind,
								.born_ns = born,
								.name = (char *)"x",
								.detail = (char *)"" }),
	    0);
}

static bool zero(enum metric_id m, uint32_t id, int64_t from)
{
	return window_from_zero(&world.entities, &world.run, m, id, from);
}

static void born_in_window(void **state)
{
	(void)state;
	add(ID_HOST, ENTITY_HOST, 100);
	add(ID_JOB, ENTITY_JOB, 100);
	add(20, ENTITY_PROC, 100);
	add(21, ENTITY_PROC, 200);
	for (int attached = 0; attached < 2; attached++) {
		world.run.attached = attached;
		/* there at the first tick */
		assert_int_equal(zero(M_JOB_CPU, ID_JOB, 90), !attached);
		assert_int_equal(zero(M_PROC_CPU, 20, 100), !attached);
		assert_false(zero(M_PROC_CPU, 20, 150));
		/* born later: from 0 whoever started the run, but in one of two adjoining windows */
		assert_true(zero(M_PROC_CPU, 21, 150));
		assert_false(zero(M_PROC_CPU, 21, 200));
		/* never: the machine, groups */
		assert_false(zero(M_CPU_USER, ID_HOST, 0));
		assert_false(zero(M_CG_CPU, 40, 0));
		/* not announced: as old as the run */
		assert_int_equal(zero(M_JOB_CPU, 9, 90), !attached);
	}
	entity_table_done(&world.entities);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counter),    cmocka_unit_test(from_zero),
		cmocka_unit_test(gauge),      cmocka_unit_test(buckets),
		cmocka_unit_test(why_absent), cmocka_unit_test(born_in_window),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

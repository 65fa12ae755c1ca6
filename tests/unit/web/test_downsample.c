/* SPDX-License-Identifier: MIT */
#include "../unit.h"

#include "base/clock.h"
#include "web/downsample.h"

#include <math.h>

#define S NS_PER_S

static struct point sample(int64_t t, double v)
{
	return (struct point){ t, v, v, v, t, v };
}

static void make(struct stretches *s, int64_t from, int64_t to, size_t n)
{
	assert_int_equal(stretches_make(s, from, to, n), 0);
}

static void no_room(void **state)
{
	struct stretches s;

	(void)state;
	assert_int_equal(stretches_make(&s, 0, 0, 10), -EINVAL);
	assert_int_equal(stretches_make(&s, 10, 0, 10), -EINVAL);
	assert_int_equal(stretches_make(&s, 0, 10, 0), -EINVAL);
	assert_int_equal(stretches_make(&s, 0, 10, 11), -EINVAL);
	stretches_done(&s);
}

/* A gauge holds: what is between two samples is the first one's, in parts of a stretch too. */
static void gauge_holds(void **state)
{
	struct feed f = { .counter = false };
	struct point p;

	(void)state;
	make(&f.out, 0, 4 * S, 4);
	feed_begin(&f, false, 0);
	p = sample(S / 2, 10);
	feed_point(&f, &p);
	p = sample(5 * S / 2, 30);
	feed_point(&f, &p);
	feed_end(&f, 7 * S / 2);
	assert_true(near(stretch_mean(&f.out.v[0]), 10, 1e-12));
	assert_true(near(f.out.v[0].weight, 0.5e9, 1e-12)); /* nothing is known before */
	assert_true(near(stretch_mean(&f.out.v[1]), 10, 1e-12));
	assert_true(near(stretch_mean(&f.out.v[2]), 20, 1e-12));
	assert_true(near(f.out.v[2].min, 10, 1e-12) && near(f.out.v[2].max, 30, 1e-12));
	assert_true(near(stretch_mean(&f.out.v[3]), 30, 1e-12));
	assert_true(near(f.out.v[3].weight, 0.5e9, 1e-12)); /* nor behind its end */
	stretches_done(&f.out);
}

/* A roll-up tells its mean, least and most; what holds behind it is its last value, not its mean. */
static void gauge_of_rollups(void **state)
{
	struct feed f = { .counter = false };
	struct point p = {
		.from_ns = 0, .t_ns = 10 * S - 1, .value = 5, .min = 0, .max = 10, .last = 10
	};

	(void)state;
	make(&f.out, 0, 100 * S, 10);
	feed_begin(&f, false, 0);
	feed_point(&f, &p);
	feed_end(&f, 100 * S);
	assert_true(near(stretch_mean(&f.out.v[0]), 5, 1e-6));
	assert_true(f.out.v[0].min == 0 && f.out.v[0].max == 10);
	for (size_t i = 1; i < 10; i++)
		assert_true(near(stretch_mean(&f.out.v[i]), 10, 1e-12));
	stretches_done(&f.out);
}

/* The growth of a counter is spread over the time it took, and all of it is found again. */
static void counter_is_a_rate(void **state)
{
	struct feed f = { .counter = true };
	double sum = 0;
	struct point p;

	(void)state;
	make(&f.out, 0, 10 * S, 7);
	feed_begin(&f, true, 0);
	for (int i = 1; i <= 10; i++) {
		p = sample(i * S, i < 6 ? i : 6 + 3 * (i - 6));
		feed_point(&f, &p);
	}
	feed_end(&f, 10 * S);
	for (size_t i = 0; i < 7; i++)
		sum += f.out.v[i].sum / 1e9;
	assert_true(near(sum, 18, 1e-9));
	assert_true(near(stretch_mean(&f.out.v[0]), 1, 1e-9));
	assert_true(near(stretch_mean(&f.out.v[6]), 3, 1e-9));
	stretches_done(&f.out);
}

static void counter_without_a_start(void **state)
{
	struct feed f = { .counter = true };
	struct point p = sample(5 * S, 1e6);

	(void)state;
	make(&f.out, 0, 10 * S, 10);
	feed_begin(&f, false, 0);
	feed_point(&f, &p);
	p = sample(6 * S, 1e6 + 2);
	feed_point(&f, &p);
	p = sample(7 * S, 1); /* it began again */
	feed_point(&f, &p);
	feed_end(&f, 10 * S);
	assert_true(isnan(stretch_mean(&f.out.v[4])));
	assert_true(near(stretch_mean(&f.out.v[5]), 2, 1e-9));
	assert_true(near(stretch_mean(&f.out.v[6]), 1, 1e-9));
	assert_true(isnan(stretch_mean(&f.out.v[8]))); /* no reading, no rate */
	stretches_done(&f.out);
}

/* One that is kept only when it changes stood still until a moment before. */
static void sparse_counter(void **state)
{
	struct feed f = { .counter = true, .sparse = true };
	struct point p = sample(0, 0);

	(void)state;
	make(&f.out, 0, 100 * S, 100);
	feed_begin(&f, false, 0);
	feed_point(&f, &p);
	p = sample(50 * S, 110);
	feed_point(&f, &p);
	feed_end(&f, 90 * S);
	assert_true(stretch_mean(&f.out.v[10]) == 0);
	assert_true(near(stretch_mean(&f.out.v[49]), 100, 1e-9));
	assert_true(stretch_mean(&f.out.v[60]) == 0);
	assert_true(isnan(stretch_mean(&f.out.v[95])));
	stretches_done(&f.out);
}

/* A day of samples at any times, and times that make no sense: nothing outside is touched, and what is held adds up. */
static void hostile_times(void **state)
{
	struct feed f = { .counter = false };
	uint64_t seed = 1;
	double weight = 0;

	(void)state;
	make(&f.out, 1000 * S, 2000 * S, 600);
	feed_begin(&f, false, 1000 * S);
	for (int i = 0; i < 100000; i++) {
		struct point p;

		seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		p = sample((int64_t)(seed >> 1) % (4000 * S), (double)(seed >> 40));
		p.from_ns = i % 3 ? p.t_ns : (int64_t)seed;
		feed_point(&f, &p);
	}
	feed_end(&f, INT64_MAX);
	for (size_t i = 0; i < f.out.n; i++) {
		weight += f.out.v[i].weight;
		assert_true(f.out.v[i].min <= f.out.v[i].max);
		assert_true(isfinite(stretch_mean(&f.out.v[i])));
	}
	assert_true(weight > 0);
	stretches_done(&f.out);
}

static void moments_and_gaps(void **state)
{
	struct stretches s;

	(void)state;
	make(&s, 0, 10 * S, 10);
	for (int i = 0; i < 100; i++)
		stretches_put(&s, i * S / 10, i % 10);
	stretches_put(&s, -1, 1000);
	stretches_put(&s, 10 * S, 1000);
	assert_true(near(stretch_mean(&s.v[3]), 4.5, 1e-12));
	assert_int_equal(s.v[3].n, 10);
	stretches_blank(&s, 3 * S, 6 * S - 1);
	assert_true(isnan(stretch_mean(&s.v[3])) && isnan(stretch_mean(&s.v[4])));
	assert_true(near(stretch_mean(&s.v[5]), 4.5, 1e-12)); /* some of it was read */
	stretches_blank(&s, INT64_MIN, INT64_MAX);
	assert_true(isnan(stretch_mean(&s.v[9])));
	stretches_done(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_room),
		cmocka_unit_test(gauge_holds),
		cmocka_unit_test(gauge_of_rollups),
		cmocka_unit_test(counter_is_a_rate),
		cmocka_unit_test(counter_without_a_start),
		cmocka_unit_test(sparse_counter),
		cmocka_unit_test(hostile_times),
		cmocka_unit_test(moments_and_gaps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

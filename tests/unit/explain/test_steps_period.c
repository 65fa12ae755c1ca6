/* SPDX-License-Identifier: MIT
 *
 * What repeats is found, with the right length; what does not is not, whatever it looks like.
 */
#include "../unit.h"

#include "../record/random.h"
#include "explain/steps_period.h"

#include <math.h>

enum { N = 600, TRIES = 40 };

static double uniform(struct random *r)
{
	return ((double)(random_next(r) >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(struct random *r)
{
	double size = sqrt(-2 * log(uniform(r)));

	return size * cos(2 * M_PI * uniform(r));
}

/* Adds the time from a to b, as counters do. */
static void busy(double *x, size_t n, double a, double b)
{
	for (size_t i = a > 0 ? (size_t)a : 0; i < n && (double)i < b; i++) {
		double from = fmax(a, (double)i), to = fmin(b, (double)i + 1);

		x[i] += to > from ? to - from : 0;
	}
}

/* Loops of this length, spread of lengths by their mean, and busy share; length by length in `mean`. */
static void loop(struct random *r, double *x, size_t n, double length, double cv, double share,
		 double *mean)
{
	double begin = -length * uniform(r), t = begin;
	size_t times = 0;

	memset(x, 0, n * sizeof(*x));
	for (; t < (double)n; times++) {
		double took = fmax(length * (1 + cv * normal(r)), length / 5);

		busy(x, n, t, t + took * share);
		t += took;
	}
	*mean = (t - begin) / (double)times;
}

/* Any length, any share: found, and within 2 % by count. */
static void regular(void **state)
{
	struct random r = { 1 };
	double x[N], mean;
	struct period p;

	(void)state;
	for (int i = 0; i < TRIES; i++) {
		double length = 4.3 + uniform(&r) * 20, share = 0.2 + 0.6 * uniform(&r);

		loop(&r, x, N, length, 0.04, share, &mean);
		for (size_t k = 0; k < N; k++)
			x[k] += 0.05 * normal(&r);
		if (!period_find(x, N, &p))
			fail_msg("%g (share %g) was not found", length, share);
		if (fabs(p.mean / mean - 1) > 0.02 || fabs(p.usual / length - 1) > 0.06)
			fail_msg("%g for %g", p.mean, mean);
		assert_true(period_agrees(x, N, p.usual));
		/* nothing that is faster could look like it */
		assert_true(p.swing > 1.3 * period_alias(p.usual, 1));
	}
}

/* With more spread it is found less often, and hardly ever wrong; with a lot, not at all. */
static void spread(void **state)
{
	struct random r = { 2 };
	double x[N], mean;
	size_t found = 0;
	struct period p;

	(void)state;
	for (int i = 0; i < TRIES; i++) {
		loop(&r, x, N, 5 + uniform(&r) * 10, 0.1, 0.5, &mean);
		if (!period_find(x, N, &p))
			continue;
		found++;
		if (fabs(p.mean / mean - 1) > 0.04)
			fail_msg("%g for %g", p.mean, mean);
	}
	assert_in_range(found, TRIES / 2, TRIES);
	for (int i = 0; i < TRIES; i++) {
		loop(&r, x, N, 5 + uniform(&r) * 10, 0.4, 0.5, &mean);
		assert_false(period_find(x, N, &p));
	}
}

/* Changes slowly: the level, or the length by a few hundredths. */
static void drift(void **state)
{
	double x[N] = { 0 }, t = 0;
	struct period p;
	size_t times = 0;

	(void)state;
	for (; t < N; times++) {
		double took = 8 * (1 + 0.04 * t / N);

		busy(x, N, t, t + took / 2);
		t += took;
	}
	for (size_t k = 0; k < N; k++)
		x[k] += 3 * (double)k / N;
	assert_true(period_find(x, N, &p));
	assert_true(fabs(p.mean / (t / (double)times) - 1) < 0.01);
}

/* Twenty steps and an evaluation: the step. Four batches and an update: could be either. A pause: too much of
 * it is missing. */
static void two_periods(void **state)
{
	double x[N * 2] = { 0 }, t = 0;
	struct period p;

	(void)state;
	for (int i = 0; t < N * 2; i++) {
		busy(x, N * 2, t, t + 3);
		t += 6;
		if (i % 20 == 19)
			x[(size_t)fmin(t, N * 2 - 1)] += 1;
	}
	assert_true(period_find(x, N * 2, &p));
	assert_true(fabs(p.mean - 6) < 0.06);
	memset(x, 0, sizeof(x));
	t = 0;
	for (int i = 0; t < N * 2; i++) {
		busy(x, N * 2, t, t + (i % 4 == 3 ? 5.2 : 2));
		t += 6;
	}
	assert_false(period_find(x, N * 2, &p) && fabs(p.mean - 6) > 0.1 &&
		     fabs(p.mean - 24) > 0.4);
	memset(x, 0, sizeof(x));
	t = 0;
	for (int i = 0; t < N * 2; i++) {
		busy(x, N * 2, t, t + 3);
		t += i % 10 == 9 ? 45.7 : 6;
	}
	assert_false(period_find(x, N * 2, &p));
}

/* Noise of any colour, and programs that are busy and idle for times drawn at random. */
static void noise(void **state)
{
	struct random r = { 3 };
	double x[N];
	struct period p;

	(void)state;
	for (int i = 0; i < TRIES * 5; i++) {
		double keep = i % 5 == 0 ? 0 : i % 5 == 1 ? 0.5 : 0.95, y = 0;
		double mean = 1 + uniform(&r) * 20;

		memset(x, 0, sizeof(x));
		for (size_t k = 0; k < N && i % 5 < 3; k++)
			x[k] = y = keep * y + normal(&r);
		for (double t = 0; t < N && i % 5 >= 3;) {
			double on = mean * (i % 5 == 3 ? -log(uniform(&r)) : 2 * uniform(&r));
			double off = mean * (i % 5 == 3 ? -log(uniform(&r)) : 2 * uniform(&r));

			busy(x, N, t, t + on);
			t += on + off;
		}
		if (period_find(x, N, &p))
			fail_msg("kind %d: %g", i % 5, p.usual);
	}
}

/* Loops faster than two values beat with them. */
static void aliases(void **state)
{
	struct random r = { 4 };
	double x[N], mean;
	struct period p;

	(void)state;
	for (int i = 0; i < TRIES * 3; i++) {
		loop(&r, x, N, 0.3 + 2.2 * uniform(&r), 0, 0.1 + 0.8 * uniform(&r), &mean);
		if (period_find(x, N, &p) && p.swing > 1.3 * period_alias(p.usual, 1) &&
		    p.swing > 0.08)
			fail_msg("%g seems to be %g", mean, p.usual);
	}
}

static void nothing(void **state)
{
	double x[N] = { 0 };
	struct period p;

	(void)state;
	assert_false(period_find(x, N, &p)); /* all the same */
	assert_false(period_find(x, 0, &p));
	assert_false(period_find(x, 3, &p));
	assert_false(period_find(x, PERIOD_VALUES_MAX + 1, &p));
	assert_false(period_agrees(x, N, 8));
	assert_false(period_agrees(x, N, 0));
	assert_false(period_agrees(x, N, NAN));
	for (size_t k = 0; k < N; k++)
		x[k] = k % 2 ? NAN : INFINITY;
	assert_false(period_find(x, N, &p));
	assert_false(period_agrees(x, N, 8));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(regular),     cmocka_unit_test(spread), cmocka_unit_test(drift),
		cmocka_unit_test(two_periods), cmocka_unit_test(noise),  cmocka_unit_test(aliases),
		cmocka_unit_test(nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

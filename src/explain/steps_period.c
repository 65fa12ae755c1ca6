/* SPDX-License-Identifier: MIT */
#include "explain/steps_period.h"

#include "base/auto.h"

#include <complex.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A shorter one may be the real one from here on, and surely is from there on (of the largest peak). */
static const double rival_least = 0.55, same_least = 0.85;
/* A pattern that comes back more seldom is what is done now and then, such as an evaluation; one of fewer
 * could be a step of so many batches. */
static const double batches_most = 8;
/* Longest part of a series in which the period is not seen, such as a pause. */
static const double missing_most = 0.10;

struct peak {
	double lag, height;
};

/* Correlation of x with itself k values later. */
static double correlation(const double *x, size_t n, size_t k)
{
	double xy = 0, xx = 0, yy = 0;

	if (k >= n)
		return 0;
	for (size_t i = 0; i + k < n; i++) {
		xy += x[i] * x[i + k];
		xx += x[i] * x[i];
		yy += x[i + k] * x[i + k];
	}
	return xx > 0 && yy > 0 ? xy / sqrt(xx * yy) : 0;
}

/* Without what changes over many periods. */
static void level(double *x, size_t n, size_t half)
{
	auto_free double *sum = malloc((n + 1) * sizeof(*sum));

	if (!sum) {
		memset(x, 0, n * sizeof(*x)); /* nothing repeats */
		return;
	}
	sum[0] = 0;
	for (size_t i = 0; i < n; i++)
		sum[i + 1] = sum[i] + x[i];
	for (size_t i = 0; i < n; i++) {
		size_t a = i > half ? i - half : 0, b = i + half + 1 < n ? i + half + 1 : n;

		x[i] -= (sum[b] - sum[a]) / (double)(b - a);
	}
}

/* The top of the parabola through three values around k. */
static struct peak top(double before, double at, double behind, double k)
{
	double bend = before - 2 * at + behind;
	double off = bend < 0 ? (before - behind) / (2 * bend) : 0;

	return (struct peak){ k + off, at - (before - behind) * off / 4 };
}

/* Largest correlation between two lags, at a value that is larger than its neighbours; height 0: none. */
static struct peak highest(const double *x, size_t n, double from, double to)
{
	struct peak best = { 0, 0 };
	size_t first = from > 2 ? (size_t)floor(from) : 2, last = (size_t)ceil(to);
	double before, at;

	if (last + 2 >= n)
		return best;
	before = correlation(x, n, first - 1);
	at = correlation(x, n, first);
	for (size_t k = first; k <= last; k++) {
		double behind = correlation(x, n, k + 1);

		if (at > before && at >= behind) {
			struct peak p = top(before, at, behind, (double)k);

			if (p.height > best.height)
				best = p;
		}
		before = at;
		at = behind;
	}
	return best;
}

/* Least correlation that is no chance. Noise whose own memory is as long as the period gives about
 * 1/sqrt(times seen); the largest of many such stays below three and a half of these. */
static double least_by_chance(double cycles)
{
	return fmin(fmax(0.5, 3.5 / sqrt(cycles)), 0.75);
}

/* All peaks of the correlation, and the one that is the period; lag 0: none, or it is not clear which. */
static struct peak choose(const double *r, size_t last, size_t n)
{
	struct peak best = { 0, 0 }, found = { 0, 0 };
	double lowest = 1;

	for (size_t k = PERIOD_SHORTEST; k < last; k++) {
		struct peak p = top(r[k - 1], r[k], r[k + 1], (double)k);

		if (r[k] > r[k - 1] && r[k] >= r[k + 1] && p.height > best.height)
			best = p;
	}
	for (size_t k = 1; k < last; k++) {
		struct peak p = top(r[k - 1], r[k], r[k + 1], (double)k);

		lowest = fmin(lowest, r[k]);
		if (!(r[k] > r[k - 1] && r[k] >= r[k + 1]) || p.height < rival_least * best.height)
			continue;
		/* It must be lower in between, or it is a wave on a slope. */
		if (p.height - lowest < 0.3)
			continue;
		if (p.height < same_least * best.height && best.lag < batches_most * p.lag)
			return (struct peak){ 0, 0 };
		found = p;
		break;
	}
	if (found.lag < PERIOD_SHORTEST || found.height < least_by_chance((double)n / found.lag))
		return (struct peak){ 0, 0 };
	return found;
}

/* Eight periods are measured as finely as one, and are eight times as long. */
static double refine(const double *x, size_t n, struct peak p)
{
	double lag = p.lag;

	for (int times = 2; times <= 8; times *= 2) {
		double around = lag * times;
		struct peak far;

		if (around * 4 > (double)n)
			break;
		far = highest(x, n, around - lag * 0.3, around + lag * 0.3);
		if (far.height < p.height / 2)
			break;
		lag = far.lag / times;
	}
	return lag;
}

/* The same in this part of it? */
static bool comes_back(const double *x, size_t n, double lag)
{
	struct peak p = highest(x, n, lag * 0.7, lag * 1.3);

	return fabs(p.lag - lag) <= fmax(0.06 * lag, 0.5) &&
	       p.height >= 0.75 * least_by_chance((double)n / lag);
}

static int by_value(const void *x, const void *y)
{
	double a = *(const double *)x, b = *(const double *)y;

	return a < b ? -1 : a > b;
}

static double complex turned(const double *x, size_t from, size_t n, double lag)
{
	double complex sum = 0, step = cexp(-2 * M_PI * I / lag);
	double complex at = cexp(-2 * M_PI * I * fmod((double)from, lag) / lag);

	for (size_t i = 0; i < n; i++) {
		sum += x[from + i] * at;
		at *= step;
	}
	return sum;
}

/* Goes along the series two periods at a time: how strong it is there, and how far it has run ahead of or
 * fallen behind an even one. So the periods are counted, however unequal they are. */
static bool follow(const double *x, size_t n, double lag, struct period *p)
{
	size_t part = (size_t)lround(2 * lag), parts = n / part, first = 0, last, weak = 0;
	auto_free double *sorted = malloc(parts * sizeof(*sorted));
	auto_free double complex *z = malloc(parts * sizeof(*z));
	double ahead = 0, cycles;

	if (!sorted || !z || parts < PERIOD_CYCLES / 2)
		return false;
	for (size_t i = 0; i < parts; i++) {
		z[i] = turned(x, i * part, part, lag);
		sorted[i] = cabs(z[i]) * 2 / (double)part;
	}
	qsort(sorted, parts, sizeof(*sorted), by_value);
	p->swing = sorted[parts / 2];
	last = parts;
	/* What comes before and behind is no part of it. */
	while (first < parts && cabs(z[first]) * 2 / (double)part < 0.35 * p->swing)
		first++;
	while (last > first && cabs(z[last - 1]) * 2 / (double)part < 0.35 * p->swing)
		last--;
	for (size_t i = first; i < last; i++) {
		weak += cabs(z[i]) * 2 / (double)part < 0.35 * p->swing;
		ahead += i > first ? carg(z[i] * conj(z[i - 1])) / (2 * M_PI) : 0;
	}
	if (last - first < PERIOD_CYCLES / 2 || (last - first) * 2 < parts ||
	    (double)weak > missing_most * (double)(last - first))
		return false;
	/* From the middle of the first part to that of the last. */
	cycles = (double)((last - first - 1) * part) / lag + ahead;
	p->mean = (double)((last - first - 1) * part) / cycles;
	p->from = first * part;
	p->to = last * part;
	p->cycles = (double)(p->to - p->from) / p->mean;
	/* Counted otherwise than measured: something was taken for something else. */
	return cycles > 0 && fabs(p->mean / lag - 1) < 0.1;
}

bool period_find(const double *values, size_t n, struct period *ret)
{
	size_t last = n / PERIOD_CYCLES;
	auto_free double *x = NULL, *r = NULL;
	struct peak p;
	double lag;

	*ret = (struct period){ 0 };
	if (n > PERIOD_VALUES_MAX || last <= PERIOD_SHORTEST)
		return false;
	x = malloc(n * sizeof(*x));
	r = malloc((last + 2) * sizeof(*r));
	if (!x || !r)
		return false;
	memcpy(x, values, n * sizeof(*x));
	level(x, n, last);
	for (size_t k = 0; k <= last; k++)
		r[k] = correlation(x, n, k);
	p = choose(r, last, n);
	if (!(p.lag > 0))
		return false;
	lag = refine(x, n, p);
	if (!comes_back(x, n / 2, lag) || !comes_back(x + n / 2, n - n / 2, lag))
		return false;
	ret->usual = lag;
	ret->correlation = p.height;
	return follow(x, n, lag, ret);
}

bool period_agrees(const double *values, size_t n, double length)
{
	size_t wide = (size_t)(length / 3), from, to;
	auto_free double *x = NULL, *sum = NULL;
	double best = -1, lowest = 1, cycles = (double)n / length;

	if (n > PERIOD_VALUES_MAX || !(length >= PERIOD_SHORTEST) || cycles < PERIOD_CYCLES)
		return false;
	x = malloc(n * sizeof(*x));
	sum = malloc((n + 1) * sizeof(*sum));
	if (!x || !sum)
		return false;
	memcpy(x, values, n * sizeof(*x));
	level(x, n, (size_t)length * 2);
	/* What happens in a moment does so a value earlier or later: a third of the period is near. */
	sum[0] = 0;
	for (size_t i = 0; i < n; i++)
		sum[i + 1] = sum[i] + x[i];
	for (size_t i = 0; i < n; i++)
		x[i] = sum[i + 1] - sum[i + 1 > wide ? i + 1 - wide : 0];
	from = (size_t)floor(length * 0.96);
	to = (size_t)ceil(length * 1.04);
	for (size_t k = from; k <= to; k++)
		best = fmax(best, correlation(x, n, k));
	for (size_t k = (size_t)(length / 4); k <= (size_t)(length * 3 / 4); k++)
		lowest = fmin(lowest, correlation(x, n, k));
	return best >= fmax(0.2, 2 / sqrt(cycles)) && best - lowest >= 0.15;
}

double period_alias(double length, double scale)
{
	double turns = 1 - 1 / length;

	/* 2/pi: the strongest harmonic that anything between 0 and 1 can have; the rest is what averaging
	 * over one value leaves of a frequency that looks like this one. */
	return scale * 2 / M_PI * sin(M_PI * turns) / (M_PI * turns);
}

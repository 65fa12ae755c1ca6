/* SPDX-License-Identifier: MIT
 *
 * How much does being watched slow a program down? In-process A/B: separate runs differ by far more
 * (18 % here) than what is to be measured, so one run switches the recorder on and off in slots of
 * 0.2 s in random order and compares its own work in them.
 *
 *	spotter run --quiet -- build/bench/ab SECONDS [BURNERS] [MODE]
 *
 * The recorder is our parent (the supervisor's child); stopping *it* is the off switch. The program
 * that is watched is never touched. MODE "aa" switches nothing: the control. BURNERS threads keep
 * other cores busy. Prints JSON: median ratio on/off with a 95 % bootstrap interval.
 */
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SLOT_MS = 200, UNIT_ROUNDS = 300000, MAX_CYCLES = 4000, BOOTSTRAPS = 2000 };

static uint64_t seed = 88172645463325252ull;

static uint64_t rnd(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

/* About a millisecond of dependent arithmetic and cache-resident memory. */
static uint64_t unit(uint64_t x)
{
	static uint64_t cells[4096];

	for (int i = 0; i < UNIT_ROUNDS; i++) {
		x = x * 6364136223846793005ull + 1442695040888963407ull;
		cells[x >> 52] += x;
	}
	return x + cells[x >> 52];
}

static void *burn(void *arg)
{
	volatile uint64_t *sink = arg;

	for (uint64_t x = 1;; x = unit(x))
		*sink = x;
	return NULL;
}

/* Mean time of a unit in one slot. */
static double slot(uint64_t *x)
{
	double begin = now_s(), end = begin + SLOT_MS * 1e-3, at = begin;
	unsigned n = 0;

	while (at < end) {
		*x = unit(*x);
		n++;
		at = now_s();
	}
	return (at - begin) / n;
}

static int by_value(const void *a, const void *b)
{
	double d = *(const double *)a - *(const double *)b;

	return d < 0 ? -1 : d > 0;
}

static double median(double *v, size_t n)
{
	qsort(v, n, sizeof(*v), by_value);
	return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

int main(int argc, char **argv)
{
	static double ratio[MAX_CYCLES], resample[MAX_CYCLES], medians[BOOTSTRAPS];
	double seconds = argc > 1 ? strtod(argv[1], NULL) : 20;
	long burners = argc > 2 ? strtol(argv[2], NULL, 10) : 0;
	bool control = argc > 3 && strcmp(argv[3], "aa") == 0;
	pid_t recorder = getppid();
	static uint64_t sinks[64];
	double end, mid;
	uint64_t x = 1;
	size_t n = 0;

	for (long i = 0; i < burners && i < 64; i++) {
		pthread_t t;

		if (pthread_create(&t, NULL, burn, &sinks[i]))
			return 1;
	}
	slot(&x); /* warm */
	end = now_s() + seconds;
	while (now_s() < end && n < MAX_CYCLES) {
		bool on_first = rnd() >> 63;
		double time[2];

		for (int i = 0; i < 2; i++) {
			bool on = on_first == (i == 0);

			if (!control)
				kill(recorder, on ? SIGCONT : SIGSTOP);
			time[on] = slot(&x);
		}
		ratio[n++] = time[1] / time[0];
	}
	if (!control)
		kill(recorder, SIGCONT);
	for (int b = 0; b < BOOTSTRAPS; b++) {
		for (size_t i = 0; i < n; i++)
			resample[i] = ratio[rnd() % n];
		medians[b] = median(resample, n);
	}
	qsort(medians, BOOTSTRAPS, sizeof(*medians), by_value);
	mid = median(ratio, n);
	printf("{\"cycles\": %zu, \"ratio\": %.5f, \"low\": %.5f, \"high\": %.5f}\n", n, mid,
	       medians[BOOTSTRAPS / 40], medians[BOOTSTRAPS - BOOTSTRAPS / 40]);
	return x == 42;
}

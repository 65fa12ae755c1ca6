/* SPDX-License-Identifier: MIT
 *
 * What a mark costs the program that makes it: nanoseconds a call, the median of batches, through the shared
 * library as a program calls it.
 *
 *	bench/mark [BATCHES [THREADS]]
 *
 * Prints a line of JSON a kind of mark: with a ring (in /dev/shm, or $TMPDIR), and without a recorder. With
 * THREADS the others mark all the time: what is shown is what one of them sees.
 */
#include "base/clock.h"
#include "spotter.h"

#include <dirent.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CALLS = 1000, BATCHES_MAX = 100000, THREADS_MAX = 64 };

static void step(void)
{
	spotter_step(0.5);
}

static void scalar(void)
{
	spotter_scalar("validation_accuracy", 0.5);
}

static void phase(void)
{
	spotter_phase_begin("evaluate");
}

/* What is in each of them: the clock. */
static void clock_only(void)
{
	clock_mono_ns();
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void measure(const char *what, const char *how, void (*mark)(void), int batches)
{
	double *ns = calloc((size_t)batches, sizeof(*ns));

	if (!ns)
		exit(1);
	mark();
	for (int i = 0; i < batches; i++) {
		int64_t from = clock_mono_ns();

		for (int k = 0; k < CALLS; k++)
			mark();
		ns[i] = (double)(clock_mono_ns() - from) / CALLS;
	}
	qsort(ns, (size_t)batches, sizeof(*ns), by_value);
	printf("{\"mark\": \"%s\", \"%s\": true, \"ns_median\": %.1f, \"ns_p10\": %.1f, "
	       "\"ns_p90\": %.1f}\n",
	       what, how, ns[batches / 2], ns[batches / 10], ns[batches * 9 / 10]);
	free(ns);
}

static void measure_all(const char *how, int batches)
{
	measure("clock", how, clock_only, batches);
	measure("step", how, step, batches);
	measure("scalar", how, scalar, batches);
	measure("phase_begin", how, phase, batches);
}

static void *marks_on(void *arg)
{
	while (!atomic_load((_Atomic bool *)arg))
		step();
	return NULL;
}

static void remove_all(const char *folder)
{
	DIR *d = opendir(folder);
	struct dirent *e;

	while (d && (e = readdir(d)))
		if (strstr(e->d_name, ".ring"))
			unlinkat(dirfd(d), e->d_name, 0);
	if (d)
		closedir(d);
	rmdir(folder);
}

int main(int n, char **argv)
{
	int batches = n > 1 ? (int)strtol(argv[1], NULL, 10) : 500;
	int threads = n > 2 ? (int)strtol(argv[2], NULL, 10) : 1;
	const char *tmp = getenv("TMPDIR");
	pthread_t other[THREADS_MAX];
	_Atomic bool stop = false;
	char folder[512];

	if (batches < 1 || batches > BATCHES_MAX || threads < 1 || threads > THREADS_MAX)
		return 2;
	unsetenv("SPOTTER_MARKS");
	measure_all("no_recorder", batches);
	snprintf(folder, sizeof(folder), "%s/spotter-bench-XXXXXX",
		 access("/dev/shm", W_OK) == 0 ? "/dev/shm"
		 : tmp && *tmp                 ? tmp
					       : "/tmp");
	if (!mkdtemp(folder))
		return 1;
	setenv("SPOTTER_MARKS", folder, 1);
	spotter_reset();
	if (!spotter_active()) {
		fprintf(stderr, "no ring in %s\n", folder);
		rmdir(folder);
		return 1;
	}
	for (int i = 1; i < threads; i++)
		if (pthread_create(&other[i], NULL, marks_on, &stop))
			return 1;
	measure_all("ring", batches);
	atomic_store(&stop, true);
	for (int i = 1; i < threads; i++)
		pthread_join(other[i], NULL);
	remove_all(folder);
	return 0;
}

/* SPDX-License-Identifier: MIT
 *
 * What one reading of all NVIDIA GPUs costs, by depth: the shipped back-end in this process, on the
 * library $SPOTTER_NVML names.
 *
 *	bench/gpu_sample [N]      "fast 41.2 38.9": CPU and wall time of one reading in us, medians of N
 */
#include "base/clock.h"
#include "base/err.h"
#include "base/num.h"
#include "gpu/backend.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int by_size(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

static double median_us(int64_t *v, size_t n)
{
	qsort(v, n, sizeof(*v), by_size);
	return (double)v[n / 2] / 1e3;
}

static int measure(const struct gpu_backend *b, struct gpu_world *w, void *state, size_t n)
{
	static const char *const names[] = { "fast", "middle", "slow", "all" };
	static struct gpu_snapshot s;
	int64_t *cpu = calloc(n, sizeof(*cpu)), *wall = calloc(n, sizeof(*wall));

	for (int depth = GPU_FAST; depth <= GPU_ALL && cpu && wall; depth++) {
		for (size_t i = 0; i < n; i++) {
			int64_t c = clock_thread_cpu_ns(), t = clock_mono_ns();

			s.n_devices = s.n_processes = s.processes_left_out = 0;
			if (b->read(w, state, (enum gpu_depth)depth, &s) < 0)
				return 1;
			cpu[i] = clock_thread_cpu_ns() - c;
			wall[i] = clock_mono_ns() - t;
		}
		printf("%s %.1f %.1f\n", names[depth], median_us(cpu, n), median_us(wall, n));
	}
	printf("gpus %d\n", s.n_devices);
	free(cpu);
	free(wall);
	return 0;
}

int main(int argc, char **argv)
{
	struct gpu_world w = { .root = open("/", O_PATH | O_CLOEXEC),
			       .live = true,
			       .nvml = getenv("SPOTTER_NVML") };
	const struct gpu_backend *b = gpu_backends[0];
	void *state = calloc(1, b->state_size + 1);
	struct err e = { 0 };
	int64_t n = 200;
	int r;

	if (argc > 1 && (!num_parse_i64(argv[1], &n) || n < 1 || n > 100000))
		return 2;
	if (!state || b->open(&w, state, &e) < 0) {
		fprintf(stderr, "gpu_sample: %s\n", e.text);
		return 1;
	}
	r = measure(b, &w, state, (size_t)n);
	b->close(state);
	free(state);
	return r;
}

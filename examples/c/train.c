/* SPDX-License-Identifier: MIT
 *
 * A training loop in C that tells Spotter about itself: it fits a line to points by gradient descent.
 *
 *	cc train.c $(pkg-config --cflags --libs spotter) -lm -o train
 *	spotter run -- ./train
 *	spotter report
 *
 * Without `spotter run` it does the same, and the marks do nothing.
 */
#include <math.h>
#include <spotter.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { POINTS = 20000, BATCH = 500, STEPS = 400, EVALUATE_EVERY = 100 };

struct point {
	double x, y;
};

struct model {
	double slope, offset;
};

/* Time in nanoseconds. */
static unsigned long long now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (unsigned long long)ts.tv_sec * 1000000000ull + (unsigned long long)ts.tv_nsec;
}

/* Points around y = 3 x + 1, the same ones in every run. */
static void make_points(struct point *p)
{
	unsigned random = 1;

	for (int i = 0; i < POINTS; i++) {
		random = random * 1664525u + 1013904223u;
		p[i].x = (double)(random >> 8) / (1 << 24);
		random = random * 1664525u + 1013904223u;
		p[i].y = 3 * p[i].x + 1 + 0.1 * ((double)(random >> 8) / (1 << 24) - 0.5);
	}
}

/* One batch: the loss before it, and the model moved against the gradient. */
static double train_batch(struct model *m, const struct point *p)
{
	double loss = 0, slope = 0, offset = 0;

	for (int i = 0; i < BATCH; i++) {
		double wrong = m->slope * p[i].x + m->offset - p[i].y;

		loss += wrong * wrong / BATCH;
		slope += 2 * wrong * p[i].x / BATCH;
		offset += 2 * wrong / BATCH;
	}
	m->slope -= 0.3 * slope;
	m->offset -= 0.3 * offset;
	return loss;
}

static double evaluate(const struct model *m, const struct point *p)
{
	double wrong = 0;

	for (int i = 0; i < POINTS; i++)
		wrong += fabs(m->slope * p[i].x + m->offset - p[i].y) / POINTS;
	return wrong;
}

int main(void)
{
	struct point *points = malloc(POINTS * sizeof(*points));
	struct model model = { 0, 0 };
	double loss = 0;

	if (!points)
		return 1;
	spotter_phase_begin("load");
	make_points(points);
	spotter_phase_end("load");
	for (int step = 1; step <= STEPS; step++) {
		unsigned long long asked = now();
		const struct point *batch = points + (size_t)step * BATCH % POINTS;

		/* Wherever a loader is waited for: this one has everything in memory. */
		spotter_data_wait(now() - asked);
		loss = train_batch(&model, batch);
		spotter_step(loss);
		if (step % EVALUATE_EVERY == 0) {
			spotter_phase_begin("evaluate");
			spotter_scalar("mean_error", evaluate(&model, points));
			spotter_phase_end("evaluate");
		}
	}
	printf("%d steps, loss %.6f: y = %.2f x + %.2f\n", STEPS, loss, model.slope, model.offset);
	free(points);
	return 0;
}

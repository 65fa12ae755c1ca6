/* SPDX-License-Identifier: MIT */
#include "explain/pipeline.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { WORKERS_MAX = 256, PREFETCH_MAX = 64, ORDERED_MAX = 512, WARM = 200, STEPS = 1500 };

/* The training is another one of those who want a CPU. */
enum stage { STAGE_IDLE, STAGE_CPU, STAGE_WAIT };

struct actor {
	enum stage stage;
	double left;  /* seconds of CPU, or of waiting */
	double after; /* seconds it will wait behind its CPU part */
	uint64_t task;
};

struct play {
	const struct pipeline *p;
	int n; /* workers */
	double cpu_factor;
	uint64_t random;
	double now, device_free;
	uint64_t ordered; /* tasks below this may be begun */
	uint64_t next;    /* any order: the next to be begun */
	uint64_t taken;   /* batches the training took */
	uint64_t ready;   /* any order: how many are made and not taken */
	struct actor training, worker[WORKERS_MAX];
	uint64_t ring; /* of done: at least as many as can be ordered */
	bool *done;    /* in order: task mod ring is made */
};

/* xorshift64*: the same sequence each time, so that two what-ifs differ by what is asked alone. */
static double uniform(struct play *y)
{
	y->random ^= y->random >> 12;
	y->random ^= y->random << 25;
	y->random ^= y->random >> 27;
	return ((double)((y->random * 0x2545f4914f6cdd1dull) >> 11) + 0.5) / 9007199254740992.0;
}

/* Two kinds, with mean 1; the small ones cost nothing at the most. */
static double of_two(struct play *y)
{
	double rare = y->p->rare, cv = fmin(y->p->cv, sqrt((1 - rare) / rare));

	return uniform(y) < rare ? 1 + cv * sqrt((1 - rare) / rare)
				 : 1 - cv * sqrt(rare / (1 - rare));
}

/* Lognormal with mean 1: times that cannot be below 0 and have a tail. */
static double spread(struct play *y)
{
	double sigma, u, v;

	if (!(y->p->cv > 0))
		return 1;
	if (y->p->rare > 0 && y->p->rare < 1)
		return of_two(y);
	sigma = sqrt(log1p(y->p->cv * y->p->cv));
	u = uniform(y);
	v = uniform(y);
	return exp(sigma * sqrt(-2 * log(u)) * cos(6.283185307179586 * v) - sigma * sigma / 2);
}

static void begin(struct actor *a, double cpu, double wait)
{
	a->stage = cpu > 0 ? STAGE_CPU : STAGE_WAIT;
	a->left = cpu > 0 ? cpu : wait;
	a->after = cpu > 0 ? wait : 0;
}

static void begin_batch(struct play *y, struct actor *a)
{
	double s = spread(y);

	begin(a, y->p->make_cpu * y->cpu_factor * s, y->p->make_wait * s);
}

/* Workers without work begin what is ordered. */
static void hand_out(struct play *y)
{
	for (int i = 0; i < y->n; i++) {
		struct actor *w = &y->worker[i];

		if (w->stage != STAGE_IDLE)
			continue;
		if (y->p->any_order) {
			if (y->next >= y->ordered)
				return;
			w->task = y->next++;
		} else if (w->task >= y->ordered) {
			continue;
		}
		begin_batch(y, w);
	}
}

static bool take(struct play *y)
{
	if (!y->n)
		return true;
	if (y->p->any_order) {
		if (!y->ready)
			return false;
		y->ready--;
		return true;
	}
	if (!y->done[y->taken % y->ring])
		return false;
	y->done[y->taken % y->ring] = false;
	return true;
}

/* The training takes a batch, if one is there, and goes on with it: its own part on a CPU, what it waits
 * for, and the device, which is still busy with the step before unless it was faster. */
static void train(struct play *y)
{
	double cpu = y->p->train_cpu, wait = y->p->train_wait, start;

	if (y->training.stage != STAGE_IDLE || !take(y))
		return;
	y->taken++;
	y->ordered++;
	if (!y->n) {
		double s = spread(y);

		cpu += y->p->make_cpu * s;
		wait += y->p->make_wait * s;
	}
	/* One step may be queued on the device while the next is prepared. */
	start = y->device_free > y->now ? y->device_free : y->now;
	if (start - y->now > cpu + wait)
		wait = start - y->now - cpu;
	y->device_free = start + y->p->device;
	begin(&y->training, cpu, wait);
}

static void finish(struct play *y, struct actor *a)
{
	if (a->stage == STAGE_CPU && a->after > 0) {
		a->stage = STAGE_WAIT;
		a->left = a->after;
		a->after = 0;
		return;
	}
	a->stage = STAGE_IDLE;
	if (a == &y->training)
		return;
	if (y->p->any_order) {
		y->ready++;
		return;
	}
	y->done[a->task % y->ring] = true;
	a->task += (uint64_t)y->n;
}

static struct actor *actor_at(struct play *y, int i)
{
	return i < y->n ? &y->worker[i] : &y->training;
}

/* How fast each of those who run gets on. Two threads of a core slow each other down: as soon as more run
 * than there are cores, each that is added takes somebody's other half. */
static double rate_of(const struct pipeline *p, int running)
{
	double busy = running < p->cores ? running : p->cores, share = p->cores / running;
	double paired = p->pair > 0 && p->pair < 1 ? fmax(0, 2 * busy - p->cores) / busy : 0;

	return (share < 1 ? share : 1) * (1 - paired * (1 - p->pair));
}

/* To the next time somebody is done. False: nobody ever will be. */
static bool advance(struct play *y)
{
	double rate, least = INFINITY;
	int running = 0;

	for (int i = 0; i <= y->n; i++)
		running += actor_at(y, i)->stage == STAGE_CPU;
	rate = rate_of(y->p, running);
	for (int i = 0; i <= y->n; i++) {
		const struct actor *a = actor_at(y, i);

		if (a->stage != STAGE_IDLE)
			least = fmin(least, a->stage == STAGE_CPU ? a->left / rate : a->left);
	}
	if (!isfinite(least))
		return false;
	y->now += least;
	for (int i = 0; i <= y->n; i++) {
		struct actor *a = actor_at(y, i);

		if (a->stage == STAGE_IDLE)
			continue;
		a->left -= a->stage == STAGE_CPU ? least * rate : least;
		if (a->left <= 1e-12)
			finish(y, a);
	}
	return true;
}

static double play(struct play *y)
{
	double from = 0;

	while (y->taken < WARM + STEPS) {
		uint64_t before = y->taken;

		hand_out(y);
		train(y);
		if (y->taken == WARM && before < WARM)
			from = y->now;
		if (y->taken >= WARM + STEPS)
			break;
		if (!advance(y))
			return NAN;
	}
	return (y->now - from) / STEPS;
}

static bool sensible(const struct pipeline *p)
{
	return p->workers >= 0 && p->make_cpu >= 0 && p->make_wait >= 0 && p->train_cpu >= 0 &&
	       p->train_wait >= 0 && p->device >= 0 && p->cv >= 0 && p->cv < 10 && p->cores > 0 &&
	       p->crowd >= 0 && !(p->pair < 0) &&
	       isfinite(p->make_cpu + p->make_wait + p->train_cpu) &&
	       isfinite(p->train_wait + p->device + p->crowd) &&
	       p->make_cpu + p->make_wait + p->train_cpu + p->train_wait + p->device > 0;
}

double pipeline_step(const struct pipeline *p)
{
	struct play y = { .p = p, .random = 88172645463325252ull };
	int prefetch = p->prefetch < 1              ? 2
		       : p->prefetch > PREFETCH_MAX ? PREFETCH_MAX
						    : p->prefetch;
	double step;

	if (!sensible(p))
		return NAN;
	y.n = p->workers < WORKERS_MAX ? p->workers : WORKERS_MAX;
	/* More than a few hundred ordered ahead change nothing but the time it takes. */
	if (y.n * prefetch > ORDERED_MAX)
		prefetch = y.n >= ORDERED_MAX ? 1 : ORDERED_MAX / y.n;
	y.cpu_factor = 1 + p->crowd * (y.n > 1 ? y.n - 1 : 0);
	y.ordered = y.n ? (uint64_t)(y.n * prefetch) : 1;
	y.ring = y.ordered + (uint64_t)y.n + 1;
	y.done = calloc(y.ring, sizeof(*y.done));
	if (!y.done)
		return NAN;
	for (int i = 0; i < y.n; i++)
		y.worker[i].task = (uint64_t)i;
	step = play(&y);
	free(y.done);
	return step;
}

int pipeline_workers(const struct pipeline *p, int most)
{
	struct pipeline q = *p;
	double best = INFINITY;
	int n;

	most = most < 1 ? 1 : most > 128 ? 128 : most;
	for (q.workers = 1; q.workers <= most;
	     q.workers += q.workers < 8 ? 1 : q.workers / 4) /* 1..8, 10, 12, 15, 18, ... */
		best = fmin(best, pipeline_step(&q));
	for (n = 1; n < most; n += n < 8 ? 1 : n / 4) {
		q.workers = n;
		if (pipeline_step(&q) <= best * 1.03)
			break;
	}
	return n < most ? n : most;
}

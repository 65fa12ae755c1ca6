/* SPDX-License-Identifier: MIT
 *
 * A thread's samples against the kernel's accounts of it. The kernel knows exactly how long it ran and
 * how long it was queued; samples know what for. So time on a CPU is shared out by the samples on a
 * CPU, and the rest of its life by the samples of waiting:
 *
 *	alive = run + queue + rest        (rest: neither running nor queued)
 *	state on a CPU   = run  * coverage * its share of the samples on a CPU
 *	cpu_queue        = queue
 *	state of waiting = rest * coverage * its share of the samples of waiting
 *
 * Coverage is the part of its life the samples stand for. What they do not cover, what they do not tell
 * (unproven, unknown), and what they cannot be stretched to within their own error is unaccounted.
 */
#include "explain/activity_part.h"

#include <math.h>

struct sums {
	double on_cpu, waiting; /* seconds of samples, told and untold */
	double runnable;
	uint32_t n_on_cpu, n_waiting;
};

static struct sums sum_up(const struct act_thread *t, const struct act_row *rows)
{
	struct sums s = { 0 };

	for (size_t i = 0; i < t->n_rows; i++) {
		const struct act_row *r = &rows[i];

		if (r->on_cpu) {
			s.on_cpu += r->seconds;
			s.n_on_cpu += r->count;
			s.runnable += r->kind == WAIT_RUNNABLE ? r->seconds : 0;
		} else {
			s.waiting += r->seconds;
			s.n_waiting += r->count;
		}
	}
	return s;
}

/* `seconds` of the thread's time as far as samples that stand for `seen` bear it: a quarter more
 * than they say, and four sigma of chance. */
static double borne(const struct act_thread *t, double seconds, double seen)
{
	double scale = t->covered > t->alive ? t->alive / t->covered : 1;
	double coverage = t->alive > 0 ? fmin(1, t->covered / t->alive) : 0;
	double most = seen * scale * 1.25;

	if (!(seen > 0))
		return 0;
	most += 2 * activity_error(seen / t->covered, t->samples) * t->covered * scale;
	return fmin(seconds * coverage, most);
}

/* Seconds of samples that may tell of this much queueing. */
static double most_queued(const struct act_thread *t, double queue)
{
	return 3 * queue + 2 * activity_error(queue / t->alive, t->samples) * t->alive;
}

/* Factors from a row's seconds to its part of the thread's life. */
struct factors {
	double on_cpu, waiting;
	bool runnable_runs;    /* samples of being queued are taken for samples of running */
	bool queue_by_samples; /* the kernel does not tell: samples of being queued do */
};

static struct factors weigh(struct act_thread *t, const struct sums *s)
{
	double scale = t->covered > t->alive ? t->alive / t->covered : 1;
	struct factors f = { scale, scale, false, true };
	double run, queue, rest, running;

	if (!isfinite(t->run))
		return f;
	run = fmin(fmax(t->run, 0), t->alive);
	f.queue_by_samples = !isfinite(t->queue);
	queue = f.queue_by_samples ? fmin(s->runnable * scale, t->alive - run)
				   : fmin(fmax(t->queue, 0), t->alive - run);
	rest = t->alive - run - queue;
	t->state[TIME_CPU_QUEUE] = queue;
	/* A thread that is queued stands where it waited, mostly: that is no sample of running, unless
	 * there is no other, or there are far more of them than the kernel's account of queueing has room for: who looks
	 * needs a CPU, and where all are taken the thread that ran there is off it just then. */
	running = s->on_cpu - s->runnable;
	f.runnable_runs =
	    !f.queue_by_samples && (running <= 0 || s->runnable * scale > most_queued(t, queue));
	running = f.runnable_runs ? s->on_cpu : running;
	f.on_cpu = running > 0 ? borne(t, run, running) / running : 0;
	f.waiting = s->waiting > 0 ? borne(t, rest, s->waiting) / s->waiting : 0;
	return f;
}

/* What is left is unaccounted; sums of many parts may be off by the last digits. */
static void close_account(struct act_thread *t)
{
	double sum = 0;
	int largest = 0;

	for (int i = 0; i < TIME_STATES; i++) {
		sum += t->state[i];
		largest = t->state[i] > t->state[largest] ? i : largest;
	}
	t->unaccounted = t->alive - sum;
	if (t->unaccounted < 0) {
		t->state[largest] += t->unaccounted;
		t->unaccounted = 0;
	}
}

void thread_weigh(struct act_thread *t, struct act_row *rows)
{
	struct sums s = sum_up(t, rows);
	struct factors f = weigh(t, &s);
	bool by_samples = !isfinite(t->run);

	for (size_t i = 0; i < t->n_rows; i++) {
		struct act_row *r = &rows[i];
		double seconds = r->seconds * (r->on_cpu ? f.on_cpu : f.waiting);

		if (r->kind == WAIT_RUNNABLE && !f.runnable_runs) {
			t->state[TIME_CPU_QUEUE] += by_samples ? seconds : 0;
			r->state = TIME_CPU_QUEUE;
			r->on_cpu = false;
			continue;
		}
		if (!r->unknown)
			t->state[r->state] += seconds;
		if (r->kind == WAIT_GIL)
			t->gil_wait += seconds;
		if (r->on_cpu && r->flags & STACK_GIL)
			t->gil_held += seconds;
	}
	close_account(t);
}

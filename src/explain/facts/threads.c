/* SPDX-License-Identifier: MIT
 *
 * How many threads of the job wanted a CPU, and how long they waited for one. A thread is *ready*
 * while it runs or waits for a CPU; the kernel keeps both times (schedstat: run time and run delay),
 * so the mean number of ready threads is exact, whatever happened between two samples.
 */
#include "explain/fact.h"
#include "explain/scene.h"

#include <math.h>

/* A process with more ready threads than this, while it lives, runs a pool of them. */
static const double pool_ready = 1.3;
/* Threads whose times are known must explain this much of the job's CPU time to speak for it. */
static const double enough = 0.5;

struct sums {
	double ready_cpu, delay, slices, alone;
};

static struct sums sum_up(const struct scene *s)
{
	struct sums t = { 0 };

	for (size_t i = 0; i < s->members.n; i++) {
		const struct member *m = &s->members.v[i];

		if (!isfinite(m->ready_cpu))
			continue;
		t.ready_cpu += m->ready_cpu;
		t.delay += m->delay;
		t.alone += m->alone;
		t.slices += isfinite(m->slices) ? m->slices : 0;
	}
	return t;
}

/* Ready threads of a member while it lived. Threads that came and went between two samples are in
 * the process's CPU time only: they are taken to have waited as the others did. */
static double ready_of(const struct member *m)
{
	double cpu, scale;

	if (!isfinite(m->ready_cpu) || m->ready_cpu <= 0 || m->alive_s <= 0)
		return 0;
	cpu = isfinite(m->cpu) && m->cpu > m->ready_cpu ? m->cpu : m->ready_cpu;
	scale = cpu / m->ready_cpu;
	return (m->ready_cpu + m->delay) * scale / m->alive_s;
}

static void pools(const struct scene *s, struct facts *f)
{
	double alive = 0, ready = 0, all = 0, most = 0;
	const struct member *busiest = NULL;

	for (size_t i = 0; i < s->members.n; i++) {
		const struct member *m = &s->members.v[i];
		double r = ready_of(m), seconds = r * m->alive_s;

		all += seconds;
		if (r < pool_ready)
			continue;
		alive += m->alive_s;
		ready += seconds;
		if (seconds > most) {
			most = seconds;
			busiest = m;
		}
	}
	fact_set(f, FACT_POOL_PROCESSES, alive / s->seconds);
	fact_set(f, FACT_POOL_THREADS, alive > 0 ? ready / alive : 0);
	fact_set(f, FACT_POOL_SHARE, all > 0 ? ready / all : 0);
	if (busiest)
		fact_set_subject(f, FACT_POOL_PROCESSES, busiest->id, busiest->name);
}

static void first_thread(const struct scene *s, struct facts *f)
{
	if (!isfinite(s->main_cpu) || !isfinite(s->main_delay) || s->seconds <= 0) {
		fact_absent(f, FACT_MAIN_DELAY, "times of the first thread: %s",
			    s->why_no_delay ? s->why_no_delay : "not recorded");
		fact_absent_like(f, FACT_MAIN_BLOCKED, FACT_MAIN_DELAY);
		return;
	}
	fact_set(f, FACT_MAIN_DELAY, fmin(1, s->main_delay / s->seconds));
	fact_set(f, FACT_MAIN_BLOCKED, fmax(0, 1 - (s->main_cpu + s->main_delay) / s->seconds));
}

static void absent(struct facts *f, const char *why)
{
	static const enum fact_id ids[] = { FACT_THREADS_DELAY,    FACT_THREADS_READY,
					    FACT_THREADS_SWITCHES, FACT_POOL_PROCESSES,
					    FACT_POOL_THREADS,     FACT_POOL_SHARE };

	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
		fact_absent(f, ids[i], "%s: %s", metrics[M_THREAD_RUN_DELAY].name, why);
}

static void compute(const struct scene *s, struct facts *f)
{
	struct sums t = sum_up(s);
	double used, per_cpu;

	first_thread(s, f);
	if (s->seconds <= 0 || !fact_value(f, FACT_CORES_USED, &used)) {
		absent(f, "job.cpu is not known");
		return;
	}
	used *= s->seconds;
	if (t.ready_cpu < enough * used || t.ready_cpu <= 0) {
		absent(f, s->why_no_delay   ? s->why_no_delay
			  : t.ready_cpu > 0 ? "known of too few threads"
					    : "not recorded");
		return;
	}
	per_cpu = t.delay / t.ready_cpu;
	fact_set(f, FACT_THREADS_DELAY, per_cpu);
	fact_set_range(f, FACT_THREADS_READY, fmax(used, t.ready_cpu) * (1 + per_cpu) / s->seconds,
		       (t.ready_cpu + t.delay) / s->seconds, NAN);
	fact_set(f, FACT_THREADS_ALONE, t.alone / s->seconds);
	if (t.slices > 0)
		fact_set(f, FACT_THREADS_SWITCHES, t.slices / s->seconds);
	pools(s, f);
}

const struct fact_source threads_facts = { "threads", compute };

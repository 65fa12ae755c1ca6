/* SPDX-License-Identifier: MIT
 *
 * The CPU ledger: who used the CPU seconds the kernel charged to the job, over the steady window.
 *
 *   main    the first process
 *   child   every other process that was seen
 *   other   processes that lived between two samples, and the last moments of those that were seen:
 *           their time is in what their parents' kernel accounts got when they were waited for
 *
 * The roles come from each process's own clock. What they are compared with comes from elsewhere:
 * job.cpu, the sampler's running account of the whole tree, and at the end of a run what wait4() told
 * the supervisor about the finished tree. That last one speaks of the whole run only, so the
 * share it has and job.cpu has not is taken to be spread evenly over the CPU time. A tree with
 * processes nobody waited for has less in wait4() than was seen; then what was seen stands.
 */
#include "explain/ledger/ledger.h"

#include "explain/fact.h"
#include "explain/scene.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

static int add_line(struct verdict *v, const char *role, const struct ledger_line *line)
{
	struct ledger_line *l = vec_push(&v->cpu);

	if (!l)
		return -ENOMEM;
	*l = *line;
	snprintf(l->role, sizeof(l->role), "%s", role);
	return 0;
}

static void count_in(struct ledger_line *l, const struct member *m)
{
	if (!isfinite(m->cpu))
		return;
	l->processes++;
	l->threads += isfinite(m->threads) ? fact_whole(m->threads) : 1;
	l->seconds += m->cpu;
}

/* CPU seconds charged over the window; NAN when nobody knows. */
static double charged(const struct scene *s, const struct facts *f)
{
	double window, whole, told = fact_or(f, FACT_USAGE_CPU_SECONDS, NAN);

	if (!window_delta(&s->steady, M_JOB_CPU, ID_JOB, &window))
		return NAN;
	if (!window_delta(s->whole, M_JOB_CPU, ID_JOB, &whole) || whole <= 0 || !(told > whole))
		return window;
	return window * (told / whole);
}

int ledger_cpu(const struct scene *s, const struct facts *f, struct verdict *v)
{
	struct ledger_line main = { 0 }, child = { 0 }, other = { .processes = -1, .threads = -1 };
	double sum;
	int r = 0;

	for (size_t i = 0; i < s->members.n; i++)
		count_in(s->members.v[i].is_main ? &main : &child, &s->members.v[i]);
	if (!window_delta(&s->steady, M_JOB_CPU_ENDED, ID_JOB, &other.seconds))
		other.seconds = 0;
	sum = main.seconds + child.seconds + other.seconds;
	v->cpu_seconds = charged(s, f);
	if (!isfinite(v->cpu_seconds) && sum > 0)
		v->cpu_seconds = sum;
	v->cpu_cores = s->seconds > 0 ? fact_round(v->cpu_seconds / s->seconds) : NAN;
	v->cpu_unaccounted = v->cpu_seconds > 0 ? fact_round(1 - sum / v->cpu_seconds) : 0;
	/* what is left of equal sums is rounding */
	if (fabs(v->cpu_unaccounted) < 1e-12)
		v->cpu_unaccounted = 0;

	if (main.processes)
		r = add_line(v, "main", &main);
	if (r == 0 && child.processes)
		r = add_line(v, "child", &child);
	if (r == 0 && other.seconds > 0)
		r = add_line(v, "other", &other);
	for (size_t i = 0; i < v->cpu.n; i++) {
		struct ledger_line *l = &v->cpu.v[i];

		l->cores = s->seconds > 0 ? fact_round(l->seconds / s->seconds) : 0;
		l->share = v->cpu_seconds > 0 ? fact_round(l->seconds / v->cpu_seconds) : 0;
	}
	return r;
}

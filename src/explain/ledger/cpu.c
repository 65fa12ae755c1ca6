/* SPDX-License-Identifier: MIT
 *
 * The CPU ledger: who used the CPU seconds the kernel charged to the job, over the steady window.
 *
 *   main    the first process
 *   child   every other process that was seen
 *   other   processes that lived between two samples, and the last moments of those that were seen:
 *           their time is in what their parents' kernel accounts got when they were waited for
 *
 * With stacks threads are told apart (roles.c): a thread's CPU time goes to its role, but for the part in
 * which it was seen spinning on the device (spin_wait). The process's own clock stays the truth: what
 * its threads have more is taken from all of them, and what they have less (threads that ended between
 * two samples) is the process's, or other where that is the training itself.
 *
 * The roles come from each process's own clock. What they are compared with comes from elsewhere:
 * job.cpu, the sampler's running account of the whole tree, and at the end of a run what wait4() told
 * the supervisor about the finished tree. That last one speaks of the whole run only, so the
 * share it has and job.cpu has not is taken to be spread evenly over the CPU time. A tree with
 * processes nobody waited for has less in wait4() than was seen; then what was seen stands.
 */
#include "explain/ledger/ledger.h"

#include "explain/fact.h"
#include "explain/ledger/top.h"
#include "explain/scene.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

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

/* Lines by role while they are added up. */
struct roles {
	struct ledger_line line[ROLES];
	struct tops tops[ROLES];
	struct map seen; /* role << 32 | process: counted */
};

static int take_processes(const struct scene *s, struct roles *x)
{
	for (size_t i = 0; i < s->members.n; i++)
		count_in(&x->line[s->members.v[i].is_main ? ROLE_MAIN : ROLE_CHILD],
			 &s->members.v[i]);
	return 0;
}

static int count_thread(struct roles *x, enum cpu_role role, uint32_t process)
{
	uint64_t key = (uint64_t)role << 32 | process;
	uint32_t before;

	x->line[role].threads++;
	if (map_get(&x->seen, key, &before))
		return 0;
	x->line[role].processes++;
	return map_put(&x->seen, key, 1) ? 0 : -ENOMEM;
}

static double seen_on_cpu(const struct activity *a, const struct act_thread *t)
{
	double sum = 0;

	for (size_t i = 0; i < t->n_rows; i++)
		sum += a->rows.v[t->row + i].on_cpu ? a->rows.v[t->row + i].seconds : 0;
	return sum;
}

/* One thread's CPU seconds to its role and, where it was seen spinning, to that. */
static int take_thread(const struct activity *a, const struct act_thread *t, double seconds,
		       struct roles *x)
{
	double seen = seen_on_cpu(a, t), spun = 0;
	int r = count_thread(x, t->role, t->process);

	for (size_t i = 0; i < t->n_rows && r == 0; i++) {
		const struct act_row *row = &a->rows.v[t->row + i];
		bool spins = row->state == TIME_GPU_WAIT && !row->unknown;
		double part = seen > 0 ? seconds * row->seconds / seen : 0;

		if (!row->on_cpu || part <= 0)
			continue;
		spun += spins ? part : 0;
		r = tops_add(&x->tops[spins ? ROLE_SPIN_WAIT : t->role], a, row->leaf, row->native,
			     true, part);
	}
	x->line[t->role].seconds += seconds - spun;
	x->line[ROLE_SPIN_WAIT].seconds += spun;
	if (spun > 0 && r == 0)
		r = count_thread(x, ROLE_SPIN_WAIT, t->process);
	return r;
}

/* What the threads of each member ran, in the order of members. */
struct of_member {
	double run;
	bool any, first_known;
	enum cpu_role role; /* of its first thread */
};

static struct of_member *sum_threads(const struct scene *s)
{
	struct of_member *v = calloc(s->members.n + 1, sizeof(*v));
	uint32_t at;

	for (size_t i = 0; v && i < s->members.n; i++)
		v[i].role = s->members.v[i].is_main ? ROLE_MAIN : ROLE_CHILD;
	for (size_t i = 0; v && i < s->activity.threads.n; i++) {
		const struct act_thread *t = &s->activity.threads.v[i];

		if (!map_get(&s->by_id, t->process, &at))
			continue;
		if (t->first)
			v[at].role = t->role;
		if (!isfinite(t->run))
			continue;
		v[at].run += t->run;
		v[at].any = true;
		v[at].first_known |= t->first;
	}
	return v;
}

/* What no thread explains, and processes whose threads are not known. */
static int take_rest(const struct scene *s, const struct of_member *v, struct roles *x)
{
	int r = 0;

	for (size_t i = 0; i < s->members.n && r == 0; i++) {
		const struct member *m = &s->members.v[i];
		enum cpu_role role = v[i].role;

		if (!isfinite(m->cpu))
			continue;
		if (!v[i].any)
			r = count_thread(x, role, m->id);
		else if (role == ROLE_MAIN && v[i].first_known)
			role = ROLE_OTHER;
		x->line[role].seconds += fmax(0, m->cpu - v[i].run);
	}
	return r;
}

static int take_threads(const struct scene *s, struct roles *x)
{
	struct of_member *v = sum_threads(s);
	int r = v ? 0 : -ENOMEM;
	uint32_t at;

	for (size_t i = 0; i < s->activity.threads.n && r == 0; i++) {
		const struct act_thread *t = &s->activity.threads.v[i];
		double cpu, scale;

		if (!isfinite(t->run) || !map_get(&s->by_id, t->process, &at))
			continue;
		cpu = s->members.v[at].cpu;
		if (!isfinite(cpu))
			continue;
		scale = v[at].run > cpu ? cpu / v[at].run : 1;
		r = take_thread(&s->activity, t, t->run * scale, x);
	}
	if (r == 0)
		r = take_rest(s, v, x);
	free(v);
	return r;
}

static double sum_lines(const struct roles *x)
{
	double sum = 0;

	for (int i = 0; i < ROLES; i++)
		sum += x->line[i].seconds;
	return sum;
}

static int put_lines(const struct scene *s, struct roles *x, struct verdict *v)
{
	int r = 0;

	for (int i = 0; i < ROLES && r == 0; i++) {
		struct ledger_line *l = &x->line[i];

		if (i == ROLE_OTHER && l->seconds > 0 && !l->processes)
			l->processes = l->threads = -1; /* nobody knows how many */
		if (!(l->seconds > 0) && l->processes <= 0)
			continue;
		l->seconds = fact_round(l->seconds);
		l->cores = s->seconds > 0 ? fact_round(l->seconds / s->seconds) : 0;
		l->share = v->cpu_seconds > 0 ? fact_round(l->seconds / v->cpu_seconds) : 0;
		tops_put(&x->tops[i], 0, l);
		r = add_line(v, cpu_role_name((enum cpu_role)i), l);
	}
	return r;
}

int ledger_cpu(const struct scene *s, const struct facts *f, struct verdict *v)
{
	struct roles x = { 0 };
	double ended, sum;
	int r = s->activity.any ? take_threads(s, &x) : take_processes(s, &x);

	if (window_delta(&s->steady, M_JOB_CPU_ENDED, ID_JOB, &ended))
		x.line[ROLE_OTHER].seconds += ended;
	sum = sum_lines(&x);
	v->cpu_seconds = charged(s, f);
	if (!isfinite(v->cpu_seconds) && sum > 0)
		v->cpu_seconds = sum;
	v->cpu_cores = s->seconds > 0 ? fact_round(v->cpu_seconds / s->seconds) : NAN;
	v->cpu_unaccounted = v->cpu_seconds > 0 ? fact_round(1 - sum / v->cpu_seconds) : 0;
	/* what is left of equal sums is rounding */
	if (fabs(v->cpu_unaccounted) < 1e-12)
		v->cpu_unaccounted = 0;
	if (r == 0)
		r = put_lines(s, &x, v);
	for (int i = 0; i < ROLES; i++)
		tops_done(&x.tops[i]);
	map_done(&x.seen);
	return r;
}

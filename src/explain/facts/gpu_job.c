/* SPDX-License-Identifier: MIT
 *
 * The job's own processes on its GPUs: do several of its trainings share one (a search over settings, ranks that
 * were given the same GPU), and does one process work on several?
 */
#include "explain/fact.h"
#include "explain/scene.h"

#include <math.h>
#include <stdio.h>

/* Share of time: a process with less does not work there. */
static const double works_least = 0.01;

/* Does the process train: does its first thread, by its stacks, or does it mark steps? */
static bool trains(const struct scene *s, uint32_t process)
{
	const struct window_step *x;
	size_t n = 0;

	for (size_t i = 0; i < s->activity.threads.n; i++)
		if (s->activity.threads.v[i].process == process &&
		    s->activity.threads.v[i].role == ROLE_MAIN)
			return true;
	x = s->whole->ops->steps ? s->whole->ops->steps(s->whole->src, &n) : NULL;
	for (size_t i = 0; i < n; i++)
		if (x[i].entity == process)
			return true;
	return false;
}

struct shared {
	size_t row;
	double trainings, processes, busy;
	double dark; /* processes of which it is not known how busy they are */
};

/* Who of the job runs kernels on one unit. */
static struct shared look(const struct scene *s, size_t row)
{
	struct shared x = { .row = row };

	for (size_t i = 0; i < s->gpus.processes.n; i++) {
		const struct gpu_process_row *p = &s->gpus.processes.v[i];

		if (p->gpu != row || !p->job || !p->member)
			continue;
		x.dark += isnan(p->busy_steady);
		if (!(p->busy_steady >= works_least))
			continue;
		x.processes++;
		if (!trains(s, p->member))
			continue;
		x.trainings++;
		x.busy += p->busy_steady;
	}
	return x;
}

/* Drivers sample the share of each process, and less often than that of the whole: where they add up to less, each
 * had its part of the rest. */
static double busy_with_others(const struct scene *s, const struct shared *x)
{
	const struct gpu_row *g = &s->gpus.rows.v[x->row];
	double all =
	    isfinite(g->busy_steady) && !g->others ? fmax(x->busy, g->busy_steady) : x->busy;

	return fmin(1, all) * (x->trainings - 1) / x->trainings;
}

static void siblings(const struct scene *s, struct facts *f)
{
	struct shared most = { 0 };
	bool unclear = false, dark = false;
	char label[48];

	for (size_t i = 0; i < s->gpus.rows.n; i++) {
		struct shared x;

		if (!gpu_is_unit(&s->gpus.rows.v[i]))
			continue;
		x = look(s, i);
		unclear |= x.processes > 1 && x.trainings < 2 && !s->activity.any;
		dark |= x.dark > 0 && x.dark + x.processes > 1;
		if (x.trainings > 1 && x.busy > most.busy)
			most = x;
	}
	if (most.trainings < 2 && (unclear || dark)) {
		fact_absent(f, FACT_GPU_SIBLINGS, "%s",
			    dark ? "how busy each process of the job keeps its GPU is not known"
				 : "which of the job's processes train is not known");
		fact_absent_like(f, FACT_GPU_SIBLINGS_BUSY, FACT_GPU_SIBLINGS);
		return;
	}
	fact_set(f, FACT_GPU_SIBLINGS, most.trainings);
	fact_set(f, FACT_GPU_SIBLINGS_BUSY, most.trainings > 1 ? busy_with_others(s, &most) : 0);
	if (most.trainings > 1)
		fact_set_subject(f, FACT_GPU_SIBLINGS, s->gpus.rows.v[most.row].id,
				 gpu_label(&s->gpus.rows.v[most.row], label, sizeof(label)));
}

/* Where a driver does not say how busy each process is, that of the unit stands for it. */
static bool works(const struct scene *s, const struct gpu_process_row *p)
{
	const struct gpu_row *g = &s->gpus.rows.v[p->gpu];

	return p->job && p->member && gpu_is_unit(g) &&
	       (isnan(p->busy_steady) ? g->busy_steady : p->busy_steady) >= works_least;
}

static double units_of(const struct scene *s, uint32_t member)
{
	double n = 0;

	for (size_t i = 0; i < s->gpus.processes.n; i++)
		n += s->gpus.processes.v[i].member == member && works(s, &s->gpus.processes.v[i]);
	return n;
}

static void driven(const struct scene *s, struct facts *f)
{
	const struct gpu_process_row *most = NULL;
	bool dark = false;
	double n = 0;

	for (size_t i = 0; i < s->gpus.rows.n; i++)
		dark |= gpu_is_unit(&s->gpus.rows.v[i]) && s->gpus.rows.v[i].use == GPU_USE_UNKNOWN;
	for (size_t i = 0; i < s->gpus.processes.n; i++) {
		const struct gpu_process_row *p = &s->gpus.processes.v[i];
		double units = works(s, p) ? units_of(s, p->member) : 0;

		if (units > n) {
			n = units;
			most = p;
		}
	}
	if (n < 2 && dark) {
		fact_absent(f, FACT_GPU_DRIVEN, "which processes are on each GPU is not known");
		return;
	}
	fact_set(f, FACT_GPU_DRIVEN, n);
	if (most)
		fact_set_subject(f, FACT_GPU_DRIVEN, most->member, most->name);
}

static void compute(const struct scene *s, struct facts *f)
{
	siblings(s, f);
	driven(s, f);
}

const struct fact_source gpu_job_facts = { "gpu_job", compute };

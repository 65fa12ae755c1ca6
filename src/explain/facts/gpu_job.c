/* SPDX-License-Identifier: MIT
 *
 * The job's own processes on its GPUs: do several of its trainings share one (a search over settings, ranks that
 * were given the same GPU), and does one process work on several?
 *
 * Drivers that sample kernels say nothing of a process they never met (NVML): where they say something of any
 * process of a unit, silence about another one is no work; where they say nothing at all, it is not known.
 */
#include "explain/fact.h"
#include "explain/scene.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Share of time: a process with less does not work there. */
static const double works_least = 0.01;
/* Of the window: trainings that were there for less ran before or after another one, not beside it. */
static const double there_least = 0.8;

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

/* The part of the steady window in which a process was on its GPU: empty, when it left before or came after, or
 * when it ended and the driver goes on listing it. */
struct span {
	int64_t from_ns, to_ns;
};

static struct span there(const struct scene *s, const struct gpu_process_row *p)
{
	const struct member *m = scene_member(s, p->member);
	struct span x = { s->steady.from_ns, s->steady.to_ns };

	if (p->dead)
		return (struct span){ 0 };
	if (p->born_ns > x.from_ns)
		x.from_ns = p->born_ns;
	if (p->gone_ns && p->gone_ns < x.to_ns)
		x.to_ns = p->gone_ns;
	if (m && m->gone_ns && m->gone_ns < x.to_ns)
		x.to_ns = m->gone_ns;
	return x;
}

static double share_of(const struct scene *s, struct span x)
{
	return x.to_ns > x.from_ns && s->seconds > 0
		   ? ((double)x.to_ns - (double)x.from_ns) / 1e9 / s->seconds
		   : 0;
}

/* Of one row of GPUs: is anything known of how busy any process keeps it, and how many were there, whosever. */
struct unit {
	bool sampled;
	size_t company;
};

static struct unit *units_take(const struct scene *s)
{
	struct unit *v = calloc(s->gpus.rows.n + 1, sizeof(*v));

	for (size_t i = 0; v && i < s->gpus.processes.n; i++) {
		const struct gpu_process_row *p = &s->gpus.processes.v[i];

		v[p->gpu].sampled |= isfinite(p->busy_steady);
		v[p->gpu].company += share_of(s, there(s, p)) > 0;
	}
	return v;
}

/* NAN: not known. */
static double busy_of(const struct scene *s, const struct unit *units,
		      const struct gpu_process_row *p)
{
	if (isfinite(p->busy_steady))
		return p->busy_steady;
	return units[p->gpu].sampled || s->gpus.rows.v[p->gpu].busy_steady < works_least
		   ? 0
		   : (double)NAN;
}

struct shared {
	size_t row;
	double trainings, processes, busy;
	double rest;      /* how busy processes of the job keep it that do not train */
	double dark;      /* processes of which it is not known how busy they are */
	struct span span; /* in which all trainings were there */
};

/* Who of the job runs kernels on one unit. */
static struct shared look(const struct scene *s, const struct unit *units, size_t row)
{
	struct shared x = { .row = row, .span = { s->steady.from_ns, s->steady.to_ns } };

	for (size_t i = 0; i < s->gpus.processes.n; i++) {
		const struct gpu_process_row *p = &s->gpus.processes.v[i];
		struct span span;
		double busy;

		if (p->gpu != row || !p->job || !p->member)
			continue;
		span = there(s, p);
		busy = busy_of(s, units, p);
		if (share_of(s, span) < there_least) {
			x.rest += isfinite(busy) ? busy : 0;
			continue;
		}
		x.dark += isnan(busy);
		if (!(busy >= works_least))
			continue;
		x.processes++;
		if (!trains(s, p->member)) {
			x.rest += busy;
			continue;
		}
		x.trainings++;
		x.busy += busy;
		if (span.from_ns > x.span.from_ns)
			x.span.from_ns = span.from_ns;
		if (span.to_ns < x.span.to_ns)
			x.span.to_ns = span.to_ns;
	}
	return x;
}

/* How busy its trainings keep the unit. Drivers sample the share of each process, and less often than that of the
 * whole: where they add up to less, each had its part of the rest. */
static double all_busy(const struct scene *s, const struct shared *x)
{
	const struct gpu_row *g = &s->gpus.rows.v[x->row];
	double scale = isfinite(g->busy_steady) && !g->others
			   ? fmax(1, g->busy_steady / (x->busy + x->rest))
			   : 1;

	return fmin(1, x->busy * scale);
}

static double busy_with_others(const struct scene *s, const struct shared *x)
{
	return all_busy(s, x) * (x->trainings - 1) / x->trainings * share_of(s, x->span);
}

/* How much longer a training thread waits for the device than the kernels of its process take: NAN, not known. */
static double excess_of(const struct scene *s, const struct gpu_process_row *p, double scale)
{
	for (size_t i = 0; i < s->activity.threads.n; i++) {
		const struct act_thread *t = &s->activity.threads.v[i];

		if (t->process != p->member || t->role != ROLE_MAIN || !(t->alive > 0) ||
		    t->unaccounted > 0.5 * t->alive)
			continue;
		return fmax(0, t->state[TIME_GPU_WAIT] / t->alive - p->busy_steady * scale);
	}
	return NAN;
}

/* The least of all of them: one alone may wait for something else. */
static void waits(const struct scene *s, const struct shared *x, struct facts *f)
{
	double least = INFINITY, scale = all_busy(s, x) / x->busy;

	for (size_t i = 0; i < s->gpus.processes.n; i++) {
		const struct gpu_process_row *p = &s->gpus.processes.v[i];
		double v;

		if (p->gpu != x->row || !p->job || !p->member || !(p->busy_steady >= works_least) ||
		    share_of(s, there(s, p)) < there_least || !trains(s, p->member))
			continue;
		v = excess_of(s, p, scale);
		least = isnan(v) || v < least ? v : least;
		if (isnan(v))
			break;
	}
	if (isfinite(least))
		fact_set(f, FACT_GPU_SIBLINGS_WAIT, least);
	else
		fact_absent(f, FACT_GPU_SIBLINGS_WAIT,
			    "how long each training waits for the device is not known");
}

static void set_siblings(const struct scene *s, const struct shared *x, struct facts *f)
{
	const struct gpu_row *g = &s->gpus.rows.v[x->row];
	char label[48];

	fact_set(f, FACT_GPU_SIBLINGS, x->trainings);
	fact_set_subject(f, FACT_GPU_SIBLINGS, g->id, gpu_label(g, label, sizeof(label)));
	fact_set(f, FACT_GPU_SIBLINGS_BUSY, busy_with_others(s, x));
	if (isfinite(g->busy_steady) && !g->busy_at_least)
		fact_set(f, FACT_GPU_SIBLINGS_UNIT, g->busy_steady);
	else
		fact_absent(f, FACT_GPU_SIBLINGS_UNIT, "%s: how busy it was is not known", label);
	waits(s, x, f);
}

static void siblings(const struct scene *s, const struct unit *units, struct facts *f)
{
	struct shared most = { 0 };
	bool unclear = false, dark = false;

	for (size_t i = 0; i < s->gpus.rows.n; i++) {
		struct shared x;

		if (!gpu_is_unit(&s->gpus.rows.v[i]))
			continue;
		x = look(s, units, i);
		unclear |= x.processes > 1 && x.trainings < 2 && !s->activity.any;
		dark |= x.dark > 0 && x.dark + x.processes > 1;
		if (x.trainings > 1 && x.busy > most.busy)
			most = x;
	}
	if (most.trainings > 1) {
		set_siblings(s, &most, f);
		return;
	}
	if (unclear || dark) {
		fact_absent(f, FACT_GPU_SIBLINGS, "%s",
			    dark ? "how busy each process of the job keeps its GPU is not known"
				 : "which of the job's processes train is not known");
		fact_absent_like(f, FACT_GPU_SIBLINGS_BUSY, FACT_GPU_SIBLINGS);
	} else {
		fact_set(f, FACT_GPU_SIBLINGS, 0);
		fact_set(f, FACT_GPU_SIBLINGS_BUSY, 0);
	}
	fact_absent(f, FACT_GPU_SIBLINGS_UNIT, "no two trainings of the job share a GPU");
	fact_absent_like(f, FACT_GPU_SIBLINGS_WAIT, FACT_GPU_SIBLINGS_UNIT);
}

enum work { WORK_NO, WORK_UNKNOWN, WORK_YES };

/* Where a driver says of no process how busy it is, that of the unit stands for the only one there. */
static enum work works(const struct scene *s, const struct unit *units,
		       const struct gpu_process_row *p)
{
	const struct gpu_row *g = &s->gpus.rows.v[p->gpu];
	double busy = busy_of(s, units, p);

	if (!p->job || !p->member || !gpu_is_unit(g) || !(share_of(s, there(s, p)) > 0))
		return WORK_NO;
	if (isnan(busy) && units[p->gpu].company == 1)
		busy = g->busy_steady;
	return isnan(busy) ? WORK_UNKNOWN : busy >= works_least ? WORK_YES : WORK_NO;
}

/* Units one process works on, and those of which it is not known. */
static void units_of(const struct scene *s, const struct unit *units, uint32_t member,
		     double *ret_sure, double *ret_maybe)
{
	*ret_sure = *ret_maybe = 0;
	for (size_t i = 0; i < s->gpus.processes.n; i++) {
		const struct gpu_process_row *p = &s->gpus.processes.v[i];
		enum work w = p->member == member ? works(s, units, p) : WORK_NO;

		*ret_sure += w == WORK_YES;
		*ret_maybe += w == WORK_UNKNOWN;
	}
}

static void driven(const struct scene *s, const struct unit *units, struct facts *f)
{
	const struct gpu_process_row *most = NULL;
	bool hidden = false, dark = false;
	double n = 0;

	for (size_t i = 0; i < s->gpus.rows.n; i++)
		hidden |=
		    gpu_is_unit(&s->gpus.rows.v[i]) && s->gpus.rows.v[i].use == GPU_USE_UNKNOWN;
	for (size_t i = 0; i < s->gpus.processes.n; i++) {
		const struct gpu_process_row *p = &s->gpus.processes.v[i];
		double sure, maybe;

		if (works(s, units, p) == WORK_NO)
			continue;
		units_of(s, units, p->member, &sure, &maybe);
		dark |= sure + maybe >= 2;
		if (sure > n) {
			n = sure;
			most = p;
		}
	}
	if (n < 2 && (hidden || dark)) {
		fact_absent(f, FACT_GPU_DRIVEN, "%s",
			    dark ? "how busy each process of the job keeps its GPUs is not known"
				 : "which processes are on each GPU is not known");
		return;
	}
	fact_set(f, FACT_GPU_DRIVEN, n);
	if (most)
		fact_set_subject(f, FACT_GPU_DRIVEN, most->member, most->name);
}

static void compute(const struct scene *s, struct facts *f)
{
	struct unit *units = units_take(s);

	if (!units)
		return; /* absent, like all facts nobody computed */
	siblings(s, units, f);
	driven(s, units, f);
	free(units);
}

const struct fact_source gpu_job_facts = { "gpu_job", compute };

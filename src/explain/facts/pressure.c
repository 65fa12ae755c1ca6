/* SPDX-License-Identifier: MIT
 *
 * Does the job itself wait for memory? Its own signs are what counts: stalls, refaults and limit
 * hits of its group, page faults and swap of its processes. The machine's figures are context: they
 * can clear a job (what no task of the machine suffers, the job does not), never accuse it.
 */
#include "explain/fact.h"
#include "explain/scene.h"

#include <math.h>

/* The quickest a page comes back: compressed memory, or a virtual disk in its host's cache. A lower
 * bound, so it errs on the small side. */
static const double fault_s = 10e-6;
/* Above this the machine's stall times do not bound the job's: a page of a file that is read again is
 * not always counted as a stall for memory. */
static const double refaults_few = 100;

static void rate(const struct scene *s, struct facts *f, enum fact_id id, enum metric_id m,
		 uint32_t entity)
{
	double v;

	if (scene_rate(&s->steady, m, entity, &v))
		fact_set(f, id, v);
	else
		fact_absent(f, id, "%s: %s", metrics[m].name,
			    window_why_absent(s->whole, m, entity));
}

static void own_processes(const struct scene *s, struct facts *f)
{
	double faults = NAN, swap = NAN, group;

	for (size_t i = 0; i < s->members.n; i++) {
		const struct member *m = &s->members.v[i];

		if (isfinite(m->major_faults))
			faults = isfinite(faults) ? faults + m->major_faults : m->major_faults;
		if (isfinite(m->swap))
			swap = isfinite(swap) ? swap + m->swap : m->swap;
	}
	if (isfinite(faults) && s->seconds > 0)
		fact_set(f, FACT_PRESSURE_FAULTS, faults / s->seconds);
	else
		rate(s, f, FACT_PRESSURE_FAULTS, M_CG_MEM_MAJOR_FAULTS, s->cg_mem);
	if (s->cg_mem && window_max(&s->steady, M_CG_MEM_SWAP, s->cg_mem, &group))
		swap = fmax(swap, group);
	if (isfinite(swap))
		fact_set(f, FACT_PRESSURE_SWAPPED, swap);
	else
		fact_absent(f, FACT_PRESSURE_SWAPPED, "%s: %s", metrics[M_PROC_SWAP].name,
			    window_why_absent(s->whole, M_PROC_SWAP, ID_JOB));
}

/* A limit that is not set has no value and no gap; then nothing runs into it. */
static bool no_limit(const struct scene *s)
{
	double v;

	return s->cg_mem && !window_last(s->whole, M_CG_MEM_LIMIT, s->cg_mem, &v) &&
	       strcmp(window_why_absent(s->whole, M_CG_MEM_LIMIT, s->cg_mem), "not recorded") == 0;
}

static void own_limit(const struct scene *s, struct facts *f)
{
	double used, limit, hits;

	rate(s, f, FACT_PRESSURE_HITS, M_CG_MEM_LIMIT_HITS, s->cg_mem);
	if (!fact_value(f, FACT_PRESSURE_HITS, &hits) && no_limit(s)) {
		fact_set(f, FACT_PRESSURE_HITS, 0);
		hits = 0;
	}
	if (!window_mean(&s->steady, M_CG_MEM_LIMIT, s->cg_mem, &limit)) {
		/* Hits without a limit: it is only the limit's figure that was not recorded. */
		if (no_limit(s) && f->v[FACT_PRESSURE_HITS].known && hits <= 0)
			fact_set(f, FACT_PRESSURE_FILL, 0);
		else
			fact_absent(f, FACT_PRESSURE_FILL, "%s: %s", metrics[M_CG_MEM_LIMIT].name,
				    window_why_absent(s->whole, M_CG_MEM_LIMIT, s->cg_mem));
		return;
	}
	if (window_max(&s->steady, M_CG_MEM_USED, s->cg_mem, &used) && limit > 0)
		fact_set(f, FACT_PRESSURE_FILL, used / limit);
	else
		fact_absent(f, FACT_PRESSURE_FILL, "%s: %s", metrics[M_CG_MEM_USED].name,
			    window_why_absent(s->whole, M_CG_MEM_USED, s->cg_mem));
}

static void machine(const struct scene *s, struct facts *f)
{
	struct series_stat available;
	double total;

	rate(s, f, FACT_MACHINE_SWAP_IN, M_VM_SWAP_IN, ID_HOST);
	rate(s, f, FACT_MACHINE_PRESSURE, M_PSI_MEM_SOME, ID_HOST);
	rate(s, f, FACT_MACHINE_REFAULTS, M_VM_REFAULT_FILE, ID_HOST);
	if (window_stat(&s->steady, M_MEM_AVAILABLE, ID_HOST, &available) == 0 &&
	    window_last(&s->steady, M_MEM_TOTAL, ID_HOST, &total) && total > 0)
		fact_set(f, FACT_MACHINE_AVAILABLE, available.min / total);
	else
		fact_absent(f, FACT_MACHINE_AVAILABLE, "%s: %s", metrics[M_MEM_AVAILABLE].name,
			    window_why_absent(s->whole, M_MEM_AVAILABLE, ID_HOST));
}

/* Share of wall time the first process spent in the kernel; 0 when not known. */
static double in_kernel(const struct scene *s)
{
	const struct member *m = scene_member(s, s->main_proc);

	return m && isfinite(m->kernel_cpu) && s->seconds > 0 ? fmin(1, m->kernel_cpu / s->seconds)
							      : 0;
}

/* With the group's own stall times: all standing still is the share to be won; half of it at least,
 * since some stalls hide behind other waiting; at most all time in which some task stood still.
 * Without them only bounds: from below by page faults times the quickest disk, spread over the
 * processes; from above by the time the first thread was blocked or its process was in the kernel
 * (which finds and frees pages there), and by the machine's stalls. */
static void stall(const struct scene *s, struct facts *f)
{
	double full, some, faults, low, high, processes;

	if (fact_value(f, FACT_PRESSURE_FULL, &full)) {
		some = fact_or(f, FACT_PRESSURE_SOME, full);
		fact_set_range(f, FACT_PRESSURE_STALL, fmin(full, 0.95), fmin(full, 0.95) / 2,
			       fmin(fmax(some, full), 0.95));
		return;
	}
	if (!fact_value(f, FACT_PRESSURE_FAULTS, &faults)) {
		fact_absent_like(f, FACT_PRESSURE_STALL, FACT_PRESSURE_FAULTS);
		return;
	}
	high = fact_or(f, FACT_MAIN_BLOCKED, INFINITY) + in_kernel(s);
	if (fact_or(f, FACT_PRESSURE_REFAULTS, 0) < refaults_few)
		high = fmin(high, fact_or(f, FACT_MACHINE_PRESSURE, INFINITY));
	if (!isfinite(high)) {
		fact_absent(
		    f, FACT_PRESSURE_STALL,
		    "how long it stood still: neither pressure nor its first thread is known");
		return;
	}
	if (!window_mean(&s->steady, M_JOB_PROCESSES, ID_JOB, &processes) || processes < 1)
		processes = fmax(1, (double)s->members.n);
	high = fmin(high, 0.95);
	low = fmin(faults * fault_s / processes, high);
	fact_set_range(f, FACT_PRESSURE_STALL, (low + high) / 2, low, high);
}

static void compute(const struct scene *s, struct facts *f)
{
	rate(s, f, FACT_PRESSURE_FULL, M_CG_PSI_MEM_FULL, s->cg_mem);
	rate(s, f, FACT_PRESSURE_SOME, M_CG_PSI_MEM_SOME, s->cg_mem);
	rate(s, f, FACT_PRESSURE_REFAULTS, M_CG_MEM_REFAULTS, s->cg_mem);
	own_processes(s, f);
	own_limit(s, f);
	machine(s, f);
	stall(s, f);
}

const struct fact_source pressure_facts = { "pressure", compute };

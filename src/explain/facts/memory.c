/* SPDX-License-Identifier: MIT
 *
 * Memory the job had, may have, and which of its processes had most.
 */
#include "explain/fact.h"
#include "explain/scene.h"

#include <math.h>

/* A program inherits the peak of whoever forked it (its memory before exec), so small peaks in
 * rusage may be the recorder's. */
static const double inherited_peak = 64e6;
/* Proportional memory is read every few seconds. */
static const double pss_least_s = 15;
static const int64_t settle_ns = 2500000000;
/* "At the end" for the growth of a process. */
static const int64_t growth_ns = 60000000000;

static double single_peak(const struct scene *s)
{
	double peak = NAN, told = (double)s->run->rusage_maxrss_bytes;

	for (size_t i = 0; i < s->members.n; i++) {
		peak = fmax(peak, s->members.v[i].rss_peak);
		peak = fmax(peak, s->members.v[i].rss_max);
	}
	if (s->covers_run && s->run->has_exit && told > inherited_peak)
		peak = fmax(peak, told);
	return peak;
}

/* Resident memory counts a shared page once for each process that has it; forked workers share
 * nearly everything. Proportional memory does not, but is read rarely and so misses peaks. */
static void job_memory(const struct scene *s, struct facts *f)
{
	struct series_stat rss, pss, n;
	/* The first reading is at the start and the last at the end, where there is little. */
	struct window middle = *s->whole;
	bool is_long = s->whole_seconds >= pss_least_s;
	/* A process that is just starting or ending has none: nothing was seen then. */
	bool has_rss = window_stat(s->whole, M_JOB_RSS, ID_JOB, &rss) == 0 && rss.max > 0;
	bool has_pss;
	bool single = window_stat(s->whole, M_JOB_PROCESSES, ID_JOB, &n) == 0 && n.max <= 1;
	double peak = single_peak(s);

	middle.from_ns += is_long ? settle_ns : 0;
	middle.to_ns -= is_long ? settle_ns : 0;
	has_pss = window_stat(&middle, M_JOB_PSS, ID_JOB, &pss) == 0 && pss.n > 0;
	if (has_rss && (single || !has_pss || !is_long)) {
		fact_set_range(f, FACT_MEMORY_USED, rss.mean, has_pss ? pss.mean : NAN, rss.mean);
		fact_set_range(f, FACT_MEMORY_PEAK, fmax(rss.max, peak), NAN, NAN);
		fact_set_subject(f, FACT_MEMORY_USED, 0, single ? "rss" : "sum of rss");
	} else if (has_pss) {
		peak = fmax(pss.max, peak);
		fact_set_range(f, FACT_MEMORY_USED, pss.mean, NAN, has_rss ? rss.mean : NAN);
		fact_set_range(f, FACT_MEMORY_PEAK, peak, NAN, has_rss ? rss.max : NAN);
		fact_set_subject(f, FACT_MEMORY_USED, 0, "pss");
	} else {
		fact_absent(f, FACT_MEMORY_USED, "%s: %s", metrics[M_JOB_RSS].name,
			    window_why_absent(s->whole, M_JOB_RSS, ID_JOB));
		fact_absent_like(f, FACT_MEMORY_PEAK, FACT_MEMORY_USED);
		if (peak > 0)
			fact_set(f, FACT_MEMORY_PEAK, peak);
	}
}

static void allowed(const struct scene *s, struct facts *f)
{
	double limit = INFINITY, total = INFINITY;

	if (!window_last(s->whole, M_MEM_TOTAL, ID_HOST, &total) &&
	    s->run->machine.memory_bytes > 0)
		total = (double)s->run->machine.memory_bytes;
	if (s->cg_mem)
		window_last(s->whole, M_CG_MEM_LIMIT, s->cg_mem, &limit);
	if (!isfinite(limit) && !isfinite(total)) {
		fact_absent(f, FACT_MEMORY_ALLOWED, "%s: %s", metrics[M_MEM_TOTAL].name,
			    window_why_absent(s->whole, M_MEM_TOTAL, ID_HOST));
		return;
	}
	fact_set(f, FACT_MEMORY_ALLOWED, fmin(limit, total));
	fact_set_subject(f, FACT_MEMORY_ALLOWED, 0, limit < total ? "cgroup" : "machine");
}

struct climb {
	int64_t from_ns, top_ns;
	double first, top;
	bool any;
};

static bool note_climb(const struct point *p, void *arg)
{
	struct climb *c = arg;

	if (!c->any) {
		c->from_ns = p->t_ns;
		c->first = p->value;
	}
	if (!c->any || p->max >= c->top) {
		c->top_ns = p->t_ns;
		c->top = p->max;
	}
	c->any = true;
	return true;
}

/* Up to its top, not to its end: a process that is being killed has given its memory back when it is
 * last seen. */
static void growth(const struct scene *s, struct facts *f, const struct member *m)
{
	const struct window *w = s->whole;
	int64_t to = m->gone_ns && m->gone_ns < w->to_ns ? m->gone_ns : w->to_ns;
	int64_t from = to - growth_ns > w->from_ns ? to - growth_ns : w->from_ns;
	struct climb c = { 0 };
	double seconds;

	w->ops->each(w->src, M_PROC_RSS, m->id, from, to, 0, note_climb, &c);
	seconds = (double)(c.top_ns - c.from_ns) / 1e9;
	if (seconds < 0.5) {
		fact_absent(f, FACT_MEMORY_GROWTH,
			    "its memory did not grow, or was seen too briefly");
		return;
	}
	fact_set(f, FACT_MEMORY_GROWTH, (c.top - c.first) / seconds);
	fact_set_subject(f, FACT_MEMORY_GROWTH, m->id, m->name);
}

static void largest(const struct scene *s, struct facts *f)
{
	const struct member *most = NULL;

	for (size_t i = 0; i < s->members.n; i++) {
		const struct member *m = &s->members.v[i];

		if (isfinite(m->rss_max) && (!most || m->rss_max > most->rss_max))
			most = m;
	}
	if (!most) {
		fact_absent(f, FACT_MEMORY_LARGEST, "%s: %s", metrics[M_PROC_RSS].name,
			    window_why_absent(s->whole, M_PROC_RSS, ID_JOB));
		fact_absent_like(f, FACT_MEMORY_GROWTH, FACT_MEMORY_LARGEST);
		return;
	}
	fact_set(f, FACT_MEMORY_LARGEST, most->rss_max);
	fact_set_subject(f, FACT_MEMORY_LARGEST, most->id, most->name);
	growth(s, f, most);
}

static void compute(const struct scene *s, struct facts *f)
{
	job_memory(s, f);
	allowed(s, f);
	largest(s, f);
}

const struct fact_source memory_facts = { "memory", compute };

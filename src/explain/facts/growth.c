/* SPDX-License-Identifier: MIT
 *
 * Memory that grows and does not stop. The time behind the start is cut into five parts; what is in use must
 * be more in each than in the one before, and grow no slower at the end: an allocator that warms up, a cache
 * that fills and a batch of another size do not look so.
 *
 * A process alone: what it has for itself, resident less file pages and shared memory (mapped data sets grow
 * as they are read). Forked workers: proportional memory, because what they have for themselves counts a page
 * they share with their parent already, and touching an object's reference count copies it without that
 * changing. It is dear to read and rarely is. Without it: what they have for themselves, where that grows; else
 * what the memory of the group, or of the machine, grows beyond what all processes of the job show, as far as the
 * workers' page faults can be what it is copied by.
 */
#include "explain/fact.h"
#include "explain/facts/kept.h"
#include "explain/scene.h"

#include <math.h>

enum { PARTS = 5 };

static const double watched_least = 5;     /* seconds: less tells nothing at all */
static const double start_share = 0.2;     /* of the run, that all memory grows in */
static const double late_least = 0.5;      /* the last step, of the mean one */
static const double bytes_least = 4 << 20; /* in all: less is nothing */
static const double page_bytes = 4096;     /* at least */
static const int64_t edge_ns = 2000000000;

struct growth {
	bool known; /* of somebody */
	double at[PARTS];
};

static struct window stretch(const struct scene *s)
{
	struct window w = s->steady;
	int64_t start = s->whole->from_ns +
			(int64_t)(start_share * (double)(s->whole->to_ns - s->whole->from_ns));

	if (w.from_ns < start && start < w.to_ns)
		w.from_ns = start;
	return w;
}

/* Its means in the parts; false when it has no value in one. */
static bool parts_of(const struct window *w, enum metric_id m, uint32_t id, double *ret)
{
	for (int i = 0; i < PARTS; i++) {
		struct window part = *w;
		int64_t length = (w->to_ns - w->from_ns) / PARTS;

		part.from_ns = w->from_ns + i * length;
		part.to_ns = part.from_ns + length;
		if (!window_mean(&part, m, id, &ret[i]))
			return false;
	}
	return true;
}

/* Bytes a second; 0: it does not grow, or not steadily. */
static double rate(const double *at, const struct window *w, double *ret_low, double *ret_high)
{
	double part = window_seconds(w) / PARTS, all = at[PARTS - 1] - at[0];

	*ret_low = INFINITY;
	*ret_high = 0;
	if (!(all >= bytes_least) || !(part > 0))
		return 0;
	for (int i = 1; i < PARTS; i++) {
		double step = at[i] - at[i - 1];

		if (!(step > 0) || (i == PARTS - 1 && step < late_least * all / (PARTS - 1)))
			return 0;
		*ret_low = fmin(*ret_low, step / part);
		*ret_high = fmax(*ret_high, step / part);
	}
	return all / (PARTS - 1) / part;
}

bool growth_is_worker(const struct scene *s, uint32_t process)
{
	const struct activity *a = &s->activity;

	for (size_t i = 0; i < a->threads.n; i++)
		if (a->threads.v[i].process == process &&
		    a->threads.v[i].role == ROLE_LOADER_WORKER &&
		    (a->critical < 0 || a->threads.v[a->critical].process != process))
			return true;
	return false;
}

static bool lives_through(const struct member *m, const struct window *w)
{
	return m->born_ns <= w->from_ns && (!m->gone_ns || m->gone_ns + edge_ns >= w->to_ns);
}

struct leak {
	const struct member *who;
	double rate, low, high, bytes, of;
	const char *unclear; /* a process that grows, of which not all is known */
};

/* What a process has for itself: where its shared part is not known, only that it does not grow is. */
static void look_at(const struct scene *s, const struct window *w, const struct member *m,
		    struct leak *l)
{
	double all[PARTS], shared[PARTS], low, high, r;

	if (!parts_of(w, M_PROC_RSS, m->id, all))
		return;
	if (!parts_of(w, M_PROC_RSS_SHARED, m->id, shared)) {
		if (rate(all, w, &low, &high) > 0)
			l->unclear = "what part of its memory is shared is not known";
		return;
	}
	for (int i = 0; i < PARTS; i++)
		all[i] -= shared[i];
	r = rate(all, w, &low, &high);
	if (r > 0 && !s->activity.any && !m->is_main) {
		l->unclear = "whether it is a loader worker that grows is not known";
		return;
	}
	if (r <= l->rate)
		return;
	*l = (struct leak){ m,
			    r,
			    low,
			    high,
			    all[PARTS - 1] - all[0],
			    all[0] > 0 ? (all[PARTS - 1] - all[0]) / all[0] : 1,
			    l->unclear };
}

static void alone(const struct scene *s, struct facts *f, const struct window *w)
{
	struct leak l = { 0 };
	bool any = false;
	double v;

	for (size_t i = 0; i < s->members.n; i++) {
		const struct member *m = &s->members.v[i];

		if (!lives_through(m, w) || growth_is_worker(s, m->id))
			continue;
		any |= window_mean(w, M_PROC_RSS, m->id, &v);
		look_at(s, w, m, &l);
	}
	if (!any)
		fact_absent(f, FACT_LEAK, "%s: %s", metrics[M_PROC_RSS].name,
			    window_why_absent(w, M_PROC_RSS, ID_JOB));
	else if (!l.who && l.unclear)
		fact_absent(f, FACT_LEAK, "%s", l.unclear);
	if (!any || (!l.who && l.unclear)) {
		fact_absent_like(f, FACT_LEAK_BYTES, FACT_LEAK);
		fact_absent_like(f, FACT_LEAK_OF, FACT_LEAK);
		return;
	}
	fact_set_range(f, FACT_LEAK, l.rate, l.low, l.high);
	fact_set(f, FACT_LEAK_BYTES, l.bytes);
	fact_set(f, FACT_LEAK_OF, l.of);
	if (l.who)
		fact_set_subject(f, FACT_LEAK, l.who->id, l.who->name);
}

static void set_workers(struct facts *f, const double *sum, double at_first, const struct window *w)
{
	double low = 0, high = 0, r = rate(sum, w, &low, &high);

	fact_set_range(f, FACT_WORKERS_LEAK, r, r > 0 ? low : 0, high);
	fact_set(f, FACT_WORKERS_LEAK_BYTES, r > 0 ? sum[PARTS - 1] - sum[0] : 0);
	fact_set(f, FACT_WORKERS_LEAK_OF,
		 r > 0 && at_first > 0 ? (sum[PARTS - 1] - sum[0]) / at_first : 0);
}

/* False: one of them was not read often enough. */
static bool by_proportion(const struct scene *s, struct facts *f, const struct window *w)
{
	double sum[PARTS] = { 0 }, at[PARTS];

	for (size_t i = 0; i < s->members.n; i++) {
		const struct member *m = &s->members.v[i];

		if (!lives_through(m, w) || !growth_is_worker(s, m->id))
			continue;
		if (!parts_of(w, M_PROC_PSS, m->id, at))
			return false;
		for (int k = 0; k < PARTS; k++)
			sum[k] += at[k];
	}
	set_workers(f, sum, sum[0], w);
	return true;
}

/* What a process has for itself by its page tables, and the bytes its page faults in the window stand for. */
static bool own_of(const struct window *w, uint32_t id, double *ret, double *ret_faulted)
{
	double shared[PARTS], faults;

	if (!parts_of(w, M_PROC_RSS, id, ret) || !parts_of(w, M_PROC_RSS_SHARED, id, shared) ||
	    !window_delta(w, M_PROC_MINOR_FAULTS, id, &faults))
		return false;
	for (int k = 0; k < PARTS; k++)
		ret[k] -= shared[k];
	*ret_faulted = faults * page_bytes;
	return true;
}

/* By what they have for themselves. A page that a worker shares with its parent since the fork counts from the start, and
 * to copy it changes nothing: what grows here is new, but growth by copies does not show. False: none is seen. */
static bool by_own(const struct scene *s, struct facts *f, const struct window *w)
{
	double sum[PARTS] = { 0 }, at[PARTS], faulted, low, high;

	for (size_t i = 0; i < s->members.n; i++) {
		const struct member *m = &s->members.v[i];

		if (!lives_through(m, w) || !growth_is_worker(s, m->id))
			continue;
		if (!own_of(w, m->id, at, &faulted))
			return false;
		for (int k = 0; k < PARTS; k++)
			sum[k] += at[k];
	}
	if (!(rate(sum, w, &low, &high) > 0))
		return false;
	set_workers(f, sum, sum[0], w);
	return true;
}

/* Was in the window, and not through all of it: what it had came and went. */
static bool comes_or_goes(const struct member *m, const struct window *w)
{
	return !lives_through(m, w) && m->born_ns < w->to_ns &&
	       (!m->gone_ns || m->gone_ns > w->from_ns);
}

/* Was the group's memory read in the last part? A recorder that has to save reads it every few seconds only, and what it
 * read last would look like growth that has ended. The machine's is read more often. */
static bool read_late(const struct window *w, uint32_t group)
{
	struct window last = *w;
	struct series_stat st;

	last.from_ns = w->to_ns - (w->to_ns - w->from_ns) / PARTS;
	return window_stat(&last, M_CG_MEM_ANON, group, &st) == 0 && st.n > 0;
}

/* False: too little is known, or it does not grow: others that give memory back would look so. */
static bool by_rest(const struct scene *s, struct facts *f, const struct window *w)
{
	double rest[PARTS], at[PARTS], faulted = 0, had = 0, bytes, low, high;
	bool group =
	    s->cg_mem && read_late(w, s->cg_mem) && parts_of(w, M_CG_MEM_ANON, s->cg_mem, rest);

	if (!group && !parts_of(w, M_MEM_ANON, ID_HOST, rest))
		return false;
	for (size_t i = 0; i < s->members.n; i++) {
		const struct member *m = &s->members.v[i];

		if (comes_or_goes(m, w))
			return false;
		if (!lives_through(m, w))
			continue;
		if (!own_of(w, m->id, at, &bytes))
			return false;
		for (int k = 0; k < PARTS; k++)
			rest[k] -= at[k];
		if (growth_is_worker(s, m->id)) {
			faulted += bytes;
			had += at[0];
		}
	}
	/* more than they can have copied, or had to copy: somebody else grows */
	if (rest[PARTS - 1] - rest[0] > fmin(faulted, had) || !(rate(rest, w, &low, &high) > 0))
		return false;
	set_workers(f, rest, had, w);
	fact_set_subject(f, FACT_WORKERS_LEAK, 0, group ? "control group" : "machine");
	return true;
}

static void workers(const struct scene *s, struct facts *f, const struct window *w)
{
	if (f->v[FACT_LOADER_WORKERS].known &&
	    (by_proportion(s, f, w) || by_own(s, f, w) || by_rest(s, f, w)))
		return;
	if (!f->v[FACT_LOADER_WORKERS].known)
		fact_absent_like(f, FACT_WORKERS_LEAK, FACT_LOADER_WORKERS);
	else
		fact_absent(f, FACT_WORKERS_LEAK, "%s of the workers: %s", metrics[M_PROC_PSS].name,
			    window_why_absent(w, M_PROC_PSS, ID_JOB));
	fact_absent_like(f, FACT_WORKERS_LEAK_BYTES, FACT_WORKERS_LEAK);
	fact_absent_like(f, FACT_WORKERS_LEAK_OF, FACT_WORKERS_LEAK);
}

/* Page cache is given back when memory is wanted: it is no use of a limit. */
static void room(const struct scene *s, struct facts *f)
{
	double limit, used, machine, group = INFINITY;

	if (s->cg_mem && window_last(s->whole, M_CG_MEM_LIMIT, s->cg_mem, &limit) &&
	    (window_last(s->whole, M_CG_MEM_ANON, s->cg_mem, &used) ||
	     window_last(s->whole, M_JOB_PSS, ID_JOB, &used) ||
	     window_last(s->whole, M_JOB_RSS, ID_JOB, &used)))
		group = fmax(0, limit - used);
	if (!window_last(s->whole, M_MEM_AVAILABLE, ID_HOST, &machine))
		machine = INFINITY;
	if (!isfinite(group) && !isfinite(machine)) {
		fact_absent(f, FACT_MEMORY_ROOM, "%s: %s", metrics[M_MEM_AVAILABLE].name,
			    window_why_absent(s->whole, M_MEM_AVAILABLE, ID_HOST));
		return;
	}
	fact_set(f, FACT_MEMORY_ROOM, fmin(group, machine));
	fact_set_subject(f, FACT_MEMORY_ROOM, 0, group <= machine ? "control group" : "machine");
}

static void compute(const struct scene *s, struct facts *f)
{
	struct window w = stretch(s);

	room(s, f);
	if (window_seconds(&w) < watched_least) {
		for (int id = FACT_LEAK; id <= FACT_LEAK_WATCHED; id++)
			fact_absent(f, (enum fact_id)id,
				    "too little was recorded to see memory grow");
		return;
	}
	fact_set(f, FACT_LEAK_WATCHED, window_seconds(&w));
	alone(s, f, &w);
	workers(s, f, &w);
}

const struct fact_source growth_facts = { "growth", compute };

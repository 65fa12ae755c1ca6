/* SPDX-License-Identifier: MIT
 *
 * Readings that are dear or change slowly, on slow ticks (every 5 s):
 *
 * - /proc/PID/status (4 to 7 us): peak of resident memory, swap. Also of processes that stand
 *   still, and their statm with it: reclaim takes pages from a process without asking it.
 * - /proc/PID/task/TID/status: context switches, of threads that ran since. Threads that ended
 *   count as last seen, so the sum only grows.
 * - /proc/PID/smaps_rollup (kernel 4.14; 20 us a MB: 9 ms for a loader worker of 500 MB): PSS and
 *   USS. The kernel walks all page tables for it, holding the lock that the process needs to map
 *   memory (since 5.11 it lets go of it when somebody waits), so it is done to few: the largest
 *   first, each once a round, none that stood still since its last reading, and only on credit
 *   that grows by PSS_SHARE_NS a slow tick. One that would cost more than PSS_MAX_NS is left
 *   alone, and a gap says so.
 *
 * All of it ends when its CPU budget is used up and goes on there on the next slow tick.
 */
#include "collect/jobtree.h"

#include "base/clock.h"

enum {
	STATUS_BUDGET_NS = 5 * 1000 * 1000,
	PSS_SHARE_NS = 5 * 1000 * 1000, /* 0.1 % of a core */
	PSS_MAX_NS = 50 * 1000 * 1000,
	PSS_FIRST_NS = 200 * 1000, /* supposed price before the first reading: this ... */
	PSS_KB_NS = 20,            /* ... and 80 ns a page of 4 KiB, as measured */
	PSS_VALID_S = 120,
};

static int64_t cpu_now(const struct jobtree *j)
{
	return j->files.host->live ? clock_thread_cpu_ns() : 0;
}

static bool read_status(struct jobtree *j, const struct proc *p, pid_t tid, struct proc_status *ret)
{
	ssize_t n = proc_file_once(&j->files, p->pid, tid, "status", j->page, sizeof(j->page));

	return n > 0 && proc_status_parse(j->page, (size_t)n, ret);
}

static void read_switches(struct jobtree *j, const struct proc *p, struct thread *t,
			  const struct proc_status *known)
{
	struct proc_status s;

	if (!t->ran)
		return;
	if (known)
		s = *known;
	else if (!read_status(j, p, t->tid, &s))
		return;
	t->ran = false;
	if (s.switches > t->switches)
		t->switches = s.switches;
	if (s.preemptions > t->preemptions)
		t->preemptions = s.preemptions;
}

static void put_switches(struct jobtree *j, struct frame *f, struct proc *p,
			 const struct proc_status *first)
{
	int64_t switches = p->ended_switches, preemptions = p->ended_preemptions;

	for (size_t i = 0; i < p->threads.n; i++) {
		struct thread *t = &p->threads.v[i];

		read_switches(j, p, t, i ? NULL : first);
		switches = add_up(switches, t->switches);
		preemptions = add_up(preemptions, t->preemptions);
	}
	put_counter(f, M_PROC_SWITCHES, p->id, &p->last.switches, switches);
	put_counter(f, M_PROC_PREEMPTIONS, p->id, &p->last.preemptions, preemptions);
}

static void slow_status(struct jobtree *j, struct frame *f, struct proc *p)
{
	struct proc_status s;

	if (!p->ran)
		proc_put_statm(j, f, p);
	if (!read_status(j, p, 0, &s))
		return;
	/* No such line, no such value: a kernel thread has no memory to swap. */
	if (s.peak_kb >= 0)
		put_gauge(f, M_PROC_RSS_PEAK, p->id, &p->last.peak, s.peak_kb);
	if (s.swap_kb >= 0)
		put_gauge(f, M_PROC_SWAP, p->id, &p->last.swap, s.swap_kb);
	if (s.switches >= 0 && s.preemptions >= 0)
		put_switches(j, f, p, &s);
	p->ran = false;
}

static void all_status(struct jobtree *j, struct frame *f)
{
	int64_t end = cpu_now(j) + STATUS_BUDGET_NS;

	for (size_t k = 0; k < j->procs.n; k++) {
		struct proc *p = &j->procs.v[j->slow_at % j->procs.n];

		j->slow_at = (j->slow_at + 1) % j->procs.n;
		if (!p->used || p->zombie)
			continue;
		slow_status(j, f, p);
		if (cpu_now(j) > end)
			return;
	}
}

/* What its next smaps_rollup will cost, from its last or from what pages cost elsewhere. */
static int64_t pss_price(const struct proc *p)
{
	int64_t rss = p->last.rss > 0 ? p->last.rss : 0;

	if (p->pss_cost_rss > 0)
		return rss > p->pss_cost_rss ? p->pss_cost_ns * (rss / p->pss_cost_rss + 1)
					     : p->pss_cost_ns;
	return PSS_FIRST_NS + rss * PSS_KB_NS;
}

static void refuse_smaps(struct frame *f, struct proc *p, enum gap_why why)
{
	if (p->smaps != IO_REFUSED && p->smaps != IO_RETRY) {
		frame_gap(f, M_PROC_PSS, p->id, why);
		frame_gap(f, M_PROC_USS, p->id, why);
	}
	p->smaps = IO_REFUSED;
}

static void read_pss(struct jobtree *j, const struct collect *c, struct frame *f, struct proc *p)
{
	struct proc_smaps s;
	int64_t began = cpu_now(j), cost;
	ssize_t n = proc_file_once(&j->files, p->pid, 0, "smaps_rollup", j->page, sizeof(j->page));

	cost = cpu_now(j) - began;
	j->pss_credit_ns -= cost;
	p->pss_round = j->pss_round;
	if (n == -EACCES || n == -EPERM) {
		refuse_smaps(f, p, GAP_NO_PERMISSION);
		return;
	}
	if (n == -ENOENT && (!c->host->live || j->no_smaps))
		refuse_smaps(f, p, GAP_NOT_SUPPORTED);
	if (n <= 0 || !proc_smaps_parse(j->page, (size_t)n, &s))
		return;
	if (p->smaps == IO_RETRY) {
		frame_gap(f, M_PROC_PSS, p->id, GAP_OVER);
		frame_gap(f, M_PROC_USS, p->id, GAP_OVER);
	}
	p->smaps = IO_OK;
	p->ran_pss = false;
	p->pss_at_ns = c->boot_ns;
	p->pss_cost_ns = cost;
	p->pss_cost_rss = p->last.rss;
	put_gauge(f, M_PROC_PSS, p->id, &p->last.pss, s.pss_kb);
	put_gauge(f, M_PROC_USS, p->id, &p->last.uss, s.private_kb);
}

/* The largest that is due in this round; NULL when there is none. */
static struct proc *pss_next(struct jobtree *j, struct frame *f)
{
	struct proc *best = NULL;

	for (size_t i = 0; i < j->procs.n; i++) {
		struct proc *p = &j->procs.v[i];

		if (!p->used || p->zombie || !p->ran_pss || p->smaps == IO_REFUSED ||
		    p->pss_round == j->pss_round)
			continue;
		if (pss_price(p) > PSS_MAX_NS) {
			refuse_smaps(f, p, GAP_BUDGET);
			continue;
		}
		if (!best || p->last.rss > best->last.rss)
			best = p;
	}
	return best;
}

static void some_pss(struct jobtree *j, const struct collect *c, struct frame *f)
{
	struct proc *p;

	if (c->host->live) {
		j->pss_credit_ns += PSS_SHARE_NS;
		if (j->pss_credit_ns > PSS_MAX_NS)
			j->pss_credit_ns = PSS_MAX_NS;
	} else {
		j->pss_credit_ns = INT64_MAX;
	}
	while ((p = pss_next(j, f)) && pss_price(p) <= j->pss_credit_ns)
		read_pss(j, c, f, p);
	if (!p)
		j->pss_round++; /* all have had their turn */
}

/* The sum is told only when every part of it is known and not too old. A part of a process that
 * has not run since is as good as new. */
static void put_job_pss(struct jobtree *j, const struct collect *c, struct frame *f)
{
	int64_t sum = 0;
	bool any = false;

	for (size_t i = 0; i < j->procs.n; i++) {
		const struct proc *p = &j->procs.v[i];

		if (!p->used || p->zombie)
			continue;
		if (p->smaps != IO_OK ||
		    (p->ran_pss && c->boot_ns - p->pss_at_ns > PSS_VALID_S * NS_PER_S))
			return;
		sum = add_up(sum, p->last.pss);
		any = true;
	}
	if (any)
		put_gauge(f, M_JOB_PSS, ID_JOB, &j->last.pss, sum);
}

/* At the limit of descriptors: those that stood still give theirs to those that do not. */
static void release_idle(struct jobtree *j)
{
	if (!j->files.refused)
		return;
	j->files.refused = false;
	for (size_t i = 0; i < j->procs.n; i++)
		if (j->procs.v[i].used && !j->procs.v[i].ran)
			proc_release(j, &j->procs.v[i]);
}

void proc_slow(struct jobtree *j, const struct collect *c, struct frame *f)
{
	release_idle(j);
	if (!j->procs.n)
		return;
	all_status(j, f);
	some_pss(j, c, f);
	put_job_pss(j, c, f);
}

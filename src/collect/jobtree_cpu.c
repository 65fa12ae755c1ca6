/* SPDX-License-Identifier: MIT
 *
 * The CPU time of the whole job, nothing missed and nothing twice.
 *
 * Sources: the CPU clock of each member (own_ns), and of each member and of the reaper the time of
 * children that ended and were waited for (stat fields 16, 17; it includes what those children had
 * of their own children). So
 *
 *   job.cpu = sum of members (own + kids) + kids of the reaper + lost
 *
 * and a process that lives and ends between two ticks is in its parent's kids. When a seen member
 * ends, its time leaves the first sum and its parent's kids grow by at least as much: they balance
 * by themselves, but for these:
 *
 * - Nobody waited (SIGCHLD ignored, SA_NOCLDWAIT), or somebody outside the job did (an orphan after
 *   attach): kids do not grow. Per parent: owed += seen of the dead - growth, never below 0. stat
 *   gives kids in two numbers cut to 10 ms, so owed may be up to 20 ms for that reason alone: so
 *   much stays (and counts: kids + owed is never more than the truth), what is above is lost time
 *   and is kept for good. A process that was waited for is in kids before it leaves /proc, so
 *   it is enough to read the parent after the child was found gone: no waiting a tick.
 * - A parent is read, then a child of it ends, or the other way round: found by asking, after a
 *   parent's kids grew, whether its known children still live; one that does not is counted as
 *   ended and the parent is read again, until both agree.
 * - The kernel adds to kids a moment (1 us) before the child leaves /proc. If growth that no dead
 *   child explains is as large as what a living child has, and that is much, it is believed
 *   only one tick later.
 * - Parent and child ended in the same tick: the child's time may have gone up with the parent's
 *   or to the reaper. It is charged to the nearest living ancestor, and what this one does not
 *   explain is looked for in the growth of those above.
 *
 * Our own children (we are the reaper) come from getrusage: exact to a microsecond.
 */
#include "collect/jobtree.h"

#include "base/clock.h"

#include <sys/resource.h>

enum {
	CUT_TICKS = 2, /* two numbers, each cut by up to a tick */
	SUSPECT_NS = 1000 * 1000 * 1000,
	ROUNDS = 4,
};

static struct account *account_of(struct jobtree *j, int slot)
{
	if (slot >= 0)
		return &j->procs.v[slot].account;
	return slot == PARENT_REAPER ? &j->reaper : NULL;
}

static int parent_of(const struct jobtree *j, int slot)
{
	return slot >= 0 ? j->procs.v[slot].parent : PARENT_NONE;
}

/* All that has been counted for this process. */
static int64_t seen_of(const struct proc *p)
{
	int64_t own = p->own_ns > 0 ? p->own_ns : 0;

	return add_up(own, add_up(p->account.kids_ns, p->account.owed_ns));
}

static void read_reaper(struct jobtree *j, const struct collect *c)
{
	struct proc_stat s;
	ssize_t n;

	if (!c->job.reaper)
		return;
	if (c->job.reaper == c->host->self) {
		struct rusage u;

		if (getrusage(RUSAGE_CHILDREN, &u) < 0)
			return;
		j->reaper.next_ns = (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * NS_PER_S +
				    (u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1000ll;
	} else {
		n = proc_file_read(&j->files, &j->reaper_fd, c->job.reaper, 0, "stat", j->text,
				   sizeof(j->text));
		if (n > 0 && proc_stat_parse(j->text, (size_t)n, &s))
			j->reaper.next_ns = ticks_ns(j, s.child_utime + s.child_stime);
	}
	j->kids_moved |= j->reaper.next_ns != j->reaper.kids_ns;
}

/* Reads again the parents of those found dead since `from`. */
static void read_parents(struct jobtree *j, const struct collect *c, size_t from)
{
	int before = PARENT_NONE;

	for (size_t i = from; i < j->dead.n; i++) {
		int parent = j->procs.v[j->dead.v[i]].parent;

		if (parent == before)
			continue;
		before = parent;
		if (parent == PARENT_REAPER)
			read_reaper(j, c);
		else if (parent >= 0 && !j->procs.v[parent].gone &&
			 proc_read_kids(j, &j->procs.v[parent]) == -ESRCH)
			proc_mark_gone(j, parent);
	}
}

/* Children that ended after they were read, where the parent may know it already. */
static void find_late(struct jobtree *j)
{
	if (!j->gate)
		return; /* a fixture stands still */
	for (size_t i = 0; i < j->procs.n; i++) {
		const struct proc *p = &j->procs.v[i];
		const struct account *a = p->used && !p->gone ? account_of(j, p->parent) : NULL;

		if (a && a->next_ns != a->kids_ns && clock_pid_cpu_ns(p->pid) < 0)
			proc_mark_gone(j, (int)i);
	}
}

static void charge_dead(struct jobtree *j)
{
	for (size_t i = 0; i < j->dead.n; i++) {
		const struct proc *p = &j->procs.v[j->dead.v[i]];
		struct account *a;
		int up = p->parent;
		bool mixed = false;

		while (up >= 0 && j->procs.v[up].gone) {
			up = j->procs.v[up].parent;
			mixed = true;
		}
		/* A parent that is a zombie may have ended first. */
		mixed |= up >= 0 && j->procs.v[up].zombie;
		j->ended_own_ns = add_up(j->ended_own_ns, p->own_ns > 0 ? p->own_ns : 0);
		a = account_of(j, up);
		if (!a) {
			j->lost_ns = add_up(j->lost_ns, seen_of(p));
			continue;
		}
		a->dead_ns = add_up(a->dead_ns, seen_of(p));
		a->mixed |= mixed;
	}
}

/* Could this growth be a living child's that is just being waited for? */
static bool is_suspect(const struct jobtree *j, int slot, int64_t growth)
{
	if (!j->gate || growth < SUSPECT_NS)
		return false;
	for (size_t i = 0; i < j->procs.n; i++) {
		const struct proc *p = &j->procs.v[i];

		if (p->used && !p->gone && p->parent == slot && seen_of(p) >= SUSPECT_NS &&
		    seen_of(p) <= growth + CUT_TICKS * j->ns_per_tick)
			return true;
	}
	return false;
}

static void balance(struct jobtree *j, int slot)
{
	struct account *a = account_of(j, slot);
	int64_t growth = a->next_ns - a->kids_ns, owed = add_up(a->owed_ns, a->dead_ns), paid;

	if (growth < 0) { /* a counter that went back: held */
		a->next_ns = a->kids_ns;
		growth = 0;
	}
	paid = growth < owed ? growth : owed;
	a->owed_ns = owed - paid;
	a->dead_ns = 0;
	a->spare_ns = growth - paid;
	if (!a->doubted && is_suspect(j, slot, a->spare_ns)) {
		a->doubted = true;
		a->kids_ns += paid;
		a->spare_ns = 0;
		j->kids_moved = true; /* look again at the next tick */
		return;
	}
	a->doubted = false;
	a->kids_ns += growth;
}

/* Moves what is owed after mixed ends against growth of those above that nothing else explains. */
static void look_above(struct jobtree *j, int slot)
{
	struct account *a = account_of(j, slot), *b;

	for (int up = parent_of(j, slot); a->owed_ns > 0 && (b = account_of(j, up));
	     up = parent_of(j, up)) {
		int64_t found = b->spare_ns < a->owed_ns ? b->spare_ns : a->owed_ns;

		b->spare_ns -= found;
		a->owed_ns -= found;
	}
}

/* What is owed beyond the cut will not come any more. */
static void write_off(struct jobtree *j, int slot)
{
	struct account *a = account_of(j, slot);
	int64_t cut = slot == PARENT_REAPER && j->reaper_exact ? 2000 : CUT_TICKS * j->ns_per_tick;

	if (a->mixed)
		look_above(j, slot);
	a->mixed = false;
	if (a->owed_ns <= cut)
		return;
	j->lost_ns = add_up(j->lost_ns, a->owed_ns - cut);
	a->owed_ns = cut;
}

static bool is_open(const struct jobtree *j, size_t slot)
{
	const struct proc *p = &j->procs.v[slot];

	return p->used && !p->gone &&
	       (p->account.dead_ns || p->account.next_ns != p->account.kids_ns);
}

/* Finds everything that ended before the accounts were read, and reads them after. */
static void agree(struct jobtree *j, const struct collect *c)
{
	size_t done = 0;

	for (int round = 0; round < ROUNDS; round++) {
		read_parents(j, c, done);
		done = j->dead.n;
		find_late(j);
		if (j->dead.n == done)
			return;
	}
	read_parents(j, c, done);
}

void cpu_settle(struct jobtree *j, const struct collect *c)
{
	j->reaper_exact = c->job.reaper && c->job.reaper == c->host->self;
	read_reaper(j, c);
	if (!j->dead.n && !j->kids_moved)
		return;
	agree(j, c);
	charge_dead(j);
	j->kids_moved = false;
	for (size_t i = 0; i < j->procs.n; i++)
		if (is_open(j, i))
			balance(j, (int)i);
	balance(j, PARENT_REAPER);
	for (size_t i = 0; i < j->procs.n; i++)
		if (j->procs.v[i].used && !j->procs.v[i].gone)
			write_off(j, (int)i);
	write_off(j, PARENT_REAPER);
	j->reaper.spare_ns = 0;
	for (size_t i = 0; i < j->procs.n; i++) {
		struct proc *p = &j->procs.v[i];

		p->account.spare_ns = 0;
		if (p->used && !p->gone && p->parent >= 0 && j->procs.v[p->parent].gone)
			p->orphaned = j->orphans = true;
	}
}

void cpu_put(struct jobtree *j, const struct collect *c, struct frame *f)
{
	int64_t total = add_up(j->lost_ns, add_up(j->reaper.kids_ns, j->reaper.owed_ns));
	int64_t own = j->ended_own_ns;

	for (size_t i = 0; i < j->procs.n; i++) {
		const struct proc *p = &j->procs.v[i];

		if (!p->used)
			continue;
		total = add_up(total, seen_of(p));
		own = add_up(own, p->own_ns > 0 ? p->own_ns : 0);
	}
	if (!j->based) {
		/* A job we did not start is counted from now on. */
		j->base_ns = c->job.reaper ? 0 : total;
		j->base_own_ns = c->job.reaper ? 0 : own;
		j->based = true;
	}
	total -= j->base_ns;
	own -= j->base_own_ns;
	put_counter(f, M_JOB_CPU, ID_JOB, &j->last.cpu, total);
	/* Against what was put, which never goes back. */
	put_counter(f, M_JOB_CPU_ENDED, ID_JOB, &j->last.ended,
		    j->last.cpu > own ? j->last.cpu - own : 0);
}

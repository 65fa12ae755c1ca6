/* SPDX-License-Identifier: MIT
 *
 * Who belongs to the job: its first process and every descendant; orphans fall to the job's reaper,
 * whose children are members too. Without a reaper (attach) an orphan that was a member stays one.
 *
 * New processes are looked for only when there can be any. /proc/loadavg ends in the pid that was
 * given last in our pid namespace:
 *
 *   2.38 1.48 0.60 1/91 11223
 *
 * It moves with every fork and every new thread, costs 0.7 us, and does not grow with the machine
 * as /proc/stat's `processes` does (5 us on 2 CPUs; it also counts other containers' forks). And
 * as pids are given in rising order, only those behind the last known one can be new: positions in
 * the listing of /proc are pids plus a constant (learnt from the first listing, not assumed), so
 * it is listed from there on: 1 us instead of 0.2 us a process of the machine. A pid is given
 * shortly before its process is listed, hence always from the mark before the last. All of /proc
 * is listed at first, when pids have wrapped, and every 5 s in case something hides forks from
 * loadavg (lxcfs, gVisor).
 */
#include "collect/jobtree.h"

#include "base/clock.h"

#include <string.h>

enum {
	SCAN_SHARE = 500,
	FULL_EVERY_S = 5,
	SEEK_PROOFS = 8, /* neighbours in a listing that must agree on the constant */
};

/* Reads who pid is. 0, or -errno. */
static int read_newcomer(struct jobtree *j, pid_t pid, struct newcomer *ret, bool *ret_kernel)
{
	ssize_t n = proc_file_once(&j->files, pid, 0, "stat", j->text, sizeof(j->text));
	struct proc_stat s;
	int64_t sig;

	if (n < 0)
		return (int)n;
	if (!proc_stat_parse(j->text, (size_t)n, &s))
		return -EINVAL;
	*ret = (struct newcomer){ .pid = pid, .ppid = (pid_t)s.ppid, .start = s.start };
	proc_name_copy(ret->name, sizeof(ret->name), s.head.name, s.head.name_n);
	*ret_kernel = s.flags & STAT_KERNEL_THREAD;
	ret->silent = proc_stat_exit_signal(j->text, (size_t)n, &sig) && sig == 0;
	return 0;
}

/* Was this pid given since the mark? Then what was known of it is of another process. */
static bool is_recent(const struct tree_scan *s, pid_t pid, pid_t last)
{
	if (!s->started || last <= 0)
		return false;
	return last >= s->mark_before ? pid > s->mark_before && pid <= last
				      : pid > s->mark_before || pid <= last;
}

/* One pid of the listing. */
static void meet(struct jobtree *j, struct collect *c, pid_t pid, pid_t last)
{
	struct tree_scan *s = &j->scan;
	struct newcomer who, *n;
	uint32_t slot, round;
	bool kernel;

	if (pid == c->host->self || (c->job.reaper && pid == c->job.reaper))
		return;
	if (map_get(&j->by_pid, (uint64_t)pid, &slot)) {
		/* On a live host a reused pid is found by the kept descriptor. */
		if (c->host->live || read_newcomer(j, pid, &who, &kernel) < 0 ||
		    who.start == j->procs.v[slot].start)
			return;
		proc_mark_gone(j, (int)slot);
		map_del(&j->by_pid, (uint64_t)pid);
	}
	if (c->host->live && map_get(&s->others, (uint64_t)pid, &round) &&
	    !is_recent(s, pid, last)) {
		(void)map_put(&s->others, (uint64_t)pid, s->round);
		return;
	}
	if (read_newcomer(j, pid, &who, &kernel) < 0)
		return;
	/* Kernel threads belong to nobody; they are members only if asked for by pid. */
	if (kernel && !c->job.root) {
		(void)map_put(&s->others, (uint64_t)pid, s->round);
		return;
	}
	n = vec_push(&s->found);
	if (n)
		*n = who;
}

/* Lists /proc from this pid on (0: all of it). False when the listing did not start there. */
static bool list(struct jobtree *j, struct collect *c, int fd, pid_t from, pid_t last)
{
	struct tree_scan *s = &j->scan;
	int64_t pid, at = -1, constant = -1;
	int agree = 0;
	bool differ = false;

	io_dir_begin_at(&j->dir, fd, from ? s->seek + from : 0);
	while ((pid = io_dir_next_number(&j->dir)) > 0) {
		if (pid < from)
			return false;
		if (at >= 0) {
			differ |= agree && at - pid != constant;
			constant = at - pid;
			agree++;
		}
		at = j->dir.next;
		meet(j, c, (pid_t)pid, last);
	}
	if (!from)
		s->seek = agree >= SEEK_PROOFS && !differ && constant > 0 ? constant : -1;
	return true;
}

/* Forgets processes that are not of the job and not listed any more. */
static void forget_others(struct tree_scan *s)
{
	s->stale.n = 0;
	for (size_t i = 0; i < s->others.cap; i++) {
		const struct map_slot *o = &s->others.slots[i];
		uint64_t *key = o->used && o->value != s->round ? vec_push(&s->stale) : NULL;

		if (key)
			*key = o->key;
	}
	for (size_t i = 0; i < s->stale.n; i++)
		map_del(&s->others, s->stale.v[i]);
}

static bool is_member(struct jobtree *j, const struct collect *c, const struct newcomer *n)
{
	uint32_t slot;

	if (map_get(&j->by_pid, (uint64_t)n->ppid, &slot))
		return true;
	/* What falls to it has SIGCHLD, whatever it had before. */
	if (c->job.reaper && n->ppid == c->job.reaper)
		return !n->silent;
	if (!c->job.root)
		return n->ppid == 0;
	/* Once it has ended its pid is like any other. */
	return n->pid == c->job.root && !j->scan.root_seen;
}

/* They are not read again. But one whose parent is unknown may have been read just before that
 * parent, a member, ended: it is looked at once more. */
static void remember_others(struct tree_scan *s, pid_t self)
{
	uint32_t round;

	for (size_t i = 0; i < s->found.n; i++)
		if (!s->found.v[i].taken)
			(void)map_put(&s->others, (uint64_t)s->found.v[i].pid, s->round);
	for (size_t i = 0; i < s->found.n; i++) {
		const struct newcomer *n = &s->found.v[i];

		if (!n->taken && n->ppid > 0 && n->ppid != self &&
		    !map_get(&s->others, (uint64_t)n->ppid, &round))
			map_del(&s->others, (uint64_t)n->pid);
	}
}

/* Members among those found, parents before children; the listing may have them the other way. */
static int take_members(struct jobtree *j, struct collect *c, struct frame *f)
{
	struct tree_scan *s = &j->scan;
	bool more = s->found.n > 0, rest = false;
	int r = 0;

	while (more && r == 0) {
		more = false;
		for (size_t i = 0; i < s->found.n && r == 0; i++) {
			struct newcomer *n = &s->found.v[i];

			if (n->taken || (!rest && !is_member(j, c, n)))
				continue;
			n->taken = more = true;
			r = proc_born(j, c, f, n);
			s->root_seen |= n->pid == c->job.root;
		}
		/* The whole machine: those whose parents are hidden from us as well. */
		if (!more && !c->job.root && !rest)
			more = rest = true;
	}
	if (c->host->live)
		remember_others(s, c->host->self);
	return r;
}

/* The pid given last; 0 when the machine does not tell. */
static pid_t read_last_pid(struct jobtree *j)
{
	struct tree_scan *s = &j->scan;
	ssize_t n;
	int64_t pid;

	if (!j->files.host->live)
		return 0;
	if (s->loadavg_fd < 0)
		s->loadavg_fd = io_open(j->files.proc, "loadavg");
	if (s->loadavg_fd < 0)
		return 0;
	n = io_pread(s->loadavg_fd, j->text, sizeof(j->text));
	return n > 0 && last_pid_parse(j->text, (size_t)n, &pid) && pid < INT32_MAX ? (pid_t)pid
										    : 0;
}

static int by_pid(const void *a, const void *b)
{
	const struct newcomer *x = a, *y = b;

	return (x->pid > y->pid) - (x->pid < y->pid);
}

static int scan_all(struct jobtree *j, struct collect *c, pid_t last)
{
	int fd = j->files.proc;

	if (!c->host->live)
		fd = io_open(c->host->root, "proc");
	if (fd < 0)
		return fd;
	j->scan.round++;
	j->scan.found.n = 0;
	(void)list(j, c, fd, 0, last);
	if (!c->host->live) {
		close(fd);
		/* A folder has no order of its own; entity ids shall not depend on it. */
		if (j->scan.found.n)
			qsort(j->scan.found.v, j->scan.found.n, sizeof(*j->scan.found.v), by_pid);
	}
	forget_others(&j->scan);
	return 0;
}

/* Whether anything can be new, and from which pid on (0: list all). */
static bool is_due(const struct jobtree *j, const struct collect *c, pid_t last, pid_t *ret_from)
{
	const struct tree_scan *s = &j->scan;

	*ret_from = 0;
	if (!c->host->live || !s->started)
		return true;
	if (c->boot_ns < s->next_ns)
		return false;
	if (c->boot_ns >= s->next_full_ns || last <= 0)
		return true;
	if (last == s->mark && s->mark == s->mark_before)
		return false;
	if (s->seek > 0 && last >= s->mark_before)
		*ret_from = s->mark_before + 1;
	return true;
}

/* None of it may take more than 1/SCAN_SHARE of the time, but the first listing of a large machine
 * must not make us blind for what the job starts next, nor must one that was only for safety. */
static void pay(struct tree_scan *s, const struct collect *c, int64_t cost, bool full, pid_t last)
{
	int64_t next = c->boot_ns + SCAN_SHARE * cost;

	if (full)
		s->next_full_ns = c->boot_ns + FULL_EVERY_S * NS_PER_S;
	if (s->next_full_ns < next)
		s->next_full_ns = next;
	if (s->started && (!full || s->seek < 0 || last <= 0))
		s->next_ns = next;
}

int jobtree_scan(struct jobtree *j, struct collect *c, struct frame *f)
{
	struct tree_scan *s = &j->scan;
	pid_t last = read_last_pid(j), from;
	int64_t began;
	bool full;
	int r = 0;

	if (!is_due(j, c, last, &from))
		return 0;
	began = c->host->live ? clock_thread_cpu_ns() : 0;
	s->found.n = 0;
	full = !from || !list(j, c, j->files.proc, from, last);
	if (full)
		r = scan_all(j, c, last);
	if (c->host->live)
		pay(s, c, clock_thread_cpu_ns() - began, full, last);
	s->mark_before = s->started ? s->mark : last;
	s->mark = last;
	s->started = true;
	return r < 0 ? r : take_members(j, c, f);
}

int jobtree_parent(const struct jobtree *j, const struct collect *c, pid_t ppid)
{
	uint32_t slot;

	if (map_get(&j->by_pid, (uint64_t)ppid, &slot))
		return (int)slot;
	/* With a reaper nothing of the job falls to anybody else. */
	return c->job.reaper ? PARENT_REAPER : PARENT_NONE;
}

void jobtree_adopt(struct jobtree *j, const struct collect *c)
{
	for (size_t i = 0; i < j->procs.n && j->orphans; i++) {
		struct proc *p = &j->procs.v[i];

		if (!p->used || !p->orphaned)
			continue;
		/* Who has it now is in its stat, and it may not run for hours. If it has just
		 * ended, the reaper is the best guess. */
		p->parent = proc_read_kids(j, p) == 0 ? jobtree_parent(j, c, p->ppid)
						      : jobtree_parent(j, c, c->job.reaper);
		p->orphaned = false;
	}
	j->orphans = false;
}

void jobtree_scan_done(struct tree_scan *s)
{
	vec_done(&s->found);
	vec_done(&s->stale);
	map_done(&s->others);
	if (s->loadavg_fd >= 0)
		close(s->loadavg_fd);
	s->loadavg_fd = -1;
}

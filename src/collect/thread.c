/* SPDX-License-Identifier: MIT
 *
 * Threads of the job: /proc/PID/task/TID/schedstat (0.6 to 0.8 us a pread on a kept descriptor;
 * kernel 2.6.9, CONFIG_SCHED_INFO) and, of a thread that ran, stat for its state and name (3 us).
 *
 *   812345678 12345678 912     ns on a CPU, ns ready and waiting for one, times put on one
 *
 * The kernel brings the first number up to date when the thread leaves the CPU and at the
 * scheduler's tick (1 to 10 ms, rarer on nohz_full), so that of a running thread is late by that
 * much.
 *
 * Which threads are read. Only those of a process whose CPU clock moved. Of these, a thread that
 * had not run for some readings (there may be hundreds: a training process has one per core for
 * each of its libraries) is left out as long as the others explain what the process used: the
 * process's clock is the sum of its threads', so time that no thread shows was used by one
 * that was left out, and then all are read. What is too little to show (below SLACK_NS, or hidden
 * by the lateness above) is seen within THREAD_COLD ticks, since every one of them has its turn.
 *
 * The list of threads is read when stat's count differs from ours or one of ours has ended; as long
 * as neither is so, it is the same.
 *
 * States. A thread cannot change its state without running, but for one case: woken and not yet on
 * a CPU it is R, while what is known is S until it has run. A thread last seen R that has not run
 * since is waiting for a CPU still. (Times are read before the state, so that a run after
 * the state was seen shows in the next times.)
 */
#include "collect/thread.h"

#include <string.h>

enum {
	THREAD_COLD = 8,
	SLACK_NS = 50 * 1000,
	LATE_NS = 4 * 1000 * 1000, /* a tick of CONFIG_HZ=250 */
};

struct thread *thread_new(struct collect *c, struct proc *p, pid_t tid)
{
	struct thread *t = vec_push(&p->threads);

	if (!t)
		return NULL;
	*t = (struct thread){ .tid = tid,
			      .id = collect_id(c),
			      .sched_fd = -1,
			      .stat_fd = -1,
			      .times = { -1, -1, -1 },
			      .ran = true,
			      .listed = true };
	return t;
}

void thread_announce(struct frame *f, const struct proc *p, const struct thread *t,
		     enum life_change change)
{
	const struct life life = {
		.change = change, .id = t->id, .parent = p->id, .kind = ENTITY_THREAD, .key = t->tid
	};

	frame_life(f, &life, t->name, NULL);
}

void thread_end(struct jobtree *j, struct frame *f, struct proc *p, struct thread *t)
{
	j->runnable -= t->state == 'R';
	proc_file_close(&j->files, &t->sched_fd);
	proc_file_close(&j->files, &t->stat_fd);
	if (t->times.run_ns > 0) {
		p->threads_ns -= t->times.run_ns;
		p->dead_threads_ns = add_up(p->dead_threads_ns, t->times.run_ns);
	}
	p->ended_switches = add_up(p->ended_switches, t->switches);
	p->ended_preemptions = add_up(p->ended_preemptions, t->preemptions);
	thread_announce(f, p, t, LIFE_GONE);
}

/* The times of a kernel that has no schedstat (or writes only zeros into it): CPU time in ticks,
 * the rest unknown. */
static int times_from_stat(struct jobtree *j, struct proc *p, struct thread *t,
			   struct schedstat *ret)
{
	ssize_t n = proc_file_read(&j->files, &t->stat_fd, p->pid, t->tid, "stat", j->text,
				   sizeof(j->text));
	struct proc_stat s;

	if (n < 0)
		return (int)n;
	if (!proc_stat_parse(j->text, (size_t)n, &s))
		return -EINVAL;
	*ret = (struct schedstat){ .run_ns = ticks_ns(j, s.utime + s.stime), -1, -1 };
	return 0;
}

/* -ESRCH or -ENOENT: the thread has ended. */
static int thread_times(struct jobtree *j, struct proc *p, struct thread *t, struct schedstat *ret)
{
	ssize_t n = proc_file_read(&j->files, &t->sched_fd, p->pid, t->tid, "schedstat", j->text,
				   sizeof(j->text));

	if (n >= 0 && !schedstat_parse(j->text, (size_t)n, ret))
		return -EINVAL;
	if (n >= 0 && (ret->run_ns | ret->slices))
		return 0;
	if (n < 0 && n != -ENOENT)
		return (int)n;
	return times_from_stat(j, p, t, ret);
}

int thread_read_first(struct jobtree *j, struct proc *p, struct schedstat *ret)
{
	return thread_times(j, p, &p->threads.v[0], ret);
}

static void note_no_schedstat(struct jobtree *j, struct frame *f)
{
	if (j->sched_gap)
		return;
	j->sched_gap = true;
	frame_gap(f, M_THREAD_RUN_DELAY, ID_JOB, GAP_NOT_SUPPORTED);
	frame_gap(f, M_THREAD_SLICES, ID_JOB, GAP_NOT_SUPPORTED);
}

bool thread_put(struct jobtree *j, struct frame *f, struct proc *p, struct thread *t,
		const struct schedstat *times)
{
	if (times->run_ns == t->times.run_ns && times->slices == t->times.slices &&
	    times->delay_ns == t->times.delay_ns) {
		t->still += t->still < THREAD_COLD;
		return false;
	}
	t->still = 0;
	t->ran = true;
	if (times->run_ns > t->times.run_ns) {
		p->threads_ns = add_up(p->threads_ns,
				       times->run_ns - (t->times.run_ns > 0 ? t->times.run_ns : 0));
		t->times.run_ns = times->run_ns;
		frame_put(f, M_THREAD_CPU, t->id, times->run_ns);
	}
	put_counter(f, M_THREAD_RUN_DELAY, t->id, &t->times.delay_ns, times->delay_ns);
	put_counter(f, M_THREAD_SLICES, t->id, &t->times.slices, times->slices);
	if (times->slices < 0 && times->run_ns > 0)
		note_no_schedstat(j, f);
	return true;
}

void thread_put_state(struct jobtree *j, struct frame *f, struct proc *p, struct thread *t,
		      const struct stat_head *head)
{
	if (head->state != t->state) {
		j->runnable += (head->state == 'R') - (t->state == 'R');
		t->state = head->state;
		frame_put(f, M_THREAD_STATE, t->id, (unsigned char)head->state);
	}
	if (!proc_name_same(t->name, sizeof(t->name), head->name, head->name_n)) {
		proc_name_copy(t->name, sizeof(t->name), head->name, head->name_n);
		thread_announce(f, p, t, LIFE_CHANGED);
	}
}

static int read_head(struct jobtree *j, struct proc *p, struct thread *t, struct stat_head *ret)
{
	ssize_t n = proc_file_read(&j->files, &t->stat_fd, p->pid, t->tid, "stat", j->text,
				   sizeof(j->text));

	if (n < 0)
		return (int)n;
	return stat_head_parse(j->text, (size_t)n, ret) ? 0 : -EINVAL;
}

/* False when the thread has ended. An answer that makes no sense leaves its values as they are. */
static bool thread_read(struct jobtree *j, const struct collect *c, struct frame *f, struct proc *p,
			struct thread *t)
{
	struct schedstat times;
	struct stat_head head;
	int r = thread_times(j, p, t, &times);

	if (r < 0)
		return !proc_file_gone(r);
	if (!thread_put(j, f, p, t, &times))
		return true;
	/* States are the dear half: the first thing a thrifty recorder reads less often. */
	if (c->thrift > 1 && j->ticks % c->thrift)
		return true;
	r = read_head(j, p, t, &head);
	if (r == 0)
		thread_put_state(j, f, p, t, &head);
	return !proc_file_gone(r);
}

static void thread_add(struct jobtree *j, struct collect *c, struct frame *f, struct proc *p,
		       pid_t tid)
{
	struct thread *t = thread_new(c, p, tid);
	struct schedstat times;
	struct stat_head head;

	if (!t) {
		f->failed = true;
		return;
	}
	if (thread_times(j, p, t, &times) < 0 || read_head(j, p, t, &head) < 0) {
		/* It ended in between, unannounced. */
		proc_file_close(&j->files, &t->sched_fd);
		proc_file_close(&j->files, &t->stat_fd);
		p->threads.n--;
		return;
	}
	proc_name_copy(t->name, sizeof(t->name), head.name, head.name_n);
	thread_announce(f, p, t, LIFE_BORN);
	thread_put_state(j, f, p, t, &head);
	thread_put(j, f, p, t, &times);
}

/* Listing and ours are both in the order of birth, so that the next one is nearly always at hand.
 * */
static struct thread *find_listed(struct proc *p, pid_t tid, size_t *hint)
{
	if (*hint < p->threads.n && p->threads.v[*hint].tid == tid)
		return &p->threads.v[(*hint)++];
	for (size_t i = 0; i < p->threads.n; i++) {
		if (p->threads.v[i].tid != tid)
			continue;
		*hint = i + 1;
		return &p->threads.v[i];
	}
	return NULL;
}

static void drop_unlisted(struct jobtree *j, struct frame *f, struct proc *p)
{
	size_t kept = 1; /* the first lasts as long as the process */

	for (size_t i = 1; i < p->threads.n; i++) {
		if (p->threads.v[i].listed)
			p->threads.v[kept++] = p->threads.v[i];
		else
			thread_end(j, f, p, &p->threads.v[i]);
	}
	p->threads.n = kept;
}

static void thread_list(struct jobtree *j, struct collect *c, struct frame *f, struct proc *p)
{
	int fd = proc_file_tasks(&j->files, p->pid);
	size_t hint = 0, n = 0;
	int64_t tid;

	if (fd < 0)
		return;
	for (size_t i = 0; i < p->threads.n; i++)
		p->threads.v[i].listed = false;
	io_dir_begin(&j->dir, fd);
	for (; (tid = io_dir_next_number(&j->dir)) > 0; n++) {
		struct thread *t = find_listed(p, (pid_t)tid, &hint);

		if (t)
			t->listed = true;
		else
			thread_add(j, c, f, p, (pid_t)tid);
	}
	close(fd);
	if (n) /* an empty list is a process that ended under our hands */
		drop_unlisted(j, f, p);
}

struct sweep {
	int running;
	bool ended;
};

/* Reads the threads that ran lately and a part of the others, or (cold) the rest of the others. */
static void sweep_threads(struct jobtree *j, struct collect *c, struct frame *f, struct proc *p,
			  bool cold, struct sweep *s)
{
	for (size_t i = 1; i < p->threads.n; i++) {
		struct thread *t = &p->threads.v[i];
		bool turn = t->still < THREAD_COLD || (i + j->ticks) % THREAD_COLD == 0;

		if (turn != cold && !thread_read(j, c, f, p, t))
			s->ended = true;
		s->running += t->state == 'R' && turn != cold;
	}
}

void thread_read_others(struct jobtree *j, struct collect *c, struct frame *f, struct proc *p,
			int64_t count)
{
	struct sweep s = { .running = p->threads.v[0].state == 'R' };
	bool all = !j->gate;

	if (count == 1 && p->threads.n == 1)
		return;
	if (count != (int64_t)p->threads.n) {
		thread_list(j, c, f, p);
		all = true;
	}
	sweep_threads(j, c, f, p, false, &s);
	if (!all)
		all = p->own_ns - p->dead_threads_ns - p->threads_ns >
		      SLACK_NS + (int64_t)s.running * LATE_NS;
	if (all) {
		int64_t rest;

		sweep_threads(j, c, f, p, true, &s);
		rest = p->own_ns - p->threads_ns - (int64_t)s.running * LATE_NS;
		if (rest > p->dead_threads_ns)
			p->dead_threads_ns = rest;
	}
	if (s.ended)
		thread_list(j, c, f, p);
}

/* SPDX-License-Identifier: MIT
 *
 * One active process: /proc/PID/stat (1.7 to 3.4 us a pread on a kept descriptor), statm (0.7 to
 * 1.1), io (1.0 to 1.5; needs the right to ptrace-read the process), then its threads. Samples of
 * the texts are in proc_parse.c.
 *
 * RSS is statm's, not stat's: since kernel 6.2 the counters are per CPU and only statm adds them
 * all up. (An idle process loses pages too, to reclaim: proc_slow.c looks.)
 */
#include "collect/thread.h"

#include "base/text.h"

#include <math.h>
#include <string.h>

/* Became another program, or only changed its name? An exec moves stack and code (at random, and
 * with the length of arguments and environment even where that is switched off), a new name alone
 * does not. Who may not see the addresses must take a new name for a new program. In the middle of an
 * exec there are none, nor arguments, nor an environment: whoever asked then has to ask again. */
static void check_image(struct jobtree *j, struct frame *f, struct proc *p,
			const struct proc_stat *s)
{
	bool renamed = !proc_name_same(p->name, sizeof(p->name), s->head.name, s->head.name_n);
	bool moved = s->image && p->image && s->image != p->image;
	bool exec = moved || (renamed && !s->image && !p->zombie);
	bool settled = s->image && !p->image && !p->fresh;
	char before[64], after[64];

	if (s->image)
		p->image = s->image;
	if (!renamed && !moved && !settled)
		return;
	text_safe_copy(before, sizeof(before), p->name);
	proc_name_copy(p->name, sizeof(p->name), s->head.name, s->head.name_n);
	proc_announce(j, f, p, LIFE_CHANGED, proc_cmdline(j, p->pid));
	if (!exec && !settled)
		return;
	if (exec)
		frame_event(f, EVENT_EXEC, p->id, (double)NAN, "%s (%d) became %s", before,
			    (int)p->pid, text_safe_copy(after, sizeof(after), p->name));
	/* Another program may have other rights: what was refused is tried again. */
	if (p->io == IO_REFUSED)
		p->io = IO_RETRY;
	if (p->smaps == IO_REFUSED)
		p->smaps = IO_RETRY;
}

static void note_kids(struct jobtree *j, struct proc *p, const struct proc_stat *s)
{
	p->account.next_ns = ticks_ns(j, s->child_utime + s->child_stime);
	if (p->fresh)
		p->account.kids_ns = p->account.next_ns;
	j->kids_moved |= p->account.next_ns != p->account.kids_ns;
	if (s->ppid != p->ppid) {
		p->ppid = (pid_t)s->ppid;
		p->orphaned = j->orphans = true;
	}
}

/* The children of a zombie are somebody else's already. */
static void orphan_children(struct jobtree *j, const struct proc *p)
{
	int slot = (int)(p - j->procs.v);

	for (size_t i = 0; i < j->procs.n; i++)
		if (j->procs.v[i].used && j->procs.v[i].parent == slot)
			j->procs.v[i].orphaned = j->orphans = true;
}

/* 0 with the parsed stat (its name points into j->text), -ESRCH when the process has ended,
 * -EINVAL when the text makes no sense. */
static int read_stat(struct jobtree *j, struct proc *p, struct proc_stat *ret)
{
	ssize_t n =
	    proc_file_read(&j->files, &p->stat_fd, p->pid, 0, "stat", j->text, sizeof(j->text));

	if (n < 0)
		return proc_file_gone(n) ? -ESRCH : (int)n;
	if (!proc_stat_parse(j->text, (size_t)n, ret))
		return -EINVAL;
	/* Without a kept descriptor the pid may be another's by now. */
	if (ret->start != p->start)
		return -ESRCH;
	if (ret->head.state == 'Z' && ret->threads <= 1) {
		if (!p->zombie)
			orphan_children(j, p);
		p->zombie = true;
		/* Written to those who may see the addresses; others read 0. */
		if (p->image && !proc_stat_exit_code(j->text, (size_t)n, &p->exit_code))
			p->exit_code = -1;
	}
	return 0;
}

int proc_read_kids(struct jobtree *j, struct proc *p)
{
	struct proc_stat s;
	int r = read_stat(j, p, &s);

	if (r == 0)
		note_kids(j, p, &s);
	return r == -ESRCH ? r : 0;
}

static int64_t pages_kb(const struct jobtree *j, int64_t pages)
{
	return pages < INT64_MAX / 4096 / j->page_kb ? pages * j->page_kb : INT64_MAX / 4096;
}

void proc_put_statm(struct jobtree *j, struct frame *f, struct proc *p)
{
	ssize_t n =
	    proc_file_read(&j->files, &p->statm_fd, p->pid, 0, "statm", j->text, sizeof(j->text));
	struct proc_statm m;

	if (n < 0 || !proc_statm_parse(j->text, (size_t)n, &m))
		return;
	put_gauge(f, M_PROC_RSS, p->id, &p->last.rss, pages_kb(j, m.resident));
	put_gauge(f, M_PROC_RSS_SHARED, p->id, &p->last.shared, pages_kb(j, m.shared));
	put_gauge(f, M_PROC_VIRTUAL, p->id, &p->last.virtual, pages_kb(j, m.size));
}

static const enum metric_id io_metrics[] = { M_PROC_READ_CHARS, M_PROC_WRITE_CHARS,
					     M_PROC_READS,      M_PROC_WRITES,
					     M_PROC_READ_BYTES, M_PROC_WRITTEN_BYTES };

static void put_io_gaps(struct frame *f, const struct proc *p, enum gap_why why)
{
	for (size_t i = 0; i < sizeof(io_metrics) / sizeof(io_metrics[0]); i++)
		frame_gap(f, io_metrics[i], p->id, why);
}

/* Refused once is refused until the next exec; told once. */
static void refuse_io(struct jobtree *j, struct frame *f, struct proc *p, ssize_t r)
{
	bool allowed = proc_file_gone(r);

	if (allowed && j->files.host->live && !j->no_io)
		return; /* it has just ended */
	proc_file_close(&j->files, &p->io_fd);
	if (p->io == IO_UNKNOWN || p->io == IO_OK)
		put_io_gaps(f, p, allowed ? GAP_NOT_SUPPORTED : GAP_NO_PERMISSION);
	p->io = IO_REFUSED;
}

static void put_io(struct jobtree *j, struct frame *f, struct proc *p)
{
	struct proc_io io;
	ssize_t n;

	if (p->io == IO_REFUSED)
		return;
	n = proc_file_read(&j->files, &p->io_fd, p->pid, 0, "io", j->text, sizeof(j->text));
	if (n < 0) {
		refuse_io(j, f, p, n);
		return;
	}
	if (!proc_io_parse(j->text, (size_t)n, &io))
		return;
	if (p->io == IO_RETRY)
		put_io_gaps(f, p, GAP_OVER);
	p->io = IO_OK;
	put_counter(f, M_PROC_READ_CHARS, p->id, &p->last.read_chars, io.rchar);
	put_counter(f, M_PROC_WRITE_CHARS, p->id, &p->last.write_chars, io.wchar);
	put_counter(f, M_PROC_READS, p->id, &p->last.reads, io.syscr);
	put_counter(f, M_PROC_WRITES, p->id, &p->last.writes, io.syscw);
	put_counter(f, M_PROC_READ_BYTES, p->id, &p->last.read_bytes, io.read_bytes);
	put_counter(f, M_PROC_WRITTEN_BYTES, p->id, &p->last.written_bytes,
		    io.write_bytes - io.cancelled);
}

static void put_stat(struct frame *f, struct proc *p, const struct proc_stat *s)
{
	struct proc_values *v = &p->last;

	put_counter(f, M_PROC_CPU, p->id, &v->cpu, p->own_ns);
	put_counter(f, M_PROC_CPU_USER, p->id, &v->user, s->utime);
	put_counter(f, M_PROC_CPU_SYSTEM, p->id, &v->kernel, s->stime);
	put_counter(f, M_PROC_CPU_CHILDREN, p->id, &v->children, s->child_utime + s->child_stime);
	put_counter(f, M_PROC_MINOR_FAULTS, p->id, &v->minor_faults, s->minor_faults);
	put_counter(f, M_PROC_MAJOR_FAULTS, p->id, &v->major_faults, s->major_faults);
	put_gauge(f, M_PROC_THREADS, p->id, &v->threads, s->threads);
	put_gauge(f, M_PROC_STATE, p->id, &v->state, (unsigned char)s->head.state);
}

int proc_read(struct jobtree *j, struct collect *c, struct frame *f, int slot, int64_t own_ns)
{
	struct proc *p = &j->procs.v[slot];
	struct schedstat first;
	struct proc_stat s;
	int first_ok, r;

	first_ok = thread_read_first(j, p, &first);
	r = read_stat(j, p, &s);
	if (r < 0)
		return r == -ESRCH ? r : 0; /* nonsense for once: what is known holds */
	if (own_ns < 0)
		own_ns = ticks_ns(j, s.utime + s.stime);
	if (own_ns > p->own_ns)
		p->own_ns = own_ns;
	p->ran = p->ran_pss = true;
	note_kids(j, p, &s);
	put_stat(f, p, &s);
	/* These two point into j->text, so they come before it is used again. */
	check_image(j, f, p, &s);
	thread_put_state(j, f, p, &p->threads.v[0], &s.head);
	if (first_ok == 0)
		(void)thread_put(j, f, p, &p->threads.v[0], &first);
	proc_put_statm(j, f, p);
	put_io(j, f, p);
	thread_read_others(j, c, f, p, s.threads);
	p->fresh = false;
	return 0;
}

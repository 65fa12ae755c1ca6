/* SPDX-License-Identifier: MIT
 *
 * The processes and threads of the job. Cost follows activity: of every member its CPU clock is
 * asked first (clock_gettime of a clock made from the pid, 0.3 us, no descriptor, other users'
 * too). If that stands still nothing in the process ran and nothing of it is read; if it moved,
 * see proc_read.c. What is put is what changed (metrics.def: values hold).
 *
 * Parts: jobtree.h.
 */
#include "collect/proc.h"

#include "base/clock.h"
#include "collect/jobtree.h"

#include <limits.h>
#include <string.h>

static int proc_open(struct collect *c, void *state, struct frame *f)
{
	struct jobtree *j = state;
	const struct host *h = c->host;
	int r = proc_files_open(&j->files, h);

	(void)f;
	if (r < 0)
		return r;
	j->scan.loadavg_fd = j->reaper_fd = -1;
	j->scan.seek = -1;
	j->pss_round = 1;
	j->ns_per_tick = NS_PER_S / h->ticks_per_s;
	j->page_kb = h->page_bytes / 1024;
	memset(&j->last, 0xff, sizeof(j->last));
	if (!h->live)
		return 0;
	/* Sandboxes that imitate Linux may lack these; asked of ourselves, so that "gone" means
	 * gone. */
	j->gate = clock_pid_cpu_ns(h->self) >= 0;
	j->no_io = proc_file_once(&j->files, h->self, 0, "io", j->text, sizeof(j->text)) == -ENOENT;
	j->no_smaps = proc_file_once(&j->files, h->self, 0, "smaps_rollup", j->page,
				     sizeof(j->page)) == -ENOENT;
	return 0;
}

static void read_members(struct jobtree *j, struct collect *c, struct frame *f)
{
	for (size_t i = 0; i < j->procs.n; i++) {
		const struct proc *p = &j->procs.v[i];
		int64_t own = -1;

		if (!p->used || p->gone)
			continue;
		if (j->gate) {
			own = clock_pid_cpu_ns(p->pid);
			if (own == p->own_ns)
				continue;
			if (own < 0) {
				proc_mark_gone(j, (int)i);
				continue;
			}
		}
		if (proc_read(j, c, f, (int)i, own) == -ESRCH)
			proc_mark_gone(j, (int)i);
	}
}

static void put_job(struct jobtree *j, const struct collect *c, struct frame *f)
{
	int64_t processes = 0, threads = 0, rss = 0;

	for (size_t i = 0; i < j->procs.n; i++) {
		const struct proc *p = &j->procs.v[i];

		if (!p->used || p->zombie)
			continue;
		processes++;
		threads = add_up(threads, p->last.threads > 0 ? p->last.threads : 1);
		rss = add_up(rss, p->last.rss > 0 ? p->last.rss : 0);
	}
	cpu_put(j, c, f);
	put_gauge(f, M_JOB_PROCESSES, ID_JOB, &j->last.processes, processes);
	put_gauge(f, M_JOB_THREADS, ID_JOB, &j->last.threads, threads);
	put_gauge(f, M_JOB_RUNNABLE, ID_JOB, &j->last.runnable, j->runnable);
	put_gauge(f, M_JOB_RSS, ID_JOB, &j->last.rss, rss);
}

static int proc_collect(struct collect *c, void *state, struct frame *f)
{
	struct jobtree *j = state;
	int r = jobtree_scan(j, c, f);

	read_members(j, c, f);
	cpu_settle(j, c);
	if (j->dead.n)
		proc_bury(j, f);
	if (j->orphans)
		jobtree_adopt(j, c);
	if (c->slow)
		proc_slow(j, c, f);
	put_job(j, c, f);
	j->ticks++;
	return r;
}

static void proc_close(void *state)
{
	struct jobtree *j = state;

	proc_table_done(j);
	jobtree_scan_done(&j->scan);
	proc_file_close(&j->files, &j->reaper_fd);
	proc_files_close(&j->files);
}

const struct collector proc_collector = {
	.name = "proc",
	.help = "processes and threads of the job: CPU, memory, IO, states",
	.state_size = sizeof(struct jobtree),
	.open = proc_open,
	.read = proc_collect,
	.close = proc_close,
	.sample_metric = M_PROC_CPU,
};

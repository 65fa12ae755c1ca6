/* SPDX-License-Identifier: MIT */
#include "cli/top_show.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/num.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/table.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

enum { LINE_PROCESSES = 3, COMMAND_WIDTH = 60 };

/* "12.1 of 64 GB" and its kind: nothing at all when a part of it is not known. */
static const char *cores_text(double v, char *buf, size_t size)
{
	snprintf(buf, size, "%.2f", v);
	return buf;
}

static void put_rate(struct buf *out, const char *label, double v)
{
	char text[32];

	if (!isnan(v))
		buf_printf(out, " %s %s/s", label, num_bytes(v, text, sizeof(text)));
}

static void put_share(struct buf *out, const char *label, double v)
{
	char text[32];

	if (!isnan(v))
		buf_printf(out, " %s %s", label, num_percent(v, text, sizeof(text)));
}

static bool any(double a, double b)
{
	return !isnan(a) || !isnan(b);
}

static void put_cpu(const struct snap_machine *m, struct buf *out)
{
	char used[32], cpus[32];

	buf_printf(out, "CPU      %s of %s cores used",
		   cores_text(m->cores_used, used, sizeof(used)),
		   num_cores(m->cpus, cpus, sizeof(cpus)));
	if (!isnan(m->user) && !isnan(m->kernel))
		buf_printf(out, " (user %.2f, kernel %.2f)", m->user, m->kernel);
	if (m->steal >= 0.01)
		buf_printf(out, ", %.2f stolen by the hypervisor", m->steal);
	if (m->iowait >= 0.01)
		buf_printf(out, ", %.2f idle while a disk is awaited", m->iowait);
	buf_char(out, '\n');
}

static void put_machine(const struct snap_machine *m, struct buf *out)
{
	char a[32], b[32];

	if (!isnan(m->cores_used) && !isnan(m->cpus))
		put_cpu(m, out);
	if (!isnan(m->memory_used)) {
		buf_printf(out, "Memory   %s of %s used", num_bytes(m->memory_used, a, sizeof(a)),
			   num_bytes(m->memory_total, b, sizeof(b)));
		if (m->swap_used > 0)
			buf_printf(out, ", %s in swap", num_bytes(m->swap_used, a, sizeof(a)));
		buf_char(out, '\n');
	}
	if (!isnan(m->load1))
		buf_printf(out, "Load     %.2f %.2f %.2f over 1, 5, 15 minutes\n", m->load1,
			   m->load5, m->load15);
	if (any(m->psi_cpu, m->psi_io)) {
		buf_str(out, "Waiting ");
		put_share(out, "for a CPU", m->psi_cpu);
		put_share(out, "  for memory", m->psi_memory);
		put_share(out, "  for IO", m->psi_io);
		buf_str(out, " of the time (some task)\n");
	}
	if (any(m->disk_read, m->disk_written)) {
		buf_str(out, "Disks   ");
		put_rate(out, "read", m->disk_read);
		put_rate(out, " written", m->disk_written);
		buf_char(out, '\n');
	}
	if (any(m->net_rx, m->net_tx)) {
		buf_str(out, "Network ");
		put_rate(out, "received", m->net_rx);
		put_rate(out, " sent", m->net_tx);
		buf_char(out, '\n');
	}
}

static void put_job(const struct snap_job *j, struct buf *out)
{
	char a[32], b[32];

	if (!j->present || isnan(j->cores))
		return;
	buf_printf(out, "Job      %s", cores_text(j->cores, a, sizeof(a)));
	if (!isnan(j->cores_allowed))
		buf_printf(out, " of %s cores allowed (%s)",
			   num_cores(j->cores_allowed, a, sizeof(a)),
			   num_percent(j->cores / j->cores_allowed, b, sizeof(b)));
	else
		buf_str(out, " cores");
	if (!isnan(j->rss))
		buf_printf(out, ", %s resident", num_bytes(j->rss, a, sizeof(a)));
	if (!isnan(j->processes) && !isnan(j->threads))
		buf_printf(out, ", %.0f process%s, %.0f thread%s", j->processes,
			   j->processes == 1 ? "" : "es", j->threads, j->threads == 1 ? "" : "s");
	buf_char(out, '\n');
}

static void cell_bytes(struct table *t, double v)
{
	char text[32];

	table_cell(t, isnan(v) ? "-" : num_bytes(v, text, sizeof(text)));
}

static void cell_cores(struct table *t, double v)
{
	if (isnan(v)) {
		table_cell(t, "-");
		table_cell(t, "-");
		return;
	}
	table_cellf(t, "%.2f", v);
	table_cellf(t, "%.0f%%", v * 100);
}

static void put_process(struct table *t, const struct snap_task *p)
{
	const struct entity *e = p->entity;
	char state[2] = { p->state ? p->state : '-', '\0' };

	table_cellf(t, "%lld", (long long)e->key);
	cell_cores(t, p->cores);
	cell_bytes(t, p->rss);
	cell_bytes(t, p->read);
	cell_bytes(t, p->written);
	if (isnan(p->threads))
		table_cell(t, "-");
	else
		table_cellf(t, "%.0f", p->threads);
	table_cell(t, state);
	table_cell(t, e->detail && e->detail[0] ? e->detail : e->name);
}

static void put_thread(struct table *t, const struct snap_task *p)
{
	char state[2] = { p->state ? p->state : '-', '\0' };

	table_cellf(t, "%lld", (long long)p->entity->key);
	cell_cores(t, p->cores);
	for (int i = 0; i < 4; i++)
		table_cell(t, "");
	table_cell(t, state);
	if (p->run_delay >= 0.005)
		table_cellf(t, "  thread %s (waits for a CPU %.0f %% of the time)", p->entity->name,
			    p->run_delay * 100);
	else
		table_cellf(t, "  thread %s", p->entity->name);
}

void top_put_screen(const struct cli *cli, const struct snapshot *v, size_t limit, struct buf *out)
{
	static const char *const names[] = { "PID",    "CORES",   "TOP'S %CPU", "MEMORY",
					     "READ/s", "WRITE/s", "THREADS",    "S" };
	auto_done(table) struct table t = { .bold = cli->color_out, .widest = COMMAND_WIDTH };
	size_t left;

	put_machine(&v->machine, out);
	top_put_gpus(v, out);
	put_job(&v->job, out);
	buf_char(out, '\n');
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		table_column(&t, names[i], i != ARRAY_LEN(names) - 1);
	table_column(&t, "COMMAND", false);
	for (size_t i = 0; i < v->processes.n && i < limit; i++) {
		const struct snap_task *p = &v->processes.v[i];

		put_process(&t, p);
		/* A process with one thread is that thread. */
		for (size_t k = 0; k < p->n_threads && p->n_threads > 1 && k < limit; k++)
			put_thread(&t, &v->threads.v[p->first_thread + k]);
	}
	table_print(&t, out);
	left = v->processes.n > limit ? v->processes.n - limit : 0;
	if (left)
		buf_printf(out, "and %zu more that use less\n", left);
}

void top_put_line(const struct snapshot *v, struct buf *out)
{
	const struct snap_machine *m = &v->machine;
	char a[32], b[32], time[40];

	clock_iso(v->wall_ns, time, sizeof(time));
	buf_str(out, time);
	if (!isnan(m->cores_used) && !isnan(m->cpus))
		buf_printf(out, " cpu %.2f/%s cores", m->cores_used,
			   num_cores(m->cpus, a, sizeof(a)));
	if (m->steal >= 0.01)
		buf_printf(out, " stolen %.2f", m->steal);
	if (!isnan(m->memory_used))
		buf_printf(out, " mem %s/%s", num_bytes(m->memory_used, a, sizeof(a)),
			   num_bytes(m->memory_total, b, sizeof(b)));
	if (!isnan(m->load1))
		buf_printf(out, " load %.2f", m->load1);
	put_share(out, "wait-cpu", m->psi_cpu);
	put_share(out, "wait-mem", m->psi_memory);
	put_share(out, "wait-io", m->psi_io);
	put_rate(out, "read", m->disk_read);
	put_rate(out, "write", m->disk_written);
	put_rate(out, "rx", m->net_rx);
	put_rate(out, "tx", m->net_tx);
	top_put_gpu_words(v, out);
	if (v->job.present && !isnan(v->job.cores))
		buf_printf(out, " | job %.2f/%s cores %s", v->job.cores,
			   isnan(v->job.cores_allowed)
			       ? "?"
			       : num_cores(v->job.cores_allowed, a, sizeof(a)),
			   isnan(v->job.rss) ? "" : num_bytes(v->job.rss, b, sizeof(b)));
	for (size_t i = 0; i < v->processes.n && i < LINE_PROCESSES; i++) {
		const struct snap_task *p = &v->processes.v[i];

		if (isnan(p->cores) || p->cores < 0.005)
			break;
		buf_printf(out, "%s", i ? ", " : " | ");
		text_safe(out, p->entity->name, strlen(p->entity->name));
		buf_printf(out, "[%lld] %.2f", (long long)p->entity->key, p->cores);
	}
	buf_char(out, '\n');
}

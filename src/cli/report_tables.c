/* SPDX-License-Identifier: MIT */
#include "cli/report_tables.h"

#include "base/auto.h"
#include "base/num.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/table.h"
#include "explain/rows.h"
#include "explain/verdict.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { PROCESSES_SHOWN = 30, EVENTS_SHOWN = 40, EVENT_WIDEST = 200 };

/* No figure of a machine is larger; one of an edited record may be. */
static const double figure_most = 1e24;

static void put_heading(const struct cli *cli, const char *text, struct buf *out)
{
	buf_printf(out, "\n%s%s%s\n", cli_ink(cli->color_out, INK_BOLD), text,
		   cli_ink(cli->color_out, INK_PLAIN));
}

/* A figure that is not known is "-"; its text is made by one of num_*(). */
static void cell_or_dash(struct table *t, double v,
			 const char *(*show)(double v, char *buf, size_t size))
{
	char text[32];

	table_cell(t, fabs(v) <= figure_most ? show(v, text, sizeof(text)) : "-");
}

static void put_process(struct table *t, const struct process_row *r)
{
	const struct entity *e = r->entity;
	const char *command = e->detail && e->detail[0] ? e->detail : e->name;
	char text[32];

	table_cellf(t, "%lld", (long long)e->key);
	cell_or_dash(t, r->cpu_s, num_seconds);
	table_cell(t, num_seconds(r->lived_s, text, sizeof(text)));
	cell_or_dash(t, r->rss_peak, num_bytes);
	cell_or_dash(t, r->read, num_bytes);
	cell_or_dash(t, r->written, num_bytes);
	table_cell(t, command);
}

static void put_processes(const struct cli *cli, const struct window *w, struct buf *out)
{
	auto_free struct process_row *rows = NULL;
	size_t n = process_rows(w, &rows);
	auto_done(table) struct table t = { .bold = cli->color_out, .widest = 60 };
	static const char *const names[] = { "PID",         "CPU TIME", "LIVED",
					     "MOST MEMORY", "READ",     "WRITTEN" };

	if (!n)
		return;
	put_heading(cli, "Processes", out);
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		table_column(&t, names[i], true);
	table_column(&t, "COMMAND", false);
	for (size_t i = 0; i < n && i < PROCESSES_SHOWN; i++)
		put_process(&t, &rows[i]);
	table_print(&t, out);
	if (n > PROCESSES_SHOWN)
		buf_printf(out, "and %zu more that used less\n", n - PROCESSES_SHOWN);
}

static void cell_unit(struct table *t, double v, const char *unit)
{
	if (fabs(v) <= figure_most)
		table_cellf(t, "%.0f %s", v, unit);
	else
		table_cell(t, "-");
}

static void put_gpu_number(struct table *t, const struct usage_gpu *g)
{
	if (g->partition < 0)
		table_cellf(t, "%d", g->index);
	else
		table_cellf(t, "%d:%d", g->index, g->partition);
}

/* Joules as people buy them: watt hours from an hour of a light bulb on. */
static void put_energy(struct table *t, double joules)
{
	if (joules >= 36e3)
		table_cellf(t, joules < 36e6 ? "%.0f Wh" : "%.1f kWh",
			    joules < 36e6 ? joules / 3600 : joules / 3.6e6);
	else
		cell_unit(t, joules, "J");
}

static void put_gpu(struct table *t, const struct usage_gpu *g, bool spans)
{
	char clock[32], text[160];

	put_gpu_number(t, g);
	if (spans) {
		usage_gpu_read(g, text, sizeof(text));
		table_cell(t, text[0] ? text : "throughout");
	}
	if (isfinite(g->busy) && g->busy_at_least)
		table_cellf(t, ">= %s", num_percent(g->busy, clock, sizeof(clock)));
	else
		cell_or_dash(t, g->busy, num_percent);
	cell_or_dash(t, g->sm_active, num_percent);
	cell_or_dash(t, g->memory_used, num_bytes);
	cell_or_dash(t, g->memory_peak, num_bytes);
	if (g->unified && isfinite(g->memory_total))
		table_cellf(t, "%s, shared with the machine",
			    num_bytes(g->memory_total, clock, sizeof(clock)));
	else if (g->unified)
		table_cell(t, "shared with the machine");
	else
		cell_or_dash(t, g->memory_total, num_bytes);
	cell_unit(t, g->power, "W");
	put_energy(t, g->energy);
	cell_unit(t, g->temperature, "C");
	snprintf(clock, sizeof(clock), "of %.0f MHz", g->clock_max / 1e6);
	if (isfinite(g->clock) && isfinite(g->clock_max))
		table_cellf(t, "%.0f %s", g->clock / 1e6, clock);
	else
		cell_unit(t, g->clock / 1e6, "MHz");
	table_cell(t, g->held[0] ? g->held : "-");
	table_cell(t, g->job > 0 ? "yes" : g->allowed == 0 ? "hidden" : g->job == 0 ? "no" : "?");
	table_cellf(t, "%s%s", usage_gpu_name(g, text, sizeof(text)),
		    g->simulated ? " (simulated)" : "");
}

static void put_gpus(const struct cli *cli, const struct usage *u, struct buf *out)
{
	auto_done(table) struct table t = { .bold = cli->color_out, .widest = 60 };
	static const char *const names[] = { "GPU",   "BUSY",  "SM ACTIVE", "MEMORY",  "PEAK",
					     "TOTAL", "POWER", "ENERGY",    "HOTTEST", "CLOCK" };

	bool spans = false;

	if (!u->gpus.n)
		return;
	for (size_t i = 0; i < u->gpus.n; i++)
		spans |= u->gpus.v[i].state || isfinite(u->gpus.v[i].seen);
	put_heading(cli, "GPUs", out);
	table_column(&t, names[0], true);
	if (spans)
		table_column(&t, "READ", false);
	for (size_t i = 1; i < ARRAY_LEN(names); i++)
		table_column(&t, names[i], true);
	table_column(&t, "HELD BACK BY", false);
	table_column(&t, "JOB", false);
	table_column(&t, "NAME", false);
	for (size_t i = 0; i < u->gpus.n; i++)
		put_gpu(&t, &u->gpus.v[i], spans);
	table_print(&t, out);
}

static void put_gpu_processes(const struct cli *cli, const struct usage *u, struct buf *out)
{
	auto_done(table) struct table t = { .bold = cli->color_out, .widest = 60 };
	static const char *const names[] = { "GPU", "PID", "MEMORY", "BUSY" };
	size_t left_out = 0;

	if (!u->gpu_processes.n)
		return;
	put_heading(cli, "Processes on GPUs", out);
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		table_column(&t, names[i], true);
	table_column(&t, "WHOSE", false);
	table_column(&t, "NAME", false);
	for (size_t i = 0; i < u->gpus.n; i++) {
		const struct usage_gpu *g = &u->gpus.v[i];

		for (size_t k = 0; k < g->n_processes; k++) {
			const struct usage_gpu_process *p =
			    &u->gpu_processes.v[g->first_process + k];

			put_gpu_number(&t, g);
			if (p->pid > 0)
				table_cellf(&t, "%lld", (long long)p->pid);
			else
				table_cell(&t, "?");
			cell_or_dash(&t, p->memory, num_bytes);
			cell_or_dash(&t, p->busy, num_percent);
			table_cell(&t, p->job > 0 ? "job" : p->job == 0 ? "other" : "not known");
			table_cell(&t, p->name);
		}
		left_out += g->left_out;
	}
	table_print(&t, out);
	if (left_out)
		buf_printf(out, "and %zu more that had less memory\n", left_out);
}

static void put_events(const struct cli *cli, const struct window *w, struct buf *out)
{
	const struct run_info *run = window_run(w);
	auto_done(table) struct table t = { .bold = cli->color_out, .widest = EVENT_WIDEST };
	struct event_row rows[EVENTS_SHOWN];
	size_t left, shown = event_rows(w, rows, EVENTS_SHOWN, &left);

	table_column(&t, "AFTER", true);
	table_column(&t, "EVENT", false);
	table_column(&t, "WHAT", false);
	for (size_t i = 0; i < shown; i++) {
		const struct window_event *e = rows[i].event;
		char text[32];

		table_cell(&t, num_seconds(((double)e->t_ns - (double)run->started_mono_ns) / 1e9,
					   text, sizeof(text)));
		table_cell(&t, event_kind_name(e->kind));
		if (rows[i].times > 1)
			table_cellf(&t, "%s (%zu processes)", e->text, rows[i].times);
		else
			table_cell(&t, e->text ? e->text : "");
	}
	if (!shown)
		return;
	put_heading(cli, "Events", out);
	table_print(&t, out);
	if (left)
		buf_printf(out, "and %zu more: spotter sql 'SELECT * FROM event'\n", left);
}

/* The metrics that were missing for this reason, each once, however many things lack it. */
static void list_gaps(const struct window *w, enum gap_why why, bool *seen, struct buf *out)
{
	size_t n = 0;
	const struct window_gap *gaps = w->ops->gaps(w->src, &n);
	auto_done(buf) struct buf line = { 0 };

	for (size_t i = 0; i < n; i++) {
		enum metric_id m = gaps[i].metric;

		if (m <= M_NONE || m >= METRICS || seen[m] || gaps[i].why != why)
			continue;
		seen[m] = true;
		if (line.len)
			buf_printf(&line, ", %s", metrics[m].name);
		else
			buf_printf(&line, "%s: %s", gap_why_name(why), metrics[m].name);
	}
	help_wrap(buf_text(&line), 0, 100, out);
}

static void put_gaps(const struct cli *cli, const struct window *w, struct buf *out)
{
	auto_done(buf) struct buf text = { 0 };
	bool seen[METRICS] = { false };

	for (int why = 0; why < GAP_OVER; why++)
		list_gaps(w, why, seen, &text);
	if (!text.len)
		return;
	put_heading(cli, "Not measured", out);
	buf_put(out, text.data, text.len);
}

void report_tables(struct cli *cli, const struct window *w, const struct usage *u)
{
	put_processes(cli, w, &cli->out);
	put_gpus(cli, u, &cli->out);
	put_gpu_processes(cli, u, &cli->out);
	put_events(cli, w, &cli->out);
	put_gaps(cli, w, &cli->out);
}

/* SPDX-License-Identifier: MIT
 *
 * The verdict without a limit, and behind it what it rests on: who ran, what happened, what could
 * not be read.
 */
#include "cli/command.h"

#include "base/auto.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/num.h"
#include "base/text.h"
#include "cli/judge.h"
#include "cli/report_ledger.h"
#include "cli/report_steps.h"
#include "cli/table.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PROCESSES_SHOWN = 30, EVENTS_SHOWN = 40, EVENT_WIDEST = 200 };

/* No figure of a machine is larger; one of an edited record may be. */
static const double figure_most = 1e24;

struct report_options {
	struct common_options common;
	int64_t duration_ns;
	int64_t step; /* -1: all of it */
};

struct process_row {
	const struct entity *entity;
	double cpu_s, rss_peak, read, written;
};

static int by_cpu(const void *a, const void *b)
{
	const struct process_row *x = a, *y = b;
	double dx = isnan(x->cpu_s) ? -1 : x->cpu_s, dy = isnan(y->cpu_s) ? -1 : y->cpu_s;

	if (dx != dy)
		return dx < dy ? 1 : -1;
	return x->entity->id < y->entity->id ? -1 : 1;
}

static double delta_or_nan(const struct window *w, enum metric_id m, uint32_t id)
{
	double v = NAN;

	window_delta(w, m, id, &v);
	return v;
}

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

static void put_process(struct table *t, const struct window *w, const struct process_row *r)
{
	const struct entity *e = r->entity;
	const char *command = e->detail && e->detail[0] ? e->detail : e->name;
	int64_t end = e->gone_ns ? e->gone_ns : w->to_ns;
	char text[32];

	table_cellf(t, "%lld", (long long)e->key);
	cell_or_dash(t, r->cpu_s, num_seconds);
	table_cell(t, num_seconds((double)(end - e->born_ns) / 1e9, text, sizeof(text)));
	cell_or_dash(t, r->rss_peak, num_bytes);
	cell_or_dash(t, r->read, num_bytes);
	cell_or_dash(t, r->written, num_bytes);
	table_cell(t, command);
}

static void put_processes(const struct cli *cli, const struct window *w, struct buf *out)
{
	const struct entity_table *all = window_entities(w);
	auto_free struct process_row *rows = calloc(all->rows.n + 1, sizeof(*rows));
	auto_done(table) struct table t = { .bold = cli->color_out, .widest = 60 };
	static const char *const names[] = { "PID",         "CPU TIME", "LIVED",
					     "MOST MEMORY", "READ",     "WRITTEN" };
	size_t n = 0;

	for (size_t i = 0; rows && i < all->rows.n; i++) {
		const struct entity *e = &all->rows.v[i];

		if (e->kind != ENTITY_PROC)
			continue;
		rows[n] = (struct process_row){ e, delta_or_nan(w, M_PROC_CPU, e->id), NAN,
						delta_or_nan(w, M_PROC_READ_BYTES, e->id),
						delta_or_nan(w, M_PROC_WRITTEN_BYTES, e->id) };
		window_max(w, M_PROC_RSS, e->id, &rows[n++].rss_peak);
	}
	if (!n)
		return;
	qsort(rows, n, sizeof(*rows), by_cpu);
	put_heading(cli, "Processes", out);
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		table_column(&t, names[i], true);
	table_column(&t, "COMMAND", false);
	for (size_t i = 0; i < n && i < PROCESSES_SHOWN; i++)
		put_process(&t, w, &rows[i]);
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

/* The same of another process: how stacks are read is told of each. */
static bool same_event(const struct window_event *a, const struct window_event *b)
{
	return a->kind == EVENT_STACKS && b->kind == EVENT_STACKS && a->text && b->text &&
	       strcmp(a->text, b->text) == 0;
}

struct shown_event {
	const struct window_event *event;
	size_t times;
};

/* Those to show, and how many processes each is told of. */
static size_t fold_events(const struct window_event *events, size_t n, struct shown_event *ret,
			  size_t *ret_left)
{
	size_t shown = 0;

	*ret_left = 0;
	for (size_t i = 0; i < n; i++) {
		size_t k = 0;

		while (k < shown && !same_event(&events[i], ret[k].event))
			k++;
		if (k < shown)
			ret[k].times++;
		else if (shown < EVENTS_SHOWN)
			ret[shown++] = (struct shown_event){ &events[i], 1 };
		else
			++*ret_left;
	}
	return shown;
}

static void put_events(const struct cli *cli, const struct window *w, struct buf *out)
{
	const struct run_info *run = window_run(w);
	auto_done(table) struct table t = { .bold = cli->color_out, .widest = EVENT_WIDEST };
	struct shown_event rows[EVENTS_SHOWN];
	size_t n = 0, left, shown;
	const struct window_event *events = w->ops->events(w->src, &n);

	table_column(&t, "AFTER", true);
	table_column(&t, "EVENT", false);
	table_column(&t, "WHAT", false);
	shown = fold_events(events, n, rows, &left);
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

static int run_report(struct cli *cli, void *options, const struct opt_rest *rest)
{
	const struct report_options *o = options;
	struct render_style style = { .color = cli->color_out,
				      .width = cli_columns(STDOUT_FILENO),
				      .no_tables = true };
	struct judged j;
	struct err e = { 0 };
	int r = judge(cli, rest->n ? rest->v[0] : NULL, o->duration_ns, &j, &e);

	if (r == 0 && o->step >= 0) {
		r = report_step(cli, &j.window, &j.verdict.steps, (uint64_t)o->step, o->common.json,
				&e);
	} else if (r == 0 && o->common.json) {
		render_json(&j.verdict, &cli->out);
	} else if (r == 0) {
		render_text(&j.verdict, &style, &cli->out);
		report_steps(&j.window, &j.verdict.steps, cli->color_out, &cli->out);
		report_time(&j.verdict, cli->color_out, &cli->out);
		report_cpu(&j.verdict, cli->color_out, &cli->out);
		put_processes(cli, &j.window, &cli->out);
		put_gpus(cli, &j.verdict.usage, &cli->out);
		put_gpu_processes(cli, &j.verdict.usage, &cli->out);
		put_events(cli, &j.window, &cli->out);
		put_gaps(cli, &j.window, &cli->out);
	}
	judged_done(&j);
	return r == 0 ? EXIT_OK : cli_fail(cli, &e);
}

static const struct example examples[] = {
	{ "report", "the last run, the whole story" },
	{ "report train.py | less", "another one" },
	{ "report --step 412", "what happened in one step" },
	{ NULL, NULL },
};

static const struct opt opts[] = {
	OPT("for", 0, OPT_DURATION, "TIME", struct report_options, duration_ns,
	    "how long to look at a process that runs now (default 5s)", .min = 0.2, .max = 3600),
	OPT("step", 0, OPT_INT, "N", struct report_options, step,
	    "only step N: its time, data wait and loss, what its thread did, CPU, memory and GPUs "
	    "during it, and what differed from the other steps",
	    .min = 0, .max = 9e15),
	JSON_OPT,
	COMMON_OPTS,
	OPT_END,
};

static const struct report_options defaults = { .duration_ns = 5 * NS_PER_S, .step = -1 };

const struct command report_command = {
	.name = "report",
	.group = "explain",
	.summary = "the whole story of a run",
	.words = "[RUN|PID]",
	.description =
	    "The verdict of 'spotter why', and what it rests on: ranks, loss and the slowest steps "
	    "with what differed in them, where the time of the critical thread went, who used the "
	    "CPU and in which functions, the processes of the job by the "
	    "CPU time they used, GPUs and who was on them, what happened when, and what could not "
	    "be read on this machine.",
	.examples = examples,
	.opts = opts,
	.options_size = sizeof(struct report_options),
	.defaults = &defaults,
	.max_words = 1,
	.run = run_report,
};

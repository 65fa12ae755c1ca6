/* SPDX-License-Identifier: MIT */
#include "cli/report_steps.h"

#include "base/auto.h"
#include "base/err.h"
#include "base/json.h"
#include "base/num.h"
#include "cli/command.h"
#include "cli/table.h"
#include "explain/render.h"
#include "explain/rows.h"
#include "explain/step_story.h"
#include "explain/verdict.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { RANKS_SHOWN = 64, SAME_NUMBER_MAX = 64, WHAT_WIDEST = 100, SETTINGS_SHOWN = 200 };

static void put_heading(const char *text, bool color, struct buf *out)
{
	buf_printf(out, "\n%s%s%s\n", cli_ink(color, INK_BOLD), text, cli_ink(color, INK_PLAIN));
}

static void cell_or_dash(struct table *t, double v,
			 const char *(*show)(double v, char *buf, size_t size))
{
	char text[32];

	table_cell(t, isfinite(v) ? show(v, text, sizeof(text)) : "-");
}

static void cell_number(struct table *t, double v)
{
	if (isfinite(v))
		table_cellf(t, "%.6g", v);
	else
		table_cell(t, "-");
}

/* More than one process that makes steps. */
static void put_ranks(const struct steps *s, bool color, struct buf *out)
{
	auto_done(table) struct table t = { .bold = color };
	static const char *const names[] = { "RANK",   "PID",       "STEPS",    "A SECOND",
					     "MEDIAN", "DATA WAIT", "OWN WORK", "COMM WAIT" };

	bool nodes = false;

	if (s->groups.n < 2)
		return;
	for (size_t i = 0; i < s->groups.n && !nodes; i++)
		nodes = s->groups.v[i].node[0] != '\0';
	put_heading(s->ranks ? "Ranks" : "Processes that make steps", color, out);
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		table_column(&t, names[i], true);
	if (nodes)
		table_column(&t, "MACHINE", false);
	for (size_t i = 0; i < s->groups.n && i < RANKS_SHOWN; i++) {
		const struct step_group *g = &s->groups.v[i];
		char text[32];

		if (g->rank >= 0)
			table_cellf(&t, "%d", g->rank);
		else
			table_cell(&t, "-");
		table_cellf(&t, "%lld", (long long)g->pid);
		table_cell(&t, num_count((double)g->count, text, sizeof(text)));
		if (isfinite(g->rate_hz))
			table_cellf(&t, "%.2f", g->rate_hz);
		else
			table_cell(&t, "-");
		cell_or_dash(&t, g->median_s, num_seconds);
		cell_or_dash(&t, g->data_wait, num_percent);
		cell_or_dash(&t, g->own_work_s, num_seconds);
		cell_or_dash(&t, g->comm_wait_s, num_seconds);
		if (nodes)
			table_cell(&t, g->node);
	}
	table_print(&t, out);
	if (s->groups.n > RANKS_SHOWN)
		buf_printf(out, "and %zu more\n", s->groups.n - RANKS_SHOWN);
}

static void put_scalars(const struct window *w, const struct steps *s, bool color, struct buf *out)
{
	auto_free struct scalar_sum *sums = calloc(SCALARS_SHOWN, sizeof(*sums));
	size_t n = sums ? scalars_sum(w, s, sums, SCALARS_SHOWN) : 0;
	auto_done(table) struct table t = { .bold = color, .widest = 48 };
	static const char *const names[] = { "VALUES", "FIRST", "LAST", "LEAST", "MOST" };

	if (!n)
		return;
	put_heading("Loss and other scalars", color, out);
	table_column(&t, "NAME", false);
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		table_column(&t, names[i], true);
	for (size_t i = 0; i < n; i++) {
		char text[32];

		table_cell(&t, sums[i].name);
		table_cell(&t, num_count((double)sums[i].n, text, sizeof(text)));
		cell_number(&t, sums[i].first);
		cell_number(&t, sums[i].last);
		cell_number(&t, sums[i].least);
		cell_number(&t, sums[i].most);
	}
	table_print(&t, out);
}

/* What the program that stands for the run set: "dataloader.num_workers". */
static void put_settings(const struct window *w, const struct steps *s, bool color, struct buf *out)
{
	auto_free struct setting_row *rows = calloc(SETTINGS_SHOWN, sizeof(*rows));
	size_t n = rows ? setting_rows(w, s, rows, SETTINGS_SHOWN) : 0;
	auto_done(table) struct table t = { .bold = color, .widest = 60 };

	if (!n)
		return;
	table_column(&t, "SETTING", false);
	table_column(&t, "VALUE", false);
	for (size_t i = 0; i < n; i++) {
		table_cell(&t, rows[i].name);
		table_cell(&t, rows[i].values);
	}
	put_heading("What the program set", color, out);
	table_print(&t, out);
}

static void put_slowest(const struct window *w, const struct steps *s, bool color, struct buf *out)
{
	struct slow_step slow[STEPS_SLOWEST];
	size_t n = steps_slowest(w, s, slow, STEPS_SLOWEST);
	auto_done(table) struct table t = { .bold = color, .widest = WHAT_WIDEST };
	int64_t start = window_run(w)->started_mono_ns;

	if (!n)
		return;
	put_heading("Slowest steps", color, out);
	table_column(&t, "STEP", true);
	if (s->ranks)
		table_column(&t, "RANK", true);
	table_column(&t, "AFTER", true);
	table_column(&t, "TOOK", true);
	table_column(&t, "OF MEDIAN", true);
	table_column(&t, "WHAT DIFFERED", false);
	for (size_t i = 0; i < n; i++) {
		const struct window_step *x = slow[i].step;
		char text[32];

		slow_step_state(w, s, &slow[i]);
		table_cellf(&t, "%llu", (unsigned long long)x->number);
		if (s->ranks)
			table_cellf(&t, "%d", x->rank);
		table_cell(&t, num_seconds(((double)x->begin_ns - (double)start) / 1e9, text,
					   sizeof(text)));
		table_cell(&t, num_seconds(slow[i].seconds, text, sizeof(text)));
		table_cellf(&t, "%.1f x", slow[i].times);
		table_cell(&t, slow[i].what[0] ? slow[i].what : "nothing that was measured");
	}
	table_print(&t, out);
	buf_printf(out, "more about one of them: spotter report --step %llu\n",
		   (unsigned long long)slow[0].step->number);
}

void report_steps(const struct window *w, const struct steps *s, bool color, struct buf *out)
{
	put_ranks(s, color, out);
	put_scalars(w, s, color, out);
	put_slowest(w, s, color, out);
	put_settings(w, s, color, out);
}

static int no_step(const struct window *w, const struct steps *s, uint64_t number, struct err *e)
{
	const struct step_group *lead = steps_lead(s);
	size_t n = 0;
	const struct window_step *x = w->ops->steps ? w->ops->steps(w->src, &n) : NULL;
	uint64_t least = UINT64_MAX, most = 0;

	if (!lead) {
		err_set(e, -ENOENT, "no steps were recorded in this run");
		err_hint(e,
			 "call spotter.step() in the training loop, or run it with 'spotter run', "
			 "which marks the steps of PyTorch, Keras and others by itself");
		return e->code;
	}
	for (size_t i = 0; i < n; i++) {
		if (!step_in(w, &x[i]))
			continue;
		least = x[i].number < least ? x[i].number : least;
		most = x[i].number > most ? x[i].number : most;
	}
	return err_set(e, -ENOENT, "there is no step %llu in this run: it has %llu to %llu",
		       (unsigned long long)number, (unsigned long long)least,
		       (unsigned long long)most);
}

int report_step(struct cli *cli, const struct window *w, const struct steps *s, uint64_t number,
		bool json, struct err *e)
{
	const struct window_step *found[SAME_NUMBER_MAX];
	size_t n = step_find(w, s, number, found, SAME_NUMBER_MAX);
	struct render_style style = { .color = cli->color_out,
				      .width = cli_columns(STDOUT_FILENO) };
	struct json j;
	int r = 0;

	if (!n)
		return no_step(w, s, number, e);
	json_init(&j, &cli->out, true);
	if (json) {
		json_begin(&j, '{');
		json_key_str(&j, "schema", "spotter.step/1");
		json_key_begin(&j, "steps", '[');
	}
	for (size_t i = 0; i < n && r == 0; i++) {
		struct step_story story;

		r = step_story(w, s, found[i], &story);
		if (r < 0)
			return err_set(e, r, "cannot tell about step %llu",
				       (unsigned long long)number);
		if (json) {
			step_story_json(&story, &j);
			continue;
		}
		if (i)
			buf_char(&cli->out, '\n');
		step_story_text(&story, &style, &cli->out);
	}
	if (json) {
		json_end(&j, ']');
		json_end(&j, '}');
		buf_char(&cli->out, '\n');
	}
	return 0;
}

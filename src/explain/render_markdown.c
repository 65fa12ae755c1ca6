/* SPDX-License-Identifier: MIT
 *
 * The verdict as Markdown, to be pasted into an issue or a chat: findings, both ledgers as tables, and
 * all of it as text behind a fold.
 */
#include "base/auto.h"
#include "base/buf.h"
#include "base/num.h"
#include "base/text.h"
#include "explain/render.h"

#include <math.h>
#include <string.h>

enum { FENCE_LEAST = 3 };

/* Names may hold what Markdown or HTML would obey. */
static void put_words(struct buf *out, const char *text)
{
	auto_done(buf) struct buf safe = { 0 };

	text_safe(&safe, text, strlen(text));
	for (size_t i = 0; i < safe.len; i++) {
		if (strchr("\\`*_[]<>#|~&", safe.data[i]))
			buf_char(out, '\\');
		buf_char(out, safe.data[i]);
	}
}

/* Within backticks nothing is obeyed but a backtick, and in a table the bar. */
static void put_code(struct buf *out, const char *text)
{
	auto_done(buf) struct buf safe = { 0 };

	text_safe(&safe, text, strlen(text));
	buf_char(out, '`');
	for (size_t i = 0; i < safe.len; i++)
		buf_char(out, safe.data[i] == '`'   ? '\''
			      : safe.data[i] == '|' ? '/'
						    : safe.data[i]);
	buf_char(out, '`');
}

static void put_gain(struct buf *out, const struct finding *x)
{
	buf_printf(out, "- gain: %.3g times as fast (%.3g to %.3g", x->speedup, x->low, x->high);
	if (x->most > x->high * 1.02)
		buf_printf(out, ", %.3g", x->most);
	buf_printf(out, "%s)\n", x->most > 0 ? " if that work cost nothing" : "");
}

static void put_where(struct buf *out, const struct finding *x)
{
	if (x->where.file[0]) {
		auto_done(buf) struct buf place = { 0 };

		buf_str(&place, x->where.file);
		if (x->where.line > 0)
			buf_printf(&place, ":%d", x->where.line);
		buf_str(out, x->where.guess ? " likely at " : " at ");
		put_code(out, buf_text(&place));
	}
	if (x->where.function[0]) {
		buf_str(out, " in ");
		put_code(out, x->where.function);
	}
	for (size_t i = 0; i < x->where.n_callers; i++) {
		auto_done(buf) struct buf place = { 0 };

		buf_printf(&place, "%s:%d", x->where.callers[i].file, x->where.callers[i].line);
		buf_str(out, i ? " from " : ", called at ");
		put_code(out, buf_text(&place));
	}
}

static void put_finding(struct buf *out, const char *what, const struct finding *x)
{
	buf_printf(out, "\n**%s: ", what);
	put_words(out, x->title);
	buf_printf(out, "** (`%s`)", x->cause);
	put_where(out, x);
	buf_str(out, "\n\n");
	for (size_t i = 0; i < x->n_evidence; i++) {
		buf_str(out, "- ");
		put_words(out, x->evidence[i].text);
		buf_char(out, '\n');
	}
	if (x->fix[0]) {
		buf_str(out, "- fix: ");
		put_words(out, x->fix);
		buf_char(out, '\n');
	}
	if (x->edit[0]) {
		buf_str(out, "- edit: ");
		put_code(out, x->edit);
		buf_char(out, '\n');
	}
	if (x->has_gain && isfinite(x->speedup))
		put_gain(out, x);
}

static const char *percent(double share, char *buf, size_t size)
{
	return fabs(share) < 0.00005 ? "0 %" : num_percent(share, buf, size);
}

static void put_time(struct buf *out, const struct verdict *v)
{
	const struct ledger_line *lines[TIME_LINES_MAX];
	size_t n = time_ledger_sorted(v, lines, TIME_LINES_MAX);
	char text[128];

	if (!n || !v->time_tid)
		return;
	buf_str(out, "\n| where the time went (");
	put_words(out, time_ledger_thread(v, text, sizeof(text)));
	buf_str(out, ") | share |\n|---|---:|\n");
	for (size_t i = 0; i < n; i++)
		buf_printf(out, "| %s (`%s`) | %s |\n", time_state_words(v, lines[i]->role),
			   lines[i]->role, percent(lines[i]->share, text, sizeof(text)));
	if (isfinite(v->time_unaccounted))
		buf_printf(out, "| unaccounted | %s |\n",
			   percent(v->time_unaccounted, text, sizeof(text)));
}

static void put_cpu(struct buf *out, const struct verdict *v)
{
	char text[32];

	if (!v->cpu.n || !isfinite(v->cpu_cores))
		return;
	buf_str(out, "\n| who used the CPU | cores | share |\n|---|---:|---:|\n");
	for (size_t i = 0; i < v->cpu.n; i++)
		buf_printf(out, "| `%s` | %.2f | %s |\n", v->cpu.v[i].role, v->cpu.v[i].cores,
			   percent(v->cpu.v[i].share, text, sizeof(text)));
	buf_printf(out, "| unaccounted | %.2f | %s |\n", v->cpu_cores * v->cpu_unaccounted,
		   percent(v->cpu_unaccounted, text, sizeof(text)));
}

/* A fence that nothing in the text can close: longer than any row of backticks in it. */
static void put_fenced(struct buf *out, const struct buf *text)
{
	size_t longest = FENCE_LEAST - 1, row = 0;

	for (size_t i = 0; i < text->len; i++) {
		row = text->data[i] == '`' ? row + 1 : 0;
		longest = row > longest ? row : longest;
	}
	for (int end = 0; end < 2; end++) {
		for (size_t i = 0; i <= longest; i++)
			buf_char(out, '`');
		buf_str(out, end ? "\n" : "text\n");
		if (!end)
			buf_put(out, buf_text(text), text->len);
	}
}

void render_markdown(const struct verdict *v, struct buf *out)
{
	auto_done(buf) struct buf text = { 0 };

	buf_str(out, "### Spotter: ");
	put_words(out, v->run->name);
	buf_char(out, '\n');
	for (size_t i = 0; i < v->findings.n; i++)
		put_finding(out, "Finding", &v->findings.v[i]);
	if (!v->findings.n)
		buf_str(out, v->judged ? "\nNothing was found that holds it up.\n"
				       : "\nNothing was found; it was too short to judge all.\n");
	for (size_t i = 0; i < v->notes.n; i++)
		put_finding(out, "Note", &v->notes.v[i]);
	put_time(out, v);
	put_cpu(out, v);
	render_text(v, &(struct render_style){ .no_tables = true }, &text);
	buf_str(out, "\n<details><summary>All of the verdict</summary>\n\n");
	put_fenced(out, &text);
	buf_str(out, "\n</details>\n");
	out->failed |= text.failed;
}

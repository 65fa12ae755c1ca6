/* SPDX-License-Identifier: MIT */
#include "cli/report_ledger.h"

#include "base/auto.h"
#include "base/num.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/table.h"
#include "explain/render.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Columns; those of a table add up to 80 at most. */
enum { BAR = 10, FIRST_WIDEST = 48, PAGE_WIDTH = 80 };

static void put_heading(const char *text, bool color, struct buf *out)
{
	buf_printf(out, "\n%s%s%s\n", cli_ink(color, INK_BOLD), text, cli_ink(color, INK_PLAIN));
}

/* Without blanks at the ends of rows whose last cells are empty. */
static void print_table(struct table *t, struct buf *out)
{
	auto_done(buf) struct buf text = { 0 };
	const char *s, *end;

	table_print(t, &text);
	for (s = buf_text(&text); *s; s = end + (*end != '\0')) {
		size_t n;

		end = s + strcspn(s, "\n");
		for (n = (size_t)(end - s); n && s[n - 1] == ' '; n--)
			;
		buf_put(out, s, n);
		buf_char(out, '\n');
	}
	out->failed |= text.failed;
}

/* A whole bar is the whole; what is too small for a mark is a dot. */
static const char *bar(double share, char *buf)
{
	int n = share > 0 ? (int)lround(fmin(share, 1) * BAR) : 0;

	memset(buf, '#', (size_t)n);
	buf[n] = '\0';
	return n || !(share > 0) ? buf : ".";
}

static void put_share(struct table *t, double share)
{
	char text[24];

	table_cell(t, fabs(share) < 0.00005 ? "0 %" : num_percent(share, text, sizeof(text)));
}

/* The end of a name tells more than its beginning: ".../data/loader.py", "...__getitem__". Cut at a
 * separator, where there is one more. */
static const char *end_of(const char *text, size_t widest, char separator, char *buf, size_t size)
{
	const char *s = text, *part;

	if (text_width(text) <= widest || widest < 4) {
		text_copy(buf, size, text);
		return buf;
	}
	while (*s && text_width(s) > widest - 3) {
		size_t n = text_utf8(s, strlen(s));

		s += n ? n : 1;
	}
	part = strchr(s, separator);
	if (part && part[1])
		s = separator == '/' ? part : part + 1;
	snprintf(buf, size, "...%s", s);
	return buf;
}

/* "   71 % decode  .../data/loader.py:41". The file's own name has room before the function's. */
static void put_function(struct table *t, const struct ledger_top *f)
{
	enum { SHARE = 4 + 6, FUNCTION_LEAST = 24 };
	const char *base = strrchr(f->file, '/');
	char share[24], line[24] = "", name[sizeof(f->function) + 8], file[sizeof(f->file) + 8];
	char row[sizeof(name) + sizeof(file) + 64];
	size_t room = PAGE_WIDTH - SHARE, need;

	if (f->line > 0 && f->file[0])
		snprintf(line, sizeof(line), ":%d", f->line);
	need = text_width(base ? base + 1 : f->file) + (base ? 4 : 0) + strlen(line) + 2;
	end_of(f->function, need + FUNCTION_LEAST < room ? room - need : FUNCTION_LEAST, '.', name,
	       sizeof(name));
	need = text_width(name) + 2 + strlen(line);
	end_of(f->file, need + 8 < room ? room - need : 8, '/', file, sizeof(file));
	snprintf(row, sizeof(row), "    %5s %s%s%s%s", num_percent(f->share, share, sizeof(share)),
		 name, name[0] && file[0] ? "  " : "", file, line);
	table_wide(t, row, PAGE_WIDTH);
}

static void put_functions(struct table *t, const struct ledger_line *l)
{
	for (size_t i = 0; i < l->n_top && i < LEDGER_TOP; i++)
		put_function(t, &l->top[i]);
}

static void put_state(struct table *t, const char *state, const char *words, double share,
		      double seconds)
{
	char text[32], marks[BAR + 1];

	table_cellf(t, "%-12s %s", state, words);
	put_share(t, share);
	table_cell(t, isfinite(seconds) ? num_seconds(seconds, text, sizeof(text)) : "-");
	table_cell(t, bar(share, marks));
}

void report_time(const struct verdict *v, bool color, struct buf *out)
{
	auto_done(table) struct table t = { .bold = color, .widest = FIRST_WIDEST };
	const struct ledger_line *lines[TIME_LINES_MAX];
	size_t n = time_ledger_sorted(v, lines, TIME_LINES_MAX);
	double window = (double)(v->to_ns - v->from_ns) / 1e9, rest = v->time_unaccounted, sum = 0;
	char thread[128], title[180];

	if (!n || !v->time_tid)
		return;
	snprintf(title, sizeof(title), "Where the time went: %s",
		 time_ledger_thread(v, thread, sizeof(thread)));
	put_heading(title, color, out);
	table_column(&t, "STATE", false);
	table_column(&t, "SHARE", true);
	table_column(&t, "TIME", true);
	table_column(&t, "", false);
	for (size_t i = 0; i < n; i++) {
		put_state(&t, lines[i]->role, time_state_words(v, lines[i]->role), lines[i]->share,
			  lines[i]->seconds);
		put_functions(&t, lines[i]);
		sum += lines[i]->seconds;
	}
	/* The thread may have lived for a part of the window only. */
	if (isfinite(rest))
		put_state(&t, "unaccounted", "not seen, or not proven", rest,
			  rest < 0.99 ? sum * rest / (1 - rest) : window);
	print_table(&t, out);
	if (isfinite(v->time_error) && v->time_error > 0)
		buf_printf(out, "shares are give or take %.*f points\n",
			   v->time_error < 0.0095 ? 1 : 0, v->time_error * 100);
}

static void put_count(struct table *t, int n)
{
	if (n < 0)
		table_cell(t, "-");
	else
		table_cellf(t, "%d", n);
}

void report_cpu(const struct verdict *v, bool color, struct buf *out)
{
	auto_done(table) struct table t = { .bold = color, .widest = FIRST_WIDEST };

	if (!v->cpu.n || !isfinite(v->cpu_cores))
		return;
	put_heading("Who used the CPU", color, out);
	table_column(&t, "ROLE", false);
	table_column(&t, "CORES", true);
	table_column(&t, "SHARE", true);
	table_column(&t, "PROCS", true);
	table_column(&t, "THREADS", true);
	for (size_t i = 0; i < v->cpu.n; i++) {
		const struct ledger_line *l = &v->cpu.v[i];

		table_cell(&t, l->role);
		table_cellf(&t, "%.2f", l->cores);
		put_share(&t, l->share);
		put_count(&t, l->processes);
		put_count(&t, l->threads);
		put_functions(&t, l);
	}
	table_cell(&t, "unaccounted");
	table_cellf(&t, "%.2f", v->cpu_cores * v->cpu_unaccounted);
	put_share(&t, v->cpu_unaccounted);
	table_cell(&t, "");
	table_cell(&t, "");
	table_cell(&t, "charged by the kernel");
	table_cellf(&t, "%.2f", v->cpu_cores);
	table_cell(&t, "100 %");
	table_cell(&t, "");
	table_cell(&t, "");
	print_table(&t, out);
}

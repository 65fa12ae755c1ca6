/* SPDX-License-Identifier: MIT */
#include "explain/compare.h"

#include "base/buf.h"
#include "base/num.h"
#include "base/text.h"
#include "explain/page.h"
#include "explain/render.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Columns of a table: a name and three figures; the label before them has 8. */
enum { NAME = 26, FIGURE = 10, NAMES_MOST = 40, ROWS_SHOWN = 8 };
/* Parts of the largest change that are not worth a row, and what is no change of the speed. */
static const double change_least = 0.01, as_fast = 0.03;

static const char *figure(double v, const char *unit, char *buf, size_t size)
{
	if (!isfinite(v))
		snprintf(buf, size, "-");
	else if (v == 0)
		snprintf(buf, size, "0");
	else if (strcmp(unit, "seconds") == 0)
		num_seconds(fmax(v, 0), buf, size);
	else if (strcmp(unit, "ratio") == 0)
		num_percent(v, buf, size);
	else if (strcmp(unit, "bytes") == 0)
		num_bytes(v, buf, size);
	else if (strcmp(unit, "cores") == 0)
		num_cores(v, buf, size);
	else
		snprintf(buf, size, "%.4g", v);
	return buf;
}

static const char *change(const struct compare_row *r, char *buf, size_t size)
{
	double d = compare_change(r);
	char text[40];

	figure(fabs(d), r->unit, text, sizeof(text));
	if (!isfinite(d))
		snprintf(buf, size, "-");
	else if (d == 0)
		snprintf(buf, size, "same");
	else if (strcmp(r->unit, "ratio") == 0)
		snprintf(buf, size, "%s%.1f points", d < 0 ? "-" : "+", fabs(d) * 100);
	else
		snprintf(buf, size, "%s%s", d < 0 ? "-" : "+", text);
	return buf;
}

static void put_run(struct page *p, const char *label, const struct verdict *v)
{
	const struct run_info *r = v->run;
	int64_t from = r->started_mono_ns > 0 ? r->started_mono_ns : v->from_ns;
	double length = ((double)r->ended_mono_ns - (double)from) / 1e9;
	char seconds[32];

	if (!(length >= 0) || !isfinite(length))
		length = ((double)v->to_ns - (double)v->from_ns) / 1e9;
	page_add(p, W_HEAD, PAGE_BOLD, label, "%s, %s, %s, L%d", r->name,
		 r->id[0] ? r->id : "no id", num_seconds(length, seconds, sizeof(seconds)),
		 v->level & 3);
}

/* "2.10 times as fast as A (2.05 to 2.15)", "19 % slower than A" */
static const char *how_fast(const struct compare_speed *s, char *buf, size_t size)
{
	bool faster = s->ratio >= 1;
	double times = faster ? s->ratio : 1 / s->ratio, low = faster ? s->low : 1 / s->high,
	       high = faster ? s->high : 1 / s->low;
	char sure[64] = "", percent[24];

	if (times >= 2) {
		if (isfinite(low))
			snprintf(sure, sizeof(sure), " (%.2f to %.2f)", low, high);
		snprintf(buf, size, "%.2f times as %s as A%s", times, faster ? "fast" : "slow",
			 sure);
		return buf;
	}
	if (isfinite(low))
		snprintf(sure, sizeof(sure), " (%.1f to %.1f %%)", (low - 1) * 100,
			 (high - 1) * 100);
	snprintf(buf, size, "%s %s than A%s", num_percent(times - 1, percent, sizeof(percent)),
		 faster ? "faster" : "slower", sure);
	return buf;
}

static void put_speed(struct page *p, const struct comparison *c)
{
	const struct compare_speed *s = &c->speed;
	const char *of = c->per_step ? "a step" : "the whole run";
	char a[40], b[40], fast[128];
	bool same;

	if (!isfinite(s->ratio))
		return;
	same = isfinite(s->low) ? s->low <= 1 && s->high >= 1 : fabs(s->ratio - 1) < as_fast;
	num_seconds(s->seconds[COMPARE_A], a, sizeof(a));
	num_seconds(s->seconds[COMPARE_B], b, sizeof(b));
	if (same)
		page_add(p, W_VERDICT, PAGE_PLAIN, "Speed",
			 "no difference that can be told from chance: %s took %s in A, %s in B", of,
			 a, b);
	else
		page_add(p, W_VERDICT, s->ratio > 1 ? PAGE_GOOD : PAGE_WARN, "Speed",
			 "B is %s: %s took %s, now %s", how_fast(s, fast, sizeof(fast)), of, a, b);
}

/* The largest changes; what is left out is said. */
static void put_table(struct page *p, const char *label, const char *title,
		      const compare_rows *rows, size_t max, bool all)
{
	double most = 0, least;
	size_t left = 0, shown = 0;
	int wide = NAME;

	for (size_t i = 0; i < rows->n; i++) {
		double d = fabs(compare_change(&rows->v[i]));

		most = d > most ? d : most;
		if (rows->v[i].words)
			wide =
			    (int)fmax(wide, fmin(NAMES_MOST, (double)text_width(rows->v[i].words)));
	}
	if (!rows->n)
		return;
	least = all ? -1 : most * change_least;
	wide = (int)fmin(wide, p->width < 80 ? 12 : p->width - 8 - 3 * (FIGURE + 3));
	page_add(p, W_TIME, PAGE_DIM, label, "%-*s %*s %*s %*s", wide, title, FIGURE, "A", FIGURE,
		 "B", FIGURE + 2, "change");
	for (size_t i = 0; i < rows->n; i++) {
		const struct compare_row *r = &rows->v[i];
		char a[40], b[40], d[48];

		if (shown >= max || fabs(compare_change(r)) < least) {
			left++;
			continue;
		}
		shown++;
		page_add(p, W_TIME, PAGE_PLAIN, "", "%-*.*s %*s %*s %*s", wide, wide,
			 r->words ? r->words : r->name, FIGURE,
			 figure(r->v[COMPARE_A], r->unit, a, sizeof(a)), FIGURE,
			 figure(r->v[COMPARE_B], r->unit, b, sizeof(b)), FIGURE + 2,
			 change(r, d, sizeof(d)));
	}
	if (left)
		page_add(p, W_DETAIL, PAGE_DIM, "", "%zu more that hardly changed", left);
}

static const char *gain(const struct finding *f, char *buf, size_t size)
{
	buf[0] = '\0';
	if (f && f->has_gain && f->speedup > 1)
		snprintf(buf, size, ", mending it: %.2f times as fast (%.2f to %.2f)", f->speedup,
			 f->low, f->high);
	return buf;
}

static void put_cause(struct page *p, const struct compare_cause *x, const char *label)
{
	const struct finding *a = x->x[COMPARE_A], *b = x->x[COMPARE_B], *f = b ? b : a;
	const char *note = f->note ? "note, " : "";
	char g[96], before[96];

	switch (x->change) {
	case CHANGE_GONE:
		page_add(p, W_VERDICT, PAGE_GOOD, label, "gone: %s (%s%s%s)", f->title, note,
			 x->cause, gain(a, g, sizeof(g)));
		break;
	case CHANGE_NEW:
		page_add(p, W_VERDICT, PAGE_WARN, label, "new: %s (%s%s%s)", f->title, note,
			 x->cause, gain(b, g, sizeof(g)));
		break;
	case CHANGE_UNKNOWN_A:
	case CHANGE_UNKNOWN_B:
		page_add(p, W_VERDICT, PAGE_PLAIN, label,
			 "in %c: %s (%s%s%s); of %c it could not be told: %s", b ? 'B' : 'A',
			 f->title, note, x->cause, gain(f, g, sizeof(g)), b ? 'A' : 'B', x->why);
		break;
	case CHANGE_OTHER:
		gain(a, before, sizeof(before));
		page_add(p, W_VERDICT, PAGE_PLAIN, label, "changed: %s (%s%s%s%s%s)", f->title,
			 note, x->cause, gain(b, g, sizeof(g)), before[0] ? "; in A" : "", before);
		break;
	case CHANGE_NONE:
		page_add(p, W_NOTE, PAGE_DIM, label, "as before: %s (%s%s%s)", f->title, note,
			 x->cause, gain(b, g, sizeof(g)));
		break;
	}
}

/* Notes that are as they were say nothing new. */
static void put_causes(struct page *p, const struct comparison *c)
{
	const char *label = "Causes";

	for (size_t i = 0; i < c->causes.n; i++) {
		const struct compare_cause *x = &c->causes.v[i];

		if (x->change == CHANGE_NONE && x->x[COMPARE_B]->note)
			continue;
		put_cause(p, x, label);
		label = "";
	}
	if (label[0])
		page_add(p, W_VERDICT, PAGE_PLAIN, label, "none that came, went or changed");
}

static void put_settings(struct page *p, const struct comparison *c)
{
	const char *label = "Set";

	for (size_t i = 0; i < c->settings.n; i++) {
		const struct compare_row *r = &c->settings.v[i];
		char a[40], b[40];

		page_add(p, W_FIX, PAGE_PLAIN, label, "%s: %s in A, %s in B", r->name,
			 figure(r->v[COMPARE_A], "count", a, sizeof(a)),
			 figure(r->v[COMPARE_B], "count", b, sizeof(b)));
		label = "";
	}
}

static void put_command(struct page *p, const struct comparison *c)
{
	struct buf line[COMPARE_SIDES] = { 0 };

	for (int k = 0; k < COMPARE_SIDES; k++) {
		char *const *argv = c->side[k].verdict->run->argv;

		for (size_t i = 0; argv && argv[i]; i++)
			buf_printf(&line[k], "%s%s", i ? " " : "", argv[i]);
	}
	if (strcmp(buf_text(&line[COMPARE_A]), buf_text(&line[COMPARE_B])) != 0) {
		page_add(p, W_FIX, PAGE_PLAIN, "Command", "A: %.600s", buf_text(&line[COMPARE_A]));
		page_add(p, W_FIX, PAGE_PLAIN, "", "B: %.600s", buf_text(&line[COMPARE_B]));
	}
	buf_done(&line[COMPARE_A]);
	buf_done(&line[COMPARE_B]);
}

void compare_text(const struct comparison *c, unsigned width, bool color, struct buf *out)
{
	struct page p = { .width = width ? width : 100 };
	const char *label = "Remark";

	put_run(&p, "A", c->side[COMPARE_A].verdict);
	put_run(&p, "B", c->side[COMPARE_B].verdict);
	put_speed(&p, c);
	put_command(&p, c);
	put_settings(&p, c);
	put_causes(&p, c);
	put_table(&p, "Time", c->per_step ? "of a step" : "share of the time", &c->time, ROWS_SHOWN,
		  false);
	put_table(&p, "CPU", c->per_step ? "CPU time of a step" : "cores", &c->cpu, ROWS_SHOWN,
		  false);
	put_table(&p, "Usage", "of the whole run", &c->usage, c->usage.n, true);
	for (size_t i = 0; i < c->remarks.n; i++) {
		page_add(&p, W_UNKNOWN, PAGE_PLAIN, label, "%s", c->remarks.v[i].text);
		label = "";
	}
	page_write(&p, 0, color, out);
	if (p.failed)
		out->failed = true;
	page_done(&p);
}

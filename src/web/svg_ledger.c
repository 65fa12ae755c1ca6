/* SPDX-License-Identifier: MIT
 *
 * The two ledgers as bars: the whole is the whole time of the critical thread, or all cores allowed.
 */
#include "base/buf.h"
#include "base/num.h"
#include "explain/render.h"
#include "web/svg.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { BAR = 26, ROW = 18, SWATCH = 11, PARTS_MOST = 40 };

struct part {
	char words[96];
	double share; /* of the bar */
	const char *color;
};

struct bar {
	struct part v[PARTS_MOST];
	size_t n;
};

/* State or role, and the colour both have in the pages too (web/report.css). */
static const char *color_of(const char *name)
{
	static const struct {
		const char *name, *color;
	} rows[] = {
		{ "data_wait", "#f2a54a" },
		{ "data_load", "#e6c64f" },
		{ "transfer", "#63bfd0" },
		{ "dispatch", "#a3a8ee" },
		{ "python", "#78b0ee" },
		{ "gpu_wait", "#6bbd96" },
		{ "comm_wait", "#cf9be0" },
		{ "io", "#d3a585" },
		{ "cpu_queue", "#f29a8c" },
		{ "memory_stall", "#ea9dbe" },
		{ "lock_wait", "#d08b9c" },
		{ "idle", "#c4c9d1" },
		{ "main", "#78b0ee" },
		{ "loader_worker", "#f2a54a" },
		{ "pin_thread", "#63bfd0" },
		{ "blas_threads", "#a3a8ee" },
		{ "comm_threads", "#cf9be0" },
		{ "spin_wait", "#6bbd96" },
		{ "framework_threads", "#d08b9c" },
		{ "tokenizer_threads", "#e6c64f" },
		{ "child", "#d3a585" },
		{ "kernel_side", "#ea9dbe" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (strcmp(rows[i].name, name) == 0)
			return rows[i].color;
	return "#a6aebb";
}

static struct part *add(struct bar *b, double share, const char *color)
{
	struct part *p;

	/* less than half a pixel */
	if (!(share > 0.0005) || b->n == PARTS_MOST)
		return NULL;
	p = &b->v[b->n++];
	*p = (struct part){ .share = share, .color = color };
	return p;
}

static double put_bar(struct buf *out, const char *title, const struct bar *b, double top)
{
	double room = SVG_WIDTH - 2 * SVG_MARGIN, x = SVG_MARGIN, sum = 0;
	char text[200], fill[80];

	for (size_t i = 0; i < b->n; i++)
		sum += b->v[i].share;
	if (!(sum > 0))
		return top;
	/* Rounding may make them a little more than the whole. */
	sum = fmax(sum, 1);
	svg_text(out, SVG_MARGIN, top + 12, SVG_START, "font-weight=\"600\"", "%s",
		 svg_cut(title, room, text, sizeof(text)));
	top += 20;
	for (size_t i = 0; i < b->n; i++) {
		double width = b->v[i].share / sum * room;

		snprintf(fill, sizeof(fill), "fill=\"%s\" stroke=\"#ffffff\"", b->v[i].color);
		svg_rect(out, x, top, width, BAR, fill);
		x += width;
	}
	top += BAR + 6;
	x = SVG_MARGIN;
	for (size_t i = 0; i < b->n; i++) {
		double width = SWATCH + 6 + svg_width(b->v[i].words) + 18;

		if (x > SVG_MARGIN && x + width > SVG_WIDTH - SVG_MARGIN) {
			x = SVG_MARGIN;
			top += ROW;
		}
		snprintf(fill, sizeof(fill), "fill=\"%s\"", b->v[i].color);
		svg_rect(out, x, top + 2, SWATCH, SWATCH, fill);
		svg_text(out, x + SWATCH + 6, top + 12, SVG_START, "", "%s", b->v[i].words);
		x += width;
	}
	return top + ROW + 10;
}

static double put_time(struct buf *out, const struct verdict *v, double top)
{
	const struct ledger_line *lines[TIME_LINES_MAX];
	size_t n = time_ledger_sorted(v, lines, TIME_LINES_MAX);
	struct bar b = { .n = 0 };
	char thread[128], title[200], share[24];
	struct part *p;

	if (!n || !v->time_tid)
		return top;
	for (size_t i = 0; i < n; i++) {
		p = add(&b, lines[i]->share, color_of(lines[i]->role));
		if (p)
			snprintf(p->words, sizeof(p->words), "%s %s",
				 num_percent(lines[i]->share, share, sizeof(share)),
				 time_state_words(v, lines[i]->role));
	}
	p = add(&b, v->time_unaccounted, "#dedad2");
	if (p)
		snprintf(p->words, sizeof(p->words), "%s unaccounted",
			 num_percent(v->time_unaccounted, share, sizeof(share)));
	snprintf(title, sizeof(title), "Where the time went: %s",
		 time_ledger_thread(v, thread, sizeof(thread)));
	return put_bar(out, title, &b, top);
}

static double put_cpu(struct buf *out, const struct verdict *v, double top)
{
	double whole = fmax(v->cpu_cores, v->usage.cores_allowed);
	struct bar b = { .n = 0 };
	char cores[24], allowed[24], title[160];
	struct part *p;

	if (!v->cpu.n || !isfinite(v->cpu_cores) || !(whole > 0))
		return top;
	for (size_t i = 0; i < v->cpu.n; i++) {
		const struct ledger_line *l = &v->cpu.v[i];

		p = add(&b, l->cores / whole, color_of(l->role));
		if (!p)
			continue;
		snprintf(p->words, sizeof(p->words), "%s %s", l->role,
			 l->cores < 0.01 ? "under 0.01"
					 : num_cores(l->cores, cores, sizeof(cores)));
		for (char *c = p->words; *c; c++)
			*c = *c == '_' ? ' ' : *c;
	}
	p = add(&b, v->cpu_unaccounted * v->cpu_cores / whole, "#b9b4aa");
	if (p)
		snprintf(p->words, sizeof(p->words), "unaccounted");
	p = add(&b, 1 - v->cpu_cores / whole, "#f3f1ed");
	if (p)
		snprintf(p->words, sizeof(p->words), "not used");
	snprintf(title, sizeof(title), "Who used the CPU: %s cores%s%s%s",
		 num_cores(v->cpu_cores, cores, sizeof(cores)),
		 isfinite(v->usage.cores_allowed) ? " of " : "",
		 isfinite(v->usage.cores_allowed)
		     ? num_cores(v->usage.cores_allowed, allowed, sizeof(allowed))
		     : "",
		 isfinite(v->usage.cores_allowed) ? " allowed" : "");
	return put_bar(out, title, &b, top);
}

double svg_ledgers(struct buf *out, const struct verdict *v, double top)
{
	top = put_time(out, v, top);
	return put_cpu(out, v, top);
}

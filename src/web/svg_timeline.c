/* SPDX-License-Identifier: MIT
 *
 * The timeline as a picture: a chart for each track, one below the other on one axis of time.
 */
#include "base/buf.h"
#include "base/num.h"
#include "explain/verdict.h"
#include "web/svg.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { LEFT = 78, RIGHT = SVG_WIDTH - SVG_MARGIN, CHART = 62, HEAD = 20, GAP = 12, LANE = 16 };
enum { TRACKS_MOST = 24, GPU_TRACKS_MOST = 8, LABELS = 8 };

struct axes {
	const struct timeline *t;
	double from, to; /* seconds */
	double top;      /* of the chart */
	double low, high;
};

static double x_of(const struct axes *a, double t)
{
	double share = a->to > a->from ? (t - a->from) / (a->to - a->from) : 0;

	return LEFT + fmin(1, fmax(0, share)) * (RIGHT - LEFT);
}

static double y_of(const struct axes *a, double v)
{
	double share = a->high > a->low ? (v - a->low) / (a->high - a->low) : 0;

	return a->top + CHART - fmin(1, fmax(0, share)) * CHART;
}

static const char *quantity(double v, const char *unit, char *buf, size_t size)
{
	char text[32];

	if (strcmp(unit, "%") == 0)
		snprintf(buf, size, "%.0f %%", v);
	else if (strcmp(unit, "bytes") == 0)
		num_bytes(v, buf, size);
	else if (strcmp(unit, "bytes/s") == 0)
		snprintf(buf, size, "%s/s", num_bytes(v, text, sizeof(text)));
	else if (strcmp(unit, "s") == 0 && v > 0)
		num_seconds(v, buf, size);
	else
		snprintf(buf, size, "%.3g%s%s", v, unit[0] ? " " : "", unit);
	return buf;
}

static const char *color_of(const struct track *t, size_t series)
{
	static const struct {
		const char *group, *color;
	} rows[] = {
		{ "gpu", "#23865a" }, { "cpu", "#2f6fc0" },   { "memory", "#b84a80" },
		{ "io", "#9a6238" },  { "steps", "#4d4ab5" }, { "loss", "#8b3fa8" },
	};
	static const char *const more[] = { "#c0741a", "#2d8797", "#7b7566" };

	if (series)
		return more[(series - 1) % 3];
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (strcmp(rows[i].group, t->group) == 0)
			return rows[i].color;
	return "#2f6fc0";
}

/* What is told now and then is drawn through; what is read all the time breaks off where it was not. */
static bool is_told(const struct track *t)
{
	return strcmp(t->group, "steps") == 0 || strcmp(t->group, "loss") == 0;
}

static void find_range(const struct track *t, size_t points, struct axes *a)
{
	double low = INFINITY, high = -INFINITY;

	for (size_t s = 0; s < t->series.n; s++)
		for (size_t i = 0; i < points; i++) {
			const struct track_series *x = &t->series.v[s];
			double least = x->min ? x->min[i] : x->mean[i];
			double most = x->max ? x->max[i] : x->mean[i];

			low = isfinite(least) ? fmin(low, least) : low;
			high = isfinite(most) ? fmax(high, most) : high;
		}
	if (low > high)
		low = high = 0;
	a->low = low;
	a->high = high;
	if (strcmp(t->unit, "%") == 0 && low >= 0 && high <= 100) {
		a->low = 0;
		a->high = 100;
	} else if (low >= 0 && strcmp(t->group, "loss") != 0) {
		a->low = 0;
		/* A limit far above what was used would flatten the line. */
		if (t->limit <= 3 * high)
			a->high = fmax(high, t->limit);
	}
	if (!(a->high > a->low))
		a->high = a->low + 1;
}

/* One line, in as many pieces as it is known. */
static void put_line(struct buf *out, const struct axes *a, const double *v, bool through,
		     const char *color)
{
	bool pen = false;

	buf_str(out, "<path d=\"");
	for (size_t i = 0; i < a->t->points; i++) {
		if (!isfinite(v[i])) {
			pen &= through;
			continue;
		}
		/* A single point is a line of no length, which has round ends. */
		buf_printf(out, pen ? "L%.1f %.1f" : "M%.1f %.1fh0", x_of(a, timeline_at(a->t, i)),
			   y_of(a, v[i]));
		pen = true;
	}
	buf_printf(out,
		   "\" fill=\"none\" stroke=\"%s\" stroke-width=\"1.5\" stroke-linejoin=\"round\" "
		   "stroke-linecap=\"round\"/>\n",
		   color);
}

/* From least to most, for as long as both are known. */
static void put_band(struct buf *out, const struct axes *a, const struct track_series *s,
		     const char *color)
{
	size_t n = a->t->points;

	for (size_t i = 0; i < n; i++) {
		size_t end = i;

		while (end < n && isfinite(s->min[end]) && isfinite(s->max[end]))
			end++;
		if (end < i + 2) {
			i = end;
			continue;
		}
		buf_str(out, "<path d=\"");
		for (size_t k = i; k < end; k++)
			buf_printf(out, "%c%.1f %.1f", k > i ? 'L' : 'M',
				   x_of(a, timeline_at(a->t, k)), y_of(a, s->max[k]));
		for (size_t k = end; k-- > i;)
			buf_printf(out, "L%.1f %.1f", x_of(a, timeline_at(a->t, k)),
				   y_of(a, s->min[k]));
		buf_printf(out, "Z\" fill=\"%s\" fill-opacity=\"0.2\"/>\n", color);
		i = end;
	}
}

/* "CPU   used: mean 1.2, most 2   limit 2 cores" */
static void put_track_head(struct buf *out, const struct track *t, size_t points, double top)
{
	double x = LEFT + svg_width(t->title) * 1.1 + 20;
	char text[200], mean_text[40], most_text[40], fill[40];

	svg_text(out, LEFT, top + 13, SVG_START, "font-weight=\"600\"", "%s", t->title);
	for (size_t s = 0; s < t->series.n; s++) {
		const struct track_series *v = &t->series.v[s];
		double sum = 0, most = -INFINITY;
		size_t n = 0;

		for (size_t i = 0; i < points; i++)
			if (isfinite(v->mean[i])) {
				sum += v->mean[i];
				most = fmax(most, v->max ? v->max[i] : v->mean[i]);
				n++;
			}
		if (!n)
			continue;
		snprintf(text, sizeof(text), "%s%smean %s, most %s", t->series.n > 1 ? v->name : "",
			 t->series.n > 1 ? ": " : "",
			 quantity(sum / (double)n, t->unit, mean_text, sizeof(mean_text)),
			 quantity(most, t->unit, most_text, sizeof(most_text)));
		snprintf(fill, sizeof(fill), "fill=\"%s\"", color_of(t, s));
		svg_text(out, x, top + 13, SVG_START, fill, "%s", text);
		x += svg_width(text) + 20;
	}
	if (isfinite(t->limit) && t->limit_name)
		svg_text(out, RIGHT, top + 13, SVG_END, "fill=\"#8a4b00\"", "%s %s",
			 quantity(t->limit, t->unit, text, sizeof(text)), t->limit_name);
}

static void put_track(struct buf *out, const struct track *t, struct axes *a)
{
	char text[40];

	find_range(t, a->t->points, a);
	svg_line(out, LEFT, a->top + CHART, RIGHT, a->top + CHART, "stroke=\"#b9b4aa\"");
	svg_line(out, LEFT, a->top, RIGHT, a->top, "stroke=\"#ece9e3\"");
	svg_text(out, LEFT - 6, a->top + 10, SVG_END, "font-size=\"11\" fill=\"#5f5b55\"", "%s",
		 quantity(a->high, t->unit, text, sizeof(text)));
	svg_text(out, LEFT - 6, a->top + CHART, SVG_END, "font-size=\"11\" fill=\"#5f5b55\"", "%s",
		 quantity(a->low, t->unit, text, sizeof(text)));
	for (size_t s = 0; s < t->series.n; s++)
		if (t->series.v[s].min && t->series.v[s].max && !is_told(t))
			put_band(out, a, &t->series.v[s], color_of(t, s));
	for (size_t s = t->series.n; s-- > 0;)
		put_line(out, a, t->series.v[s].mean, is_told(t), color_of(t, s));
	if (t->limit <= a->high && t->limit >= a->low)
		svg_line(out, LEFT, y_of(a, t->limit), RIGHT, y_of(a, t->limit),
			 "stroke=\"#8a4b00\" stroke-dasharray=\"5 4\"");
}

/* Phases as bands with their names, where there is room for them. */
static double put_phases(struct buf *out, const struct timeline *t, const struct axes *a,
			 double top)
{
	if (!t->phases.n)
		return top;
	for (size_t i = 0; i < t->phases.n; i++) {
		const struct timeline_phase *p = &t->phases.v[i];
		double x1 = x_of(a, p->from), x2 = x_of(a, p->to);

		svg_rect(out, x1, top, fmax(x2 - x1, 0.8), LANE - 2,
			 "fill=\"#6b78c9\" fill-opacity=\"0.25\"");
		if (svg_width(p->name) + 8 < x2 - x1)
			svg_text(out, x1 + 4, top + 11, SVG_START, "font-size=\"11\"", "%s",
				 p->name);
	}
	svg_text(out, LEFT - 6, top + 11, SVG_END, "font-size=\"11\" fill=\"#5f5b55\"", "phases");
	return top + LANE + 4;
}

static double put_events(struct buf *out, const struct timeline *t, const struct axes *a,
			 double top)
{
	if (!t->events.n)
		return top;
	for (size_t i = 0; i < t->events.n; i++)
		buf_printf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"/>\n",
			   x_of(a, t->events.v[i].t), top + 6,
			   strcmp(t->events.v[i].kind, "oom_kill") == 0 ? "#b3261e" : "#7a756c");
	svg_text(out, LEFT - 6, top + 10, SVG_END, "font-size=\"11\" fill=\"#5f5b55\"", "events");
	return top + LANE;
}

/* Round times, about a hundred pixels apart. */
static double put_times(struct buf *out, const struct axes *a, double top, double bottom)
{
	static const double steps[] = { 0.01, 0.02, 0.05,  0.1,   0.2,   0.5,   1,      2,     5,
					10,   20,   30,    60,    120,   300,   600,    1200,  1800,
					3600, 7200, 14400, 21600, 43200, 86400, 172800, 604800 };
	double step = steps[0], span = a->to - a->from;
	char text[32];

	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]) && span / step > LABELS; i++)
		step = steps[i];
	while (span / step > LABELS)
		step *= 2;
	for (double t = ceil(a->from / step) * step; t <= a->to; t += step) {
		double x = x_of(a, t);

		svg_line(out, x, top, x, bottom + 4, "stroke=\"#ece9e3\"");
		svg_text(out, x, bottom + 18, SVG_MIDDLE, "font-size=\"11\" fill=\"#5f5b55\"", "%s",
			 t > 0 ? num_seconds(t, text, sizeof(text)) : "0");
	}
	return bottom + 24;
}

/* Not more of GPUs than leave room for the others. */
static size_t choose(const struct timeline *t, const struct track **ret)
{
	size_t n = 0, gpus = 0;

	for (size_t i = 0; i < t->tracks.n && n < TRACKS_MOST; i++) {
		bool gpu = strcmp(t->tracks.v[i].group, "gpu") == 0;

		if (gpu && gpus++ >= GPU_TRACKS_MOST)
			continue;
		ret[n++] = &t->tracks.v[i];
	}
	return n;
}

double svg_tracks(struct buf *out, const struct timeline *t, const struct verdict *v, double top)
{
	struct axes a = { .t = t,
			  .from = (double)(t->from_ns - t->start_ns) / 1e9,
			  .to = (double)(t->to_ns - t->start_ns) / 1e9 };
	const struct track *tracks[TRACKS_MOST];
	size_t n = choose(t, tracks);
	double begin, end, from = (double)(v->from_ns - t->start_ns) / 1e9,
			   to = (double)(v->to_ns - t->start_ns) / 1e9;

	top = put_phases(out, t, &a, top);
	top = put_events(out, t, &a, top);
	begin = top;
	end = top + (double)n * (HEAD + CHART + GAP);
	if (!n)
		return top;
	/* What is outside of the window the findings are about is shaded. */
	svg_rect(out, x_of(&a, a.from), begin, x_of(&a, from) - x_of(&a, a.from), end - begin,
		 "fill=\"#57534c\" fill-opacity=\"0.07\"");
	svg_rect(out, x_of(&a, to), begin, x_of(&a, a.to) - x_of(&a, to), end - begin,
		 "fill=\"#57534c\" fill-opacity=\"0.07\"");
	end = put_times(out, &a, begin, end);
	for (size_t i = 0; i < n; i++) {
		put_track_head(out, tracks[i], t->points, top);
		a.top = top + HEAD;
		put_track(out, tracks[i], &a);
		top += HEAD + CHART + GAP;
	}
	if (t->tracks.n > n)
		svg_text(out, LEFT, end + 12, SVG_START, "fill=\"#5f5b55\"", "and %zu more tracks",
			 t->tracks.n - n);
	return end + (t->tracks.n > n ? 16 : 0);
}

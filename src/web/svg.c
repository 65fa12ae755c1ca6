/* SPDX-License-Identifier: MIT */
#include "web/svg.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/num.h"
#include "base/text.h"
#include "explain/verdict.h"
#include "model/run.h"
#include "web/page.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Of the fonts that viewers take for sans-serif, in parts of the size: wide enough for most texts. */
static const double character_width = 0.56;

double svg_width(const char *text)
{
	return (double)text_width(text) * SVG_FONT * character_width;
}

const char *svg_cut(const char *text, double width, char *buf, size_t size)
{
	size_t most = (size_t)(width / (SVG_FONT * character_width)), n = 0;

	text_safe_copy(buf, size, text);
	if (text_width(buf) <= most)
		return buf;
	while (buf[n]) {
		size_t len = text_utf8(buf + n, strlen(buf + n));
		char c = buf[n + len];
		size_t columns;

		buf[n + len] = '\0';
		columns = text_width(buf);
		buf[n + len] = c;
		if (columns + 3 > most)
			break;
		n += len;
	}
	snprintf(buf + n, size - n, "...");
	return buf;
}

void svg_text(struct buf *out, double x, double y, enum svg_anchor anchor, const char *attributes,
	      const char *fmt, ...)
{
	static const char *const anchors[] = { "", " text-anchor=\"middle\"",
					       " text-anchor=\"end\"" };
	auto_done(buf) struct buf text = { 0 };
	va_list ap;

	va_start(ap, fmt);
	buf_vprintf(&text, fmt, ap);
	va_end(ap);
	buf_printf(out, "<text x=\"%.1f\" y=\"%.1f\"%s%s%s>", x, y, anchors[anchor],
		   attributes[0] ? " " : "", attributes);
	page_escape(out, buf_text(&text), text.len);
	buf_str(out, "</text>\n");
	out->failed |= text.failed;
}

void svg_rect(struct buf *out, double x, double y, double w, double h, const char *attributes)
{
	buf_printf(out, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" %s/>\n", x, y,
		   fmax(w, 0), fmax(h, 0), attributes);
}

void svg_line(struct buf *out, double x1, double y1, double x2, double y2, const char *attributes)
{
	buf_printf(out, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" %s/>\n", x1, y1, x2,
		   y2, attributes);
}

static void put_svg(struct buf *out, const struct buf *body, double height, const char *name,
		    const char *what)
{
	buf_printf(out,
		   "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%.0f\" "
		   "viewBox=\"0 0 %d %.0f\" role=\"img\" font-family=\"system-ui, 'Segoe UI', "
		   "Helvetica, Arial, sans-serif\" font-size=\"%d\" fill=\"#1c1b1a\">\n<title>",
		   SVG_WIDTH, height, SVG_WIDTH, height, SVG_FONT);
	page_escape(out, name, strlen(name));
	buf_printf(out, ": %s</title>\n", what);
	svg_rect(out, 0, 0, SVG_WIDTH, height, "fill=\"#ffffff\"");
	buf_put(out, buf_text(body), body->len);
	buf_str(out, "</svg>\n");
	out->failed |= body->failed;
}

/* What the verdict says in one line. */
static const char *headline(const struct verdict *v)
{
	if (v->findings.n)
		return v->findings.v[0].title;
	for (size_t i = 0; v->limit && i < v->notes.n; i++)
		if (strcmp(v->notes.v[i].cause, v->limit) == 0)
			return v->notes.v[i].title;
	return v->judged ? "nothing was found that holds it up"
			 : "nothing was found; the run was too short to judge all of it";
}

static double put_heading(struct buf *out, const struct timeline *t, const struct verdict *v)
{
	const struct step_group *lead = steps_lead(&v->steps);
	double room = SVG_WIDTH - 2 * SVG_MARGIN;
	char text[400], seconds[32], steps[96] = "";

	svg_text(out, SVG_MARGIN, 34, SVG_START, "font-size=\"19\" font-weight=\"600\"", "%s",
		 svg_cut(v->run->name, room * SVG_FONT / 19, text, sizeof(text)));
	if (lead && lead->rate_hz > 0) {
		char median[32];

		snprintf(steps, sizeof(steps), ", %.3g steps a second (median %s)", lead->rate_hz,
			 num_seconds(lead->median_s, median, sizeof(median)));
	}
	svg_text(out, SVG_MARGIN, 54, SVG_START, "fill=\"#5f5b55\"", "%s%s",
		 num_seconds((double)(t->to_ns - t->start_ns) / 1e9, seconds, sizeof(seconds)),
		 steps);
	svg_text(out, SVG_MARGIN, 76, SVG_START,
		 v->findings.n ? "font-size=\"14\" fill=\"#8a4b00\" font-weight=\"600\""
			       : "font-size=\"14\" fill=\"#1c6b45\" font-weight=\"600\"",
		 "%s", svg_cut(headline(v), room * SVG_FONT / 14, text, sizeof(text)));
	return 96;
}

void svg_report(const struct timeline *t, const struct verdict *v, struct buf *out)
{
	auto_done(buf) struct buf body = { 0 };
	double top = put_heading(&body, t, v);

	top = svg_ledgers(&body, v, top);
	top = svg_tracks(&body, t, v, top);
	svg_text(&body, SVG_WIDTH - SVG_MARGIN, top + 16, SVG_END,
		 "font-size=\"11\" fill=\"#5f5b55\"", "Spotter %s", SPOTTER_VERSION);
	put_svg(out, &body, top + 28, v->run->name,
		"where the time went, who used the CPU, timeline");
}

void svg_timeline(const struct timeline *t, const struct verdict *v, struct buf *out)
{
	auto_done(buf) struct buf body = { 0 };
	double top = svg_tracks(&body, t, v, 10);

	put_svg(out, &body, top + 6, v->run->name, "timeline");
}

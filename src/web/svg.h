/* SPDX-License-Identifier: MIT
 *
 * A run as a picture: both ledgers as bars and the timeline below, on a light ground, for papers, issues
 * and slides. Plain SVG 1.1 without script, style sheet or font of its own: every viewer shows it alike.
 */
#ifndef SPOTTER_WEB_SVG_H
#define SPOTTER_WEB_SVG_H

#include "web/timeline.h"

struct buf;
struct verdict;

enum { SVG_WIDTH = 1000, SVG_MARGIN = 20, SVG_FONT = 12 };

/* A whole SVG file; the timeline alone, as an element for a page. Out of memory: !buf_ok(out). */
void svg_report(const struct timeline *t, const struct verdict *v, struct buf *out);
void svg_timeline(const struct timeline *t, const struct verdict *v, struct buf *out);

/* The parts: each draws from `top` on and returns where it ended. */
double svg_ledgers(struct buf *out, const struct verdict *v, double top);
double svg_tracks(struct buf *out, const struct timeline *t, const struct verdict *v, double top);

/* What parts draw with. Texts are made safe; widths are guessed, as the font is the viewer's. */
enum svg_anchor { SVG_START, SVG_MIDDLE, SVG_END };
void svg_text(struct buf *out, double x, double y, enum svg_anchor anchor, const char *attributes,
	      const char *fmt, ...) __attribute__((format(printf, 6, 7)));
void svg_rect(struct buf *out, double x, double y, double w, double h, const char *attributes);
void svg_line(struct buf *out, double x1, double y1, double x2, double y2, const char *attributes);
/* Pixels of a text of the usual size. */
double svg_width(const char *text);
/* Cut to so many pixels, with dots where it is. */
const char *svg_cut(const char *text, double width, char *buf, size_t size);

#endif

/* SPDX-License-Identifier: MIT */
#include "explain/page.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>

enum { LABEL = 8, LEAST_WIDTH = 40, LINE_MAX_BYTES = 4096 };

void page_done(struct page *p)
{
	for (size_t i = 0; i < p->lines.n; i++)
		free(p->lines.v[i].text);
	vec_done(&p->lines);
}

/* A number stays with its unit: "642 %", "7.9 GB", "4 min". */
static bool may_break(const char *s, size_t at)
{
	size_t word = strcspn(s + at + 1, " ");

	return !(at && s[at - 1] >= '0' && s[at - 1] <= '9' && word > 0 && word <= 3);
}

/* Bytes of the next row: as many words as fit; a word that is longer than a row gets cut. */
static size_t row_bytes(const char *s, unsigned width)
{
	size_t at = 0, fits = 0, columns = 0;

	while (s[at]) {
		size_t n = text_utf8(s + at, strlen(s + at));
		char one[5] = { 0 };

		memcpy(one, s + at, n ? n : 1);
		columns += text_width(one);
		if (s[at] == ' ' && columns <= width + 1 && may_break(s, at))
			fits = at;
		if (columns > width)
			return fits ? fits : at ? at : 1;
		at += n ? n : 1;
	}
	return at;
}

static unsigned count_rows(const char *s, unsigned width)
{
	unsigned rows = 0;

	do {
		s += row_bytes(s, width);
		while (*s == ' ')
			s++;
		rows++;
	} while (*s);
	return rows;
}

void page_add(struct page *p, unsigned weight, enum page_ink ink, const char *label,
	      const char *fmt, ...)
{
	struct page_line *l = vec_push(&p->lines);
	auto_done(buf) struct buf raw, safe;
	va_list ap;

	buf_init(&raw, LINE_MAX_BYTES);
	buf_init(&safe, LINE_MAX_BYTES);
	va_start(ap, fmt);
	buf_vprintf(&raw, fmt, ap);
	va_end(ap);
	text_safe(&safe, buf_text(&raw), raw.len);
	if (!l || !buf_ok(&raw) || !buf_ok(&safe)) {
		p->failed = true;
		if (l)
			p->lines.n--;
		return;
	}
	if (p->width < LEAST_WIDTH)
		p->width = LEAST_WIDTH;
	l->weight = weight;
	l->ink = ink;
	text_copy(l->label, sizeof(l->label), label);
	l->text = strdup(buf_text(&safe));
	if (!l->text) {
		p->failed = true;
		p->lines.n--;
		return;
	}
	l->rows = count_rows(l->text, p->width - LABEL);
}

/* Takes away the lightest line, the lowest of equals; the last one stays. */
static void drop_lightest(struct page *p, unsigned *rows)
{
	size_t at = p->lines.n - 1;

	for (size_t i = p->lines.n; i-- > 0;)
		if (p->lines.v[i].weight < p->lines.v[at].weight)
			at = i;
	*rows -= p->lines.v[at].rows;
	free(p->lines.v[at].text);
	memmove(&p->lines.v[at], &p->lines.v[at + 1], (p->lines.n - at - 1) * sizeof(*p->lines.v));
	p->lines.n--;
}

static void put_row(struct buf *out, const struct page_line *l, const char *s, size_t n, bool first,
		    bool color)
{
	static const char *const on[] = { "", "\033[1m", "\033[1;33m", "\033[32m", "\033[2m" };
	bool inked = color && on[l->ink][0];

	if (color && first && l->label[0])
		buf_printf(out, "\033[2m%-*s\033[0m", LABEL, l->label);
	else
		buf_printf(out, "%-*s", LABEL, first ? l->label : "");
	if (inked)
		buf_str(out, on[l->ink]);
	buf_put(out, s, n);
	buf_str(out, inked ? "\033[0m\n" : "\n");
}

void page_write(struct page *p, unsigned max_lines, bool color, struct buf *out)
{
	unsigned rows = 0, left;

	for (size_t i = 0; i < p->lines.n; i++)
		rows += p->lines.v[i].rows;
	while (max_lines && rows > max_lines && p->lines.n > 1)
		drop_lightest(p, &rows);
	left = max_lines ? max_lines : rows;
	for (size_t i = 0; i < p->lines.n; i++) {
		const char *s = p->lines.v[i].text;

		for (bool first = true; (first || *s) && left; first = false, left--) {
			size_t n = row_bytes(s, p->width - LABEL);

			put_row(out, &p->lines.v[i], s, n, first, color);
			s += n;
			while (*s == ' ')
				s++;
		}
	}
}

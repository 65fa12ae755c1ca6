/* SPDX-License-Identifier: MIT
 *
 * What every view stands in: the head with the verdict, and the line of keys.
 */
#include "tui/view.h"

#include "base/clock.h"
#include "base/num.h"
#include "base/text.h"
#include "tui/words.h"

#include <math.h>
#include <stdio.h>
#include <time.h>

enum { ROWS_LEAST = 8, COLS_LEAST = 40, ROWS_TALL = 36, ROWS_USUAL = 24, COLS_WIDE = 100 };

static void clock_text(int64_t wall_ns, char *buf, size_t size)
{
	time_t t = (time_t)(wall_ns / NS_PER_S);
	struct tm tm;

	if (!localtime_r(&t, &tm) || !strftime(buf, size, "%H:%M:%S", &tm))
		buf[0] = '\0';
}

/* One phrase after another as long as they fit. */
struct title {
	struct canvas *c;
	int at, end;
};

static void say(struct title *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void say(struct title *t, const char *fmt, ...)
{
	char text[200];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (t->at + (int)text_width(text) <= t->end)
		t->at += canvas_text(t->c, 0, t->at, t->end - t->at, LOOK_REVERSE, text) + 2;
}

/* "train.py  pid 4242  step 1,204 (6.31/s)  loss 0.427  ran 4 min 10 s" */
static void draw_subject(const struct board *b, struct title *t)
{
	double seconds = (double)(b->last_ns - b->run->started_mono_ns) / 1e9;
	char name[96], a[32];

	if (!b->job) {
		say(t, "%s", text_safe_copy(name, sizeof(name), b->run->machine.hostname));
		return;
	}
	say(t, "%s", text_safe_copy(name, sizeof(name), b->run->name));
	if (b->run->pid > 0)
		say(t, "pid %lld", (long long)b->run->pid);
	if (isfinite(b->steps.count) && isfinite(b->steps.rate))
		say(t, "step %s (%.3g/s)", num_count(b->steps.count, a, sizeof(a)), b->steps.rate);
	else if (isfinite(b->steps.count))
		say(t, "step %s", num_count(b->steps.count, a, sizeof(a)));
	if (isfinite(b->steps.loss))
		say(t, "loss %.4g", b->steps.loss);
	if (b->replay)
		say(t, "%s %s", b->live ? "recorded for" : "ran",
		    num_seconds(seconds, a, sizeof(a)));
}

/* "replay 0:12 of 4:10", "paused 0:35 ago", "live" and the time of day. */
static void position(const struct board *b, const struct ui *u, char *buf, size_t size)
{
	double start = (double)b->run->started_mono_ns, at = (double)b->at_ns;
	double end = (double)b->last_ns;
	char x[24], y[24], clock[16];

	clock_text(b->snap.wall_ns, clock, sizeof(clock));
	if (b->replay && !b->live)
		snprintf(buf, size, "replay %s of %s  %s",
			 words_clock((at - start) / 1e9, x, sizeof(x)),
			 words_clock((end - start) / 1e9, y, sizeof(y)), clock);
	else if (u->paused)
		snprintf(buf, size, "paused %s ago  %s",
			 words_clock((end - at) / 1e9, x, sizeof(x)), clock);
	else
		snprintf(buf, size, "%s  %s", b->ended ? "ended" : "live", clock);
}

static void draw_title(const struct board *b, const struct ui *u, struct canvas *c)
{
	struct title t = { .c = c, .at = 10 };
	char where[64];

	canvas_fill(c, (struct area){ 0, 0, 1, c->cols }, LOOK_REVERSE, ' ');
	position(b, u, where, sizeof(where));
	t.end = c->cols - 2 - canvas_right(c, 0, c->cols - 1, c->cols - 10, LOOK_REVERSE, where);
	canvas_text(c, 0, 1, 8, LOOK_REVERSE | LOOK_BOLD, "spotter");
	draw_subject(b, &t);
}

/* Rows used. */
static int draw_verdict(const struct board *b, struct canvas *c, int rows)
{
	struct headline h;
	int used;

	words_headline(b, &h);
	canvas_glyph(c, 1, 1, h.tone | LOOK_BOLD, h.mark);
	used = canvas_wrap(
	    c, (struct area){ 1, 3, h.then[0] && rows > 1 ? rows - 1 : rows, c->cols - 4 },
	    h.tone | LOOK_BOLD, h.says);
	if (h.then[0] && used < rows)
		used += canvas_wrap(c, (struct area){ 1 + used, 3, rows - used, c->cols - 4 },
				    TONE_PLAIN, h.then);
	return used;
}

struct hint {
	const char *key, *says;
};

static void draw_keys(const struct board *b, const struct ui *u, struct canvas *c)
{
	const struct hint hints[] = {
		{ "?", "help" },
		{ "q", "quit" },
		{ "Tab", "next view" },
		{ u->can_open ? "Enter" : NULL, "watch it" },
		{ u->can_leave ? "m" : NULL, "machine" },
		{ b->job ? "f" : NULL, "functions" },
		{ b->job ? "w" : NULL, "why" },
		{ "s", task_sort_name(u->sort) },
		{ "/", u->filter[0] ? u->filter : "filter" },
		{ "t", u->tree ? "flat" : "tree" },
		{ b->job ? "H" : NULL, u->threads ? "no threads" : "threads" },
		{ "Space", b->replay && !b->live ? (u->playing ? "stop" : "play")
			   : u->paused           ? "go on"
						 : "pause" },
		{ "\xe2\x86\x90\xe2\x86\x92", "time" },
		{ "+-", "zoom" },
	};
	int at = 1, row = c->rows - 1;

	canvas_fill(c, (struct area){ row, 0, 1, c->cols }, TONE_PLAIN, ' ');
	for (size_t i = 0; i < sizeof(hints) / sizeof(hints[0]); i++) {
		int width;

		if (!hints[i].key)
			continue;
		width = (int)(text_width(hints[i].key) + 1 + text_width(hints[i].says) + 2);
		if (at + width > c->cols)
			continue;
		at += canvas_text(c, row, at, c->cols - at, TONE_KEY | LOOK_BOLD, hints[i].key) + 1;
		at += canvas_text(c, row, at, c->cols - at, TONE_DIM, hints[i].says) + 2;
	}
}

void screen_draw(const struct board *b, struct ui *u, struct canvas *c)
{
	/* The narrower the screen the more rows the same words take. */
	int head = c->rows >= ROWS_TALL || (c->cols < COLS_WIDE && c->rows >= ROWS_USUAL) ? 3 : 2;
	int used;

	canvas_clear(c);
	if (c->rows < ROWS_LEAST || c->cols < COLS_LEAST) {
		canvas_wrap(c, (struct area){ 0, 0, c->rows, c->cols }, TONE_PLAIN,
			    "spotter top needs 40 columns and 8 rows");
		return;
	}
	draw_title(b, u, c);
	used = draw_verdict(b, c, head);
	/* Two rows at least, or all below would jump with every other verdict. */
	used = used > 2 ? used : 2;
	u->view->draw(b, u, c, (struct area){ 1 + used, 0, c->rows - 2 - used, c->cols });
	draw_keys(b, u, c);
}

/* SPDX-License-Identifier: MIT */
#include "cli/progress.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/io.h"
#include "cli/command.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	AFTER_MS = 1000,
	EVERY_MS = 200,
	BAR_MOST = 40,
	BAR_LEAST = 8,
	AROUND = 22,    /* columns for the word, the brackets and the share */
	LOOK_EVERY = 64 /* calls: a clock reading each would be felt */
};

static bool can_redraw(void)
{
	const char *term = getenv("TERM");

	return term && *term && strcmp(term, "dumb") != 0 && isatty(STDERR_FILENO);
}

/* A terminal that is not ours to control (ENOTTY) has no foreground we could ask for. */
static bool in_foreground(void)
{
	pid_t group = tcgetpgrp(STDERR_FILENO);

	return group == getpgrp() || (group < 0 && errno == ENOTTY);
}

void progress_begin(struct progress *p, const char *what, bool quiet)
{
	*p = (struct progress){ .what = what };
	if (quiet || !can_redraw())
		return;
	p->on = true;
	p->columns = cli_columns(STDERR_FILENO);
	p->begun_ns = clock_mono_ns();
}

void progress_line(const char *what, double share, unsigned beat, unsigned columns, struct buf *out)
{
	unsigned bar = columns ? columns - (columns < AROUND ? columns : AROUND) : BAR_MOST, at;

	if (isfinite(share))
		share = share < 0 ? 0 : share > 1 ? 1 : share;
	if (bar < BAR_LEAST) {
		buf_str(out, what);
		if (isfinite(share))
			buf_printf(out, " %.0f %%", floor(100 * share));
		return;
	}
	bar = bar < BAR_MOST ? bar : BAR_MOST;
	buf_printf(out, "%-10s [", what);
	at = isfinite(share) ? (unsigned)(share * bar) : beat % (bar - 2);
	for (unsigned i = 0; i < bar; i++) {
		if (isfinite(share))
			buf_char(out, i < at ? '=' : i == at ? '>' : ' ');
		else
			buf_char(out, i < at || i > at + 2 ? ' ' : "<=>"[i - at]);
	}
	buf_char(out, ']');
	if (isfinite(share))
		buf_printf(out, " %3.0f %%", floor(100 * share));
}

static void tell(struct progress *p, double share)
{
	auto_done(buf) struct buf line = { 0 };
	int64_t now = clock_mono_ns();

	if (now - p->begun_ns < AFTER_MS * NS_PER_MS || now - p->told_ns < EVERY_MS * NS_PER_MS)
		return;
	p->told_ns = now;
	if (!in_foreground())
		return;
	buf_char(&line, '\r');
	progress_line(p->what, share, p->beat++, p->columns, &line);
	buf_str(&line, "\033[K"); /* what a longer line left behind */
	p->shown = true;
	(void)io_write_all(STDERR_FILENO, buf_text(&line), line.len);
}

void progress_share(struct progress *p, double share)
{
	if (p->on && p->calls++ % LOOK_EVERY == 0)
		tell(p, share);
}

void progress_pulse(struct progress *p)
{
	if (p->on)
		tell(p, NAN);
}

void progress_end(struct progress *p)
{
	static const char wipe[] = "\r\033[K";

	if (p->shown)
		(void)io_write_all(STDERR_FILENO, wipe, sizeof(wipe) - 1);
	p->shown = p->on = false;
}

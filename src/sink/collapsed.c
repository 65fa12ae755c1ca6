/* SPDX-License-Identifier: MIT
 *
 * Collapsed stacks, as flamegraph.pl, speedscope, inferno and others read them: a line for every
 * different stack of every thread, outermost frame first, and behind the last blank its time.
 *
 *	python3 (4711);main thread;<module> (train.py:88);train (train.py:41) 5120000
 *	python3 (4711);main thread;<module> (train.py:88);get (queues.py:102);[waiting: pipe] 830112
 *
 * The time is wall-clock time in microseconds, not a count of samples: samples do not all stand for
 * the same time, as the rate changes and a thread that did not run is not read again. Waiting is in it,
 * with a mark as innermost frame, so that a view can leave it out.
 *
 * Lines are added up here; needed is memory for each different stack, however long the run was.
 */
#include "sink/sink.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/text.h"
#include "model/stack_sum.h"

#include <string.h>

enum { WRITE_AT = 256 << 10 };

struct collapsed_state {
	struct stack_sum sum; /* by thread */
	size_t written;
};

static int collapsed_begin(void *state, const struct sink_source *src, struct buf *out)
{
	(void)state;
	(void)src;
	(void)out;
	return 0;
}

static int collapsed_stack(void *state, const struct sink_source *src, const struct stack_slice *s,
			   struct buf *out)
{
	struct collapsed_state *st = state;
	int r = 0;

	(void)src;
	(void)out;
	for (size_t i = 0; i < s->n && r == 0; i++)
		r = stack_sum_add(&st->sum, s->rows[i].entity, &s->rows[i]);
	return r;
}

/* A frame may not hold what parts frames; the text of `part` is safe already. */
static void put_part(struct buf *part, bool first, struct buf *out)
{
	if (!first)
		buf_char(out, ';');
	for (size_t i = 0; i < part->len; i++)
		buf_char(out, part->data[i] == ';' ? ':' : part->data[i]);
	buf_reset(part);
}

static void put_frame(const struct stack_book *b, uint32_t code, struct buf *part)
{
	const struct place *p = stack_code_place(b, code);
	const char *file;

	stack_code_name(b, code, part);
	if (!p || p->kind != PLACE_PYTHON || !p->file || !p->file[0])
		return;
	file = stack_short_file(p->file);
	buf_str(part, " (");
	text_safe(part, file, strlen(file));
	if (p->line > 0)
		buf_printf(part, ":%d", p->line);
	buf_char(part, ')');
}

static void put_line(const struct sink_source *src, const struct stack_line *l, struct buf *out)
{
	uint32_t codes[STACK_CODES_MAX];
	size_t n = stack_codes(src->book, &l->look, codes);
	auto_done(buf) struct buf part = { 0 };

	stack_process_name(src->entities, l->owner, &part);
	put_part(&part, true, out);
	stack_thread_name(src->entities, l->owner, &part);
	put_part(&part, false, out);
	for (size_t i = 0; i < n; i++) {
		put_frame(src->book, codes[i], &part);
		put_part(&part, false, out);
	}
	buf_printf(out, " %lld\n", (long long)(l->weight_ns / 1000 + (l->weight_ns % 1000 >= 500)));
}

static int collapsed_end(void *state, const struct sink_source *src, struct buf *out)
{
	struct collapsed_state *st = state;
	size_t enough = out->len + WRITE_AT;

	while (st->written < st->sum.lines.n && out->len < enough && buf_ok(out))
		put_line(src, &st->sum.lines.v[st->written++], out);
	return st->written < st->sum.lines.n && buf_ok(out);
}

static void collapsed_done(void *state)
{
	struct collapsed_state *st = state;

	stack_sum_done(&st->sum);
}

const struct sink_type collapsed_sink = {
	.name = "collapsed",
	.extension = "collapsed",
	.help = "stacks for flame graphs: one line a stack, with its microseconds",
	.state_size = sizeof(struct collapsed_state),
	.begin = collapsed_begin,
	.stack = collapsed_stack,
	.end = collapsed_end,
	.done = collapsed_done,
};

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
#include "base/map.h"
#include "base/text.h"
#include "base/vec.h"
#include "sink/stack_text.h"

#include <errno.h>
#include <string.h>

enum { WRITE_AT = 256 << 10 };

struct line {
	uint32_t thread;
	uint32_t next; /* further line of the same hash: place in lines + 1; 0 none */
	struct stack_look look;
	int64_t weight_ns;
};

struct collapsed_state {
	VEC(struct line) lines;
	struct map by_hash; /* -> place in lines + 1 */
	size_t written;
};

static uint64_t hash_of(uint32_t thread, const struct stack_look *l)
{
	uint64_t look = (uint64_t)l->hole << 16 | (uint64_t)l->kind << 8 | l->on;

	return map_mix(map_mix((uint64_t)thread << 32 | l->node) ^ look);
}

static struct line *find(struct collapsed_state *st, uint32_t thread, const struct stack_look *l)
{
	uint64_t h = hash_of(thread, l);
	uint32_t first = 0;
	struct line *line;

	if (map_get(&st->by_hash, h, &first))
		for (uint32_t at = first; at; at = st->lines.v[at - 1].next) {
			line = &st->lines.v[at - 1];
			if (line->thread == thread && stack_look_same(&line->look, l))
				return line;
		}
	line = st->lines.n < UINT32_MAX - 1 ? vec_push(&st->lines) : NULL;
	if (!line || !map_put(&st->by_hash, h, (uint32_t)st->lines.n))
		return NULL;
	*line = (struct line){ .thread = thread, .next = first, .look = *l };
	return line;
}

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
	(void)src;
	(void)out;
	for (size_t i = 0; i < s->n; i++) {
		struct stack_look look = stack_look_of(&s->rows[i]);
		struct line *line;

		/* A damaged record may hold any number. */
		if (s->rows[i].weight_ns <= 0)
			continue;
		line = find(state, s->rows[i].entity, &look);
		if (!line)
			return -ENOMEM;
		if (__builtin_add_overflow(line->weight_ns, s->rows[i].weight_ns, &line->weight_ns))
			line->weight_ns = INT64_MAX;
	}
	return 0;
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

static void put_line(const struct sink_source *src, const struct line *l, struct buf *out)
{
	uint32_t codes[STACK_CODES_MAX];
	size_t n = stack_codes(src->book, &l->look, codes);
	auto_done(buf) struct buf part = { 0 };

	stack_process_name(src->entities, l->thread, &part);
	put_part(&part, true, out);
	stack_thread_name(src->entities, l->thread, &part);
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

	while (st->written < st->lines.n && out->len < enough && buf_ok(out))
		put_line(src, &st->lines.v[st->written++], out);
	return st->written < st->lines.n && buf_ok(out);
}

static void collapsed_done(void *state)
{
	struct collapsed_state *st = state;

	vec_done(&st->lines);
	map_done(&st->by_hash);
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

/* SPDX-License-Identifier: MIT */
#include "record/backlog.h"

#include "base/clock.h"
#include "record/db.h"

#include <errno.h>

void backlog_done(struct backlog *b)
{
	vec_done(&b->rows);
	buf_done(&b->bytes);
}

void backlog_clear(struct backlog *b)
{
	b->rows.n = 0;
	buf_reset(&b->bytes);
}

static bool is_block(const struct pending *p)
{
	return p->kind >= PENDING_SECOND && p->kind <= PENDING_COARSE;
}

static bool is_stacks(const struct pending *p)
{
	return p->kind == PENDING_STACK_SECOND || p->kind == PENDING_STACK_MINUTE;
}

static bool is_blob(const struct pending *p)
{
	return is_block(p) || is_stacks(p);
}

/* A row with a blob; NULL without memory. */
static struct pending *push_blob(struct backlog *b, enum pending_kind kind,
				 const struct series_block *block)
{
	size_t at = b->bytes.len;
	struct pending *p = vec_push(&b->rows);

	if (!p)
		return NULL;
	buf_put(&b->bytes, block->blob, block->n);
	if (!buf_ok(&b->bytes)) {
		b->bytes.failed = false;
		b->rows.n--;
		return NULL;
	}
	*p = (struct pending){ .kind = kind, .t_ns = block->t1_ns, .at = at, .n = block->n };
	return p;
}

int backlog_block(struct backlog *b, enum pending_kind kind, enum entity_kind group,
		  const struct series_block *block, int64_t slot_ns, unsigned frames)
{
	struct pending *p = push_blob(b, kind, block);

	if (!p)
		return -ENOMEM;
	p->block.group = group;
	p->block.t0_ns = block->t0_ns;
	p->block.t1_ns = block->t1_ns;
	p->block.ticks = block->ticks;
	p->block.samples = block->samples;
	p->block.slot_ns = slot_ns;
	p->block.frames = frames;
	return 0;
}

int backlog_stacks(struct backlog *b, enum pending_kind kind, const struct series_block *block,
		   unsigned slices)
{
	struct pending *p = push_blob(b, kind, block);

	if (!p)
		return -ENOMEM;
	p->stacks.t0_ns = block->t0_ns;
	p->stacks.t1_ns = block->t1_ns;
	p->stacks.samples = block->samples;
	p->stacks.slices = slices;
	return 0;
}

/* Offset of a NUL-terminated copy. */
static size_t put_text(struct backlog *b, const char *s)
{
	size_t at = b->bytes.len;

	db_utf8(&b->bytes, s);
	buf_char(&b->bytes, '\0');
	return at;
}

static struct pending *push_row(struct backlog *b, enum pending_kind kind, int64_t t_ns)
{
	struct pending *p = b->rows.n < BACKLOG_ROWS ? vec_push(&b->rows) : NULL;

	if (p)
		*p = (struct pending){ .kind = kind, .t_ns = t_ns };
	return p;
}

/* A text that did not fit takes its row with it. */
static int check_text(struct backlog *b)
{
	if (buf_ok(&b->bytes))
		return 0;
	b->bytes.failed = false;
	b->rows.n--;
	return -ENOMEM;
}

int backlog_life(struct backlog *b, const struct frame *f, const struct life *life,
		 enum entity_kind kind)
{
	struct pending *p = push_row(b, PENDING_LIFE, series_time(f->mono_ns));

	if (!p)
		return -ENOMEM;
	p->life = *life;
	p->life.kind = kind;
	p->at = put_text(b, frame_text(f, life->name));
	p->at2 = put_text(b, frame_text(f, life->detail));
	return check_text(b);
}

int backlog_event(struct backlog *b, int64_t t_ns, const struct event *event, const char *text)
{
	struct pending *p = push_row(b, PENDING_EVENT, t_ns);

	if (!p)
		return -ENOMEM;
	p->event = *event;
	p->at = put_text(b, text);
	return check_text(b);
}

int backlog_gap(struct backlog *b, int64_t t_ns, const struct gap *gap)
{
	struct pending *p = push_row(b, PENDING_GAP, t_ns);

	if (!p)
		return -ENOMEM;
	p->gap = *gap;
	return 0;
}

int backlog_place(struct backlog *b, const struct frame *f, const struct frame_place *place)
{
	struct pending *p = push_row(b, PENDING_PLACE, 0);

	if (!p)
		return -ENOMEM;
	p->place = *place;
	p->at = put_text(b, frame_text(f, place->function));
	p->at2 = put_text(b, frame_text(f, place->file));
	put_text(b, frame_text(f, place->source));
	p->n = b->bytes.len - p->at;
	return check_text(b);
}

int backlog_node(struct backlog *b, const struct frame_node *node)
{
	struct pending *p = push_row(b, PENDING_NODE, 0);

	if (!p)
		return -ENOMEM;
	p->node = *node;
	return 0;
}

struct pending *backlog_mark(struct backlog *b, enum pending_kind kind, int64_t t_ns,
			     const char *name)
{
	struct pending *p = b->rows.n < BACKLOG_MARKS ? push_row(b, kind, t_ns) : NULL;

	if (p && name) {
		p->at = put_text(b, name);
		p->n = b->bytes.len - p->at;
		p = check_text(b) < 0 ? NULL : p;
	}
	b->lost_marks += !p;
	return p;
}

unsigned backlog_drop_stacks(struct backlog *b, int64_t t0_ns)
{
	unsigned n = 0;

	for (size_t i = 0; i < b->rows.n; i++) {
		struct pending *p = &b->rows.v[i];

		if (p->kind != PENDING_STACK_SECOND || p->stacks.t0_ns < t0_ns)
			continue;
		n += p->stacks.slices;
		p->kind = PENDING_NOTHING;
	}
	return n;
}

void backlog_drop_seconds(struct backlog *b, int64_t slot_ns)
{
	for (size_t i = 0; i < b->rows.n; i++)
		if (b->rows.v[i].kind == PENDING_SECOND && b->rows.v[i].block.t0_ns >= slot_ns)
			b->rows.v[i].kind = PENDING_NOTHING;
}

uint64_t backlog_frames(const struct backlog *b)
{
	uint64_t n = 0;

	for (size_t i = 0; i < b->rows.n; i++)
		if (is_block(&b->rows.v[i]))
			n += b->rows.v[i].block.frames;
	return n;
}

uint64_t backlog_slices(const struct backlog *b)
{
	uint64_t n = 0;

	for (size_t i = 0; i < b->rows.n; i++)
		if (is_stacks(&b->rows.v[i]))
			n += b->rows.v[i].stacks.slices;
	return n;
}

/* Moves what is left to the front, rows and bytes. */
static void pack(struct backlog *b)
{
	size_t rows = 0, len = 0;

	for (size_t i = 0; i < b->rows.n; i++) {
		struct pending p = b->rows.v[i];
		size_t from = p.at, n = p.n;

		if (p.kind == PENDING_NOTHING)
			continue;
		if (p.kind == PENDING_LIFE || p.kind == PENDING_EVENT)
			n = strlen(b->bytes.data + from) + 1;
		if (p.kind == PENDING_LIFE) /* its two texts lie side by side */
			n += strlen(b->bytes.data + p.at2) + 1;
		if (n)
			memmove(b->bytes.data + len, b->bytes.data + from, n);
		p.at2 = len + (p.at2 - p.at);
		p.at = len;
		len += n;
		b->rows.v[rows++] = p;
	}
	b->rows.n = rows;
	b->bytes.len = len;
}

uint64_t backlog_trim(struct backlog *b, int64_t now_ns)
{
	uint64_t lost = 0;
	size_t kept = 0;

	for (size_t i = 0; i < b->rows.n; i++) {
		const struct pending *p = &b->rows.v[i];

		kept += is_blob(p) ? p->n : 0;
	}
	for (size_t i = 0; i < b->rows.n; i++) {
		struct pending *p = &b->rows.v[i];
		bool raw = p->kind == PENDING_SECOND || p->kind == PENDING_MINUTE || is_stacks(p);
		bool old = raw && p->t_ns < now_ns - BACKLOG_SECONDS * NS_PER_S;

		if (!is_blob(p) || (!old && kept <= BACKLOG_BYTES))
			continue;
		kept -= p->n;
		if (is_stacks(p))
			b->lost_slices += p->stacks.slices;
		else
			lost += p->block.frames;
		p->kind = PENDING_NOTHING;
	}
	pack(b);
	return lost;
}

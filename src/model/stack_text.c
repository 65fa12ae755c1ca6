/* SPDX-License-Identifier: MIT */
#include "model/stack_text.h"

#include "base/buf.h"
#include "base/text.h"

#include <string.h>

/* Frames that are not there. */
enum hole { HOLE_NONE, HOLE_UNPROVEN, HOLE_NO_PYTHON, HOLE_NO_STACK };

/* A mark is one of two: what is not there (the hole), or what the thread does (kind, on). */
static uint32_t hole_code(unsigned hole)
{
	return STACK_MARK | hole << 16;
}

static uint32_t state_code(unsigned kind, unsigned on)
{
	return STACK_MARK | kind << 8 | on;
}

struct stack_look stack_look_of(const struct stack_row *r)
{
	struct stack_look l = { .node = r->node, .kind = r->kind };

	if (l.kind >= WAIT_KINDS)
		l.kind = WAIT_UNKNOWN;
	/* What poll() looked at matters; what a read of a pipe reads is said by the pipe. */
	if (l.kind == WAIT_POLL && r->on < WAIT_KINDS)
		l.on = r->on;
	if (r->flags & (STACK_PARTIAL | STACK_UNPROVEN))
		l.hole = HOLE_UNPROVEN;
	else if (!r->node && r->flags & STACK_PYTHON)
		l.hole = HOLE_NO_PYTHON;
	return l;
}

bool stack_look_same(const struct stack_look *a, const struct stack_look *b)
{
	return a->node == b->node && a->hole == b->hole && a->kind == b->kind && a->on == b->on;
}

size_t stack_codes(const struct stack_book *b, const struct stack_look *l, uint32_t *codes)
{
	size_t n = b && l->node ? stack_book_walk(b, l->node, codes, STACK_DEPTH_MAX) : 0;

	for (size_t i = 0; i < n / 2; i++) {
		uint32_t inner = codes[i];

		codes[i] = codes[n - 1 - i];
		codes[n - 1 - i] = inner;
	}
	/* Where there are no frames its state says enough; running is none. (A damaged record may have
	 * rows of nodes that it does not have.) */
	if (l->hole)
		codes[n++] = hole_code(l->hole);
	else if (!n && l->kind == WAIT_RUNNING)
		codes[n++] = hole_code(HOLE_NO_STACK);
	if (l->kind != WAIT_RUNNING)
		codes[n++] = state_code(l->kind, l->on);
	return n;
}

const struct place *stack_code_place(const struct stack_book *b, uint32_t code)
{
	return code & STACK_MARK || !b ? NULL : stack_book_find_place(b, code);
}

/* The kind's name without its underscores. */
static void put_kind(unsigned kind, struct buf *out)
{
	for (const char *s = wait_kind_name((enum wait_kind)kind); *s; s++)
		buf_char(out, *s == '_' ? ' ' : *s);
}

static void put_mark(uint32_t code, struct buf *out)
{
	static const char *const holes[] = { "", "[not proven]", "[no Python code]", "[no stack]" };
	unsigned hole = code >> 16 & 3, kind = code >> 8 & 0xff, on = code & 0xff;

	if (hole) {
		buf_str(out, holes[hole]);
	} else if (kind == WAIT_RUNNABLE) {
		buf_str(out, "[queued for a CPU]");
	} else if (kind == WAIT_UNKNOWN) {
		buf_str(out, "[state not known]");
	} else if (kind == WAIT_STOPPED) {
		buf_str(out, "[stopped]");
	} else {
		buf_str(out, "[waiting: ");
		put_kind(kind, out);
		if (on) {
			buf_char(out, ' ');
			put_kind(on, out);
		}
		buf_char(out, ']');
	}
}

static void put_safe(struct buf *out, const char *s)
{
	text_safe(out, s, strlen(s));
}

void stack_code_name(const struct stack_book *b, uint32_t code, struct buf *out)
{
	const struct place *p = stack_code_place(b, code);
	const char *function = p && p->function ? p->function : "";
	const char *file = p && p->file ? p->file : "";

	if (code & STACK_MARK) {
		put_mark(code, out);
		return;
	}
	put_safe(out, function);
	if (p && p->kind == PLACE_NATIVE && file[0]) {
		buf_str(out, function[0] ? " [" : "[");
		put_safe(out, stack_short_file(file));
		buf_char(out, ']');
	} else if (!function[0]) {
		buf_str(out, "[unknown]");
	}
}

/* A package's __init__.py is known by its folder. */
const char *stack_short_file(const char *path)
{
	const char *base = strrchr(path, '/');

	if (!base || !base[1])
		return path;
	if (strcmp(base, "/__init__.py") != 0)
		return base + 1;
	while (base > path && base[-1] != '/')
		base--;
	return base;
}

static const struct entity *process_of(const struct entity_table *t, const struct entity *e)
{
	return e && e->kind == ENTITY_THREAD ? entity_find(t, e->parent) : e;
}

static void put_entity(const struct entity *e, struct buf *out)
{
	put_safe(out, e->name ? e->name : "");
	buf_printf(out, " (%lld)", (long long)e->key);
}

void stack_process_name(const struct entity_table *t, uint32_t thread, struct buf *out)
{
	const struct entity *p = process_of(t, entity_find(t, thread));

	if (p)
		put_entity(p, out);
	else
		buf_str(out, "[unknown process]");
}

void stack_thread_name(const struct entity_table *t, uint32_t thread, struct buf *out)
{
	const struct entity *e = entity_find(t, thread), *p = process_of(t, e);

	if (e && p && e->key == p->key)
		buf_str(out, "main thread");
	else if (e)
		put_entity(e, out);
	else
		buf_printf(out, "[unknown thread %u]", thread);
}

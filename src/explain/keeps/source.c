/* SPDX-License-Identifier: MIT */
#include "explain/keeps/source.h"

#include <errno.h>

enum { STATEMENT_MAX = 4096 }; /* bytes of one that are looked at */

static bool begins(const struct py_statement *t, const char *word)
{
	size_t n = strlen(word);

	return t->n > n && memcmp(t->text, word, n) == 0 && !py_is_word(t->text[n]);
}

static enum py_block_kind kind_of(const struct py_statement *t)
{
	struct py_statement rest = *t;

	if (begins(&rest, "async")) {
		rest.text += 5;
		rest.n -= 5;
		for (; rest.n && py_is_blank(*rest.text); rest.n--)
			rest.text++;
	}
	if (begins(&rest, "def"))
		return PY_DEF;
	if (begins(&rest, "class"))
		return PY_CLASS;
	return begins(&rest, "for") || begins(&rest, "while") ? PY_LOOP : PY_OTHER;
}

/* The blocks that are open, outermost first, with the column their heads begin in. */
struct reader {
	struct py_source *s;
	const char *raw;
	size_t n, at;
	int32_t line;
	struct {
		uint32_t block;
		int indent;
	} open[SOURCE_DEPTH_MAX];
	int depth;
	int32_t last_line; /* of the statement before */
};

static uint32_t innermost(struct reader *r, int indent)
{
	while (r->depth > 1 && r->open[r->depth - 1].indent >= indent) {
		r->depth--;
		r->s->blocks.v[r->open[r->depth].block].to = r->last_line;
	}
	return r->open[r->depth - 1].block;
}

static int open_block(struct reader *r, const struct py_statement *t, int indent)
{
	struct py_block *b = r->depth < SOURCE_DEPTH_MAX ? vec_push(&r->s->blocks) : NULL;

	if (!b)
		return r->depth < SOURCE_DEPTH_MAX ? -ENOMEM : 0;
	*b = (struct py_block){ .kind = kind_of(t),
				.parent = t->block,
				.head = (uint32_t)(r->s->statements.n - 1),
				.from = t->line,
				.to = t->line };
	r->open[r->depth].block = (uint32_t)(r->s->blocks.n - 1);
	r->open[r->depth++].indent = indent;
	return 0;
}

/* A statement of the clean text [from, to). */
static int add_statement(struct reader *r, size_t from, size_t to, int32_t line, int indent)
{
	struct py_statement *t;

	while (to > from && py_is_blank(r->s->clean[to - 1]))
		to--;
	if (to == from)
		return 0;
	t = r->s->statements.n < SOURCE_STATEMENTS_MAX ? vec_push(&r->s->statements) : NULL;
	if (!t)
		return r->s->statements.n < SOURCE_STATEMENTS_MAX ? -ENOMEM : -EFBIG;
	*t = (struct py_statement){ .text = r->s->clean + from,
				    .n = to - from < STATEMENT_MAX ? to - from : STATEMENT_MAX,
				    .line = line,
				    .block = innermost(r, indent) };
	r->last_line = r->line;
	return r->s->clean[to - 1] == ':' ? open_block(r, t, indent) : 0;
}

/* Puts a byte of the raw text into the clean one as something else. */
static void put(struct reader *r, char c)
{
	r->line += r->raw[r->at] == '\n';
	r->s->clean[r->at++] = c;
}

/* A string, from its first quote on: only its quotes are left. Ends with the line unless it is a long one. */
static void skip_string(struct reader *r)
{
	char q = r->raw[r->at];
	bool is_long = r->n - r->at >= 3 && r->raw[r->at + 1] == q && r->raw[r->at + 2] == q;

	for (int i = 0; i < (is_long ? 3 : 1); i++)
		put(r, q);
	while (r->at < r->n) {
		char c = r->raw[r->at];

		if (c == '\\' && r->at + 1 < r->n) {
			put(r, ' ');
			put(r, ' ');
		} else if (c == q && !is_long) {
			put(r, q);
			return;
		} else if (c == q && r->n - r->at >= 3 && r->raw[r->at + 1] == q &&
			   r->raw[r->at + 2] == q) {
			for (int i = 0; i < 3; i++)
				put(r, q);
			return;
		} else if (c == '\n' && !is_long) {
			return;
		} else {
			put(r, ' ');
		}
	}
}

/* Blanks at the beginning of a line: the column behind them. */
static int skip_indent(struct reader *r)
{
	int column = 0;

	for (; r->at < r->n && py_is_blank(r->raw[r->at]) && r->raw[r->at] != '\n'; put(r, ' '))
		if (column < 1 << 20)
			column = r->raw[r->at] == '\t' ? (column / 8 + 1) * 8 : column + 1;
	return column;
}

static void skip_comment(struct reader *r)
{
	while (r->at < r->n && r->raw[r->at] != '\n')
		put(r, ' ');
}

/* One line as Python counts them: up to a newline outside of brackets, or a semicolon. True: by a newline. */
static bool skip_logical(struct reader *r, size_t *ret_end)
{
	int open = 0;

	while (r->at < r->n) {
		char c = r->raw[r->at];

		*ret_end = r->at;
		if (c == '\n' && open <= 0) {
			put(r, '\n');
			return true;
		}
		if (c == ';' && open <= 0) {
			put(r, ' ');
			return false;
		}
		if (c == '#') {
			skip_comment(r);
		} else if (c == '"' || c == '\'') {
			skip_string(r);
		} else if (c == '\\' && r->at + 1 < r->n) {
			put(r, ' ');
			put(r, ' ');
		} else {
			open += c == '(' || c == '[' || c == '{';
			open -= c == ')' || c == ']' || c == '}';
			put(r, c == '\n' || !c ? ' ' : c);
		}
	}
	*ret_end = r->at;
	return true;
}

static int read_all(struct reader *r)
{
	bool fresh = true; /* at the beginning of a line */
	int indent = 0, got = 0;

	while (got == 0 && r->at < r->n) {
		size_t from, end = 0;
		int32_t line;
		int column = skip_indent(r);

		indent = fresh ? column : indent;
		from = r->at;
		line = r->line;
		fresh = skip_logical(r, &end);
		/* the newline is no line of the statement that it ends */
		r->line -= fresh && end < r->n;
		got = add_statement(r, from, end, line, indent);
		r->line += fresh && end < r->n;
	}
	return got;
}

int py_source_read(struct py_source *s, const char *text, size_t n)
{
	struct reader r = { .s = s, .raw = text, .n = n, .line = 1, .depth = 1 };
	struct py_block *module;
	int got;

	*s = (struct py_source){ .n = n };
	if (n > SOURCE_BYTES_MAX)
		return -EFBIG;
	s->clean = malloc(n + 1);
	module = s->clean ? vec_push(&s->blocks) : NULL;
	if (!module)
		return -ENOMEM;
	module->from = 1;
	r.open[0].indent = -1;
	got = read_all(&r);
	innermost(&r, -1);
	s->blocks.v[0].to = r.line;
	return got;
}

void py_source_done(struct py_source *s)
{
	free(s->clean);
	s->clean = NULL;
	vec_done(&s->statements);
	vec_done(&s->blocks);
}

static uint32_t around(const struct py_source *s, uint32_t block, enum py_block_kind kind)
{
	while (block && s->blocks.v[block].kind != kind)
		block = s->blocks.v[block].parent;
	return block;
}

uint32_t py_def_of(const struct py_source *s, uint32_t block)
{
	return around(s, block, PY_DEF);
}

uint32_t py_class_of(const struct py_source *s, uint32_t block)
{
	return around(s, block, PY_CLASS);
}

uint32_t py_loop_of(const struct py_source *s, uint32_t block)
{
	while (block && s->blocks.v[block].kind != PY_LOOP) {
		if (s->blocks.v[block].kind == PY_DEF || s->blocks.v[block].kind == PY_CLASS)
			return 0;
		block = s->blocks.v[block].parent;
	}
	return block;
}

bool py_within(const struct py_source *s, uint32_t block, uint32_t outer)
{
	while (block > outer)
		block = s->blocks.v[block].parent;
	return block == outer;
}

size_t py_name_of(const struct py_source *s, uint32_t block, const char **ret)
{
	const struct py_block *b = &s->blocks.v[block];
	const struct py_statement *t = block ? &s->statements.v[b->head] : NULL;
	const char *at = t ? memmem(t->text, t->n, b->kind == PY_DEF ? "def" : "class",
				    b->kind == PY_DEF ? 3 : 5)
			   : NULL;
	const char *end = t ? t->text + t->n : NULL;
	size_t n = 0;

	if (!at || (b->kind != PY_DEF && b->kind != PY_CLASS))
		return 0;
	for (at += b->kind == PY_DEF ? 3 : 5; at < end && py_is_blank(*at); at++)
		;
	while (at + n < end && py_is_word(at[n]))
		n++;
	*ret = at;
	return n;
}

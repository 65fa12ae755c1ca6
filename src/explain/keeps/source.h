/* SPDX-License-Identifier: MIT
 *
 * Python source as statements and blocks: as much of its grammar as is needed to say which loop and which function a
 * line is in. The text is anybody's: whatever it is, the work is bounded, and what is not understood is left out.
 *
 *	def train(loader):                  block 1, a function, in block 0 (the module)
 *	    history = []                    a statement of block 1
 *	    for batch in loader:            block 2, a loop, in block 1
 *	        history.append(
 *	            model(batch))           one statement of block 2, with the line it begins in
 */
#ifndef SPOTTER_EXPLAIN_KEEPS_SOURCE_H
#define SPOTTER_EXPLAIN_KEEPS_SOURCE_H

#include "base/vec.h"

#include <ctype.h>
#include <stdint.h>

/* Larger files are not looked at: what people write by hand is smaller. */
enum { SOURCE_BYTES_MAX = 512 << 10, SOURCE_STATEMENTS_MAX = 10000, SOURCE_DEPTH_MAX = 48 };

enum py_block_kind { PY_MODULE, PY_CLASS, PY_DEF, PY_LOOP, PY_OTHER };

struct py_block {
	enum py_block_kind kind;
	uint32_t parent;  /* 0 of the module, too */
	uint32_t head;    /* its statement; of the module 0, which has none */
	int32_t from, to; /* lines, head included */
};

struct py_statement {
	const char *text; /* in source.clean, n bytes, no blanks at its ends */
	size_t n;
	int32_t line; /* from 1 */
	uint32_t block;
};

struct py_source {
	char *
	    clean; /* the text without comments, and without what strings have between their quotes */
	size_t n;
	VEC(struct py_statement) statements;
	VEC(struct py_block) blocks; /* the first is the module */
	size_t *left; /* bytes that may still be looked at in all; NULL: any number */
};

/* Before so many bytes are looked at: false, and nothing more is left, where that would be too many. What was found out
 * by then is not the whole of it. */
static inline bool py_look(const struct py_source *s, size_t bytes)
{
	if (!s->left)
		return true;
	*s->left = *s->left > bytes ? *s->left - bytes : 0;
	return *s->left > 0;
}

/* Of a name; letters that are not ASCII count as well. */
static inline bool py_is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80;
}

static inline bool py_is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\n';
}

/* 0, -EFBIG or -ENOMEM; py_source_done() in any case. */
int py_source_read(struct py_source *s, const char *text, size_t n);
void py_source_done(struct py_source *s);

/* The function a block is in (0: none, code of the module), and the class (0: none). */
uint32_t py_def_of(const struct py_source *s, uint32_t block);
uint32_t py_class_of(const struct py_source *s, uint32_t block);
/* The innermost loop around a block, inside of its function; 0: none. */
uint32_t py_loop_of(const struct py_source *s, uint32_t block);
/* Is it inside of `outer`, or the same? */
bool py_within(const struct py_source *s, uint32_t block, uint32_t outer);
/* The name behind `def` or `class`; its length, 0: none. */
size_t py_name_of(const struct py_source *s, uint32_t block, const char **ret);

#endif

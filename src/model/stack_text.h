/* SPDX-License-Identifier: MIT
 *
 * Stacks as exports and pages name them. A stack is a list of codes, outermost first: the places of its node, and
 * behind them at most two marks, which are frames of our own in square brackets:
 *
 *	train, decode, [waiting: pipe]       blocked there, on a pipe
 *	train, decode, [not proven]          was in something that decode called
 *	[no Python code]                     a thread of an interpreter that runs none
 */
#ifndef SPOTTER_MODEL_STACK_TEXT_H
#define SPOTTER_MODEL_STACK_TEXT_H

#include "model/entity.h"
#include "model/stacks.h"

struct buf;

enum { STACK_CODES_MAX = STACK_DEPTH_MAX + 2 };

/* What is not a place is a mark. */
#define STACK_MARK (UINT32_C(1) << 31)

/* All that tells two stacks of a thread apart in an export. */
struct stack_look {
	uint32_t node;
	uint8_t hole, kind, on;
};

struct stack_look stack_look_of(const struct stack_row *r);
bool stack_look_same(const struct stack_look *a, const struct stack_look *b);
/* How many were put into codes, which has room for STACK_CODES_MAX. At least one. */
size_t stack_codes(const struct stack_book *b, const struct stack_look *l, uint32_t *codes);

/* NULL: a mark, or a place the book does not have. */
const struct place *stack_code_place(const struct stack_book *b, uint32_t code);
/* "decode", "jpeg_read [libjpeg.so.62]", "[waiting: pipe]"; safe to show. */
void stack_code_name(const struct stack_book *b, uint32_t code, struct buf *out);
/* "loader.py", "torch/__init__.py": the part of a path that tells. */
const char *stack_short_file(const char *path);
/* "python3 (4711)" */
void stack_process_name(const struct entity_table *t, uint32_t thread, struct buf *out);
/* "main thread", "pt_data_pin (4718)" */
void stack_thread_name(const struct entity_table *t, uint32_t thread, struct buf *out);

#endif

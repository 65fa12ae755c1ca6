/* SPDX-License-Identifier: MIT
 *
 * Names and assignments in a statement of Python that was cleaned (keeps/source.h).
 */
#ifndef SPOTTER_EXPLAIN_KEEPS_WORDS_H
#define SPOTTER_EXPLAIN_KEEPS_WORDS_H

#include "explain/keeps/source.h"

/* A piece of a statement. {0}: nothing. */
struct span {
	const char *p;
	size_t n;
};

static inline struct span span_of(const struct py_statement *t)
{
	return (struct span){ t->text, t->n };
}

struct span span_trim(struct span s);
bool span_is(struct span s, const char *text);
bool span_begins(struct span s, const char *text);
/* The text anywhere in it. */
bool span_has(struct span s, const char *text);
/* Any of "a|b|c" anywhere in it. */
bool span_has_any(struct span s, const char *list);
/* The first place of a dotted name in it, as a whole: not a part of a longer one, and no attribute of another. NULL. */
const char *span_find_name(struct span s, struct span name);
/* A dotted name and nothing else. */
bool span_is_name(struct span s);
/* The dotted name that ends right before `end`, which is inside of s; n 0: none ("f(x).append"). Subscripts behind the name
 * are passed over: "self.seen[k].append" is self.seen. */
struct span span_name_before(struct span s, const char *end);
/* What is between the bracket at `open` and the one that closes it, or the end. */
struct span span_inside(struct span s, const char *open);
/* The next piece up to a comma outside of brackets; false: no more. */
bool span_next(struct span *rest, struct span *ret);
/* `a = b = value`: what is before the last = (not ==, +=, a default in brackets), and what is behind it. */
bool span_assignment(struct span s, struct span *ret_targets, struct span *ret_value);
/* `name += value`. */
bool span_addition(struct span s, struct span *ret_target, struct span *ret_value);
/* Is it an assignment to this name, alone or with others? What it gets: its own part, where the parts can be told. */
bool span_assigns(struct span s, struct span name, struct span *ret_value);

#endif

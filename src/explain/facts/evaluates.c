/* SPDX-License-Identifier: MIT */
#include "explain/facts/evaluates.h"

#include "explain/does/does.h"
#include "explain/ledger/topics.h"
#include "explain/place.h"

void evaluates_open(struct evaluates *ret, const struct stack_book *book)
{
	*ret = (struct evaluates){ .book = book };
	for (size_t i = 1; i <= book->places.n && ret->n < EVALUATES_MAX; i++) {
		const struct place *p = stack_book_find_place(book, (uint32_t)i);
		struct does d;

		if (p && does_read(p, &d) && d.what == DOES_EVALUATE)
			ret->ranges[ret->n++] = (struct evaluates_range){ p->file, d.from, d.to };
	}
}

static bool is_part(const struct evaluates *e, const struct place *p)
{
	if (topics_match(p, false) & TOPIC_BIT(TOPIC_EVALUATE))
		return true;
	for (size_t i = 0; i < e->n; i++)
		if (e->ranges[i].file == p->file && p->line >= e->ranges[i].from &&
		    p->line <= e->ranges[i].to)
			return true;
	return false;
}

uint32_t evaluates_line(const struct evaluates *e, const struct act_row *r)
{
	uint32_t places[STACK_DEPTH_MAX], found = 0;
	size_t n = stack_book_walk(e->book, r->node, places, STACK_DEPTH_MAX);

	for (size_t i = 0; i < n; i++) {
		const struct place *p = stack_book_find_place(e->book, places[i]);

		if (p && p->kind == PLACE_PYTHON && p->line > 0 && !place_is_library(p) &&
		    is_part(e, p))
			found = places[i];
	}
	return found;
}

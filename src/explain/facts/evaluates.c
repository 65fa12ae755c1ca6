/* SPDX-License-Identifier: MIT */
#include "explain/facts/evaluates.h"

#include "explain/does/does.h"
#include "explain/does/held.h"
#include "explain/ledger/topics.h"
#include "explain/place.h"

#include <stdlib.h>

enum { NO = 1, PART = 2 };

static void read_ranges(struct evaluates *e)
{
	for (size_t i = 1; i <= e->book->places.n && e->n < EVALUATES_MAX; i++) {
		const struct place *p = stack_book_find_place(e->book, (uint32_t)i);
		struct does d;

		if (p && does_read(p, &d) && d.what == DOES_EVALUATE)
			e->ranges[e->n++] = (struct evaluates_range){ p->file, d.from, d.to };
	}
}

static void drop_range_of(struct evaluates *e, const struct place *p)
{
	for (size_t i = 0; i < e->n; i++)
		if (e->ranges[i].file == p->file && p->line >= e->ranges[i].from &&
		    p->line <= e->ranges[i].to)
			e->ranges[i--] = e->ranges[--e->n];
}

/* Orders of a backward pass or an optimiser: whoever called that learns. */
static void drop_learners(struct evaluates *e, const struct activity *a, const struct act_thread *t)
{
	uint32_t places[STACK_DEPTH_MAX];

	for (size_t k = t->row; k < t->row + t->n_rows; k++) {
		const struct act_row *r = &a->rows.v[k];
		size_t n;

		if (r->unknown ||
		    !(r->phase == PHASE_ENGINE || r->topics & TOPIC_BIT(TOPIC_OPTIMIZER)))
			continue;
		n = stack_book_walk(e->book, r->node, places, STACK_DEPTH_MAX);
		for (size_t i = 0; i < n; i++) {
			const struct place *p = stack_book_find_place(e->book, places[i]);

			if (!p || places[i] > e->book->places.n || e->asked[places[i]] == NO)
				continue;
			e->asked[places[i]] = NO;
			drop_range_of(e, p);
		}
	}
}

void evaluates_open(struct evaluates *ret, const struct activity *a, const struct act_thread *t)
{
	*ret = (struct evaluates){ .book = a->book };
	ret->asked = calloc(a->book->places.n + 1, 1);
	if (!ret->asked)
		return;
	read_ranges(ret);
	drop_learners(ret, a, t);
}

void evaluates_done(struct evaluates *e)
{
	free(e->asked);
	*e = (struct evaluates){ 0 };
}

static bool is_part(const struct evaluates *e, const struct place *p)
{
	if (!p || p->kind != PLACE_PYTHON || !p->file || !p->function || p->line <= 0 ||
	    place_is_library(p))
		return false;
	if (topics_match(p, false) & TOPIC_BIT(TOPIC_EVALUATE))
		return true;
	for (size_t i = 0; i < e->n; i++)
		if (e->ranges[i].file == p->file && p->line >= e->ranges[i].from &&
		    p->line <= e->ranges[i].to)
			return true;
	return false;
}

/* `acc = score(net, x_test, y_test)`: it hands out what was held out, where nothing inside of it tells. */
static bool asks(const struct place *p)
{
	return p && p->kind == PLACE_PYTHON && p->source && p->file && !place_is_library(p) &&
	       line_asks_held_out(p->source);
}

uint32_t evaluates_line(const struct evaluates *e, const struct act_row *r)
{
	uint32_t places[STACK_DEPTH_MAX], part = 0, asker = 0;
	size_t n = e->asked ? stack_book_walk(e->book, r->node, places, STACK_DEPTH_MAX) : 0;

	for (size_t i = 0; i < n; i++) {
		const struct place *p = stack_book_find_place(e->book, places[i]);
		uint8_t *known = places[i] <= e->book->places.n ? &e->asked[places[i]] : NULL;

		if (known && !*known)
			*known = is_part(e, p) ? PART : NO;
		if (known && *known == PART)
			part = places[i];
		else if (!part && !asker && asks(p))
			asker = places[i];
	}
	return part ? part : asker;
}

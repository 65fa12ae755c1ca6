/* SPDX-License-Identifier: MIT */
#include "explain/facts/stretch.h"

#include <math.h>

struct search {
	const struct stack_book *book;
	uint32_t thread;
	double from_ns, to_ns; /* as floating point: times of a record may be anything */
	struct heat *heat;
};

/* The innermost line of the program's own, or, without any, of a library; 0: no Python. */
static uint32_t place_of(const struct stack_book *b, uint32_t node)
{
	uint32_t places[STACK_DEPTH_MAX], any = 0;
	size_t n = stack_book_walk(b, node, places, STACK_DEPTH_MAX);

	for (size_t i = 0; i < n; i++) {
		const struct place *p = stack_book_find_place(b, places[i]);

		if (!p || p->kind != PLACE_PYTHON || !p->file)
			continue;
		any = any ? any : places[i];
		if (!place_is_library(p))
			return places[i];
	}
	return any;
}

static bool take(const struct stack_slice *slice, void *arg)
{
	struct search *x = arg;
	double from = fmax((double)slice->from_ns, x->from_ns);
	double to = fmin((double)slice->to_ns, x->to_ns);
	double length = (double)slice->to_ns - (double)slice->from_ns;

	for (size_t i = 0; length > 0 && to > from && i < slice->n; i++) {
		const struct stack_row *r = &slice->rows[i];

		if (r->entity == x->thread && r->weight_ns > 0)
			heat_add(x->heat, x->book, place_of(x->book, r->node),
				 (double)r->weight_ns / 1e9 * fmin(1, (to - from) / length));
	}
	return true;
}

uint32_t stretch_place(const struct scene *s, int64_t from_ns, int64_t to_ns)
{
	const struct activity *a = &s->activity;
	struct window w = *s->whole;
	struct heat heat = { 0 };
	struct search x = { .book = a->book, .heat = &heat };
	uint32_t place = 0;
	double top;

	if (!a->any || a->critical < 0 || to_ns <= from_ns)
		return 0;
	x.thread = a->threads.v[a->critical].id;
	x.from_ns = (double)from_ns;
	x.to_ns = (double)to_ns;
	w.from_ns = from_ns;
	w.to_ns = to_ns;
	if (window_stacks(&w, take, &x) >= 0)
		place = heat_top(&heat, &top);
	heat_done(&heat);
	return place;
}

/* SPDX-License-Identifier: MIT */
#include "explain/startup.h"

#include "base/clock.h"

static const double imports_least = 0.5; /* seconds; less is in no one's way */
/* Nobody imports for longer, and later imports are the program's own affair. */
static const int64_t start_most_ns = 300 * NS_PER_S;

struct search {
	const struct stack_book *book;
	uint32_t thread;
	struct map memo; /* node -> 1 no, 2 it imports */
	int64_t half_ns, end_ns;
	double imports;
};

static bool imports(struct search *x, uint32_t node)
{
	uint32_t places[STACK_DEPTH_MAX], known = 0;
	size_t n;

	if (map_get(&x->memo, node, &known))
		return known == 2;
	n = stack_book_walk(x->book, node, places, STACK_DEPTH_MAX);
	known = 1;
	for (size_t i = 0; i < n && known == 1; i++) {
		const struct place *p = stack_book_find_place(x->book, places[i]);

		known += p && activity_imports(p);
	}
	(void)map_put(&x->memo, node, known); /* without memory it is found again */
	return known == 2;
}

static bool take_slice(const struct stack_slice *slice, void *arg)
{
	struct search *x = arg;
	double all = 0, in = 0;

	if (slice->to_ns > x->half_ns)
		return false;
	for (size_t i = 0; i < slice->n; i++) {
		const struct stack_row *r = &slice->rows[i];

		if (r->entity != x->thread || r->weight_ns <= 0)
			continue;
		all += (double)r->weight_ns / 1e9;
		if (imports(x, r->node))
			in += (double)r->weight_ns / 1e9;
	}
	x->imports += in;
	if (in > 0.5 * all)
		x->end_ns = slice->to_ns;
	return true;
}

int64_t startup_end(const struct scene *s)
{
	const struct activity *a = &s->activity;
	int64_t half = (s->whole->to_ns - s->whole->from_ns) / 2;
	struct search x = { .book = a->book };

	if (!a->any || a->critical < 0)
		return 0;
	x.thread = a->threads.v[a->critical].id;
	x.half_ns = s->whole->from_ns + (half < start_most_ns ? half : start_most_ns);
	if (window_stacks(s->whole, take_slice, &x) < 0)
		x.end_ns = 0;
	map_done(&x.memo);
	return x.imports >= imports_least ? x.end_ns : 0;
}

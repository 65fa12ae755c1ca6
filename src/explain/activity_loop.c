/* SPDX-License-Identifier: MIT
 *
 * The loop that trains, whatever its functions are called: it is in a function of the program's own that calls the
 * framework from some of its lines, and what the head of one of its `for` lines runs makes the batches:
 *
 *	for batch in parsed(path):        <- code of the program's own below this line: it loads
 *		loss = model(batch)       <- the framework, called from the same function
 *
 * Only what has no other name is taken for it, and only code of the program's own: what a library does in a `for`
 * line says itself what it is, or is nothing to load (named_parameters()).
 */
#include "explain/activity_part.h"

#include <string.h>

static bool is_head(const struct place *p)
{
	return strncmp(p->source, "for ", 4) == 0 || strncmp(p->source, "async for ", 10) == 0;
}

static bool is_own(const struct place *p)
{
	return p && p->kind == PLACE_PYTHON && p->file && p->function && p->source &&
	       !place_is_library(p);
}

/* Texts of a book are kept once. */
static uint64_t function_of(const struct place *p)
{
	return map_mix(map_mix((uint64_t)(uintptr_t)p->file) ^ (uint64_t)(uintptr_t)p->function);
}

static bool is_framework(const struct act_row *r)
{
	return !r->unknown &&
	       (r->state == TIME_DISPATCH ||
		(r->matched && (r->state == TIME_TRANSFER || r->state == TIME_GPU_WAIT)));
}

/* Has nothing else to be called: Python on a CPU, or a file that is read. */
static bool is_nameless(const struct act_row *r)
{
	return !r->unknown && !r->importing && (r->phase == PHASE_NONE || r->phase == PHASE_USER) &&
	       (r->state == TIME_PYTHON || (r->state == TIME_IO && !r->on_cpu));
}

/* Functions that call the framework from another line than a head. */
static bool note_loops(const struct activity *a, const struct act_thread *t, struct map *loops)
{
	uint32_t places[STACK_DEPTH_MAX];

	for (size_t k = t->row; k < t->row + t->n_rows; k++) {
		const struct act_row *r = &a->rows.v[k];
		size_t n = is_framework(r)
			       ? stack_book_walk(a->book, r->node, places, STACK_DEPTH_MAX)
			       : 0;

		for (size_t i = 0; i < n; i++) {
			const struct place *p = stack_book_find_place(a->book, places[i]);

			if (is_own(p) && !is_head(p) && !map_put(loops, function_of(p), 1))
				return false;
		}
	}
	return true;
}

/* Is the program's own code run by the head of such a loop? Innermost first: code, then the head. */
static bool in_head(const struct activity *a, const struct act_row *r, const struct map *loops)
{
	uint32_t places[STACK_DEPTH_MAX], one;
	size_t n = stack_book_walk(a->book, r->node, places, STACK_DEPTH_MAX);
	bool code = false;

	for (size_t i = 0; i < n; i++) {
		const struct place *p = stack_book_find_place(a->book, places[i]);

		if (!is_own(p))
			continue;
		if (code && is_head(p) && map_get(loops, function_of(p), &one))
			return true;
		code = true;
	}
	return false;
}

void rows_of_loop(struct activity *a, const struct act_thread *t)
{
	struct map loops = { 0 };
	/* without memory they stay what they were */
	bool ok = note_loops(a, t, &loops);

	for (size_t k = t->row; ok && k < t->row + t->n_rows; k++) {
		struct act_row *r = &a->rows.v[k];

		if (!is_nameless(r) || !in_head(a, r, &loops))
			continue;
		r->state = TIME_DATA_LOAD;
		r->phase = PHASE_LOAD;
		r->matched = r->sure = true;
	}
	map_done(&loops);
}

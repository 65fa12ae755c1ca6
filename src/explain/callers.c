/* SPDX-License-Identifier: MIT */
#include "explain/callers.h"

#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of the time below it: a line, or all lines of a function, that have less are some of several that call it. */
static const double most_least = 0.6;
enum { LINES_MOST = 500 };
/* Of its threads' time: a function that has more is the loop itself, and who called that is no
 * news. */
static const double loop_least = 0.85;

struct calls {
	struct map by_place; /* place -> row */
	VEC(struct call_line {
		uint32_t place;
		double seconds;
	})
	lines;
	double all; /* seconds in which the chain is as far as it is known */
};

struct callers {
	const struct activity *a;
	uint64_t *functions; /* by place: 0 not Python's */
	bool *library;       /* by place */
	uint8_t *inside;     /* by node: the function that is looked for is in it */
};

/* The function a finding points at, and the lines above it that were found, innermost first. */
struct chain {
	const struct callers *c;
	uint64_t function;
	uint32_t lines[FINDING_CALLERS];
	size_t n;
};

static bool is_python(const struct place *p)
{
	return p && p->kind == PLACE_PYTHON;
}

struct callers *callers_open(const struct scene *s)
{
	const struct stack_book *b = s->activity.book;
	struct callers *c = b ? calloc(1, sizeof(*c)) : NULL;

	if (!c)
		return NULL;
	c->a = &s->activity;
	c->functions = calloc(b->places.n + 1, sizeof(*c->functions));
	c->library = calloc(b->places.n + 1, sizeof(*c->library));
	c->inside = calloc(b->nodes.n + 1, 1);
	if (!c->functions || !c->library || !c->inside) {
		callers_close(c);
		return NULL;
	}
	for (size_t i = 1; i <= b->places.n; i++) {
		const struct place *p = stack_book_find_place(b, (uint32_t)i);

		if (!is_python(p))
			continue;
		c->functions[i] = place_function(p) | 1;
		c->library[i] = place_is_library(p);
	}
	return c;
}

void callers_close(struct callers *c)
{
	if (!c)
		return;
	free(c->functions);
	free(c->library);
	free(c->inside);
	free(c);
}

/* Nodes come behind their parents. */
static void mark_inside(struct callers *c, uint64_t function)
{
	const struct stack_book *b = c->a->book;

	for (size_t i = 1; i <= b->nodes.n; i++) {
		const struct stack_node *n = &b->nodes.v[i - 1];

		c->inside[i] =
		    (n->parent < i && c->inside[n->parent]) ||
		    (n->place && n->place <= b->places.n && c->functions[n->place] == function);
	}
}

static bool is_inside(const struct callers *c, const struct act_row *r)
{
	return r->node && r->node <= c->a->book->nodes.n && c->inside[r->node];
}

/* Share of their time that the threads have the function on their stacks in which it is. What a loader's worker does is
 * called by a library all of the time: none of the user's functions is its loop. */
static double share_inside(struct callers *c, uint64_t function)
{
	const struct activity *a = c->a;
	double inside = 0, all = 0, workers = 0;

	mark_inside(c, function);
	for (size_t i = 0; i < a->threads.n; i++) {
		const struct act_thread *t = &a->threads.v[i];
		double here = 0;

		for (size_t k = t->row; k < t->row + t->n_rows; k++)
			here += is_inside(c, &a->rows.v[k]) ? a->rows.v[k].seconds : 0;
		inside += here;
		workers += t->role == ROLE_LOADER_WORKER ? here : 0;
		all += here > 0 ? t->covered : 0;
	}
	return all > 0 && workers < 0.5 * inside ? inside / all : 0;
}

/* The next line of the user's outwards from at, of another function. In a worker a library calls what it was given, and what
 * is above that is where the process was forked. 0: none. */
static uint32_t next_own(const struct callers *c, const uint32_t *places, size_t n, size_t *at,
			 uint64_t not_of, bool worker)
{
	for (; *at < n; ++*at) {
		uint32_t place = places[*at];

		if (!c->functions[place] || c->functions[place] == not_of)
			continue;
		if (!c->library[place]) {
			++*at;
			return stack_book_find_place(c->a->book, place)->line > 0 ? place : 0;
		}
		if (worker)
			return 0;
	}
	return 0;
}

/* Does the stack go through the chain as far as it is known? Then the line above it, 0: none. */
static bool goes_on(const struct chain *ch, const uint32_t *places, size_t n, bool worker,
		    uint32_t *ret)
{
	const struct callers *c = ch->c;
	uint64_t function = ch->function;
	size_t at = 0;

	while (at < n && c->functions[places[at]] != function)
		at++;
	if (at >= n)
		return false;
	for (size_t i = 0; i < ch->n; i++) {
		if (next_own(c, places, n, &at, function, worker) != ch->lines[i])
			return false;
		function = c->functions[ch->lines[i]];
	}
	*ret = next_own(c, places, n, &at, function, worker);
	return true;
}

/* Places that a book does not have say nothing. */
static size_t walk(const struct callers *c, uint32_t node, uint32_t *places)
{
	size_t n = stack_book_walk(c->a->book, node, places, STACK_DEPTH_MAX), kept = 0;

	for (size_t i = 0; i < n; i++)
		if (places[i] <= c->a->book->places.n)
			places[kept++] = places[i];
	return kept;
}

static bool add_line(struct calls *c, uint32_t place, double seconds)
{
	uint32_t at;

	c->all += seconds;
	if (!place)
		return true;
	if (!map_get(&c->by_place, place, &at)) {
		struct call_line *l = vec_push(&c->lines);

		at = (uint32_t)c->lines.n - 1;
		if (!l || !map_put(&c->by_place, place, at))
			return false;
		*l = (struct call_line){ .place = place };
	}
	c->lines.v[at].seconds += seconds;
	return true;
}

static bool take_thread(struct calls *calls, const struct chain *ch, const struct act_thread *t)
{
	const struct callers *c = ch->c;
	uint32_t places[STACK_DEPTH_MAX], line;

	for (size_t k = t->row; k < t->row + t->n_rows; k++) {
		const struct act_row *r = &c->a->rows.v[k];
		size_t n = r->unknown || !is_inside(c, r) ? 0 : walk(c, r->node, places);

		if (n && goes_on(ch, places, n, t->role == ROLE_LOADER_WORKER, &line) &&
		    !add_line(calls, line, r->seconds))
			return false;
	}
	return true;
}

/* What all lines of its function have; where there are more than people write, the line alone. */
static double of_function(const struct callers *cs, const struct calls *c,
			  const struct call_line *of)
{
	double sum = 0;

	if (c->lines.n > LINES_MOST)
		return of->seconds;
	for (size_t i = 0; i < c->lines.n; i++)
		if (cs->functions[c->lines.v[i].place] == cs->functions[of->place])
			sum += c->lines.v[i].seconds;
	return sum;
}

/* Three lines of one function that log are that function: the one that has most of it.
 * Among equals the first, so that a verdict is the same however rows are ordered. */
static uint32_t most_of(const struct callers *cs, const struct calls *c)
{
	const struct call_line *best = NULL;

	for (size_t i = 0; i < c->lines.n; i++) {
		const struct call_line *x = &c->lines.v[i];

		if (of_function(cs, c, x) < most_least * c->all)
			continue;
		if (!best || x->seconds > best->seconds ||
		    (x->seconds == best->seconds && x->place < best->place))
			best = x;
	}
	return best ? best->place : 0;
}

/* The line that mostly calls the end of the chain, 0: none. */
static uint32_t line_above(struct callers *c, const struct chain *ch)
{
	struct calls calls = { 0 };
	uint32_t found = 0;
	bool ok = true;

	mark_inside(c, ch->function);
	for (size_t i = 0; i < c->a->threads.n && ok; i++)
		ok = take_thread(&calls, ch, &c->a->threads.v[i]);
	if (ok)
		found = most_of(c, &calls);
	map_done(&calls.by_place);
	vec_done(&calls.lines);
	return found;
}

static void put(struct finding *x, const struct place *p)
{
	struct finding_caller *to = &x->where.callers[x->where.n_callers++];

	text_safe_copy(to->file, sizeof(to->file), p->file);
	place_function_name(p, to->function, sizeof(to->function));
	to->line = p->line;
}

void callers_tell(struct callers *c, struct finding *x)
{
	const struct stack_book *b = c ? c->a->book : NULL;
	const struct place *p = b ? stack_book_find_place(b, x->where.place) : NULL;
	struct chain ch = { .c = c };
	uint64_t function;

	if (!is_python(p) || c->library[x->where.place] || x->where.guess)
		return;
	function = ch.function = c->functions[x->where.place];
	while (ch.n < FINDING_CALLERS && share_inside(c, function) < loop_least) {
		uint32_t line = line_above(c, &ch);

		if (!line)
			return;
		put(x, stack_book_find_place(b, line));
		function = c->functions[line];
		ch.lines[ch.n++] = line;
	}
}

/* SPDX-License-Identifier: MIT */
#include "explain/callers.h"

#include "base/text.h"

#include <stdio.h>
#include <string.h>

/* Of the time below it: a line that has less is one of several that call it. */
static const double most_least = 0.6;
/* Of its threads' time: a function that has more is the loop itself, and who called that is no
 * news. */
static const double loop_least = 0.85;

/* Length of the name of the function that `name` belongs to: "walk" of "walk.<locals>.<listcomp>". */
static size_t enclosing(const char *name)
{
	static const char *const inner[] = { ".<locals>.<listcomp>", ".<locals>.<genexpr>",
					     ".<locals>.<dictcomp>", ".<locals>.<setcomp>" };
	size_t n = strlen(name);

	for (size_t i = 0; i < sizeof(inner) / sizeof(inner[0]);) {
		size_t k = strlen(inner[i]);

		if (n > k && strncmp(name + n - k, inner[i], k) == 0) {
			n -= k;
			i = 0; /* one may stand in another */
		} else {
			i++;
		}
	}
	return n;
}

uint64_t place_function(const struct place *p)
{
	uint64_t key = map_mix((uint64_t)(uintptr_t)p->file);
	size_t n = enclosing(p->function);

	for (size_t i = 0; i < n; i++)
		key = map_mix(key ^ (unsigned char)p->function[i]);
	return key;
}

void place_function_name(const struct place *p, char *buf, size_t size)
{
	char name[256];

	snprintf(name, sizeof(name), "%.*s", (int)enclosing(p->function), p->function);
	text_safe_copy(buf, size, name);
}

struct calls {
	struct map by_place; /* place -> row */
	VEC(struct call_line {
		uint32_t place;
		double seconds;
	})
	lines;
	double all; /* seconds in which the chain is as far as it is known */
};

/* The function a finding points at, and the lines above it that were found, innermost first. */
struct chain {
	const struct activity *a;
	uint64_t function;
	uint32_t lines[FINDING_CALLERS];
	size_t n;
};

static bool is_python(const struct place *p)
{
	return p && p->kind == PLACE_PYTHON;
}

static bool is_of(const struct place *p, uint64_t function)
{
	return is_python(p) && place_function(p) == function;
}

/* Share of their time that the threads have the function on their stacks in which it is. */
static double share_inside(const struct activity *a, uint64_t function)
{
	uint32_t places[STACK_DEPTH_MAX];
	double inside = 0, all = 0;

	for (size_t i = 0; i < a->threads.n; i++) {
		const struct act_thread *t = &a->threads.v[i];
		double before = inside;

		for (size_t k = t->row; k < t->row + t->n_rows; k++) {
			const struct act_row *r = &a->rows.v[k];
			size_t n = stack_book_walk(a->book, r->node, places, STACK_DEPTH_MAX);
			bool found = false;

			for (size_t j = 0; j < n && !found; j++)
				found = is_of(stack_book_find_place(a->book, places[j]), function);
			inside += found ? r->seconds : 0;
		}
		all += inside > before ? t->covered : 0;
	}
	return all > 0 ? inside / all : 0;
}

/* The next line of the user's outwards from at, of another function. In a worker a library calls what it was given, and what
 * is above that is where the process was forked. 0: none. */
static uint32_t next_own(const struct stack_book *b, const uint32_t *places, size_t n, size_t *at,
			 uint64_t not_of, bool worker)
{
	for (; *at < n; ++*at) {
		const struct place *p = stack_book_find_place(b, places[*at]);

		if (!is_python(p) || place_function(p) == not_of)
			continue;
		if (!place_is_library(p))
			return p->line > 0 ? places[(*at)++] : 0;
		if (worker)
			return 0;
	}
	return 0;
}

/* Does the stack go through the chain as far as it is known? Then the line above it, 0: none. */
static bool goes_on(const struct chain *c, const uint32_t *places, size_t n, bool worker,
		    uint32_t *ret)
{
	const struct stack_book *b = c->a->book;
	uint64_t function = c->function;
	size_t at = 0;

	while (at < n && !is_of(stack_book_find_place(b, places[at]), function))
		at++;
	if (at >= n)
		return false;
	for (size_t i = 0; i < c->n; i++) {
		if (next_own(b, places, n, &at, function, worker) != c->lines[i])
			return false;
		function = place_function(stack_book_find_place(b, c->lines[i]));
	}
	*ret = next_own(b, places, n, &at, function, worker);
	return true;
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

static bool take_thread(struct calls *calls, const struct chain *c, const struct act_thread *t)
{
	uint32_t places[STACK_DEPTH_MAX], line;

	for (size_t k = t->row; k < t->row + t->n_rows; k++) {
		const struct act_row *r = &c->a->rows.v[k];
		size_t n;

		if (r->unknown)
			continue;
		n = stack_book_walk(c->a->book, r->node, places, STACK_DEPTH_MAX);
		if (goes_on(c, places, n, t->role == ROLE_LOADER_WORKER, &line) &&
		    !add_line(calls, line, r->seconds))
			return false;
	}
	return true;
}

/* Among equals the first, so that a verdict is the same however rows are ordered. */
static uint32_t most_of(const struct calls *c)
{
	const struct call_line *best = NULL;

	for (size_t i = 0; i < c->lines.n; i++) {
		const struct call_line *x = &c->lines.v[i];

		if (!best || x->seconds > best->seconds ||
		    (x->seconds == best->seconds && x->place < best->place))
			best = x;
	}
	return best && best->seconds >= most_least * c->all ? best->place : 0;
}

/* The line that mostly calls the end of the chain, 0: none. */
static uint32_t line_above(const struct chain *c)
{
	struct calls calls = { 0 };
	uint32_t found = 0;
	bool ok = true;

	for (size_t i = 0; i < c->a->threads.n && ok; i++)
		ok = take_thread(&calls, c, &c->a->threads.v[i]);
	if (ok)
		found = most_of(&calls);
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

void callers_tell(const struct scene *s, struct finding *x)
{
	struct chain c = { .a = &s->activity };
	const struct stack_book *b = c.a->book;
	const struct place *p = b ? stack_book_find_place(b, x->where.place) : NULL;

	if (!is_python(p) || place_is_library(p) || x->where.guess)
		return;
	c.function = place_function(p);
	while (c.n < FINDING_CALLERS && share_inside(c.a, place_function(p)) < loop_least) {
		c.lines[c.n] = line_above(&c);
		p = stack_book_find_place(b, c.lines[c.n]);
		if (!p)
			return;
		c.n++;
		put(x, p);
	}
}

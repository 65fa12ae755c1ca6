/* SPDX-License-Identifier: MIT
 *
 * The loop that trains, whatever its functions are called: it is in a function of the program's own that calls the
 * framework from some of its lines, and what the head of one of its `for` lines runs makes the batches:
 *
 *	for batch in parsed(path):        <- code of the program's own below this line: it loads
 *		loss = model(batch)       <- the framework, called from the same function
 *
 * Only what has no other name is taken for it, and only code of the program's own: what a library does in a `for`
 * line says itself what it is, or is nothing to load (named_parameters()). Nor is it loading what is done by a
 * function that has much of the framework's work itself: there the head runs the training, or a part of it.
 *
 *	for move in rollouts(env, policy):         <- plays, and asks the model for each move
 *	for loss in train_epoch(model, loader):    <- trains; the loop only prints
 */
#include "explain/activity_part.h"

#include "explain/ledger/arithmetic.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

/* Of the framework's time in the body of the loop: code that the head runs and that has as much trains as well. */
static const double framework_most = 0.2;
/* A line of source this long may have been cut (engine/source_text.h). */
enum { LINE_CUT = 190 };
/* Lines that learn which are looked at. */
enum { LEARNT_MAX = 64 };

/* Is the text behind `for` that of a statement? That has a colon outside of brackets, or goes on in the next line
 * because one is open; a line of a comprehension has neither, or closes a bracket it has not opened. */
static bool is_statement(const char *text)
{
	int open = 0;
	char quote = 0;
	size_t i = 0;

	for (; text[i] && open >= 0; i++) {
		char c = text[i];

		if (quote) {
			if (c == '\\' && text[i + 1])
				i++;
			else if (c == quote)
				quote = 0;
		} else if (c == '"' || c == '\'') {
			quote = c;
		} else if (c == '(' || c == '[' || c == '{') {
			open++;
		} else if (c == ')' || c == ']' || c == '}') {
			open--;
		} else if (c == ':' && open == 0) {
			return true;
		} else if (c == '#') {
			break;
		}
	}
	return open > 0 || (open == 0 && (i >= LINE_CUT || (i && text[i - 1] == '\\')));
}

/* Up to Python 3.11 any comprehension is a function of its own, and generators still are. */
static bool is_comprehension(const char *function)
{
	const char *last = strrchr(function, '<');

	return last && (strcmp(last, "<listcomp>") == 0 || strcmp(last, "<setcomp>") == 0 ||
			strcmp(last, "<dictcomp>") == 0 || strcmp(last, "<genexpr>") == 0);
}

bool loop_place_is_head(const struct place *p)
{
	const char *text = strncmp(p->source, "async ", 6) == 0 ? p->source + 6 : p->source;

	return strncmp(text, "for ", 4) == 0 && !is_comprehension(p->function) &&
	       is_statement(text);
}

bool loop_place_is_own(const struct place *p)
{
	return p && p->kind == PLACE_PYTHON && p->file && p->function && p->source &&
	       !place_is_library(p);
}

/* Has nothing else to be called: Python on a CPU, or a file that is read. */
bool row_is_nameless(const struct act_row *r)
{
	return !r->unknown && !r->importing && (r->phase == PHASE_NONE || r->phase == PHASE_USER) &&
	       (r->state == TIME_PYTHON || (r->state == TIME_IO && !r->on_cpu) ||
		(r->state == TIME_MEMORY_STALL && r->kind == WAIT_PAGE_FAULT));
}

/* A framework's frames are no accident: one sample in two hundred will do. */
static const double frames_least = 0.005;
/* Of its time on a CPU: a training that is written with arrays alone is in the functions that learn so long. */
static const double arrays_least = 0.05;

static bool of_framework(const struct act_row *r)
{
	return !r->unknown &&
	       (r->state == TIME_DISPATCH ||
		(r->matched && (r->state == TIME_TRANSFER || r->state == TIME_GPU_WAIT)));
}

enum { IF_INNERMOST = 1, ANYWHERE = 2 };

/* At a line that computes with arrays, in a function that changes arrays by what it computes; or anywhere below a line
 * of such a function that names what it changes: who = assign(x, centres) */
static uint32_t learning_of(const struct loop_sense *sense, const struct place *p)
{
	uint64_t function = place_code(p);
	uint32_t flags = 0;

	for (size_t k = 0; k < sense->learnt.n; k++) {
		const struct learnt *l = &sense->learnt.v[k];

		if (l->function != function)
			continue;
		flags |= line_has_arrays(p->source) ? IF_INNERMOST : 0;
		if (line_names(p->source, l->name, l->n))
			return flags | ANYWHERE;
	}
	return flags;
}

/* Each line is held against them once. */
static bool note_places(const struct activity *a, struct loop_sense *sense)
{
	for (size_t i = 0; sense->learnt.n && i < a->book->places.n; i++) {
		const struct place *p = stack_book_find_place(a->book, (uint32_t)i + 1);
		uint32_t flags = loop_place_is_own(p) ? learning_of(sense, p) : 0;

		if (flags && !map_put(&sense->places, i + 1, flags))
			return false;
	}
	return true;
}

static bool learns(const struct activity *a, const struct loop_sense *sense,
		   const struct act_row *r)
{
	uint32_t places[STACK_DEPTH_MAX], flags;
	size_t n = sense->learnt.n && row_is_nameless(r)
		       ? stack_book_walk(a->book, r->node, places, STACK_DEPTH_MAX)
		       : 0;
	/* the innermost line of the program's own, whatever library it is in */
	uint32_t innermost = r->place;

	for (size_t i = 0; i < n; i++)
		if (map_get(&sense->places, places[i], &flags) &&
		    (flags & ANYWHERE || places[i] == innermost))
			return true;
	return false;
}

/* "w" of "w += rate * w", and not "mean" of "mean += image.mean()". */
static bool of_itself(const char *right, const struct learnt *l)
{
	for (const char *at = right; (at = memmem(at, strlen(at), l->name, l->n)); at++)
		if (!isalnum((unsigned char)at[-1]) && at[-1] != '_' &&
		    !isalnum((unsigned char)at[l->n]) && at[l->n] != '_' && at[l->n] != '(')
			return true;
	return false;
}

/* Is what it changes used by another line that computes with arrays? A sum that is only added to is no model. */
static bool is_used(const struct activity *a, const struct act_thread *t, const struct learnt *l,
		    const char *by)
{
	const char *right = strstr(by, "+= ");

	/* a step of a simulation: u[1:-1] += dt * f(u) */
	if (line_names(right, "dt", 2))
		return false;
	if (of_itself(right, l))
		return true;
	for (size_t k = t->row; k < t->row + t->n_rows; k++) {
		const struct place *p = stack_book_find_place(a->book, a->rows.v[k].place);

		if (loop_place_is_own(p) && p->source != by && place_code(p) == l->function &&
		    line_has_arrays(p->source) && line_names(p->source, l->name, l->n))
			return true;
	}
	return false;
}

/* A line is asked once, and no more of them than a program that learns has. */
static bool note_learnt(struct loop_sense *s, const struct activity *a, const struct act_thread *t,
			uint32_t place)
{
	const struct place *p = stack_book_find_place(a->book, place);
	struct learnt l = { .function = place_code(p) }, *at;
	uint32_t seen;

	if (s->asked.n >= LEARNT_MAX || map_get(&s->asked, place, &seen))
		return true;
	if (!map_put(&s->asked, place, 1))
		return false;
	l.name = line_updated(p->source, &l.n);
	if (l.n == 0 || (strstr(p->source, "+= ") && !is_used(a, t, &l, p->source)))
		return true;
	at = vec_push(&s->learnt);
	if (!at)
		return false;
	*at = l;
	s->surely |= line_teaches_surely(p->source);
	return true;
}

bool loop_sense_open(const struct activity *a, const struct act_thread *t, struct loop_sense *ret)
{
	double known = 0, frames = 0, on_cpu = 0, arrays = 0;

	*ret = (struct loop_sense){ 0 };
	for (size_t k = t->row; k < t->row + t->n_rows; k++) {
		const struct act_row *r = &a->rows.v[k];
		const struct place *p = stack_book_find_place(a->book, r->place);

		known += r->unknown ? 0 : r->seconds;
		frames += of_framework(r) ? r->seconds : 0;
		on_cpu += !r->unknown && r->on_cpu && !r->importing ? r->seconds : 0;
		if (loop_place_is_own(p) && line_updates_arrays(p->source) &&
		    !note_learnt(ret, a, t, r->place))
			return false;
	}
	if (!note_places(a, ret))
		return false;
	for (size_t k = t->row; k < t->row + t->n_rows; k++)
		arrays += learns(a, ret, &a->rows.v[k]) ? a->rows.v[k].seconds : 0;
	/* beside what surely learns by hand, the framework's own functions are just used */
	ret->by_hand = (frames <= frames_least * known ||
			(ret->surely && frames <= framework_most * arrays)) &&
		       on_cpu > 0 && arrays >= arrays_least * on_cpu;
	return true;
}

void loop_sense_done(struct loop_sense *s)
{
	vec_done(&s->learnt);
	map_done(&s->places);
	map_done(&s->asked);
}

bool row_is_framework(const struct activity *a, const struct loop_sense *sense,
		      const struct act_row *r)
{
	return of_framework(r) || (sense->by_hand && learns(a, sense, r));
}

/* Functions of the program -> milliseconds they were in the framework, from another line than a head. Models have Python
 * of the framework's below them, or are waited for on the device; what only makes tensors has neither. */
struct callers {
	struct map any, model;
};

static bool add_time(struct map *m, uint64_t function, double seconds)
{
	uint32_t so_far = 0;

	map_get(m, function, &so_far);
	return map_put(m, function, (uint32_t)fmin(so_far + ceil(seconds * 1e3), UINT32_MAX));
}

static bool note_callers(const struct activity *a, const struct act_thread *t,
			 const struct loop_sense *sense, struct callers *c)
{
	uint32_t places[STACK_DEPTH_MAX];

	for (size_t k = t->row; k < t->row + t->n_rows; k++) {
		const struct act_row *r = &a->rows.v[k];
		size_t n = row_is_framework(a, sense, r)
			       ? stack_book_walk(a->book, r->node, places, STACK_DEPTH_MAX)
			       : 0;
		bool model = r->state == TIME_GPU_WAIT || sense->by_hand;
		uint64_t last = 0;

		for (size_t i = 0; i < n; i++) {
			const struct place *p = stack_book_find_place(a->book, places[i]);

			model |= p && p->kind == PLACE_PYTHON && !loop_place_is_own(p);
			/* one that calls itself is one call */
			if (!loop_place_is_own(p) || loop_place_is_head(p) || place_code(p) == last)
				continue;
			last = place_code(p);
			if (!add_time(&c->any, last, r->seconds) ||
			    (model && !add_time(&c->model, last, r->seconds)))
				return false;
		}
	}
	return true;
}

/* Is the program's own code run by the head of such a loop? Innermost first: code, then the head. */
static bool in_head(const struct activity *a, const struct act_row *r, const struct callers *c)
{
	uint32_t places[STACK_DEPTH_MAX], inside = 0;
	size_t n = stack_book_walk(a->book, r->node, places, STACK_DEPTH_MAX);
	bool code = false;

	for (size_t i = 0; i < n; i++) {
		const struct place *p = stack_book_find_place(a->book, places[i]);
		uint32_t body = 0, model = 0;

		if (!loop_place_is_own(p))
			continue;
		map_get(&c->any, place_code(p), &body);
		if (code && body && loop_place_is_head(p) && inside < framework_most * body)
			return true;
		code = true;
		map_get(&c->model, place_code(p), &model);
		inside = model > inside ? model : inside;
	}
	return false;
}

void rows_of_loop(struct activity *a, const struct act_thread *t, const struct loop_sense *sense)
{
	struct callers c = { 0 };
	/* without memory they stay what they were */
	bool ok = note_callers(a, t, sense, &c);

	for (size_t k = t->row; ok && k < t->row + t->n_rows; k++) {
		struct act_row *r = &a->rows.v[k];

		if (!row_is_nameless(r) || !in_head(a, r, &c))
			continue;
		r->state = TIME_DATA_LOAD;
		r->phase = PHASE_LOAD;
		/* by where it is called from, and not by a name: that is no sure sign */
		r->matched = true;
	}
	map_done(&c.any);
	map_done(&c.model);
}

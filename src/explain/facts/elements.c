/* SPDX-License-Identifier: MIT
 *
 * Time of the critical thread in loops of the program's own that go over arrays one element at a time, by their text
 * (explain/does/elements.h). A loop whose few calls take long is none of them, whatever it looks like: then the time is in one
 * line, in code that lets go of the GIL, or in a library's Python.
 *
 * And time in which such loops hand out work to a device: a kernel or more for each element.
 */
#include "explain/does/does.h"
#include "explain/facts/stacked.h"
#include "explain/ledger/topics.h"
#include "explain/place.h"

#include <math.h>
#include <string.h>

enum { LOOPS_MAX = 64 };
static const double one_line_most = 0.9; /* of the time in a loop */
static const double held_least = 0.8;    /* of that time: with the GIL */
static const double orders_least = 0.5;  /* of it: a framework's code */

/* Of one loop, seconds. */
struct share {
	double all, held; /* of it; of these with the GIL */
	struct heat heat;
};

static bool is_in(const struct does *d, const char *file, const struct place *p)
{
	/* texts of a book are kept once */
	return p && p->file == file && p->line >= d->from && p->line <= d->to;
}

/* The line itself runs, or what it calls of numpy for one number. */
static bool is_line(const struct stack_book *b, const struct act_row *r)
{
	const struct place *leaf = stack_book_find_place(b, r->leaf);

	return r->leaf == r->place || (leaf && leaf->file && strstr(leaf->file, "/numpy/"));
}

static bool is_work(const struct act_row *r)
{
	return !r->unknown && r->on_cpu && !r->importing && r->state == TIME_PYTHON &&
	       !(r->topics & TOPICS_NAMED);
}

static bool is_spread(const struct share *x)
{
	double most = 0;

	for (size_t i = 0; i < x->heat.lines.n; i++)
		most = fmax(most, x->heat.lines.v[i].seconds);
	return x->all > 0 && x->held >= held_least * x->all && most <= one_line_most * x->all;
}

static void add_rows(struct share *x, const struct activity *a, const struct act_thread *t,
		     const struct does *d, const char *file)
{
	for (size_t k = t->row; k < t->row + t->n_rows; k++) {
		const struct act_row *r = &a->rows.v[k];

		if (!is_work(r) || !is_in(d, file, stack_book_find_place(a->book, r->place)) ||
		    !is_line(a->book, r))
			continue;
		x->all += r->seconds;
		x->held += r->flags & STACK_GIL ? r->seconds : 0;
		heat_add(&x->heat, a->book, r->place, r->seconds);
	}
}

/* Framework code below the loop, or the loop itself between two orders. */
static bool hands_out(const struct act_row *r)
{
	return !r->unknown && r->on_cpu && (r->state == TIME_DISPATCH || r->state == TIME_PYTHON);
}

/* A loop that computes itself most of the time hands out nothing to speak of. */
static void add_orders(struct heat *orders, const struct activity *a, const struct act_thread *t,
		       const struct does *d, const char *file)
{
	double framework = 0, all = 0;

	for (size_t k = t->row; k < t->row + t->n_rows; k++) {
		const struct act_row *r = &a->rows.v[k];

		if (!hands_out(r) || !is_in(d, file, stack_book_find_place(a->book, r->place)))
			continue;
		all += r->seconds;
		framework += r->state == TIME_DISPATCH ? r->seconds : 0;
	}
	for (size_t k = t->row; framework >= orders_least * all && k < t->row + t->n_rows; k++) {
		const struct act_row *r = &a->rows.v[k];

		if (hands_out(r) && is_in(d, file, stack_book_find_place(a->book, r->place)))
			heat_add(orders, a->book, r->place, r->seconds);
	}
}

/* All such loops, and what they hand out. False: out of memory, or too many to be looked at. */
static bool look(const struct activity *a, const struct act_thread *t, struct share *all,
		 struct heat *orders)
{
	bool failed = false;
	size_t loops = 0;

	for (size_t i = 1; i <= a->book->places.n && !failed; i++) {
		const struct place *p = stack_book_find_place(a->book, (uint32_t)i);
		struct share one = { 0 };
		struct does d;

		if (!p || !does_read(p, &d) || d.what != DOES_ELEMENTS)
			continue;
		add_rows(&one, a, t, &d, p->file);
		failed = ++loops > LOOPS_MAX || one.heat.failed;
		if (is_spread(&one))
			add_rows(all, a, t, &d, p->file);
		add_orders(orders, a, t, &d, p->file);
		heat_done(&one.heat);
	}
	return !failed && !all->heat.failed && !orders->failed;
}

static void set(struct facts *f, enum fact_id id, const struct act_thread *t, double known,
		const struct heat *heat)
{
	double share = fmin(1, heat->seconds / known), error = activity_error(share, t->samples),
	       top;
	uint32_t place = heat_top(heat, &top);

	fact_set_range(f, id, share, fmax(0, share - error), fmin(1, share + error));
	if (place)
		fact_set_place(f, id, place);
}

static void compute(const struct scene *s, struct facts *f)
{
	const struct activity *a = &s->activity;
	const char *why;
	const struct act_thread *t = stacked_critical(a, &why);
	struct share all = { 0 };
	struct heat orders = { 0 };
	bool seen = t && look(a, t, &all, &orders);
	double known = 0;

	for (size_t k = t ? t->row : 0; t && k < t->row + t->n_rows; k++)
		known += a->rows.v[k].unknown ? 0 : a->rows.v[k].seconds;
	if (seen && known > 0) {
		set(f, FACT_DOING_ELEMENTS, t, known, &all.heat);
		set(f, FACT_DISPATCH_ELEMENTS, t, known, &orders);
	} else {
		fact_absent(f, FACT_DOING_ELEMENTS, "%s",
			    t ? "too many loops, or out of memory" : why);
		fact_absent_like(f, FACT_DISPATCH_ELEMENTS, FACT_DOING_ELEMENTS);
	}
	heat_done(&all.heat);
	heat_done(&orders);
}

const struct fact_source elements_facts = { "elements", compute };

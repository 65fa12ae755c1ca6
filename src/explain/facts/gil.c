/* SPDX-License-Identifier: MIT
 *
 * The GIL of the process training runs in: who waits for it, and whose code holds it meanwhile.
 */
#include "explain/facts/stacked.h"

#include <math.h>

/* Share of the window: below it a thread is not one that holds the GIL. */
static const double holds_least = 0.01;

/* Also who is queued for a CPU keeps it. */
static bool holds(const struct act_row *r)
{
	return r->flags & STACK_GIL && (r->kind == WAIT_RUNNING || r->kind == WAIT_RUNNABLE);
}

static double held_by(const struct activity *a, const struct act_thread *t)
{
	double seconds = 0;

	for (size_t k = t->row; k < t->row + t->n_rows; k++)
		seconds += holds(&a->rows.v[k]) ? a->rows.v[k].seconds : 0;
	return fmax(t->gil_held, fmin(seconds, t->alive));
}

static void holders(const struct scene *s, struct facts *f, const struct act_thread *critical)
{
	const struct activity *a = &s->activity;
	double waiting = 0, held = 0, threads = 0, top;
	struct heat heat = { 0 };
	uint32_t place;

	for (size_t i = 0; i < a->threads.n; i++) {
		const struct act_thread *t = &a->threads.v[i];

		if (t->process != critical->process)
			continue;
		waiting += t->gil_wait;
		threads += held_by(a, t) >= holds_least * critical->alive;
		if (t == critical)
			continue;
		held += held_by(a, t);
		for (size_t k = t->row; k < t->row + t->n_rows; k++) {
			const struct act_row *r = &a->rows.v[k];

			if (holds(r))
				heat_add(&heat, a->book, r->place ? r->place : r->leaf, r->seconds);
		}
	}
	fact_set(f, FACT_GIL_WAITERS, waiting / critical->alive);
	fact_set(f, FACT_GIL_THREADS, threads);
	fact_set(f, FACT_GIL_HOLDER, held / critical->alive);
	place = heat_top(&heat, &top);
	if (place)
		fact_set_place(f, FACT_GIL_HOLDER, place);
	heat_done(&heat);
}

/* Of those threads of the process that load its data. */
static void loaders(const struct scene *s, struct facts *f, const struct act_thread *critical)
{
	const struct activity *a = &s->activity;
	double waiting = 0, alive = 0;

	for (size_t i = 0; i < a->threads.n; i++) {
		const struct act_thread *t = &a->threads.v[i];

		if (t->process != critical->process || !stacked_is_worker(s, t))
			continue;
		waiting += t->gil_wait;
		alive += t->alive;
	}
	fact_set(f, FACT_GIL_LOADERS, alive > 0 ? fmin(1, waiting / alive) : 0);
}

static void compute(const struct scene *s, struct facts *f)
{
	static const enum fact_id ids[] = { FACT_GIL_WAIT, FACT_GIL_WAITERS, FACT_GIL_THREADS,
					    FACT_GIL_HOLDER, FACT_GIL_LOADERS };
	const char *why;
	const struct act_thread *t = stacked_critical(&s->activity, &why);
	double share, error;

	if (!t) {
		for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
			fact_absent(f, ids[i], "%s", why);
		return;
	}
	share = t->gil_wait / t->alive;
	error = activity_error(share, t->samples);
	fact_set_range(f, FACT_GIL_WAIT, share, fmax(0, share - error), fmin(1, share + error));
	holders(s, f, t);
	loaders(s, f, t);
}

const struct fact_source gil_facts = { "gil", compute };

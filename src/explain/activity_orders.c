/* SPDX-License-Identifier: MIT
 *
 * Lines of the program that hand out work to a device: `gate = torch.sigmoid(x @ w + state @ u)` calls the framework in C, where
 * no frame of Python shows it. So where a line is seen to hand out work, what else is seen at the line itself is the same.
 */
#include "explain/activity_part.h"

#include "explain/ledger/topics.h"

#include <math.h>

/* Of what is seen at the line itself: so much must be seen below it. */
static const double given_least = 0.5;

/* On the line itself, doing nothing that has a name. */
static bool is_at_line(const struct activity *a, const struct act_row *r)
{
	const struct place *native = stack_book_find_place(a->book, r->native);

	return row_is_nameless(r) && r->state == TIME_PYTHON && r->on_cpu && r->place &&
	       r->leaf == r->place && !(r->flags & STACK_PARTIAL) && !r->topics &&
	       !(native && place_is_interpreter(native));
}

/* Milliseconds by line; false: out of memory. */
static bool add(struct map *m, const struct act_row *r)
{
	uint32_t so_far = 0;

	map_get(m, r->place, &so_far);
	return map_put(m, r->place, (uint32_t)fmin(so_far + ceil(r->seconds * 1e3), UINT32_MAX));
}

void rows_of_orders(struct activity *a, const struct act_thread *t)
{
	struct map given = { 0 }, own = { 0 };
	bool ok = true;

	for (size_t k = t->row; ok && k < t->row + t->n_rows; k++) {
		const struct act_row *r = &a->rows.v[k];

		if (r->unknown || !r->place)
			continue;
		if (r->state == TIME_DISPATCH)
			ok = add(&given, r);
		else if (is_at_line(a, r))
			ok = add(&own, r);
	}
	for (size_t k = t->row; ok && k < t->row + t->n_rows; k++) {
		struct act_row *r = &a->rows.v[k];
		uint32_t out = 0, at = 0;

		if (r->unknown || !is_at_line(a, r))
			continue;
		map_get(&given, r->place, &out);
		map_get(&own, r->place, &at);
		if (out >= given_least * at)
			r->state = TIME_DISPATCH;
	}
	map_done(&given);
	map_done(&own);
}

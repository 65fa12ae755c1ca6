/* SPDX-License-Identifier: MIT
 *
 * What the thread does that training waits for: shares of its time, from its stacks, each with the
 * interval its samples allow.
 */
#include "explain/facts/stacked.h"

#include <math.h>

static const struct {
	enum time_state state;
	enum fact_id id;
} rows[] = {
	{ TIME_DATA_WAIT, FACT_TIME_DATA_WAIT }, { TIME_DATA_LOAD, FACT_TIME_DATA_LOAD },
	{ TIME_TRANSFER, FACT_TIME_TRANSFER },   { TIME_DISPATCH, FACT_TIME_DISPATCH },
	{ TIME_PYTHON, FACT_TIME_PYTHON },       { TIME_GPU_WAIT, FACT_TIME_GPU_WAIT },
	{ TIME_COMM_WAIT, FACT_TIME_COMM_WAIT }, { TIME_LOCK_WAIT, FACT_TIME_LOCK_WAIT },
	{ TIME_CPU_QUEUE, FACT_TIME_QUEUED },
};
enum { N_ROWS = sizeof(rows) / sizeof(rows[0]) };

/* Samples say which part of it was on a CPU. */
static void taking(const struct activity *a, const struct act_thread *t, struct facts *f)
{
	double all = 0, on = 0;

	for (size_t k = t->row; k < t->row + t->n_rows; k++) {
		const struct act_row *r = &a->rows.v[k];

		if (r->unknown || r->state != TIME_DATA_WAIT)
			continue;
		all += r->seconds;
		on += r->on_cpu ? r->seconds : 0;
	}
	fact_set(f, FACT_TIME_TAKING,
		 all > 0 ? t->state[TIME_DATA_WAIT] / t->alive * (on / all) : 0);
}

static void compute(const struct scene *s, struct facts *f)
{
	const char *why;
	const struct act_thread *t = stacked_critical(&s->activity, &why);

	if (!t) {
		for (size_t i = 0; i < N_ROWS; i++)
			fact_absent(f, rows[i].id, "%s", why);
		fact_absent(f, FACT_TIME_RUNNING, "%s", why);
		fact_absent(f, FACT_TIME_TAKING, "%s", why);
		fact_absent(f, FACT_TIME_UNACCOUNTED, "%s", why);
		return;
	}
	for (size_t i = 0; i < N_ROWS; i++) {
		double share = t->state[rows[i].state] / t->alive;
		double error = activity_error(share, t->samples);

		fact_set_range(f, rows[i].id, share, fmax(0, share - error),
			       fmin(1, share + error));
		f->v[rows[i].id].subject = t->id;
	}
	taking(&s->activity, t, f);
	if (isfinite(t->run))
		fact_set(f, FACT_TIME_RUNNING, fmin(1, t->run / t->alive));
	fact_set(f, FACT_TIME_UNACCOUNTED, t->unaccounted / t->alive);
}

const struct fact_source time_facts = { "time", compute };

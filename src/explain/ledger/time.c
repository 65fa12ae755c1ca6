/* SPDX-License-Identifier: MIT
 *
 * The time ledger: where the wall time of the critical thread went, over the steady window.
 */
#include "explain/ledger/ledger.h"

#include "base/text.h"
#include "explain/fact.h"
#include "explain/ledger/top.h"
#include "explain/scene.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int add_state(const struct scene *s, const struct act_thread *t, enum time_state state,
		     struct verdict *v)
{
	struct ledger_line *l = vec_push(&v->time);
	struct tops tops = { 0 };
	int r = 0;

	if (!l)
		return -ENOMEM;
	snprintf(l->role, sizeof(l->role), "%s", time_state_name(state));
	l->processes = 1;
	l->threads = 1;
	l->seconds = fact_round(t->state[state]);
	l->share = fact_round(t->state[state] / t->alive);
	for (size_t i = 0; i < t->n_rows && r == 0; i++) {
		const struct act_row *row = &s->activity.rows.v[t->row + i];

		if (row->state == state && !row->unknown)
			r = tops_add(&tops, &s->activity, row->place ? row->place : row->leaf,
				     row->place ? 0 : row->native, row->on_cpu, row->seconds);
	}
	if (r == 0)
		tops_put(&tops, 0, l);
	tops_done(&tops);
	return r;
}

/* Of a program that is no Python there is no state for what it computes. */
static bool runs_native(const struct activity *a, const struct act_thread *t)
{
	double on = 0, other = 0;

	for (size_t i = t->row; i < t->row + t->n_rows; i++) {
		const struct act_row *r = &a->rows.v[i];

		if (r->leaf || r->flags & STACK_PYTHON)
			return false;
		if (r->unknown || r->state != TIME_OTHER)
			continue;
		*(r->on_cpu ? &on : &other) += r->seconds;
	}
	return on > other;
}

static int by_share(const void *x, const void *y)
{
	const struct ledger_line *a = x, *b = y;

	if (a->share != b->share)
		return a->share > b->share ? -1 : 1;
	return strcmp(a->role, b->role);
}

int ledger_time(const struct scene *s, struct verdict *v)
{
	const struct activity *a = &s->activity;
	const struct act_thread *t = a->any && a->critical >= 0 ? &a->threads.v[a->critical] : NULL;
	const struct entity *thread, *process;
	int r = 0;

	v->time_unaccounted = NAN;
	v->time_error = NAN;
	if (!t || !t->n_rows || !(t->alive > 0))
		return 0;
	thread = entity_find(window_entities(s->whole), t->id);
	process = entity_find(window_entities(s->whole), t->process);
	v->time_tid = thread ? thread->key : 0;
	v->time_pid = process ? process->key : 0;
	if (process)
		text_safe_copy(v->time_name, sizeof(v->time_name), process->name);
	v->time_native = runs_native(a, t);
	for (int i = 0; i < TIME_STATES && r == 0; i++)
		if (t->state[i] > 0)
			r = add_state(s, t, (enum time_state)i, v);
	if (r < 0)
		return r;
	if (v->time.n)
		qsort(v->time.v, v->time.n, sizeof(v->time.v[0]), by_share);
	v->time_unaccounted = fact_round(t->unaccounted / t->alive);
	v->time_error = fact_round(activity_error(v->time.n ? v->time.v[0].share : 0, t->samples));
	return 0;
}

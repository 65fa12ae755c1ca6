/* SPDX-License-Identifier: MIT */
#include "explain/activity_tendency.h"

#include "explain/ledger/roles.h"
#include "explain/scene.h"

static const double launcher_least = 0.9;

static bool is_load(enum phase p)
{
	return p == PHASE_LOAD || p == PHASE_LOAD_GUESS || p == PHASE_WORKER ||
	       p == PHASE_WORK_WAIT;
}

static bool is_train(enum phase p)
{
	return p == PHASE_DISPATCH || p == PHASE_ENGINE || p == PHASE_COMM ||
	       p == PHASE_DEVICE_SYNC || p == PHASE_LOADER_WAIT;
}

/* Has multiprocessing run a body in this thread? No other process has that frame on any stack. */
static bool was_spawned(const struct scene *s, const struct node_reader *r,
			const struct act_thread *t)
{
	for (size_t i = 0; i < t->n_rows; i++)
		if (node_of(r, s->activity.rows.v[t->row + i].node)->spawned)
			return true;
	return false;
}

struct tendency tendency_of(const struct scene *s, const struct node_reader *r,
			    const struct act_thread *t)
{
	struct tendency x = { 0 };
	bool spawned = was_spawned(s, r, t);

	for (size_t i = 0; i < t->n_rows; i++) {
		const struct act_row *row = &s->activity.rows.v[t->row + i];
		const struct node_facts *f = node_of(r, row->node);

		/* What comes before and after its body is the frames of whoever forked it, imports, and
		 * the interpreter's end: of a short life more than half, and it says nothing. */
		if (spawned && !f->spawned)
			continue;
		x.total += row->seconds;
		if (f->python || row->flags & STACK_PYTHON)
			x.python += row->seconds;
		if (row_waits_for_child(r, row))
			x.child += row->seconds;
		if (f->spawned)
			x.spawned += row->seconds;
		x.learn += f->learns ? row->seconds : 0;
		if (row->kind == WAIT_RUNNING || row->kind == WAIT_RUNNABLE)
			x.ready += row->seconds;
		if (row->kind == WAIT_DISK || row->kind == WAIT_FILE ||
		    row->kind == WAIT_PAGE_FAULT)
			x.reads += row->seconds;
		x.load += is_load(f->phase) ? row->seconds : 0;
		x.train += is_train(f->phase) ? row->seconds : 0;
		x.queue += f->phase == PHASE_QUEUE_GET ? row->seconds : 0;
		x.engine +=
		    f->phase == PHASE_ENGINE || f->leaf_phase == PHASE_ENGINE ? row->seconds : 0;
		x.comm += f->phase == PHASE_COMM ? row->seconds : 0;
		x.loader += f->phase == PHASE_LOADER_WAIT ? row->seconds : 0;
		x.join += f->phase == PHASE_JOIN ? row->seconds : 0;
		if (f->role >= 0)
			x.role[role_rules[f->role].role] += row->seconds;
	}
	return x;
}

bool tends_to_launch(const struct tendency *x)
{
	return x->child > launcher_least * x->total;
}

bool tends_to_join(const struct tendency *x)
{
	return x->total > 0 && x->join > launcher_least * x->total;
}

bool tends_to_body(const struct tendency *x)
{
	return x->spawned > 0.5 * x->total;
}

const struct act_thread *first_thread_of(const struct scene *s, uint32_t process)
{
	uint32_t at;

	return map_get(&s->activity.first, process, &at) ? &s->activity.threads.v[at] : NULL;
}

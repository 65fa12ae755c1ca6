/* SPDX-License-Identifier: MIT
 *
 * Runs and ranks as the view has them, with what their records tell.
 */
#include "agent/jobs.h"

#include "base/text.h"

#include <errno.h>
#include <math.h>
#include <string.h>

struct viewing {
	struct jobs *jobs;
	const struct notes *notes;
	struct agent_view *view;
	int run_at[VIEW_RUNS_MAX], rank_at[VIEW_RANKS_MAX]; /* place in the view, -1 */
	int error;
};

/* The rank a process belongs to in this tick: place, or -1. */
static int rank_of_pid(const struct viewing *x, int64_t pid)
{
	const struct note *note = note_of_pid(x->notes, pid);
	const struct jobs *j = x->jobs;
	size_t at = note ? (size_t)(note - x->notes->v.v) : 0;

	if (!note || at >= j->procs.n || j->procs.v[at].rank < 0)
		return -1;
	return j->place.v[j->procs.v[at].rank];
}

/* The same for a process that a record tells of; -1 as well where that is not for it to tell. */
static int rank_told(const struct viewing *x, const struct record_news *n, int64_t pid)
{
	const struct note *note = note_of_pid(x->notes, pid);

	return note && record_may_tell(n, note) ? rank_of_pid(x, pid) : -1;
}

static struct job_link *find_link(struct jobs *j, uint64_t serial, uint32_t entity, int32_t said)
{
	for (size_t i = 0; i < j->links.n; i++) {
		struct job_link *l = &j->links.v[i];

		if (l->serial == serial && l->entity == entity && l->said == said)
			return l;
	}
	return NULL;
}

static struct job_link *add_link(struct viewing *x, const struct job_link *link)
{
	struct job_link *l = vec_push(&x->jobs->links);

	if (l)
		*l = *link;
	else
		x->error = -ENOMEM;
	return l;
}

/* The run a record is of: that of its program, or of a process that marks steps. -1: none of it was seen. */
static int run_of(struct viewing *x, const struct record_news *n)
{
	struct job_link *l = find_link(x->jobs, n->serial, 0, -1);
	int rank = -1;

	if (l)
		return l->run;
	if (n->here)
		rank = rank_told(x, n, n->pid);
	for (size_t i = 0; n->here && rank < 0 && i < n->groups.n; i++)
		rank = rank_told(x, n, n->groups.v[i].pid);
	/* In a container its pids are others: then the program is below the recorder. */
	for (size_t i = 0; rank < 0 && i < x->jobs->procs.n; i++) {
		const struct disc_proc *p = &x->jobs->procs.v[i];
		int depth = 0;

		if (!record_may_tell(n, &x->notes->v.v[i]))
			continue;
		for (int a = p->rank >= 0 ? p->parent : -1; a >= 0 && depth < 64;
		     a = x->jobs->procs.v[a].parent, depth++)
			if (x->notes->v.v[a].pid == n->recorder)
				rank = x->jobs->place.v[p->rank];
	}
	if (rank < 0)
		return -1;
	l = add_link(x, &(struct job_link){ .serial = n->serial,
					    .said = -1,
					    .run = (int)x->jobs->ranks[rank].v.run,
					    .rank = -1 });
	return l ? l->run : -1;
}

/* Of several without a number there is one only: they are one. */
static int rank_in(const struct jobs *j, int run, int32_t rank)
{
	int any = -1, n = 0;

	for (int i = 0; i < VIEW_RANKS_MAX; i++) {
		if (!j->ranks[i].used || j->ranks[i].v.run != (size_t)run)
			continue;
		if (j->ranks[i].v.rank == rank)
			return i;
		any = i;
		n++;
	}
	return n == 1 && (rank < 0 || j->ranks[any].v.rank < 0) ? any : -1;
}

/* NULL: it is not known yet. */
static struct job_link *link_of_group(struct viewing *x, const struct record_news *n, int run,
				      const struct record_group *g)
{
	struct job_link *l = find_link(x->jobs, n->serial, g->entity, g->rank);
	const struct note *note = n->here ? note_of_pid(x->notes, g->pid) : NULL;
	int rank;

	if (l)
		return l;
	rank = note ? rank_told(x, n, g->pid) : -1;
	/* A process that said a rank, and was taken for none so far, gets it with the next tick. */
	if (rank >= 0 && g->rank >= 0 && note->env.rank < 0 &&
	    x->jobs->ranks[rank].v.rank != g->rank)
		return NULL;
	if (rank < 0)
		rank = rank_in(x->jobs, run, g->rank);
	if (rank < 0)
		return NULL;
	return add_link(x, &(struct job_link){ .serial = n->serial,
					       .entity = g->entity,
					       .said = g->rank,
					       .run = (int)x->jobs->ranks[rank].v.run,
					       .rank = rank });
}

static int rank_of_group(struct viewing *x, const struct record_news *n, int run,
			 const struct record_group *g)
{
	const struct job_link *l = link_of_group(x, n, run, g);

	return l ? l->rank : -1;
}

static void take_ledger(struct viewing *x, const struct record_news *n, int run)
{
	for (size_t i = 0; i < n->n_ledger; i++) {
		const struct record_line *l = &n->ledger[i];
		int rank = l->pid && n->here && !n->ended ? rank_told(x, n, l->pid) : -1;

		/* Of a process that has ended the record still knows which rank it was. */
		for (size_t k = 0; l->pid && rank < 0 && k < n->groups.n; k++)
			if (n->groups.v[k].pid == l->pid)
				rank = rank_of_group(x, n, run, &n->groups.v[k]);
		if (told_line(x->jobs, x->notes, n, i, run,
			      rank >= 0 ? x->jobs->ranks[rank].v.rank : -1) < 0)
			x->error = -ENOMEM;
	}
}

/* The same cause in several records of a run: the one that costs most. */
static void take_finding(struct viewing *x, const struct view_finding *found, size_t run)
{
	struct view_finding *f;

	for (size_t i = 0; i < x->view->findings.n; i++) {
		f = &x->view->findings.v[i];
		if (f->run != run || strcmp(f->cause, found->cause) != 0 ||
		    strcmp(f->family, found->family) != 0)
			continue;
		if (found->cost > f->cost) {
			*f = *found;
			f->run = run;
		}
		return;
	}
	f = vec_push(&x->view->findings);
	if (!f) {
		x->error = -ENOMEM;
		return;
	}
	*f = *found;
	f->run = run;
}

static void take_record(const struct record_news *n, void *arg)
{
	struct viewing *x = arg;
	int run = n->pid ? run_of(x, n) : -1;

	x->view->records += !n->ended;
	if (!told_of(x->jobs, n->serial))
		x->error = -ENOMEM;
	if (run < 0 || x->run_at[run] < 0)
		return;
	x->jobs->runs[run].recorded |= !n->ended;
	for (size_t i = 0; i < n->groups.n; i++) {
		struct job_link *l = link_of_group(x, n, run, &n->groups.v[i]);

		if (l && l->rank >= 0)
			told_steps(x->jobs, n, &n->groups.v[i], l);
	}
	take_ledger(x, n, run);
	for (size_t i = 0; i < n->n_findings; i++)
		take_finding(x, &n->findings[i], (size_t)x->run_at[run]);
}

static void copy_runs(struct viewing *x)
{
	struct jobs *j = x->jobs;

	for (int i = 0; i < VIEW_RUNS_MAX; i++) {
		struct view_run *r = j->runs[i].used ? vec_push(&x->view->runs) : NULL;

		x->run_at[i] = r ? (int)x->view->runs.n - 1 : -1;
		if (r)
			*r = j->runs[i].v;
		j->runs[i].recorded = false;
	}
	for (int i = 0; i < VIEW_RANKS_MAX; i++) {
		int run = j->ranks[i].used ? x->run_at[j->ranks[i].v.run] : -1;
		struct view_rank *r = run >= 0 ? vec_push(&x->view->ranks) : NULL;

		x->rank_at[i] = r ? (int)x->view->ranks.n - 1 : -1;
		if (!r)
			continue;
		*r = j->ranks[i].v;
		r->run = (size_t)run;
	}
}

/* The sums as they are now that all records have told. */
static void copy_told(struct viewing *x)
{
	struct jobs *j = x->jobs;

	for (int i = 0; i < VIEW_RANKS_MAX; i++) {
		struct view_rank *r = x->rank_at[i] >= 0 ? &x->view->ranks.v[x->rank_at[i]] : NULL;

		if (!r)
			continue;
		r->has_steps = j->ranks[i].v.has_steps;
		r->steps = j->ranks[i].v.steps;
		r->start_ms = j->ranks[i].v.start_ms;
	}
	for (size_t i = 0; i < j->ledger.n; i++) {
		int run = x->run_at[j->ledger.v[i].run];
		struct view_ledger *v = run >= 0 ? vec_push(&x->view->ledger) : NULL;

		if (v) {
			*v = j->ledger.v[i];
			v->run = (size_t)run;
		} else if (run >= 0) {
			x->error = -ENOMEM;
		}
	}
}

/* Several processes of a rank on one GPU are one row. */
static void add_hold(struct viewing *x, size_t rank, size_t gpu, double memory, double busy)
{
	struct agent_view *v = x->view;
	struct view_hold *h;

	for (size_t i = 0; i < v->holds.n; i++) {
		h = &v->holds.v[i];
		if (h->rank != rank || h->gpu != gpu)
			continue;
		view_add_known(&h->memory, memory);
		view_add_known(&h->busy, busy);
		return;
	}
	h = vec_push(&v->holds);
	if (h)
		*h = (struct view_hold){ rank, gpu, memory, busy };
	else
		x->error = -ENOMEM;
}

static void take_holds(struct viewing *x, const struct world *w, const struct map *gpu_thing)
{
	for (size_t i = 0; i < w->entities.rows.n; i++) {
		const struct entity *e = &w->entities.rows.v[i];
		uint32_t thing;
		int rank;

		if (e->kind != ENTITY_GPU_PROC || e->key <= 0)
			continue;
		rank = rank_of_pid(x, e->key);
		if (rank >= 0 && x->rank_at[rank] >= 0 && map_get(gpu_thing, e->parent, &thing))
			add_hold(x, (size_t)x->rank_at[rank], thing,
				 world_value(w, M_GPU_PROC_MEMORY, e->id),
				 world_value(w, M_GPU_PROC_BUSY, e->id));
	}
}

int jobs_view(struct jobs *j, const struct notes *n, const struct world *w, struct records *records,
	      const struct map *gpu_thing, struct agent_view *v)
{
	struct viewing x = { .jobs = j, .notes = n, .view = v };

	v->records = 0;
	copy_runs(&x);
	if (records) {
		told_begin(j, n, records);
		records_each(records, take_record, &x);
		told_end(j);
		v->dropped_records = records_dropped(records);
	}
	copy_told(&x);
	take_holds(&x, w, gpu_thing);
	v->dropped_runs = j->dropped_runs;
	v->dropped_ranks = j->dropped_ranks;
	v->unreadable = (double)notes_hidden(n);
	return x.error;
}

/* SPDX-License-Identifier: MIT
 *
 * Which thread the training waits for: the first one of the program, or what that one started and waits for.
 */
#include "explain/activity_tendency.h"

#include "explain/ledger/roles.h"
#include "explain/scene.h"

#include <math.h>

/* A first thread that was seen for less of its life may have ended before the others. */
static const double ended_most = 0.5;

/* Some run their training in a thread of its own, and wait for its end. `python`: one that runs Python. */
static int busiest_thread(const struct scene *s, const struct node_reader *r, uint32_t process,
			  bool python)
{
	const struct activity *a = &s->activity;
	double most = 0;
	int found = -1;

	for (size_t i = 0; i < a->threads.n; i++) {
		const struct act_thread *t = &a->threads.v[i];
		struct tendency x;
		double own;

		/* what is known to serve others is not what they wait for */
		if (t->process != process || t->first || !t->n_rows ||
		    (t->role != ROLE_OTHER && t->role != ROLE_FRAMEWORK_THREADS))
			continue;
		x = tendency_of(s, r, t);
		own = isfinite(t->run) ? t->run : x.total - x.queue;
		if ((!python || x.python > 0.5 * x.total) && own > most) {
			most = own;
			found = (int)i;
		}
	}
	return found;
}

/* The thread a process is judged by: its first one. That may end while others go on (pthread_exit in
 * main): then the one with most work, of Python if there is one. NULL: nothing is known of any. */
static const struct act_thread *lead_of(const struct scene *s, const struct node_reader *r,
					uint32_t process)
{
	const struct activity *a = &s->activity;
	const struct act_thread *first = first_thread_of(s, process);
	int other;

	if (first && first->covered > ended_most * first->alive)
		return first;
	other = busiest_thread(s, r, process, true);
	if (other < 0)
		other = busiest_thread(s, r, process, false);
	/* Where none was seen for longer the first was just not seen often. */
	if (other >= 0 && (!first || a->threads.v[other].covered > 2 * first->covered))
		return &a->threads.v[other];
	return first && first->n_rows ? first : NULL;
}

static bool may_train(const struct scene *s, const struct node_reader *r,
		      const struct act_thread *t)
{
	const struct entity *e = entity_find(window_entities(s->whole), t->process);
	struct tendency x;

	if (!t->n_rows || t->role == ROLE_LOADER_WORKER || !e || t != lead_of(s, r, t->process))
		return false;
	x = tendency_of(s, r, t);
	return tends_to_body(&x) || role_of_text(ROLE_BY_COMMAND, e->detail) < 0;
}

/* The child of a process whose first thread has most time that is not waiting for a child of its own. */
static int busiest_child(const struct scene *s, const struct node_reader *r, uint32_t process)
{
	const struct activity *a = &s->activity;
	double most = 0;
	int found = -1;

	for (size_t i = 0; i < a->threads.n; i++) {
		const struct act_thread *t = &a->threads.v[i];
		const struct entity *e = entity_find(window_entities(s->whole), t->process);
		struct tendency x;
		double own;

		/* one whose parent is not known may be anybody's */
		if (!e || t->process == process || !may_train(s, r, t) ||
		    (e->parent != process && scene_member(s, e->parent)))
			continue;
		x = tendency_of(s, r, t);
		/* what it ran weighs most: of equal ranks the one with most work of its own, and not a
		 * helper that waits all day. A launcher in turn has what it started. */
		own = x.total - x.child - x.comm + (isfinite(t->run) ? t->run : 0);
		if (tends_to_launch(&x))
			own += 1e-3 * x.total;
		if (own > most) {
			most = own;
			found = (int)i;
		}
	}
	return found;
}

/* In a short run a launcher's own start is more than a tenth: then it must be plain that it is the
 * child that trains, and not itself. So it must of one that waits for results (folds, trials) in a queue, as a
 * training waits for its workers. */
static bool started(const struct scene *s, const struct node_reader *r, const struct tendency *x,
		    int child)
{
	struct tendency y = tendency_of(s, r, &s->activity.threads.v[child]);

	if (x->child + x->queue > 0.5 * x->total && x->train < 0.01 * x->total &&
	    (y.engine > engine_least * y.total ||
	     (y.learn > 0.2 * y.total && x->learn < 0.01 * x->total)))
		return true;
	return x->child > 0.5 * x->total && x->train < 0.05 * x->total && y.train > 0.05 * y.total;
}

/* Trials and folds in threads of one process: its first thread hands out and waits for what they report. The one that
 * computes most gradients; -1: none, or the first one trains itself. */
static int trains_beside(const struct scene *s, const struct node_reader *r, uint32_t process,
			 const struct tendency *first)
{
	const struct activity *a = &s->activity;
	double most = 0;
	int found = -1;

	if (first->total <= 0 || first->ready > 0.1 * first->total ||
	    first->train > 0.01 * first->total || first->learn > 0.01 * first->total)
		return -1;
	for (size_t i = 0; i < a->threads.n; i++) {
		const struct act_thread *t = &a->threads.v[i];
		struct tendency x;

		if (t->process != process || t->first || !t->n_rows || t->role != ROLE_OTHER)
			continue;
		x = tendency_of(s, r, t);
		if (x.engine > engine_least * x.total && x.python > 0.5 * x.total &&
		    x.total - x.queue > most) {
			most = x.total - x.queue;
			found = (int)i;
		}
	}
	return found;
}

void critical_find(struct scene *s, const struct node_reader *r)
{
	struct activity *a = &s->activity;
	uint32_t process = s->main_proc;

	a->critical = -1;
	for (int depth = 0; depth < LAUNCHERS_MAX; depth++) {
		const struct act_thread *t = lead_of(s, r, process);
		struct tendency x = { 0 };
		int child;

		if (t) {
			x = tendency_of(s, r, t);
			a->critical = (int)(t - a->threads.v);
		}
		if (tends_to_join(&x)) {
			child = busiest_thread(s, r, process, true);
			a->critical = child >= 0 ? child : a->critical;
			return;
		}
		child = trains_beside(s, r, process, &x);
		if (child >= 0) {
			a->critical = child;
			return;
		}
		child = busiest_child(s, r, process);
		if (child < 0 || (x.total > 0 && !tends_to_launch(&x) && !started(s, r, &x, child)))
			return;
		a->critical = child;
		process = a->threads.v[child].process;
	}
}

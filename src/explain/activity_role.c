/* SPDX-License-Identifier: MIT
 *
 * What each thread is for.
 */
#include "explain/activity_tendency.h"

#include "explain/ledger/roles.h"
#include "explain/scene.h"

#include <string.h>

/* Of its time: a helper that learns is none that loads, whatever pool it is of. */
static const double learns_least = 0.1;
/* Of its time: a process that works all day for the process that started it. */
static const double makes_least = 0.5;
/* Of its time: a training that waits for a queue, and a thread that does something for it. */
static const double awaits_least = 0.05, fills_least = 0.05;

static bool role_by(enum role_by by, const char *text, enum cpu_role *ret)
{
	int row = text ? role_of_text(by, text) : -1;

	if (row >= 0)
		*ret = role_rules[row].role;
	return row >= 0;
}

/* By its own stacks and name; false: nothing says. */
static bool role_of_thread(const struct act_thread *t, const struct tendency *x, enum cpu_role *ret)
{
	int most = -1;

	/* Threads do other things before and after: a fifth of its time is enough. */
	for (int i = 0; i < ROLES; i++) {
		/* What the fork server forked has the server's frames below its own. */
		if (i == ROLE_CHILD && x->spawned > 0.5 * x->total)
			continue;
		if (x->role[i] > 0.2 * x->total && (most < 0 || x->role[i] > x->role[most]))
			most = i;
	}
	if (most >= 0) {
		*ret = (enum cpu_role)most;
		return true;
	}
	/* Of a first thread the name is the program's. */
	return !t->first && role_by(ROLE_BY_THREAD, t->name, ret);
}

/* Does the first thread of `process` wait for what this one sends it? */
static bool is_awaited(const struct scene *s, const struct node_reader *r,
		       const struct act_thread *by, uint32_t process)
{
	double seconds = 0;

	for (size_t i = 0; by && i < by->n_rows; i++) {
		const struct act_row *row = &s->activity.rows.v[by->row + i];
		enum phase p = node_of(r, row->node)->phase;

		if (row->peer == process && (p == PHASE_QUEUE_GET || p == PHASE_LOADER_WAIT))
			seconds += row->seconds;
	}
	return by && seconds > 0.01 * by->covered;
}

/* The process that started it; of one that the fork server forked, the one that asked for it. */
static uint32_t starter(const struct scene *s, const struct node_reader *r, const struct entity *e)
{
	uint32_t parent = e->parent;

	for (int depth = 0; depth < LAUNCHERS_MAX && scene_member(s, parent); depth++) {
		const struct entity *up = entity_find(window_entities(s->whole), parent);
		const struct act_thread *first = first_thread_of(s, parent);
		struct tendency x = { 0 };

		if (first)
			x = tendency_of(s, r, first);
		if (!up || !up->detail || tends_to_body(&x) ||
		    !strstr(up->detail, "multiprocessing.forkserver"))
			return parent;
		parent = up->parent;
	}
	return s->main_proc;
}

/* A process that a training started to make its data: it loads, or it serves queues, and does nothing
 * that only trainings do. A training that a launcher started may load for most of its time, too. */
static bool is_worker(const struct scene *s, const struct node_reader *r,
		      const struct act_thread *t, const struct entity *e, const struct tendency *x)
{
	const struct act_thread *by = first_thread_of(s, starter(s, r, e));
	struct tendency up = { 0 };

	if (t->process == s->main_proc || x->total <= 0 || x->train > 0.02 * x->total ||
	    x->learn > learns_least * x->total || !by)
		return false;
	up = tendency_of(s, r, by);
	if (tends_to_launch(&up) || up.python == 0)
		return false;
	if (x->load > 0.5 * x->total || is_awaited(s, r, by, t->process))
		return true;
	/* It was started by spawn and never got beyond its imports: what it was to do nobody saw. */
	if (e->detail && strstr(e->detail, "--multiprocessing-fork") && !tends_to_body(x))
		return up.queue + up.loader > 0.02 * up.total;
	/* Actors and samplers that write to shared memory, and that nobody ever waits for. */
	if (tends_to_body(x) && up.engine > engine_least * up.total &&
	    x->ready > makes_least * x->total)
		return true;
	/* One that is never done has no time to wait: then it is the other side that waits. */
	return tends_to_body(x) &&
	       (x->load + x->queue > 0.02 * x->total || up.queue + up.loader > 0.02 * up.total);
}

/* By what the process is: a child that nobody knows is a child. */
static enum cpu_role role_of_process(const struct scene *s, const struct node_reader *r,
				     const struct act_thread *t, const struct tendency *x)
{
	const struct entity *e = entity_find(window_entities(s->whole), t->process);
	enum cpu_role role = ROLE_CHILD;

	if (!e || role_by(ROLE_BY_PROGRAM, e->name, &role) ||
	    (!tends_to_body(x) && role_by(ROLE_BY_COMMAND, e->detail, &role)))
		return role;
	return is_worker(s, r, t, e, x) ? ROLE_LOADER_WORKER : ROLE_CHILD;
}

/* Threads that are no first ones and that nothing names: by their process, or by what they do. */
static enum cpu_role role_of_rest(const struct act_thread *first, const struct tendency *x)
{
	if (first && first->role == ROLE_LOADER_WORKER)
		return ROLE_LOADER_WORKER;
	if (x->load > 0.1 * x->total && x->load + x->queue > 0.5 * x->total)
		return ROLE_LOADER_WORKER;
	if (x->total > 0 && x->python == 0)
		return ROLE_FRAMEWORK_THREADS;
	return ROLE_OTHER;
}

void roles_give(struct scene *s, const struct node_reader *r)
{
	struct activity *a = &s->activity;

	for (size_t i = 0; i < a->threads.n; i++) {
		struct act_thread *t = &a->threads.v[i];
		struct tendency x = tendency_of(s, r, t);

		if (t->first && !role_of_thread(t, &x, &t->role))
			t->role = role_of_process(s, r, t, &x);
	}
	for (size_t i = 0; i < a->threads.n; i++) {
		struct act_thread *t = &a->threads.v[i];
		struct tendency x = tendency_of(s, r, t);

		if (t->first)
			continue;
		t->computes = x.learn > learns_least * x.total;
		if (t->computes)
			t->role = ROLE_OTHER;
		else if (!role_of_thread(t, &x, &t->role))
			t->role = role_of_rest(first_thread_of(s, t->process), &x);
	}
}

static bool marks_steps(const struct scene *s, uint32_t process)
{
	const struct window_step *v;
	size_t n = 0;

	v = s->whole->ops->steps ? s->whole->ops->steps(s->whole->src, &n) : NULL;
	for (size_t i = 0; i < n; i++)
		if (v[i].entity == process)
			return true;
	return false;
}

/* The training waits for a queue, and nobody is known to fill it: then it is its own threads that do something and do
 * not themselves wait to be given something. */
static void producers(struct scene *s, const struct node_reader *r)
{
	struct activity *a = &s->activity;
	const struct act_thread *by = a->critical >= 0 ? &a->threads.v[a->critical] : NULL;
	struct tendency x = { 0 };

	if (by)
		x = tendency_of(s, r, by);
	/* a server takes requests from a queue as well; who trains takes data */
	if (!by || x.queue < awaits_least * x.total ||
	    (x.engine <= 0 && x.learn <= 0 && !marks_steps(s, by->process)))
		return;
	for (size_t i = 0; i < a->threads.n; i++)
		if (a->threads.v[i].role == ROLE_LOADER_WORKER)
			return;
	for (size_t i = 0; i < a->threads.n; i++) {
		struct act_thread *t = &a->threads.v[i];
		struct tendency y = { 0 };

		if (t == by || t->process != by->process || t->role != ROLE_OTHER || t->computes)
			continue;
		y = tendency_of(s, r, t);
		if (y.python > 0.5 * y.total && y.queue < 0.5 * y.total &&
		    y.ready + y.reads > fills_least * y.total)
			t->role = ROLE_LOADER_WORKER;
	}
}

/* Ranks: of one parent and one program, and no helpers. */
static bool is_rank(const struct scene *s, const struct act_thread *t,
		    const struct act_thread *like)
{
	const struct entity_table *table = window_entities(s->whole);
	const struct entity *a = entity_find(table, t->process),
			    *b = entity_find(table, like->process);

	return a && b && t->first && t->role == ROLE_CHILD && t->process != s->main_proc &&
	       like->process != s->main_proc && a->parent == b->parent &&
	       strcmp(a->name, b->name) == 0 && role_of_text(ROLE_BY_COMMAND, a->detail) < 0;
}

/* What started the training (shell, torchrun, accelerate) is no child of it, and neither is the first thread
 * of a process that trains in another one. */
static void launchers_are_other(struct scene *s, uint32_t process)
{
	struct activity *a = &s->activity;
	uint32_t at;

	for (int depth = 0; depth < LAUNCHERS_MAX && scene_member(s, process); depth++) {
		const struct entity *e = entity_find(window_entities(s->whole), process);

		if (map_get(&a->first, process, &at) && a->threads.v[at].role == ROLE_CHILD)
			a->threads.v[at].role = ROLE_OTHER;
		process = e ? e->parent : 0;
	}
	/* Also where parents are not known: the program was what started all of it. */
	if (map_get(&a->first, s->main_proc, &at) && a->threads.v[at].role == ROLE_CHILD)
		a->threads.v[at].role = ROLE_OTHER;
}

void roles_main(struct scene *s, const struct node_reader *r)
{
	struct activity *a = &s->activity;
	struct act_thread *critical = a->critical >= 0 ? &a->threads.v[a->critical] : NULL;

	if (!critical)
		return;
	producers(s, r);
	critical->role = ROLE_MAIN;
	for (size_t i = 0; i < a->threads.n; i++)
		if (is_rank(s, &a->threads.v[i], critical))
			a->threads.v[i].role = ROLE_MAIN;
	launchers_are_other(s, critical->process);
}

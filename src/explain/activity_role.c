/* SPDX-License-Identifier: MIT
 *
 * What each thread is for, and which one the training waits for.
 */
#include "explain/activity_part.h"

#include "explain/ledger/roles.h"
#include "explain/scene.h"

#include <math.h>
#include <string.h>

/* A launcher (shell, torchrun, mpirun) waits for what it started for nearly all of its time. */
static const double launcher_least = 0.9;
/* A first thread that was seen for less of its life may have ended before the others. */
static const double ended_most = 0.5;
/* Of its time: a helper that learns is none that loads, whatever pool it is of. */
static const double learns_least = 0.1;
/* Of its time: a process that computes gradients, and one that works all day for the process that started it. */
static const double engine_least = 0.02, makes_least = 0.5;
/* Of its time: a training that waits for a queue, and a thread that does something for it. */
static const double awaits_least = 0.05, fills_least = 0.05;
/* Deeper than any chain of launchers. */
enum { LAUNCHERS_MAX = 16 };

/* What the samples of a thread say about it, seconds. */
struct tendency {
	double total, python;
	double child, join; /* waits for processes, for threads that it started */
	double load, queue; /* makes data, waits to be given something */
	double loader;      /* waits for a batch */
	double train;       /* frames that only a training has */
	double engine;      /* of these: gradients, which no loader computes */
	double comm;        /* of these: collectives, where others are waited for */
	double ready;       /* on a CPU, or queued for one */
	double reads;       /* waits for storage */
	double learn;       /* in lines of the program's own that learn */
	double spawned;     /* a process that multiprocessing started */
	double role[ROLES];
};

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

static struct tendency tendency_of(const struct scene *s, const struct node_reader *r,
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

static const struct act_thread *first_of(const struct scene *s, uint32_t process)
{
	uint32_t at;

	return map_get(&s->activity.first, process, &at) ? &s->activity.threads.v[at] : NULL;
}

static bool is_launcher(const struct tendency *x)
{
	return x->child > launcher_least * x->total;
}

/* What the fork server forked has the server's command line, and a body of its own. */
static bool has_body(const struct tendency *x)
{
	return x->spawned > 0.5 * x->total;
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
		const struct act_thread *first = first_of(s, parent);
		struct tendency x = { 0 };

		if (first)
			x = tendency_of(s, r, first);
		if (!up || !up->detail || has_body(&x) ||
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
	const struct act_thread *by = first_of(s, starter(s, r, e));
	struct tendency up = { 0 };

	if (t->process == s->main_proc || x->total <= 0 || x->train > 0.02 * x->total ||
	    x->learn > learns_least * x->total || !by)
		return false;
	up = tendency_of(s, r, by);
	if (is_launcher(&up) || up.python == 0)
		return false;
	if (x->load > 0.5 * x->total || is_awaited(s, r, by, t->process))
		return true;
	/* It was started by spawn and never got beyond its imports: what it was to do nobody saw. */
	if (e->detail && strstr(e->detail, "--multiprocessing-fork") && !has_body(x))
		return up.queue + up.loader > 0.02 * up.total;
	/* Actors and samplers that write to shared memory, and that nobody ever waits for. */
	if (has_body(x) && up.engine > engine_least * up.total && x->ready > makes_least * x->total)
		return true;
	/* One that is never done has no time to wait: then it is the other side that waits. */
	return has_body(x) &&
	       (x->load + x->queue > 0.02 * x->total || up.queue + up.loader > 0.02 * up.total);
}

/* By what the process is: a child that nobody knows is a child. */
static enum cpu_role role_of_process(const struct scene *s, const struct node_reader *r,
				     const struct act_thread *t, const struct tendency *x)
{
	const struct entity *e = entity_find(window_entities(s->whole), t->process);
	enum cpu_role role = ROLE_CHILD;

	if (!e || role_by(ROLE_BY_PROGRAM, e->name, &role) ||
	    (!has_body(x) && role_by(ROLE_BY_COMMAND, e->detail, &role)))
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
			t->role = role_of_rest(first_of(s, t->process), &x);
	}
}

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
	const struct act_thread *first = first_of(s, process);
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
	return has_body(&x) || role_of_text(ROLE_BY_COMMAND, e->detail) < 0;
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
		if (is_launcher(&x))
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
		if (x.total > 0 && x.join > launcher_least * x.total) {
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
		if (child < 0 || (x.total > 0 && !is_launcher(&x) && !started(s, r, &x, child)))
			return;
		a->critical = child;
		process = a->threads.v[child].process;
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

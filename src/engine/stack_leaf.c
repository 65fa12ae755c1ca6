/* SPDX-License-Identifier: MIT
 *
 * In which native function is a thread that runs? Its instruction pointer can be sampled, its Python stack
 * be read, but not at the same moment; and a function that is put below a line which never called it is a
 * lie. So the sample is taken between two readings of the stack, and counts only where both found the same:
 *
 *	arm -> read the stack -> (a sample comes, every 10 us) -> disarm -> read the stack again
 *
 * That takes some 40 us (80 in a virtual machine), so one thread is asked in every other look: processes
 * that lead and those that follow take turns, and so do the threads of each.
 */
#include "engine/stack_job.h"

#include "base/clock.h"

#include <string.h>

enum {
	LEAF_EVERY = 2,
	PATIENCE_US = 30, /* for the sample, after the stack has been read */
};

/* Is it the turn of this process? One in a look. */
static bool its_turn(const struct stack_job *j, const struct stack_proc *p, size_t place)
{
	bool leaders = !j->followers || j->turn / LEAF_EVERY % 2 == 0;
	size_t turn = j->turn / LEAF_EVERY / 2 % (j->procs.n ? j->procs.n : 1);

	if (!j->perf || j->turn % LEAF_EVERY || j->asked || p->leads != leaders)
		return false;
	/* The next one of its kind from `turn` on: who is before it waits for the next round. */
	return place >= turn || place + 1 == j->procs.n;
}

/* A thread that is on a CPU, as far as is known: the first by what was just seen, others by the last
 * look. They take turns. */
static struct stack_thread *candidate(struct stack_job *j, struct stack_proc *p)
{
	for (size_t i = 0; i < p->threads.n; i++) {
		struct stack_thread *t = &p->threads.v[(j->leaf_turn + i) % p->threads.n];

		if (t->state.kind == WAIT_RUNNING) {
			j->leaf_turn++;
			return t;
		}
	}
	return NULL;
}

struct stack_thread *stack_leaf_begin(struct stack_job *j, struct stack_proc *p, size_t place)
{
	struct stack_thread *t = p->native && its_turn(j, p, place) ? candidate(j, p) : NULL;

	if (!t)
		return NULL;
	if (!t->watched)
		t->watched = native_perf_watch(j->perf, t->tid) == 0;
	if (!t->watched)
		return NULL;
	j->asked = true;
	j->leaf_ns = clock_mono_ns();
	native_perf_arm(j->perf, t->tid);
	return t;
}

static const struct py_thread *python_in(const struct py_stacks *s, pid_t tid)
{
	for (size_t i = 0; i < s->threads.n; i++)
		if (s->threads.v[i].tid == tid)
			return &s->threads.v[i];
	return NULL;
}

/* Equal frames, but that the innermost may have gone on within its line. */
static bool same_stack(const struct stack_proc *p, const struct py_stacks *a_of,
		       const struct py_thread *a, const struct py_stacks *b_of,
		       const struct py_thread *b)
{
	const struct py_frame *x = a_of->frames.v + a->first, *y = b_of->frames.v + b->first;

	if (a->status != b->status || a->n != b->n ||
	    (a->status != PY_COMPLETE && a->status != PY_EMPTY))
		return false;
	if (!a->n)
		return true;
	return x->code == y->code &&
	       py_line(p->py, x->code, x->offset) == py_line(p->py, y->code, y->offset) &&
	       memcmp(x + 1, y + 1, (a->n - 1) * sizeof(*x)) == 0;
}

static bool stack_stood(struct stack_job *j, struct stack_proc *p, pid_t tid)
{
	const struct py_thread *before = p->py ? python_in(&p->stacks, tid) : NULL, *after;

	if (!before) /* no thread of Python's: there is nothing to put it below */
		return true;
	if (py_sample(p->py, &j->again) < 0)
		return false;
	after = python_in(&j->again, tid);
	return after && same_stack(p, &p->stacks, before, &j->again, after);
}

bool stack_leaf_end(struct stack_job *j, struct stack_proc *p, struct stack_thread *t,
		    struct native_place *ret)
{
	int64_t until = clock_mono_ns() + PATIENCE_US * 1000ll, when = 0;
	uint64_t at[1];
	size_t n;

	do {
		n = native_perf_newest(j->perf, t->tid, at, 1, &when);
	} while ((!n || when < j->leaf_ns) && clock_mono_ns() < until);
	native_perf_disarm(j->perf, t->tid);
	if (!n || when < j->leaf_ns || !stack_stood(j, p, t->tid))
		return false;
	j->joined = true;
	return native_place(p->native, at[0], j->leaf_ns, ret);
}

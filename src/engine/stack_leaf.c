/* SPDX-License-Identifier: MIT
 *
 * In which native function is a thread that runs? Its instruction pointer can be sampled, its Python stack
 * be read, but not at the same moment; and a function that is put below a line which never called it is a
 * lie. So the sample is taken between two readings of the stack, and counts only where both found the same:
 *
 *	arm -> read the stack -> (a sample comes, every 20 us) -> disarm -> read the stack again
 *
 * That takes some 40 us (80 in a virtual machine), so one thread is asked in every other look: processes
 * that lead and those that follow take turns, and so do the threads of each.
 *
 * A thread without Python frames has nothing to be put below: one sample is enough, and it comes with
 * registers and a copy of the stack, from which its native callers follow. Nobody waits for it: it is
 * taken at some moment between two looks and belongs to the second, if the thread runs then, too.
 */
#include "engine/stack_leaf.h"

#include "base/clock.h"
#include "base/err.h"
#include "engine/stack_job.h"

#include <string.h>

enum {
	LEAF_EVERY = 2,
	PATIENCE_US = 30, /* for the sample, after the stack has been read */
	ASK_MAX = 2,      /* threads without Python frames in one look */
};

/* In every how many-th look is somebody asked? */
static unsigned every(const struct stack_job *j)
{
	for (size_t i = 0; i < j->procs.n; i++)
		if (j->procs.v[i]->py)
			return LEAF_EVERY;
	return 1;
}

/* One in a look, and each after so many looks at itself: turns that are counted by the clock of looks would never fall
 * together with those in which a follower is looked at (stack_pace.h: stride). Leaders come first in a look, so they leave out a
 * third of them, and not in step with anything. */
bool stack_leaf_turn(const struct stack_job *j, const struct stack_proc *p)
{
	unsigned each = every(j), leaders = (unsigned)(j->procs.n - j->followers);
	unsigned stride = j->stride ? j->stride : 1;

	if (j->asked)
		return false;
	if (!j->followers)
		return p->leaf_looks >= each * leaders;
	if (p->leads)
		return p->leaf_looks >= 2 * each * leaders && map_mix(j->turn) % 3;
	return p->leaf_looks >= (2 * each * (unsigned)j->followers + stride - 1) / stride;
}

static const struct py_thread *python_in(const struct py_stacks *s, pid_t tid)
{
	for (size_t i = 0; i < s->threads.n; i++)
		if (s->threads.v[i].tid == tid)
			return &s->threads.v[i];
	return NULL;
}

/* Has it no Python frames? What is not known yet, or was never read, may have some. */
static bool is_native(const struct stack_proc *p, pid_t tid)
{
	if (!p->py)
		return p->access == ACCESS_WAITS || p->access == ACCESS_FOREIGN;
	return p->stacks.threads.n && !python_in(&p->stacks, tid);
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

/* What begins a program or a thread (_start, what calls main, clone) says nothing. */
static void leave_out_start(struct stack_leaf *leaf)
{
	if (leaf->n > 2 && !leaf->places[leaf->n - 1].libc && leaf->places[leaf->n - 2].libc)
		leaf->n--;
	while (leaf->n > 1 && leaf->places[leaf->n - 1].libc)
		leaf->n--;
}

static bool resolve(struct stack_proc *p, const struct native_sample *sample,
		    struct stack_leaf *ret)
{
	uint64_t at[NATIVE_FRAMES_MAX];
	bool whole;
	size_t n =
	    native_unwind_sample(p->native, sample, sample->ns, at, NATIVE_FRAMES_MAX, &whole);

	ret->n = 0;
	/* Code that belongs to no file has no unwind rules, but is a place. */
	if (!n && native_place(p->native, sample->pc, sample->ns, &ret->places[0]))
		ret->n = 1;
	/* A return address may be the first byte of the next function. */
	while (ret->n < n && ret->n < STACK_LEAF_DEPTH &&
	       native_place(p->native, at[ret->n] - (ret->n > 0), sample->ns, &ret->places[ret->n]))
		ret->n++;
	ret->cut = sample->known && (!whole || ret->n < n);
	if (sample->known && !ret->cut)
		leave_out_start(ret);
	return ret->n > 0;
}

/* In the middle of what it does, on a CPU or taken off it. */
static bool in_action(const struct stack_thread *t)
{
	return t->state.kind == WAIT_RUNNING ||
	       (t->state.kind == WAIT_RUNNABLE && t->state.preempted);
}

/* What was asked for before. Who is queued for a CPU may answer yet; who waits is left alone. */
static void collect(struct stack_job *j, struct stack_proc *p)
{
	struct stack_leaves *l = &j->leaves;
	struct native_sample sample;

	for (size_t i = 0; i < p->threads.n && l->n + 1 < STACK_LEAVES_MAX; i++) {
		struct stack_thread *t = &p->threads.v[i];
		bool had = t->asked_ns && native_perf_sample(j->perf, t->tid, &sample) &&
			   sample.ns >= t->asked_ns;

		if (!t->asked_ns || (!had && in_action(t)))
			continue;
		t->asked_ns = 0;
		if (!had)
			native_perf_disarm(j->perf, t->tid);
		else if (is_native(p, t->tid) && resolve(p, &sample, &l->v[l->n].leaf)) {
			l->v[l->n++].thread = t;
			j->joined = true;
		}
	}
}

/* True: it will answer until the next look. */
static bool ask_native(struct stack_job *j, struct stack_thread *t)
{
	t->watched = native_perf_watch_callers(j->perf, t->tid) == 0;
	if (!t->watched || native_perf_no_callers(j->perf, NULL))
		return false;
	t->asked_ns = clock_mono_ns();
	native_perf_arm(j->perf, t->tid);
	return true;
}

static void ask(struct stack_job *j, struct stack_thread *t)
{
	/* Those whose callers are watched make room for each other: it may be watched no longer. */
	t->watched = native_perf_watch(j->perf, t->tid) == 0;
	if (!t->watched)
		return;
	j->leaves.asked = t;
	j->leaf_ns = clock_mono_ns();
	native_perf_arm(j->perf, t->tid);
}

/* Threads that are on a CPU, as far as is known: the first by what was just seen, others by the last
 * look. They take turns. One with Python frames is asked alone: its stack is read meanwhile. */
void stack_leaf_begin(struct stack_job *j, struct stack_proc *p)
{
	unsigned n = 0;

	j->leaves.n = 0;
	j->leaves.asked = NULL;
	if (!p->native || !j->perf)
		return;
	collect(j, p);
	p->leaf_looks++;
	if (!stack_leaf_turn(j, p))
		return;
	for (size_t i = 0; i < p->threads.n && n < ASK_MAX && !j->leaves.asked; i++) {
		struct stack_thread *t = &p->threads.v[(j->leaf_turn + i) % p->threads.n];

		if (t->asked_ns || !in_action(t))
			continue;
		if (is_native(p, t->tid) && ask_native(j, t))
			n++;
		else if (!n && t->state.kind == WAIT_RUNNING)
			ask(j, t);
	}
	n += j->leaves.asked != NULL;
	j->leaf_turn += n;
	j->asked = n > 0;
	p->leaf_looks = n > 0 ? 0 : p->leaf_looks;
}

void stack_leaf_end(struct stack_job *j, struct stack_proc *p)
{
	int64_t until = clock_mono_ns() + PATIENCE_US * 1000ll;
	struct stack_leaves *l = &j->leaves;
	struct native_sample sample;
	bool had;

	if (!l->asked)
		return;
	do {
		had =
		    native_perf_sample(j->perf, l->asked->tid, &sample) && sample.ns >= j->leaf_ns;
	} while (!had && clock_mono_ns() < until);
	native_perf_disarm(j->perf, l->asked->tid);
	if (!had || !stack_stood(j, p, l->asked->tid))
		return;
	j->joined = true;
	sample.known = 0; /* its callers are Python's to tell */
	if (resolve(p, &sample, &l->v[l->n].leaf))
		l->v[l->n++].thread = l->asked;
}

const struct stack_leaf *stack_leaf_of(const struct stack_job *j, const struct stack_thread *t)
{
	const struct stack_leaves *l = &j->leaves;

	for (size_t i = 0; i < l->n; i++)
		if (l->v[i].thread == t)
			return t == l->asked || in_action(t) ? &l->v[i].leaf : NULL;
	return NULL;
}

void stack_leaf_tell(struct stack_job *j, struct stack_proc *p, struct frame *f)
{
	struct err e = { 0 };

	if (!j->perf || !p->leads || p->access != ACCESS_WAITS)
		return;
	if (!j->told_no_leaf && native_perf_refused(j->perf, &e)) {
		j->told_no_leaf = true;
		frame_event(f, EVENT_STACKS, p->entity, 2,
			    "no native code of running threads: %s%s%s", e.text,
			    e.hint[0] ? "; " : "", e.hint);
	} else if (!j->told_no_callers && native_perf_no_callers(j->perf, &e)) {
		j->told_no_callers = true;
		frame_event(f, EVENT_STACKS, p->entity, 3, "no callers of running threads: %s%s%s",
			    e.text, e.hint[0] ? "; " : "", e.hint);
	}
}

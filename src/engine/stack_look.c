/* SPDX-License-Identifier: MIT
 *
 * One look at every thread of the job.
 *
 * A process whose CPU clock has not moved, and whose first thread still waits in the same call, has done
 * nothing: what was seen of it last holds (about 3 us). The others have all their Python threads read in
 * one proven reading, and each thread asked what it waits for (about 3 us a thread).
 */
#include "engine/stack_job.h"

#include "base/clock.h"
#include "engine/stack_callers.h"
#include "engine/stack_lead.h"

#include <errno.h>
#include <stdlib.h>

enum {
	SWEEP_S = 10,
	FIRST_LOOKS = 3,
	MANY_THREADS = 8,
	ASK_EVERY = 8,
	HALF_DEPTH = (STACK_DEPTH_MAX - STACK_NATIVE_DEPTH) / 2 - 1,
};

static bool on_cpu(enum wait_kind kind)
{
	return kind == WAIT_RUNNING || kind == WAIT_RUNNABLE;
}

/* What the sample stands for: the time since the one before. Where samples were missed that time is
 * not this one's to explain. */
static int64_t weight_of(const struct stack_proc *p, const struct stack_thread *t, int64_t now_ns)
{
	int64_t since = now_ns - t->seen_ns;
	int64_t period = p->period_before_ns > p->period_ns ? p->period_before_ns : p->period_ns;

	return t->seen_ns && since <= 3 * period ? since : p->period_ns;
}

static void count(struct stack_job *j, const struct stack_proc *p, struct stack_thread *t,
		  int64_t now_ns, const struct stack_row *row, bool held)
{
	struct stack_row r = *row;

	r.entity = t->entity;
	r.count = 1;
	r.weight_ns = weight_of(p, t, now_ns);
	t->seen_ns = now_ns;
	t->row = r;
	j->counts.samples++;
	if (r.flags & STACK_UNPROVEN)
		j->counts.unproven++;
	else if (r.flags & STACK_PARTIAL)
		j->counts.partial++;
	else if (r.flags & STACK_PYTHON && !held)
		j->counts.complete++;
	stack_tally_add(j->tally, &r);
}

static uint64_t frame_key(const struct py_frame *f)
{
	return (uint64_t)f->code << 32 | (uint32_t)f->offset;
}

/* Place of a frame, resolved on first sight. */
static uint32_t place_of(struct stack_job *j, struct stack_proc *p, const struct py_frame *f)
{
	uint64_t key = frame_key(f);
	struct py_function fn;
	struct place place;
	size_t known;
	uint32_t id;

	if (map_get(&p->places, key, &id))
		return id;
	if (!py_code(p->py, f->code, &fn))
		return 0;
	place = (struct place){ .kind = PLACE_PYTHON,
				.line = py_line(p->py, f->code, f->offset),
				.function = fn.name,
				.file = fn.file,
				.source = "" };
	known = j->tally->book.places.n;
	id = stack_book_place(&j->tally->book, &place);
	if (id && !map_put(&p->places, key, id))
		return id;
	if (id > known)
		source_text_ask(j->source, id, p->pid, p->started_ns, fn.file, place.line);
	return id;
}

/* Where frames in the middle of a stack are left out: not in any file. */
static uint32_t gap_place(struct stack_job *j)
{
	return stack_book_place(
	    &j->tally->book,
	    &(struct place){ .kind = PLACE_PYTHON, .function = "[...]", .file = "", .source = "" });
}

/* Outermost first. Of a stack that is too deep the middle is left out, and a place says so. */
static uint32_t deep_node_of(struct stack_job *j, struct stack_proc *p, const struct py_thread *t,
			     uint8_t *flags)
{
	const struct py_frame *f = p->stacks.frames.v + t->first;
	uint32_t node = 0, next;

	for (uint32_t i = 0; i < t->n; i++) {
		bool gap = i == HALF_DEPTH;

		next = stack_book_node(&j->tally->book, node,
				       gap ? gap_place(j) : place_of(j, p, &f[t->n - 1 - i]));
		i = gap ? t->n - HALF_DEPTH - 1 : i;
		if (!next) {
			*flags |= STACK_PARTIAL;
			break;
		}
		node = next;
	}
	return node;
}

/* As far as it is the same as at the last look, its nodes are known. */
static uint32_t node_of(struct stack_job *j, struct stack_proc *p, struct stack_thread *thread,
			const struct py_thread *t, uint8_t *flags)
{
	const struct py_frame *f = p->stacks.frames.v + t->first;
	uint32_t node = 0, next, i = 0;

	if (t->n > 2 * HALF_DEPTH)
		return deep_node_of(j, p, t, flags);
	for (; i < t->n && i < thread->steps.n; i++) {
		if (thread->steps.v[i].frame != frame_key(&f[t->n - 1 - i]))
			break;
		node = thread->steps.v[i].node;
	}
	thread->steps.n = i;
	for (; i < t->n; i++) {
		struct stack_step *step = thread->steps.n == i ? vec_push(&thread->steps) : NULL;

		next = stack_book_node(&j->tally->book, node, place_of(j, p, &f[t->n - 1 - i]));
		if (!next) {
			thread->steps.n = thread->steps.n < i ? thread->steps.n : i;
			*flags |= STACK_PARTIAL;
			break;
		}
		node = next;
		if (step)
			*step = (struct stack_step){ frame_key(&f[t->n - 1 - i]), node };
	}
	return node;
}

static uint32_t peer_of(const struct stack_job *j, pid_t pid)
{
	uint32_t at;

	return pid > 0 && map_get(&j->by_pid, (uint64_t)pid, &at) ? j->procs.v[at]->entity : 0;
}

/* `py`: its Python stack, NULL: none. `leaf`: where it runs, NULL: not asked. */
static void see_thread(struct stack_job *j, struct stack_proc *p, struct stack_thread *t,
		       const struct py_thread *py, const struct stack_leaf *leaf, int64_t now_ns)
{
	struct stack_row row = { .kind = (uint8_t)t->state.kind, .on = (uint8_t)t->state.on };

	row.peer = peer_of(j, t->state.peer);
	if (py) {
		row.flags = STACK_PYTHON | (py->holds_gil ? STACK_GIL : 0) |
			    (py->holds_gil && p->stacks.collecting ? STACK_GC : 0) |
			    (py->status == PY_PARTIAL ? STACK_PARTIAL : 0) |
			    (py->status == PY_UNPROVEN ? STACK_UNPROVEN : 0);
		row.node = node_of(j, p, t, py, &row.flags);
	}
	if (leaf)
		stack_callers_sampled(j, p, leaf, &row);
	else
		stack_callers_add(j, p, t, now_ns, &row);
	/* Taken off the CPU in the middle of what it does: a sample of what it does as good as any. Who was
	 * just woken stands where it waited, and has no GIL. */
	if (row.kind == WAIT_RUNNABLE && (t->state.preempted || row.flags & STACK_GIL))
		row.kind = WAIT_RUNNING;
	count(j, p, t, now_ns, &row, false);
}

/* Both lists are in the order of birth or nearly so: the search begins where the last one ended. */
static const struct py_thread *python_of(const struct stack_proc *p, pid_t tid, size_t *hint)
{
	size_t n = p->py ? p->stacks.threads.n : 0;

	for (size_t i = 0; i < n; i++) {
		size_t at = (*hint + i) % n;

		if (p->stacks.threads.v[at].tid == tid) {
			*hint = at + 1;
			return &p->stacks.threads.v[at];
		}
	}
	return NULL;
}

static void read_python(struct stack_job *j, struct stack_proc *p, int64_t now_ns)
{
	int r = py_sample(p->py, &p->stacks);

	if (r == 0)
		return;
	if (r == -ESRCH) {
		stack_job_lost(j, p, now_ns);
		return;
	}
	stack_job_unlearn(j, p);
	p->try_ns = now_ns;
}

static bool look_at(struct stack_proc *p, struct stack_thread *t, int64_t now_ns)
{
	int r = p->wait ? wait_see(p->wait, t->tid, now_ns, &t->state) : -ENOMEM;

	if (r < 0)
		t->state = (struct wait_state){ .kind = WAIT_UNKNOWN };
	p->refused = t->state.by != WAIT_BY_SYSCALL;
	t->ran = on_cpu(t->state.kind);
	t->ran_ns = t->ran ? now_ns : t->ran_ns;
	t->fresh = false;
	return r != -ESRCH;
}

/* Has nothing of the process run since the last look? Its clock stands still between ticks of the
 * kernel even while it runs, so the first thread's call is asked too. */
static bool stands_still(struct stack_proc *p, int64_t now_ns, bool *ret_first_alive)
{
	struct stack_thread *first = &p->threads.v[0];
	struct wait_state before = first->state;
	bool fresh = first->fresh;
	int64_t cpu = clock_pid_cpu_ns(p->pid);
	bool same = cpu >= 0 && cpu == p->cpu_ns && !fresh;

	p->cpu_ns = cpu;
	/* Other threads may go on without the first. */
	*ret_first_alive = look_at(p, first, now_ns);
	return same && *ret_first_alive && !on_cpu(before.kind) &&
	       before.kind == first->state.kind && before.pc == first->state.pc &&
	       before.sp == first->state.sp;
}

static void hold(struct stack_job *j, struct stack_proc *p, int64_t now_ns)
{
	for (size_t i = 0; i < p->threads.n; i++) {
		struct stack_thread *t = &p->threads.v[i];
		struct stack_row row = t->row;

		if (!t->seen_ns)
			continue;
		count(j, p, t, now_ns, &row, true);
	}
}

/* Of many threads most do nothing, and asking each what it waits for is what many threads cost: the call it
 * is in is told under the lock of its run queue. So one that waited is asked whether it has been on a CPU
 * since (1 us), and all about it only now and then: one that was woken and is queued has not. */
static bool rests(const struct stack_job *j, struct stack_proc *p, struct stack_thread *t, size_t i)
{
	return i && p->threads.n > MANY_THREADS && t->seen_ns && !t->fresh && !t->ran &&
	       !t->nameless && p->wait && !(t->row.flags & (STACK_PARTIAL | STACK_UNPROVEN)) &&
	       (j->turn + i) % ASK_EVERY && wait_stands(p->wait, t->tid);
}

static void look(struct stack_job *j, struct stack_proc *p, int64_t now_ns)
{
	size_t hint = 0;
	bool first_alive, still = stands_still(p, now_ns, &first_alive);

	if (p->cpu_ns < 0)
		return;
	/* A new thread, or one seen on a CPU, is worth a look whatever the clock says; so is one whose
	 * callers will have their names by now. */
	still = still && !p->threads.v[0].nameless;
	for (size_t i = 1; i < p->threads.n && still; i++)
		still = !p->threads.v[i].fresh && !p->threads.v[i].ran && !p->threads.v[i].nameless;
	if (still) {
		hold(j, p, now_ns);
		return;
	}
	if (j->perf && p->leads && !p->asked_perf) {
		/* So that it is known whether that is permitted, though nothing ever runs for long. */
		p->threads.v[0].watched = native_perf_watch(j->perf, p->threads.v[0].tid) == 0;
		p->asked_perf = true;
	}
	stack_leaf_begin(j, p);
	if (p->py)
		read_python(j, p, now_ns);
	stack_leaf_end(j, p);
	for (size_t i = 0; i < p->threads.n; i++) {
		struct stack_thread *t = &p->threads.v[i];
		struct stack_row row = t->row;

		if (rests(j, p, t, i))
			count(j, p, t, now_ns, &row, true);
		else if (i == 0 ? first_alive : look_at(p, t, now_ns))
			see_thread(j, p, t, python_of(p, t->tid, &hint), stack_leaf_of(j, t),
				   now_ns);
	}
}

/* Now and then: descriptors of threads that do nothing are for others. */
static void sweep(struct stack_job *j, struct stack_proc *p, int64_t now_ns)
{
	if (p->wait)
		wait_sweep(p->wait);
	for (size_t i = 0; j->perf && i < p->threads.n; i++) {
		struct stack_thread *t = &p->threads.v[i];

		if (!t->watched || now_ns - t->ran_ns < SWEEP_S * NS_PER_S)
			continue;
		native_perf_forget(j->perf, t->tid);
		t->watched = false;
	}
}

static void tell_pids(struct stack_job *j)
{
	pid_t pids[WAIT_JOB_MAX];
	size_t n = 0;

	for (size_t i = 0; i < j->procs.n && n < WAIT_JOB_MAX; i++)
		pids[n++] = j->procs.v[i]->pid;
	wait_job_set(j->waits, pids, n);
	j->pids_changed = false;
}

static bool its_turn(const struct stack_job *j, struct stack_proc *p, size_t place)
{
	unsigned stride = p->leads || p->looks < FIRST_LOOKS ? 1 : j->stride;

	if ((j->turn + place) % stride != 0)
		return false;
	p->period_before_ns = p->period_ns;
	p->period_ns = j->period_ns * stride;
	p->looks += p->py && p->looks < FIRST_LOOKS;
	return true;
}

/* What was found in source files is places, too, which no stack is in. */
static void take_notes(struct stack_job *j)
{
	struct source_note note;
	char *file;

	while (source_text_note(j->source, &file, &note)) {
		(void)stack_book_place(&j->tally->book, &(struct place){ .kind = note.kind,
									 .line = note.line,
									 .function = note.function,
									 .file = file,
									 .source = note.text });
		free(file);
	}
}

void stack_job_look(struct stack_job *j, int64_t now_ns)
{
	bool due = now_ns - j->swept_ns > SWEEP_S * NS_PER_S;
	char text[SOURCE_LINE_MAX];
	uint32_t place;

	j->turn++;
	j->asked = false;
	stack_lead_watch(j, now_ns);
	if (j->pids_changed)
		tell_pids(j);
	for (size_t i = 0; i < j->procs.n; i++) {
		struct stack_proc *p = j->procs.v[i];

		if (!p->gone && now_ns >= p->from_ns && p->threads.n && its_turn(j, p, i))
			look(j, p, now_ns);
		if (due)
			sweep(j, p, now_ns);
	}
	if (due)
		j->swept_ns = now_ns;
	while (source_text_next(j->source, &place, text))
		stack_tally_source(j->tally, place, text);
	take_notes(j);
}

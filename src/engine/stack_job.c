/* SPDX-License-Identifier: MIT */
#include "engine/stack_job.h"

#include "base/clock.h"
#include "base/err.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

enum {
	/* An interpreter is up some 10 ms after exec; one that comes late (embedded, exec'ed by a
	 * wrapper that is told as a change) is looked for ever more rarely. */
	FIRST_TRY_MS = 30,
	LAST_TRY_MS = 30000,
	REFUSED_TRY_MS = 20000,
	DESCRIPTORS_LEAST = 64,
	DESCRIPTORS_MOST = 3000,
	PERF_THREADS = 32,
	COST_SHARE = 200, /* at most half a per cent of the time for one process that is none */
	ATTACH_MS = 2,    /* for finding interpreters, in one look */
};

/* A quarter of what may be open: the rest is for the sampler, the record, and readers of memory. */
static size_t descriptors(void)
{
	struct rlimit limit;
	size_t n;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY)
		return DESCRIPTORS_MOST;
	n = (size_t)limit.rlim_cur / 4;
	return n > DESCRIPTORS_MOST ? DESCRIPTORS_MOST : n < DESCRIPTORS_LEAST ? 0 : n;
}

/* Each takes a descriptor: where those are few the record needs them more. */
static size_t perf_threads(void)
{
	size_t n = descriptors() / 8;

	return n < PERF_THREADS ? n : PERF_THREADS;
}

int stack_job_open(struct stack_job *j, struct stack_tally *tally, double hz)
{
	*j = (struct stack_job){ .tally = tally, .period_ns = (int64_t)(1e9 / hz), .stride = 1 };
	if (wait_job_open(&j->waits, descriptors()) < 0)
		return -ENOMEM;
	if (native_shared_open(&j->shared) < 0)
		j->shared = NULL;
	if (native_perf_open(&j->perf, 0, perf_threads()) < 0)
		j->perf = NULL;
	j->source = source_text_start();
	return 0;
}

static void proc_free(struct stack_proc *p)
{
	if (p->py)
		py_detach(p->py);
	if (p->wait)
		wait_close(p->wait);
	if (p->native)
		native_close(p->native);
	py_stacks_done(&p->stacks);
	map_done(&p->places);
	vec_done(&p->threads);
	free(p);
}

void stack_job_close(struct stack_job *j)
{
	for (size_t i = 0; i < j->procs.n; i++)
		proc_free(j->procs.v[i]);
	native_shared_close(j->shared);
	vec_done(&j->procs);
	map_done(&j->by_entity);
	map_done(&j->by_pid);
	if (j->waits)
		wait_job_close(j->waits);
	native_perf_close(j->perf);
	py_stacks_done(&j->again);
	source_text_stop(j->source);
}

static struct stack_proc *proc_of(const struct stack_job *j, uint32_t entity)
{
	uint32_t at;

	return map_get(&j->by_entity, entity, &at) ? j->procs.v[at] : NULL;
}

/* Who leads may change with every birth and end. */
static void find_leaders(struct stack_job *j)
{
	for (size_t i = 0; i < j->procs.n; i++)
		j->procs.v[i]->children = 0;
	for (size_t i = 0; i < j->procs.n; i++) {
		struct stack_proc *parent = proc_of(j, j->procs.v[i]->parent);

		if (parent)
			parent->children++;
	}
	j->followers = 0;
	for (size_t i = 0; i < j->procs.n; i++) {
		struct stack_proc *p = j->procs.v[i];

		p->leads = p->children > 0 || !proc_of(j, p->parent);
		j->followers += !p->leads;
	}
}

static void proc_try_soon(struct stack_proc *p)
{
	p->again_ns = FIRST_TRY_MS * NS_PER_MS;
	p->try_ns = 0;
}

static void proc_add(struct stack_job *j, const struct life *l, int64_t wall_ns, int64_t boot_ns)
{
	struct stack_proc *p = calloc(1, sizeof(*p)), **slot;

	slot = p ? vec_push(&j->procs) : NULL;
	if (!slot || !map_put(&j->by_entity, l->id, (uint32_t)(j->procs.n - 1)) ||
	    !map_put(&j->by_pid, (uint64_t)l->key, (uint32_t)(j->procs.n - 1))) {
		j->procs.n -= slot ? 1 : 0;
		map_del(&j->by_entity, l->id);
		free(p);
		return;
	}
	*slot = p;
	p->pid = (pid_t)l->key;
	p->entity = l->id;
	p->parent = l->parent;
	p->started_ns = wall_ns - boot_ns + l->start_ns;
	p->cpu_ns = -1;
	proc_try_soon(p);
	if (wait_open(&p->wait, j->waits, p->pid) < 0)
		p->wait = NULL;
	if (native_open(&p->native, j->shared, p->pid) < 0)
		p->native = NULL;
	j->pids_changed = true;
	find_leaders(j);
}

static void count_gone(struct stack_job *j, const struct py_process *py)
{
	struct py_counts c = py_counts(py);

	j->gone_counts.calls += c.calls;
	j->gone_counts.retries += c.retries;
}

static void proc_drop(struct stack_job *j, struct stack_proc *p)
{
	uint32_t at = 0, by_pid, last = (uint32_t)j->procs.n - 1;

	if (!map_get(&j->by_entity, p->entity, &at))
		return;
	for (size_t i = 0; j->perf && i < p->threads.n; i++)
		if (p->threads.v[i].watched)
			native_perf_forget(j->perf, p->threads.v[i].tid);
	if (p->py)
		count_gone(j, p->py);
	map_del(&j->by_entity, p->entity);
	/* Its number may be another's by now. */
	if (map_get(&j->by_pid, (uint64_t)p->pid, &by_pid) && by_pid == at)
		map_del(&j->by_pid, (uint64_t)p->pid);
	j->procs.v[at] = j->procs.v[last];
	j->procs.n--;
	if (at != last) {
		map_put(&j->by_entity, j->procs.v[at]->entity, at);
		map_put(&j->by_pid, (uint64_t)j->procs.v[at]->pid, at);
	}
	proc_free(p);
	j->pids_changed = true;
	find_leaders(j);
}

/* Another program in the same process: what we know of its memory is void. */
static void proc_exec(struct stack_job *j, struct stack_proc *p)
{
	if (p->py) {
		count_gone(j, p->py);
		py_detach(p->py);
	}
	if (p->native)
		native_close(p->native);
	p->py = NULL;
	p->native = NULL;
	if (native_open(&p->native, j->shared, p->pid) < 0)
		p->native = NULL;
	map_clear(&p->places);
	p->access = p->told = ACCESS_UNKNOWN;
	p->gone = false;
	proc_try_soon(p);
}

static void thread_add(struct stack_proc *p, const struct life *l)
{
	struct stack_thread *t = vec_push(&p->threads);

	if (t)
		*t = (struct stack_thread){ .tid = (pid_t)l->key, .entity = l->id, .fresh = true };
}

static void thread_drop(struct stack_job *j, struct stack_proc *p, uint32_t entity)
{
	for (size_t i = 0; i < p->threads.n; i++) {
		struct stack_thread *t = &p->threads.v[i];

		if (t->entity != entity)
			continue;
		if (t->watched)
			native_perf_forget(j->perf, t->tid);
		memmove(t, t + 1, (p->threads.n - i - 1) * sizeof(*t));
		p->threads.n--;
		return;
	}
}

void stack_job_life(struct stack_job *j, const struct life *l, int64_t wall_ns, int64_t boot_ns)
{
	struct stack_proc *p;

	if (l->kind == ENTITY_PROC) {
		p = proc_of(j, l->id);
		if (l->change == LIFE_BORN && !p)
			proc_add(j, l, wall_ns, boot_ns);
		else if (l->change == LIFE_GONE && p)
			proc_drop(j, p);
		else if (l->change == LIFE_CHANGED && p)
			proc_exec(j, p);
	} else if (l->kind == ENTITY_THREAD) {
		p = proc_of(j, l->parent);
		if (p && l->change == LIFE_BORN)
			thread_add(p, l);
		else if (p && l->change == LIFE_GONE)
			thread_drop(j, p, l->id);
	}
}

static void set_gils(struct stack_proc *p)
{
	struct py_range gils[WAIT_GILS_MAX];
	size_t n = 0;

	while (n < WAIT_GILS_MAX && py_gil(p->py, (uint32_t)n, &gils[n]))
		n++;
	if (p->wait)
		wait_set_gils(p->wait, gils, n);
}

static void attached(struct stack_proc *p, int result, const struct err *e, int64_t now_ns)
{
	switch (result) {
	case 0:
		p->access = ACCESS_PYTHON;
		p->cpu_ns = -1; /* what was seen without its Python stacks holds no longer */
		set_gils(p);
		return;
	case -ENOENT:
	case -EAGAIN:
		if (p->access != ACCESS_PYTHON)
			p->access = ACCESS_WAITS;
		break;
	case -EPERM:
	case -EACCES:
		p->access = ACCESS_REFUSED;
		break;
	case -ESRCH:
		p->gone = true;
		break;
	default:
		p->access = ACCESS_FOREIGN;
		break;
	}
	if (p->access == ACCESS_REFUSED || p->access == ACCESS_FOREIGN) {
		snprintf(p->why, sizeof(p->why), "%s%s%s", e->text, e->hint[0] ? "; " : "",
			 e->hint);
		p->again_ns = REFUSED_TRY_MS * NS_PER_MS;
	}
	p->try_ns = now_ns + p->again_ns;
	/* One that starts will soon be there; where there is none, none may ever come. */
	if (p->again_ns < LAST_TRY_MS * NS_PER_MS)
		p->again_ns = result == -EAGAIN ? p->again_ns * 3 / 2 : p->again_ns * 3;
}

/* Who has waited longest: those that were never tried first. */
static struct stack_proc *next_to_try(const struct stack_job *j, int64_t now_ns)
{
	struct stack_proc *p = NULL;

	for (size_t i = 0; i < j->procs.n; i++) {
		struct stack_proc *x = j->procs.v[i];

		if (!x->py && !x->gone && now_ns >= x->try_ns && (!p || x->try_ns < p->try_ns))
			p = x;
	}
	return p;
}

void stack_job_attach(struct stack_job *j, int64_t now_ns)
{
	int64_t until = now_ns + ATTACH_MS * NS_PER_MS;
	struct stack_proc *p;

	do {
		struct err e = { 0 };
		const struct stack_proc *parent;
		int64_t begun, cost;
		int result;

		p = next_to_try(j, now_ns);
		if (!p)
			return;
		parent = proc_of(j, p->parent);
		begun = clock_mono_ns();
		result = py_attach(&p->py, p->pid, parent ? parent->py : NULL, &e);
		attached(p, result, &e, now_ns);
		/* Dear where a process has very many mappings: then rarely, whatever the turn. */
		cost = clock_mono_ns() - begun;
		if (p->try_ns < now_ns + COST_SHARE * cost)
			p->try_ns = now_ns + COST_SHARE * cost;
	} while (clock_mono_ns() < until);
}

static void tell_python(struct stack_proc *p, const struct err *no_leaf, struct frame *f)
{
	uint32_t v = p->py ? py_version(p->py) : 0;

	frame_event(f, EVENT_STACKS, p->entity, 2, "Python %u.%u: stacks are read%s%s%s%s", v >> 24,
		    v >> 16 & 255, no_leaf->code ? "; no native leaf: " : "", no_leaf->text,
		    no_leaf->hint[0] ? "; " : "", no_leaf->hint);
}

void stack_job_tell(struct stack_job *j, struct frame *f)
{
	struct err no_leaf = { 0 };

	(void)native_perf_refused(j->perf, &no_leaf);
	for (size_t i = 0; i < j->procs.n; i++) {
		struct stack_proc *p = j->procs.v[i];
		bool no_leaf_news = no_leaf.code && !p->told_no_leaf;

		if (p->access == p->told && !(p->access == ACCESS_PYTHON && no_leaf_news))
			continue;
		p->told = p->access;
		p->told_no_leaf = no_leaf.code != 0;
		if (p->access == ACCESS_PYTHON)
			tell_python(p, &no_leaf, f);
		else if (p->access == ACCESS_REFUSED || p->access == ACCESS_FOREIGN)
			frame_event(f, EVENT_STACKS, p->entity, 1, "%s", p->why);
	}
}

int stack_job_level(const struct stack_job *j)
{
	int level = 1;

	for (size_t i = 0; i < j->procs.n; i++)
		if (j->procs.v[i]->access == ACCESS_PYTHON ||
		    (j->procs.v[i]->access == ACCESS_WAITS && !j->procs.v[i]->refused))
			level = 2;
	return level == 2 && j->joined ? 3 : level;
}

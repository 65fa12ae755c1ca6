/* SPDX-License-Identifier: MIT */
#include "engine/stack_job.h"

#include "base/clock.h"
#include "base/err.h"
#include "engine/stack_lead.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

enum {
	/* Most children are gone soon (shells, compilers, what a shell starts): one that is younger is not
	 * looked at. Births are told each 100 ms, so a worker is seen within 0.3 s of its own. */
	CHILD_AGE_MS = 200,
	EXEC_AGE_MS = 100, /* told on average 50 ms late */
	/* An interpreter is up some 10 ms after exec; one that comes late (embedded, exec'ed by a
	 * wrapper that is told as a change) is looked for ever more rarely. */
	FIRST_TRY_MS = 30,
	LAST_TRY_MS = 30000,
	REFUSED_TRY_MS = 20000,
	YOUNG_MS = 3000,
	YOUNG_TRY_MS = 600,
	DESCRIPTORS_LEAST = 64,
	DESCRIPTORS_MOST = 3000,
	PERF_THREADS = 32,
	COST_SHARE = 200, /* at most half a per cent of the time for one process that is none */
	ATTACH_MS = 2,    /* for finding interpreters, in one look */
	/* CPU time for finding interpreters at once: of 64 loader workers, say. Above that, half as
	 * much again as there is for stacks. */
	ATTACH_BURST_MS = 120,
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
	j->purse.left_ns = j->purse.most_ns = ATTACH_BURST_MS * NS_PER_MS;
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
	for (size_t i = 0; i < p->threads.n; i++)
		vec_done(&p->threads.v[i].steps);
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

static void proc_try_at(struct stack_proc *p, int64_t at_ns)
{
	p->again_ns = FIRST_TRY_MS * NS_PER_MS;
	p->try_ns = p->from_ns = at_ns;
}

/* When a process of that age is to be looked at: the program itself at once. */
static int64_t old_enough_ns(const struct stack_job *j, const struct stack_proc *p, int64_t age_ns)
{
	int64_t least = CHILD_AGE_MS * NS_PER_MS;

	age_ns = age_ns < 0 ? 0 : age_ns;
	return proc_of(j, p->parent) && age_ns < least ? clock_mono_ns() + least - age_ns : 0;
}

static void open_native(struct stack_job *j, struct stack_proc *p)
{
	if (p->native)
		native_close(p->native);
	if (native_open(&p->native, j->shared, p->via) < 0)
		p->native = NULL;
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
	p->pid = p->via = (pid_t)l->key;
	p->entity = l->id;
	p->parent = l->parent;
	p->started_ns = wall_ns - boot_ns + l->start_ns;
	p->cpu_ns = -1;
	proc_try_at(p, old_enough_ns(j, p, boot_ns - l->start_ns));
	if (wait_open(&p->wait, j->waits, p->pid) < 0)
		p->wait = NULL;
	open_native(j, p);
	j->pids_changed = true;
	stack_lead_find(j);
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
	stack_lead_find(j);
}

void stack_job_unlearn(struct stack_job *j, struct stack_proc *p)
{
	if (p->py) {
		count_gone(j, p->py);
		py_detach(p->py);
	}
	p->py = NULL;
	map_clear(&p->places);
	for (size_t i = 0; i < p->threads.n; i++)
		p->threads.v[i].steps.n = 0;
	p->stacks.threads.n = p->stacks.frames.n = 0;
	p->access = p->told = ACCESS_UNKNOWN;
}

/* A thread after the one that was read by, in the order of birth; 0: there is none but the first. */
static pid_t next_via(const struct stack_proc *p)
{
	pid_t next = 0;
	bool behind = p->via == p->pid;

	for (size_t i = 1; i < p->threads.n && !(behind && next); i++) {
		next = behind ? p->threads.v[i].tid : next;
		behind |= p->threads.v[i].tid == p->via;
	}
	/* Who was last, or is not among them any more: the first of them all. */
	return next ? next : p->threads.n > 1 ? p->threads.v[1].tid : 0;
}

/* A first thread that ends before the others takes the memory of the process from its number, and from no
 * other thread's. */
void stack_job_lost(struct stack_job *j, struct stack_proc *p, int64_t now_ns)
{
	pid_t via = next_via(p);
	enum stack_access told = p->told;

	p->gone = !via || via == p->via;
	stack_job_unlearn(j, p);
	if (p->gone)
		return;
	p->told = told; /* it is the same Python */
	p->via = via;
	p->try_ns = now_ns;
	open_native(j, p);
}

/* Another program in the same process: what we know of its memory is void. */
static void proc_exec(struct stack_job *j, struct stack_proc *p)
{
	stack_job_unlearn(j, p);
	p->via = p->pid;
	p->gone = false;
	open_native(j, p);
	proc_try_at(p, proc_of(j, p->parent) ? clock_mono_ns() + EXEC_AGE_MS * NS_PER_MS : 0);
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
		vec_done(&t->steps);
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

static void attached(struct stack_job *j, struct stack_proc *p, int result, const struct err *e,
		     int64_t now_ns)
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
		stack_job_lost(j, p, now_ns + FIRST_TRY_MS * NS_PER_MS);
		return;
	default:
		p->access = ACCESS_FOREIGN;
		break;
	}
	if (p->access == ACCESS_REFUSED || p->access == ACCESS_FOREIGN) {
		snprintf(p->why, sizeof(p->why), "%s%s%s", e->text, e->hint[0] ? "; " : "",
			 e->hint);
		/* Under Yama a worker lets us in some moments after its birth (prctl of the package). */
		p->again_ns =
		    (p->access == ACCESS_REFUSED && now_ns - p->from_ns < YOUNG_MS * NS_PER_MS
			 ? YOUNG_TRY_MS
			 : REFUSED_TRY_MS) *
		    NS_PER_MS;
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

/* Returns what it cost, CPU time. */
static int64_t try_attach(struct stack_job *j, struct stack_proc *p, int64_t now_ns)
{
	const struct stack_proc *parent = proc_of(j, p->parent);
	int64_t begun = clock_thread_cpu_ns(), cost;
	struct err e = { 0 };
	int result;

	/* Many are gone before the sampler tells so; a number without a clock has no process. */
	if (clock_pid_cpu_ns(p->pid) < 0) {
		p->gone = true;
		return 0;
	}
	result = py_attach(&p->py, p->via, parent ? parent->py : NULL, &e);
	attached(j, p, result, &e, now_ns);
	/* Dear where a process has very many mappings: then rarely, whatever the turn. */
	cost = clock_thread_cpu_ns() - begun;
	if (p->try_ns < now_ns + COST_SHARE * cost)
		p->try_ns = now_ns + COST_SHARE * cost;
	return cost;
}

int64_t stack_job_attach(struct stack_job *j, int64_t now_ns, double share)
{
	int64_t spent = 0;
	struct stack_proc *p;

	if (!stack_purse_fill(&j->purse, now_ns, share * 1.5))
		return 0;
	while (spent < ATTACH_MS * NS_PER_MS && (p = next_to_try(j, now_ns)) != NULL)
		spent += try_attach(j, p, now_ns);
	j->purse.left_ns -= spent;
	return spent;
}

int64_t stack_job_next_try(const struct stack_job *j)
{
	int64_t at = INT64_MAX;

	for (size_t i = 0; i < j->procs.n && j->purse.left_ns > 0; i++) {
		const struct stack_proc *x = j->procs.v[i];

		if (!x->py && !x->gone && x->try_ns < at)
			at = x->try_ns;
	}
	return at;
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

		stack_leaf_tell(j, p, f);
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

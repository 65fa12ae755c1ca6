/* SPDX-License-Identifier: MIT */
#include "stack/wait/wait.h"

#include "base/auto.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/text.h"
#include "stack/wait/calls.h"
#include "stack/wait/process.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdio.h>

#define TRUST_NS   (250 * NS_PER_MS) /* how long a descriptor is taken to be the same in one wait */
#define REFUSED_NS (5 * NS_PER_S)    /* rights do not change often */
/* An account that did not move for so long is of a thread that is off the CPU: ticks come each 1 to
 * 10 ms (CONFIG_HZ 1000 to 100). Without ticks, once a second. */
#define TICK_NS      (10 * NS_PER_MS)
#define LAZY_TICK_NS (2 * NS_PER_S)

static const char *const file_names[WAIT_FILES] = { "syscall", "schedstat", "stat", "wchan",
						    "status" };

int wait_open(struct wait_process **ret, struct wait_job *j, pid_t pid)
{
	struct wait_process *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->pid = pid;
	p->job = j;
	mem_open(&p->mem, pid);
	*ret = p;
	return 0;
}

static void thread_drop(struct wait_process *p, struct wait_thread *t)
{
	for (int i = 0; i < WAIT_FILES; i++) {
		if (t->fd[i] < 0)
			continue;
		close(t->fd[i]);
		p->job->descriptors++;
	}
	map_del(&p->by_tid, (uint64_t)t->tid);
	t->tid = 0;
}

void wait_close(struct wait_process *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->threads.n; i++)
		if (p->threads.v[i].tid)
			thread_drop(p, &p->threads.v[i]);
	vec_done(&p->threads);
	map_done(&p->by_tid);
	mem_close(&p->mem);
	free(p);
}

void wait_set_gils(struct wait_process *p, const struct py_range *gils, size_t n)
{
	p->gils_n = n < WAIT_GILS_MAX ? n : WAIT_GILS_MAX;
	if (p->gils_n)
		memcpy(p->gils, gils, p->gils_n * sizeof(*gils));
}

void wait_sweep(struct wait_process *p)
{
	for (size_t i = 0; i < p->threads.n; i++) {
		struct wait_thread *t = &p->threads.v[i];

		if (t->tid && !t->seen)
			thread_drop(p, t);
		t->seen = false;
	}
}

enum mem_refusal wait_refusal(const struct wait_process *p, struct err *e)
{
	return mem_refusal(&p->mem, e);
}

static struct wait_thread *free_place(struct wait_process *p)
{
	for (size_t i = 0; i < p->threads.n; i++)
		if (!p->threads.v[i].tid)
			return &p->threads.v[i];
	return vec_push(&p->threads);
}

static struct wait_thread *thread_of(struct wait_process *p, pid_t tid)
{
	struct wait_thread *t;
	uint32_t at;

	if (map_get(&p->by_tid, (uint64_t)tid, &at))
		return &p->threads.v[at];
	t = free_place(p);
	if (!t || !map_put(&p->by_tid, (uint64_t)tid, (uint32_t)(t - p->threads.v)))
		return NULL;
	*t = (struct wait_thread){ .tid = tid, .fd = { -1, -1, -1, -1, -1 } };
	return t;
}

/* A kept descriptor stays with its thread, whoever gets its number next. Length or -errno. */
static ssize_t thread_read(struct wait_process *p, struct wait_thread *t, enum wait_file file,
			   char *text, size_t size)
{
	char path[80];
	ssize_t n;
	int fd = t->fd[file];

	if (fd >= 0)
		return io_pread(fd, text, size);
	snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", (int)p->pid, (int)t->tid,
		 file_names[file]);
	fd = io_open(AT_FDCWD, path);
	if (fd < 0)
		return fd == -ENOENT ? -ESRCH : fd;
	n = io_pread(fd, text, size);
	if (n >= 0 && p->job->descriptors) {
		p->job->descriptors--;
		t->fd[file] = fd;
	} else {
		close(fd);
	}
	return n;
}

static char ask_letter(struct wait_process *p, struct wait_thread *t, struct wait_state *ret)
{
	char text[1024];
	ssize_t n;

	if (ret->letter)
		return ret->letter;
	n = thread_read(p, t, WAIT_F_STAT, text, sizeof(text));
	ret->letter = n > 0 ? wait_parse_letter(text, (size_t)n) : 0;
	return ret->letter;
}

/* WAIT_UNKNOWN: it does not tell, or may not be asked. The name, if any, is left in `name`. */
static enum wait_kind ask_wchan(struct wait_process *p, struct wait_thread *t, char *name,
				size_t size)
{
	ssize_t n = thread_read(p, t, WAIT_F_WCHAN, name, size);

	name[n > 0 ? n : 0] = 0;
	if (strcmp(name, "0") == 0)
		name[0] = 0;
	return n > 0 ? wait_wchan_kind(name, (size_t)n) : WAIT_UNKNOWN;
}

/* What is wanted stands at its end, behind 1.4 KB: the kernel gives all of it in one call. */
static ssize_t read_status(struct wait_process *p, struct wait_thread *t, char *text, size_t size)
{
	int fd = t->fd[WAIT_F_STATUS];
	ssize_t n;

	if (fd < 0)
		return thread_read(p, t, WAIT_F_STATUS, text, size);
	n = pread(fd, text, size - 1, 0);
	if (n >= 0)
		text[n] = '\0';
	return n < 0 ? -errno : n;
}

/* Running or queued, by how often it was put on and taken off a CPU (7 us). The two are read a moment
 * apart, so they may be a whole switch apart: then they tell nothing. */
static enum wait_kind cpu_kind_now(struct wait_process *p, struct wait_thread *t,
				   struct wait_state *s)
{
	struct wait_switches off;
	char text[4096];
	ssize_t n;

	if (!s->slices)
		return WAIT_UNKNOWN;
	n = read_status(p, t, text, sizeof(text));
	if (n <= 0 || !wait_parse_switches(text, (size_t)n, &off))
		return WAIT_UNKNOWN;
	s->preempted = t->left_known && t->left == off.left;
	t->left = off.left;
	t->left_known = true;
	return s->slices == off.left + off.taken + 1 ? WAIT_RUNNING
	       : s->slices == off.left + off.taken   ? WAIT_RUNNABLE
						     : WAIT_UNKNOWN;
}

/* Running or queued, by what was charged since the last look. */
static enum wait_kind cpu_kind_since(const struct wait_process *p, const struct wait_thread *t,
				     int64_t now_ns, const struct wait_state *s)
{
	int64_t tick = p->job->lazy_ticks ? LAZY_TICK_NS : TICK_NS;
	uint64_t run, queue;

	if (!t->known || !s->has_sched || s->run_ns < t->run || s->queue_ns < t->queue)
		return WAIT_RUNNING;
	run = s->run_ns - t->run;
	queue = s->queue_ns - t->queue;
	if (run == 0 && queue == 0 && t->cpu) /* no news */
		return now_ns - t->moved_ns >= tick ? WAIT_RUNNABLE : t->cpu;
	return queue > run ? WAIT_RUNNABLE : WAIT_RUNNING;
}

static enum wait_kind cpu_kind(struct wait_process *p, struct wait_thread *t, int64_t now_ns,
			       struct wait_state *s)
{
	enum wait_kind kind = cpu_kind_now(p, t, s);

	return kind != WAIT_UNKNOWN ? kind : cpu_kind_since(p, t, now_ns, s);
}

static bool same_call(const struct wait_call *a, const struct wait_call *b)
{
	return a->nr == b->nr && a->sp == b->sp && a->pc == b->pc &&
	       memcmp(a->arg, b->arg, sizeof(a->arg)) == 0;
}

static bool in_gil(const struct wait_process *p, uint64_t at)
{
	for (size_t i = 0; i < p->gils_n; i++)
		if (at >= p->gils[i].start && at < p->gils[i].end)
			return true;
	return false;
}

static void tell_futex(const struct wait_process *p, uint64_t at, bool shared,
		       struct wait_state *ret)
{
	ret->kind = in_gil(p, at) ? WAIT_GIL : WAIT_LOCK;
	if (ret->kind == WAIT_LOCK)
		/* glibc waits for the end of a thread on a shared one, too. */
		snprintf(ret->what, sizeof(ret->what), "%s at 0x%llx",
			 shared ? "shared futex" : "futex", (unsigned long long)at);
}

/* A call on a file: which, and whether storage has it. FIFOs have paths like files. */
static void tell_fd(struct wait_process *p, struct wait_thread *t, uint64_t fd, int64_t now_ns,
		    int64_t max_age, struct wait_state *ret)
{
	const struct wait_fd *f =
	    fd <= INT32_MAX ? wait_fd_get(p, (int64_t)fd, now_ns, max_age) : NULL;
	enum wait_kind kind;
	char name[64];

	ret->fd = fd <= INT32_MAX ? (int32_t)fd : -1;
	ret->kind = WAIT_OTHER;
	if (f)
		wait_fd_tell(p, f, now_ns, ret);
	if (ret->kind != WAIT_FILE && ret->kind != WAIT_OTHER)
		return;
	kind = ask_wchan(p, t, name, sizeof(name));
	if (kind == WAIT_PIPE || kind == WAIT_TERMINAL || kind == WAIT_GPU_DRIVER ||
	    kind == WAIT_SOCKET || kind == WAIT_PAGE_FAULT)
		ret->kind = kind;
	else if (ask_letter(p, t, ret) == 'D' && ret->kind == WAIT_FILE)
		ret->kind = WAIT_DISK;
}

/* The opening of a FIFO waits for somebody to open its other end. */
static void tell_path(struct wait_process *p, struct wait_thread *t, struct wait_state *ret)
{
	char name[64];

	ret->kind = ask_wchan(p, t, name, sizeof(name)) == WAIT_PIPE ? WAIT_PIPE : WAIT_FILE;
	if (ret->kind == WAIT_FILE && ask_letter(p, t, ret) == 'D')
		ret->kind = WAIT_DISK;
}

static void tell_child(const struct wait_call *c, enum call_shape shape, struct wait_state *ret)
{
	int64_t pid = 0;

	ret->kind = WAIT_CHILD;
	if (shape == CALL_WAIT4)
		pid = (int32_t)c->arg[0];
	else if (c->arg[0] == 1) /* P_PID */
		pid = (int32_t)c->arg[1];
	if (pid > 0)
		snprintf(ret->what, sizeof(ret->what), "child %d", (int)pid);
}

/* Asleep, and no system call is known: the letter and the kernel's function are all there is. */
static void tell_by_state(struct wait_process *p, struct wait_thread *t, struct wait_state *ret)
{
	char name[64];

	ret->kind = ask_wchan(p, t, name, sizeof(name));
	if (ret->kind == WAIT_UNKNOWN && ask_letter(p, t, ret) == 'D')
		ret->kind = WAIT_DISK;
	text_safe_copy(ret->what, sizeof(ret->what), name);
}

/* Waits with a time limit go on under another number behind a stop: futex, poll() and the sleeps (no
 * others: kernel/futex, fs/select.c, kernel/time). The arguments are still those of the first call. A
 * sleep shows as any function of the kernel's entry. */
static void tell_restart(struct wait_process *p, struct wait_thread *t, const struct wait_call *c,
			 int64_t now_ns, struct wait_state *ret)
{
	tell_by_state(p, t, ret);
	if (ret->kind == WAIT_LOCK) {
		tell_futex(p, c->arg[0], false, ret);
	} else if (ret->kind == WAIT_POLL) {
		ret->what[0] = 0;
		wait_poll_tell(p, c, CALL_POLL, now_ns, 0, ret);
	} else if (ret->kind == WAIT_UNKNOWN && ret->what[0]) {
		ret->what[0] = 0;
		ret->kind = WAIT_SLEEP;
	}
}

/* -1: not in a system call, and yet asleep: a fault. */
static void tell_no_call(struct wait_process *p, struct wait_thread *t, struct wait_state *ret)
{
	char name[64], letter = ask_letter(p, t, ret);

	(void)ask_wchan(p, t, name, sizeof(name));
	text_safe_copy(ret->what, sizeof(ret->what), name);
	if (letter == 'D' || letter == 'S')
		ret->kind = WAIT_PAGE_FAULT;
	else if (letter == 'R') /* it has gone on in the meantime */
		ret->kind = WAIT_RUNNING;
}

static void tell_call(struct wait_process *p, struct wait_thread *t, const struct wait_call *c,
		      int64_t now_ns, struct wait_state *ret)
{
	const struct call_row *row = call_find(CALL_MACHINE_HERE, c->nr);
	int64_t max_age = same_call(c, &t->call) ? TRUST_NS : 0;

	ret->call = row ? row->name : NULL;
	switch (row ? row->shape : CALL_OTHER) {
	case CALL_FD:
		return tell_fd(p, t, c->arg[0], now_ns, max_age, ret);
	case CALL_FILE:
		return tell_path(p, t, ret);
	case CALL_FILELOCK:
		tell_fd(p, t, c->arg[0], now_ns, max_age, ret);
		ret->kind = WAIT_LOCK;
		return;
	case CALL_FUTEX:
		return tell_futex(p, c->arg[0], !(c->arg[1] & FUTEX_PRIVATE_FLAG), ret);
	case CALL_FUTEX2:
		return tell_futex(p, c->arg[0], false, ret);
	case CALL_SEMAPHORE:
		ret->kind = WAIT_LOCK;
		return;
	case CALL_POLL:
	case CALL_SELECT:
	case CALL_EPOLL:
		return wait_poll_tell(p, c, (int)row->shape, now_ns, max_age, ret);
	case CALL_SLEEP:
		ret->kind = WAIT_SLEEP;
		return;
	case CALL_WAIT4:
	case CALL_WAITID:
		return tell_child(c, row->shape, ret);
	case CALL_QUEUE:
		ret->kind = WAIT_QUEUE;
		return;
	case CALL_MEMORY:
		ret->kind = WAIT_PAGE_FAULT;
		return;
	case CALL_RESTART:
		return tell_restart(p, t, c, now_ns, ret);
	case CALL_OTHER:
		ret->kind = WAIT_OTHER;
		(void)ask_letter(p, t, ret);
		return;
	}
}

/* A stopped thread shows the call it was stopped in. A stop is of the whole process, so it is looked
 * for in the first thread, and in the others only while that one is stopped. To stop, a thread that waits
 * has to be on a CPU: who has not been there since it was seen to wait is asked nothing (3 us). */
static bool is_stopped(struct wait_process *p, struct wait_thread *t, struct wait_state *ret)
{
	char letter;

	if (!p->stopped &&
	    (t->tid != p->pid || (t->known && !t->cpu && t->slices && ret->slices == t->slices &&
				  ret->run_ns == t->run)))
		return false;
	letter = ask_letter(p, t, ret);
	if (t->tid == p->pid)
		p->stopped = letter == 'T' || letter == 't';
	return letter == 'T' || letter == 't';
}

static void see_degraded(struct wait_process *p, struct wait_thread *t, int64_t now_ns,
			 struct wait_state *ret)
{
	char letter = ask_letter(p, t, ret);

	ret->by = letter ? WAIT_BY_STATE : WAIT_BY_NOTHING;
	if (letter == 'R')
		ret->kind = cpu_kind(p, t, now_ns, ret);
	else if (letter == 'T' || letter == 't')
		ret->kind = WAIT_STOPPED;
	else if (letter)
		tell_by_state(p, t, ret);
}

/* 0; -ESRCH; other: refused. */
static int see_call(struct wait_process *p, struct wait_thread *t, int64_t now_ns,
		    struct wait_state *ret)
{
	struct wait_call c;
	char text[256];
	ssize_t n = thread_read(p, t, WAIT_F_SYSCALL, text, sizeof(text));

	if (n < 0)
		return (int)n;
	if (!wait_parse_call(text, (size_t)n, &c))
		return -EINVAL;
	ret->by = WAIT_BY_SYSCALL;
	ret->nr = (int32_t)(c.nr <= INT32_MAX ? c.nr : -1);
	ret->pc = c.pc;
	ret->sp = c.sp;
	if (c.running)
		ret->kind = cpu_kind(p, t, now_ns, ret);
	else if (is_stopped(p, t, ret))
		ret->kind = WAIT_STOPPED;
	else if (c.nr < 0)
		tell_no_call(p, t, ret);
	else if (!(c.sp >> 32) &&
		 !(c.pc >> 32)) /* a 32-bit program: its calls have other numbers */
		tell_by_state(p, t, ret);
	else
		tell_call(p, t, &c, now_ns, ret);
	t->call = c;
	return 0;
}

bool wait_stands(struct wait_process *p, pid_t tid)
{
	struct wait_thread *t = thread_of(p, tid);
	struct wait_sched sched;
	char text[128];
	ssize_t n;

	if (!t || !t->known || t->cpu || !t->slices)
		return false;
	n = thread_read(p, t, WAIT_F_SCHED, text, sizeof(text));
	if (n <= 0 || !wait_parse_sched(text, (size_t)n, &sched))
		return false;
	t->seen = true;
	return sched.slices == t->slices && sched.run == t->run;
}

int wait_see(struct wait_process *p, pid_t tid, int64_t now_ns, struct wait_state *ret)
{
	struct wait_thread *t = thread_of(p, tid);
	struct wait_sched sched;
	char text[128];
	ssize_t n;
	bool on_cpu;
	int r = -EACCES;

	*ret = (struct wait_state){ .nr = -1, .fd = -1 };
	if (!t)
		return -ENOMEM;
	t->seen = true;
	n = thread_read(p, t, WAIT_F_SCHED, text, sizeof(text));
	ret->has_sched = n > 0 && wait_parse_sched(text, (size_t)n, &sched);
	if (ret->has_sched) {
		ret->run_ns = sched.run;
		ret->queue_ns = sched.queue;
		ret->slices = sched.slices;
	}
	if (!t->refused_ns || now_ns - t->refused_ns > REFUSED_NS) {
		r = see_call(p, t, now_ns, ret);
		t->refused_ns = r < 0 && r != -ESRCH ? now_ns : 0;
	}
	if (r < 0 && r != -ESRCH)
		see_degraded(p, t, now_ns, ret);
	if (r == -ESRCH || n == -ESRCH || ret->letter == 'Z' || ret->letter == 'X') {
		thread_drop(p, t);
		return -ESRCH;
	}
	on_cpu = ret->kind == WAIT_RUNNING || ret->kind == WAIT_RUNNABLE;
	if (!on_cpu || !t->known || ret->run_ns != t->run)
		t->moved_ns = now_ns;
	t->known = true;
	t->left_known = t->left_known && on_cpu;
	t->cpu = on_cpu ? ret->kind : WAIT_UNKNOWN;
	t->run = ret->run_ns;
	t->queue = ret->queue_ns;
	t->slices = ret->by == WAIT_BY_SYSCALL ? ret->slices : 0;
	return 0;
}

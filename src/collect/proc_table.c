/* SPDX-License-Identifier: MIT
 *
 * Slots of processes: birth, burial, and what the frame is told about them.
 */
#include "base/text.h"
#include "collect/thread.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

void proc_name_copy(char *dst, size_t size, const char *name, size_t n)
{
	if (n >= size)
		n = size - 1;
	memcpy(dst, name, n);
	dst[n] = '\0';
	if (!*dst) {
		dst[0] = '?';
		dst[1] = '\0';
	}
}

/* Names longer than ours hold are compared as far as ours go. */
bool proc_name_same(const char *ours, size_t size, const char *name, size_t n)
{
	if (!n)
		return ours[0] == '?' && !ours[1];
	if (n >= size)
		n = size - 1;
	return memcmp(ours, name, n) == 0 && !ours[n];
}

const char *proc_cmdline(struct jobtree *j, pid_t pid)
{
	ssize_t n = proc_file_once(&j->files, pid, 0, "cmdline", j->page, 4096);

	/* Kernel threads and zombies have none. Programs that rewrite it leave blanks behind. */
	if (n < 0)
		n = 0;
	for (ssize_t i = 0; i < n; i++)
		if (!j->page[i])
			j->page[i] = ' ';
	while (n > 0 && j->page[n - 1] == ' ')
		n--;
	j->page[n] = '\0';
	return j->page;
}

void proc_announce(struct jobtree *j, struct frame *f, const struct proc *p,
		   enum life_change change, const char *detail)
{
	struct life life = { .change = change,
			     .id = p->id,
			     .parent = p->parent_id,
			     .kind = ENTITY_PROC,
			     .key = p->pid };

	if (__builtin_mul_overflow((int64_t)p->start, j->ns_per_tick, &life.start_ns))
		life.start_ns = 0;
	frame_life(f, &life, p->name, detail);
}

/* A free slot, emptied but for the memory of its thread list; -1 without memory. */
static int slot_take(struct jobtree *j)
{
	struct proc *p;
	struct thread *threads;
	size_t cap;
	int slot;

	if (j->free_slots.n) {
		slot = j->free_slots.v[--j->free_slots.n];
	} else {
		/* Burial must not fail: room for every slot on both lists is made here. */
		if (!vec_push(&j->procs))
			return -1;
		if (!vec_reserve(&j->free_slots, j->procs.n) ||
		    !vec_reserve(&j->dead, j->procs.n)) {
			j->procs.n--;
			return -1;
		}
		slot = (int)j->procs.n - 1;
	}
	p = &j->procs.v[slot];
	threads = p->threads.v;
	cap = p->threads.cap;
	*p = (struct proc){ .fresh = true,
			    .own_ns = -1,
			    .exit_code = -1,
			    .ran = true,
			    .ran_pss = true,
			    .stat_fd = -1,
			    .statm_fd = -1,
			    .io_fd = -1 };
	p->threads.v = threads;
	p->threads.cap = cap;
	memset(&p->last, 0xff, sizeof(p->last));
	return slot;
}

static void slot_give(struct jobtree *j, int slot)
{
	j->procs.v[slot].used = false;
	j->free_slots.v[j->free_slots.n++] = slot;
}

int proc_born(struct jobtree *j, struct collect *c, struct frame *f, const struct newcomer *n)
{
	int slot = slot_take(j);
	struct proc *p;

	if (slot < 0)
		return -ENOMEM;
	p = &j->procs.v[slot];
	p->pid = n->pid;
	p->ppid = n->ppid;
	p->start = n->start;
	p->parent = jobtree_parent(j, c, n->ppid);
	p->parent_id = p->parent >= 0 ? j->procs.v[p->parent].id : ID_JOB;
	proc_name_copy(p->name, sizeof(p->name), n->name, strlen(n->name));
	if (!thread_new(c, p, p->pid) || !map_put(&j->by_pid, (uint64_t)p->pid, (uint32_t)slot)) {
		slot_give(j, slot);
		return -ENOMEM;
	}
	p->used = true;
	p->id = collect_id(c);
	proc_announce(j, f, p, LIFE_BORN, proc_cmdline(j, p->pid));
	proc_name_copy(p->threads.v[0].name, sizeof(p->threads.v[0].name), p->name,
		       strlen(p->name));
	thread_announce(f, p, &p->threads.v[0], LIFE_BORN);
	return 0;
}

void proc_mark_gone(struct jobtree *j, int slot)
{
	struct proc *p = &j->procs.v[slot];

	if (p->gone)
		return;
	p->gone = true;
	j->dead.v[j->dead.n++] = slot;
}

void proc_release(struct jobtree *j, struct proc *p)
{
	proc_file_close(&j->files, &p->stat_fd);
	proc_file_close(&j->files, &p->statm_fd);
	proc_file_close(&j->files, &p->io_fd);
	for (size_t i = 0; i < p->threads.n; i++) {
		proc_file_close(&j->files, &p->threads.v[i].sched_fd);
		proc_file_close(&j->files, &p->threads.v[i].stat_fd);
	}
}

static void tell_exit(struct frame *f, const struct proc *p)
{
	char name[64];
	int code = (int)p->exit_code;

	text_safe_copy(name, sizeof(name), p->name);
	if (p->exit_code < 0)
		frame_event(f, EVENT_EXIT, p->id, (double)NAN, "%s (%d) ended", name, (int)p->pid);
	else if (WIFSIGNALED(code))
		frame_event(f, EVENT_EXIT, p->id, 128 + WTERMSIG(code),
			    "%s (%d) was killed by signal %d", name, (int)p->pid, WTERMSIG(code));
	else
		frame_event(f, EVENT_EXIT, p->id, WEXITSTATUS(code), "%s (%d) ended with status %d",
			    name, (int)p->pid, WEXITSTATUS(code));
}

void proc_bury(struct jobtree *j, struct frame *f)
{
	for (size_t i = 0; i < j->dead.n; i++) {
		int slot = j->dead.v[i];
		struct proc *p = &j->procs.v[slot];
		uint32_t at;

		while (p->threads.n) {
			thread_end(j, f, p, &p->threads.v[p->threads.n - 1]);
			p->threads.n--;
		}
		proc_release(j, p);
		proc_announce(j, f, p, LIFE_GONE, NULL);
		tell_exit(f, p);
		/* A fixture may have given the pid to another already. */
		if (map_get(&j->by_pid, (uint64_t)p->pid, &at) && (int)at == slot)
			map_del(&j->by_pid, (uint64_t)p->pid);
		slot_give(j, slot);
	}
	j->dead.n = 0;
}

void proc_table_done(struct jobtree *j)
{
	for (size_t i = 0; i < j->procs.n; i++) {
		if (j->procs.v[i].used)
			proc_release(j, &j->procs.v[i]);
		vec_done(&j->procs.v[i].threads);
	}
	vec_done(&j->procs);
	vec_done(&j->free_slots);
	vec_done(&j->dead);
	map_done(&j->by_pid);
}

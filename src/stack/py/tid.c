/* SPDX-License-Identifier: MIT
 *
 * The kernel's ids of Python's threads. From 3.11 on the interpreter notes them (as seen from inside
 * its pid namespace). To 3.10 it has the pthread_t only, which is the address of the C library's
 * struct pthread; that holds the id at an offset of its own (720 in glibc 2.36 on x86_64), which is
 * found by looking for a place where every thread has the id of one of the process's tasks.
 *
 *	$ grep NSpid /proc/4711/task/4712/status
 *	NSpid:	4712	17
 */
#include "base/io.h"
#include "base/scan.h"
#include "stack/py/process.h"

#include <errno.h>
#include <fcntl.h>

#define PTHREAD_BYTES 1536
#define TASKS_MAX     4096
#define COMPARED_MAX  64
#define USUAL_PLACE   720 /* glibc on x86_64 */
#define TELLING_ID    1000

/* A task as we see it and as it sees itself. 0: no such. */
static uint64_t inner_id(pid_t pid, int64_t task)
{
	char path[96], text[4096];
	uint64_t id = 0, next;
	struct scan at;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/task/%lld/status", (int)pid, (long long)task);
	n = io_read(AT_FDCWD, path, text, sizeof(text));
	if (n <= 0)
		return 0;
	if (!scan_key(scan_of(text, (size_t)n), "NSpid", &at))
		return (uint64_t)task; /* before Linux 4.1 */
	while (scan_u64(&at, &next))
		id = next;
	return id;
}

pid_t py_tid_outside(struct py_process *p, uint64_t native)
{
	struct io_dir dir;
	char path[64];
	int64_t task;
	pid_t found = 0;

	if (!p->nested || native == 0 || native > INT32_MAX)
		return native <= INT32_MAX ? (pid_t)native : 0;
	snprintf(path, sizeof(path), "/proc/%d/task", (int)p->mem->pid);
	if (io_dir_open(&dir, AT_FDCWD, path) < 0)
		return 0;
	while (!found && (task = io_dir_next_number(&dir)))
		if (inner_id(p->mem->pid, task) == native)
			found = (pid_t)task;
	io_dir_close(&dir);
	return found;
}

static size_t list_tasks(pid_t pid, uint64_t *ids, size_t max)
{
	struct io_dir dir;
	char path[64];
	int64_t task;
	size_t n = 0;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	if (io_dir_open(&dir, AT_FDCWD, path) < 0)
		return 0;
	while (n < max && (task = io_dir_next_number(&dir))) {
		ids[n] = inner_id(pid, task);
		n += ids[n] != 0;
	}
	io_dir_close(&dir);
	return n;
}

static bool among(const uint64_t *ids, size_t n, int32_t id)
{
	for (size_t i = 0; i < n; i++)
		if (id > 0 && ids[i] == (uint64_t)id)
			return true;
	return false;
}

/* Keeps of `possible` those offsets at which this thread has one of the ids. */
static void narrow(struct py_process *p, uint64_t pthread, const uint64_t *ids, size_t n,
		   bool *possible)
{
	uint8_t bytes[PTHREAD_BYTES];

	if (!pthread || mem_read(p->mem, pthread, bytes, sizeof(bytes)) < 0)
		return;
	for (uint32_t at = 0; at + 4 <= PTHREAD_BYTES; at += 4)
		possible[at / 4] = possible[at / 4] && among(ids, n, py_i32(bytes, at));
}

/* Different threads have different ids. (One thread may have several tstates: other interpreters.) */
static bool distinct(struct py_process *p, uint32_t offset)
{
	int32_t ids[COMPARED_MAX];
	size_t n = p->threads.n < COMPARED_MAX ? p->threads.n : COMPARED_MAX;

	for (size_t i = 0; i < n; i++) {
		if (mem_read(p->mem, p->threads.v[i].pthread + offset, &ids[i], 4) < 0)
			return false;
		for (size_t k = 0; k < i; k++)
			if (ids[k] == ids[i] && p->threads.v[k].pthread != p->threads.v[i].pthread)
				return false;
	}
	return true;
}

/* In a pid namespace ids are small, and small numbers stand everywhere: there only the usual place is
 * believed. */
static uint32_t choose(struct py_process *p, const bool *possible, const uint64_t *ids, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (ids[i] < TELLING_ID)
			return possible[USUAL_PLACE / 4] && distinct(p, USUAL_PLACE) ? USUAL_PLACE
										     : PY_ABSENT;
	if (possible[USUAL_PLACE / 4] && distinct(p, USUAL_PLACE))
		return USUAL_PLACE;
	for (uint32_t at = 0; at < PTHREAD_BYTES; at += 4)
		if (possible[at / 4] && distinct(p, at))
			return at;
	return PY_ABSENT;
}

void py_tid_infer(struct py_process *p)
{
	uint64_t ids[TASKS_MAX];
	bool possible[PTHREAD_BYTES / 4];
	size_t n;

	p->pthread_tid = PY_ABSENT;
	if (!p->mem->pid || p->place.layout.thread_native != PY_ABSENT || !p->threads.n)
		return;
	n = list_tasks(p->mem->pid, ids, TASKS_MAX);
	memset(possible, true, sizeof(possible));
	for (size_t i = 0; i < p->threads.n; i++)
		narrow(p, p->threads.v[i].pthread, ids, n, possible);
	if (n)
		p->pthread_tid = choose(p, possible, ids, n);
	for (size_t i = 0; i < p->threads.n; i++)
		(void)py_tid_read(p, &p->threads.v[i]);
}

int py_tid_read(struct py_process *p, struct py_tstate *t)
{
	int32_t id;
	int r;

	if (p->pthread_tid == PY_ABSENT || !t->pthread)
		return 0;
	r = mem_read(p->mem, t->pthread + p->pthread_tid, &id, sizeof(id));
	if (r < 0)
		return r == -EFAULT ? 0 : r;
	t->native = id > 0 ? (uint64_t)id : 0;
	t->tid = py_tid_outside(p, t->native);
	return 0;
}

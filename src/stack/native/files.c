/* SPDX-License-Identifier: MIT */
#include "stack/native/files.h"

#include "base/auto.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

enum {
	WAITING_MAX = 64,
	STACK_BYTES = 128 << 10,
	STOP_MS = 50,
	IDLE = 3 << 13, /* ioprio: when nobody else wants the disk; linux/ioprio.h, which is new */
	OF_THREAD = 1,
};

struct native_files {
	pthread_mutex_t lock;
	pthread_cond_t wake, ended;
	bool started, stop, over;
	bool abandoned; /* nobody is left: the thread frees this */
	VEC(struct native_lookup *) questions, answers;
};

void native_lookup_free(struct native_lookup *q)
{
	if (!q)
		return;
	for (size_t i = 0; i < q->n; i++)
		free(q->of[i].name);
	free(q->path);
	free(q);
}

static int read_fd(void *arg, struct mem_piece *pieces, size_t n)
{
	int fd = *(const int *)arg;

	for (size_t i = 0; i < n; i++) {
		ssize_t got = pread(fd, pieces[i].to, pieces[i].n, (off_t)pieces[i].at);

		if (got < 0 && errno != EINVAL)
			return -errno;
		pieces[i].failed = got != (ssize_t)pieces[i].n;
	}
	return 0;
}

/* The file as the process sees it, if it is one. */
static int open_file(const struct native_lookup *q, struct stat *st)
{
	char folder[64], path[40];
	auto_close int found = -1;
	int fd;

	snprintf(folder, sizeof(folder), "/proc/%d/root", (int)q->pid);
	found = io_find(folder, q->path, true);
	if (found < 0)
		return found;
	if (fstat(found, st) < 0)
		return -errno;
	if (!S_ISREG(st->st_mode))
		return -ESTALE;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", found);
	fd = io_open(AT_FDCWD, path);
	return fd;
}

/* The build-id says so; without one the number of the file, which no other can have while it is mapped. */
static bool is_it(struct mem *file, const struct native_lookup *q, const struct stat *st)
{
	struct native_headers h;

	if (native_headers_read(file, 0, NULL, &h) < 0 || h.hash != q->headers.hash ||
	    h.id_n != q->headers.id_n)
		return false;
	if (h.id_n)
		return memcmp(h.id, q->headers.id, h.id_n) == 0;
	return st->st_ino == q->inode &&
	       ((uint64_t)major(st->st_dev) << 32 | minor(st->st_dev)) == q->device;
}

void native_lookup_answer(struct native_lookup *q)
{
	int64_t begun = clock_thread_cpu_ns();
	struct stat st;
	auto_close int fd = open_file(q, &st);
	struct mem file;

	mem_open_source(&file, read_fd, &fd);
	/* By another process it may be had. */
	q->result = fd < 0 && fd != -ESTALE ? -EAGAIN : -ESTALE;
	if (fd >= 0 && is_it(&file, q, &st))
		q->result = symtab_find(&file, q->low, q->span, q->of, q->n);
	q->cost_ns = clock_thread_cpu_ns() - begun;
}

static void files_free(struct native_files *f)
{
	for (size_t i = 0; i < f->questions.n; i++)
		native_lookup_free(f->questions.v[i]);
	for (size_t i = 0; i < f->answers.n; i++)
		native_lookup_free(f->answers.v[i]);
	vec_done(&f->questions);
	vec_done(&f->answers);
	pthread_mutex_destroy(&f->lock);
	pthread_cond_destroy(&f->wake);
	pthread_cond_destroy(&f->ended);
	free(f);
}

static struct native_lookup *take_first(struct native_files *f)
{
	struct native_lookup *q = f->questions.v[0];

	f->questions.n--;
	memmove(f->questions.v, f->questions.v + 1, f->questions.n * sizeof(f->questions.v[0]));
	return q;
}

static void *files_main(void *arg)
{
	struct native_files *f = arg;
	struct native_lookup *q, **slot;
	bool abandoned;

	pthread_setname_np(pthread_self(), "spotter-symbols");
	/* The program's storage is the program's. 0: of this thread alone. */
	(void)syscall(SYS_ioprio_set, OF_THREAD, 0, IDLE);
	pthread_mutex_lock(&f->lock);
	while (!f->stop) {
		if (!f->questions.n) {
			pthread_cond_wait(&f->wake, &f->lock);
			continue;
		}
		q = take_first(f);
		pthread_mutex_unlock(&f->lock);
		native_lookup_answer(q);
		pthread_mutex_lock(&f->lock);
		slot = vec_push(&f->answers);
		if (slot)
			*slot = q;
		else
			native_lookup_free(q);
	}
	f->over = true;
	abandoned = f->abandoned;
	pthread_cond_signal(&f->ended);
	pthread_mutex_unlock(&f->lock);
	if (abandoned)
		files_free(f);
	return NULL;
}

struct native_files *native_files_open(void)
{
	struct native_files *f = calloc(1, sizeof(*f));
	pthread_condattr_t attr;

	if (!f)
		return NULL;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_mutex_init(&f->lock, NULL);
	pthread_cond_init(&f->wake, NULL);
	pthread_cond_init(&f->ended, &attr);
	pthread_condattr_destroy(&attr);
	return f;
}

void native_files_close(struct native_files *f)
{
	int64_t until = clock_mono_ns() + STOP_MS * NS_PER_MS;
	struct timespec ts = { .tv_sec = until / NS_PER_S, .tv_nsec = until % NS_PER_S };
	bool over;

	if (!f)
		return;
	pthread_mutex_lock(&f->lock);
	f->stop = true;
	pthread_cond_signal(&f->wake);
	while (f->started && !f->over && pthread_cond_timedwait(&f->ended, &f->lock, &ts) == 0)
		;
	over = !f->started || f->over;
	f->abandoned = !over;
	pthread_mutex_unlock(&f->lock);
	if (over)
		files_free(f);
}

bool native_files_ask(struct native_files *f, struct native_lookup *q)
{
	struct native_lookup **slot = NULL;

	pthread_mutex_lock(&f->lock);
	if (!f->started)
		f->started = thread_start(NULL, STACK_BYTES, files_main, f) == 0;
	if (f->started && f->questions.n < WAITING_MAX)
		slot = vec_push(&f->questions);
	if (slot) {
		*slot = q;
		pthread_cond_signal(&f->wake);
	}
	pthread_mutex_unlock(&f->lock);
	if (!slot)
		native_lookup_free(q);
	return slot != NULL;
}

struct native_lookup *native_files_next(struct native_files *f)
{
	struct native_lookup *q = NULL;

	pthread_mutex_lock(&f->lock);
	if (f->answers.n)
		q = f->answers.v[--f->answers.n];
	pthread_mutex_unlock(&f->lock);
	return q;
}

/* SPDX-License-Identifier: MIT */
#include "waits.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* What the threads wait on; only the target has it. */
struct things {
	struct waits *shared;
	int worker_pipe[2]; /* the worker alone may write */
	int own_pipe[2], pair[2];
	int fifo, locked, terminal;
	char shut_fifo[32]; /* path of one that nobody writes to */
	mqd_t queue;
	char *missing; /* memory that never comes */
	sem_t never;
	pthread_t sleeper;
};

typedef void (*wait_function)(struct things *t);

static void on_lock(struct things *t)
{
	sem_wait(&t->never);
}

static void on_join(struct things *t)
{
	pthread_join(t->sleeper, NULL);
}

static void on_worker(struct things *t)
{
	char c;

	(void)!read(t->worker_pipe[0], &c, 1);
}

static void on_full_pipe(struct things *t)
{
	char page[4096] = { 0 };

	while (write(t->own_pipe[1], page, sizeof(page)) > 0)
		;
}

static void on_socket(struct things *t)
{
	char c;

	recv(t->pair[0], &c, 1, 0);
}

static void on_fifo(struct things *t)
{
	char c;

	(void)!read(t->fifo, &c, 1);
}

static void on_fifo_opened(struct things *t)
{
	(void)open(t->shut_fifo, O_RDONLY);
}

static void on_queue(struct things *t)
{
	char message[64];

	(void)mq_receive(t->queue, message, sizeof(message), NULL);
}

static void on_terminal(struct things *t)
{
	char c;

	(void)!read(t->terminal, &c, 1);
}

static void on_sleep(struct things *t)
{
	struct timespec long_time = { .tv_sec = 1000 };

	(void)t;
	nanosleep(&long_time, NULL);
}

static void on_poll_sleep(struct things *t)
{
	(void)t;
	poll(NULL, 0, 1000000);
}

static void on_child(struct things *t)
{
	waitpid(t->shared->worker, NULL, 0);
}

static void on_poll(struct things *t)
{
	struct pollfd fds[2] = { { .fd = -1 }, { .fd = t->worker_pipe[0], .events = POLLIN } };

	poll(fds, 2, -1);
}

static void on_select(struct things *t)
{
	fd_set set;

	FD_ZERO(&set);
	FD_SET(t->worker_pipe[0], &set);
	select(t->worker_pipe[0] + 1, &set, NULL, NULL, NULL);
}

static void on_epoll(struct things *t)
{
	struct epoll_event event = { .events = EPOLLIN };
	int fd = epoll_create1(0);

	epoll_ctl(fd, EPOLL_CTL_ADD, t->pair[0], &event);
	epoll_wait(fd, &event, 1, -1);
}

static void on_mixed_poll(struct things *t)
{
	struct pollfd fds[2] = { { .fd = t->pair[0], .events = POLLIN },
				 { .fd = t->worker_pipe[0], .events = POLLIN } };

	poll(fds, 2, -1);
}

static void on_file_lock(struct things *t)
{
	flock(t->locked, LOCK_EX);
}

static void on_fault(struct things *t)
{
	*(volatile char *)t->missing;
}

static void on_signal(struct things *t)
{
	(void)t;
	pause();
}

static const struct {
	const char *name;
	wait_function wait;
	enum wait_kind kind, on;
	bool from_worker;
} rows[] = {
	{ "lock", on_lock, WAIT_LOCK, 0, false },
	{ "end of a thread", on_join, WAIT_LOCK, 0, false },
	{ "pipe from a worker", on_worker, WAIT_PIPE, 0, true },
	{ "pipe that is full", on_full_pipe, WAIT_PIPE, 0, false },
	{ "socket", on_socket, WAIT_SOCKET, 0, false },
	{ "FIFO", on_fifo, WAIT_PIPE, 0, false },
	{ "opening of a FIFO", on_fifo_opened, WAIT_PIPE, 0, false },
	{ "message queue", on_queue, WAIT_QUEUE, 0, false },
	{ "terminal", on_terminal, WAIT_TERMINAL, 0, false },
	{ "sleep", on_sleep, WAIT_SLEEP, 0, false },
	{ "poll of nothing", on_poll_sleep, WAIT_SLEEP, 0, false },
	{ "child", on_child, WAIT_CHILD, 0, false },
	{ "poll of a pipe", on_poll, WAIT_POLL, WAIT_PIPE, true },
	{ "select of a pipe", on_select, WAIT_POLL, WAIT_PIPE, true },
	{ "epoll of a socket", on_epoll, WAIT_POLL, WAIT_SOCKET, false },
	{ "poll of both", on_mixed_poll, WAIT_POLL, WAIT_OTHER, false },
	{ "lock on a file", on_file_lock, WAIT_LOCK, 0, false },
	{ "page fault", on_fault, WAIT_PAGE_FAULT, 0, false },
	{ "signal", on_signal, WAIT_OTHER, 0, false },
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

struct started {
	struct things *things;
	size_t i;
};

static void *run(void *arg)
{
	struct started *s = arg;
	struct things *t = s->things;

	__atomic_store_n(&t->shared->row[s->i].tid, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	for (;;) /* some end with a stop of the process */
		rows[s->i].wait(t);
	return NULL;
}

static void *sleep_long(void *arg)
{
	on_sleep(arg);
	return NULL;
}

/* A page whose faults nobody answers; NULL where that is not allowed. */
static char *missing_page(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register all = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);

	if (fd < 0 || page == MAP_FAILED || ioctl(fd, UFFDIO_API, &api) < 0)
		return NULL;
	all.range = (struct uffdio_range){ (uintptr_t)page, 4096 };
	return ioctl(fd, UFFDIO_REGISTER, &all) < 0 ? NULL : page;
}

static int open_terminal(void)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY);

	if (master < 0 || grantpt(master) < 0 || unlockpt(master) < 0)
		return -1;
	return open(ptsname(master), O_RDWR | O_NOCTTY);
}

/* -1 where the kernel has none. */
static mqd_t open_queue(void)
{
	struct mq_attr attr = { .mq_maxmsg = 1, .mq_msgsize = 64 };
	char name[64];
	mqd_t queue;

	snprintf(name, sizeof(name), "/spotter-waits-%d", (int)getpid());
	queue = mq_open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600, &attr);
	if (queue >= 0)
		mq_unlink(name);
	return queue;
}

static void start_worker(struct things *t)
{
	pid_t worker;

	(void)!pipe(t->worker_pipe);
	worker = fork();
	if (worker == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(t->worker_pipe[0]);
		for (;;)
			pause();
	}
	t->shared->worker = worker;
	close(t->worker_pipe[1]);
}

static void make_things(struct things *t)
{
	char folder[] = "/tmp/spotter-waits-XXXXXX", path[80];
	int holder;

	start_worker(t);
	if (!mkdtemp(folder) || pipe(t->own_pipe) < 0 ||
	    socketpair(AF_UNIX, SOCK_STREAM, 0, t->pair) < 0 || sem_init(&t->never, 0, 0) < 0)
		_exit(1);
	snprintf(path, sizeof(path), "%s/fifo", folder);
	(void)mkfifo(path, 0600);
	t->fifo = open(path, O_RDWR); /* itself a writer: does not wait to be opened */
	unlink(path);
	(void)mkfifo(path, 0600);
	snprintf(t->shut_fifo, sizeof(t->shut_fifo), "/proc/self/fd/%d", open(path, O_PATH));
	unlink(path);
	snprintf(path, sizeof(path), "%s/locked", folder);
	holder = open(path, O_RDWR | O_CREAT, 0600);
	t->locked = open(path, O_RDWR);
	flock(holder, LOCK_EX);
	unlink(path);
	rmdir(folder);
	t->terminal = open_terminal();
	t->queue = open_queue();
	t->missing = missing_page();
}

static void target(struct waits *shared)
{
	static struct things t;
	static struct started started[WAITS_MAX];
	pthread_t thread;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	t.shared = shared;
	make_things(&t);
	for (size_t i = 0; i < ROWS; i++) {
		struct known_wait *row = &shared->row[i];

		*row = (struct known_wait){ rows[i].name, rows[i].kind, rows[i].on,
					    rows[i].from_worker, 0 };
		started[i] = (struct started){ &t, i };
		if ((rows[i].wait == on_fault && !t.missing) ||
		    (rows[i].wait == on_queue && t.queue < 0) ||
		    (rows[i].wait == on_terminal && t.terminal < 0))
			continue;
		if (rows[i].wait == on_join)
			pthread_create(&t.sleeper, NULL, sleep_long, &t);
		pthread_create(&thread, NULL, run, &started[i]);
		while (!__atomic_load_n(&row->tid, __ATOMIC_ACQUIRE))
			sched_yield();
	}
	__atomic_store_n(&shared->n, ROWS, __ATOMIC_RELEASE);
	for (;;)
		pause();
}

struct waits *waits_start(void)
{
	struct timespec pause_time = { .tv_nsec = 5000000 };
	struct waits *w =
	    mmap(NULL, sizeof(*w), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid;

	if (w == MAP_FAILED)
		abort();
	pid = fork();
	if (pid == 0)
		target(w);
	w->pid = pid;
	for (int i = 0; i < 2000 && !__atomic_load_n(&w->n, __ATOMIC_ACQUIRE); i++)
		nanosleep(&pause_time, NULL);
	/* From its last word before the wait to the wait itself. */
	pause_time.tv_nsec = 100000000;
	nanosleep(&pause_time, NULL);
	return w;
}

void waits_end(struct waits *w)
{
	kill(w->pid, SIGKILL);
	waitpid(w->pid, NULL, 0);
	munmap(w, sizeof(*w));
}

/* SPDX-License-Identifier: MIT
 *
 * What one sample of many processes costs. Starts P processes of T threads each, lets all of them
 * (or a part) run for a moment between two samples, and compares
 *
 *   collector  one tick of the process collector
 *   bare       the preads that such a tick makes of active processes, on kept descriptors: no
 *              parsing, no storing. stat, statm, io of each process, schedstat of each thread,
 *              and stat of each thread but the first (whose state is the process's)
 *   all files  the same with every process and every thread's stat: what reading without
 *              thinking costs
 *   psutil     (--psutil /usr/bin/python3) Python reading the same facts, for scale
 *
 * CPU time of the thread that samples, medians of interleaved rounds. The children stand still
 * while a sample is taken, so that nothing is measured but the sample. Kernel work is most of it,
 * which callgrind does not see; for the instructions of our own part:
 *
 *   valgrind --tool=callgrind --toggle-collect=bench_collector bench/sample -n 20
 *   valgrind --tool=callgrind --toggle-collect=bench_bare bench/sample -n 20
 *
 * (the children are executed, not only forked, so that they run outside valgrind).
 */
#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "base/num.h"
#include "collect/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

struct options {
	int processes, threads, ticks, percent;
	int running; /* threads of an active process that run; 0: all */
	const char *python;
};

/* Shared with the children: a round begins when `round` moves, and is over when `done` says so. */
struct shared {
	_Atomic uint32_t round, ready, done;
};

struct fds {
	int *v;
	size_t n;
};

struct bench {
	struct options o;
	struct shared *shared;
	int shared_fd;
	pid_t *pids;
	int active; /* processes that run in a round */
	struct host host;
	struct collect collect;
	struct frame frame;
	void *state;
	struct fds bare, all;
};

static void fail(const char *what)
{
	fprintf(stderr, "sample: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void futex(_Atomic uint32_t *word, int op, uint32_t value)
{
	syscall(SYS_futex, word, op, value, NULL, NULL, 0);
}

/* ---- the children ---- */

struct child {
	struct shared *shared;
	_Atomic int running; /* threads that still have to be told to run */
};

static void *child_thread(void *arg)
{
	struct child *c = arg;
	struct shared *s = c->shared;
	uint32_t seen = 0;

	atomic_fetch_add(&s->ready, 1);
	if (atomic_fetch_sub(&c->running, 1) <= 0)
		for (;;)
			pause();
	for (;;) {
		uint32_t round = atomic_load(&s->round);

		if (round == seen) {
			futex(&s->round, FUTEX_WAIT, seen);
			continue;
		}
		seen = round;
		for (volatile int i = 0; i < 2000;)
			i = i + 1;
		atomic_fetch_add(&s->done, 1);
	}
	return NULL;
}

static int child_main(int fd, int threads, int running)
{
	struct child c = { .running = running };
	pthread_attr_t attr;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	c.shared = mmap(NULL, sizeof(*c.shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (c.shared == MAP_FAILED)
		fail("mmap");
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 64 * 1024);
	for (int i = 1; i < threads; i++) {
		pthread_t t;

		if (pthread_create(&t, &attr, child_thread, &c) != 0)
			return 1;
	}
	child_thread(&c);
	return 0;
}

static void start_children(struct bench *b)
{
	char fd[16], threads[16], running[16], self[PATH_MAX];

	b->shared_fd = memfd_create("sample", 0);
	if (b->shared_fd < 0 || ftruncate(b->shared_fd, sizeof(*b->shared)) < 0)
		fail("memfd");
	b->shared =
	    mmap(NULL, sizeof(*b->shared), PROT_READ | PROT_WRITE, MAP_SHARED, b->shared_fd, 0);
	b->pids = calloc((size_t)b->o.processes, sizeof(*b->pids));
	if (b->shared == MAP_FAILED || !b->pids || !realpath("/proc/self/exe", self))
		fail("start");
	b->active = b->o.processes * b->o.percent / 100;
	snprintf(fd, sizeof(fd), "%d", b->shared_fd);
	snprintf(threads, sizeof(threads), "%d", b->o.threads);
	snprintf(running, sizeof(running), "%d", b->o.running);
	for (int i = 0; i < b->o.processes; i++) {
		b->pids[i] = fork();
		if (b->pids[i] < 0)
			fail("fork");
		if (b->pids[i])
			continue;
		execl(self, "sample", "--child", fd, threads, i < b->active ? running : "0",
		      (char *)NULL);
		_exit(127);
	}
	while (atomic_load(&b->shared->ready) < (uint32_t)(b->o.processes * b->o.threads))
		usleep(10000);
}

static void stop_children(struct bench *b)
{
	for (int i = 0; i < b->o.processes; i++)
		kill(b->pids[i], SIGKILL);
	for (int i = 0; i < b->o.processes; i++)
		waitpid(b->pids[i], NULL, 0);
}

/* Everyone who is active runs for a moment and sleeps again. */
static void run_round(struct bench *b)
{
	uint32_t want = (uint32_t)(b->active * b->o.running);

	atomic_store(&b->shared->done, 0);
	atomic_fetch_add(&b->shared->round, 1);
	futex(&b->shared->round, FUTEX_WAKE, INT_MAX);
	while (atomic_load(&b->shared->done) < want)
		usleep(500);
	usleep(3000); /* the last one on its way to sleep */
}

/* ---- what is measured ---- */

static void add_fd(struct fds *f, pid_t pid, pid_t tid, const char *name)
{
	char path[96];
	int *v = realloc(f->v, (f->n + 1) * sizeof(*v));

	if (!v)
		fail("memory");
	f->v = v;
	if (tid)
		snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", pid, tid, name);
	else
		snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	v[f->n] = open(path, O_RDONLY | O_CLOEXEC);
	if (v[f->n++] < 0)
		fail(path);
}

static void open_files(struct bench *b)
{
	static const char *const own[] = { "stat", "statm", "io" };

	for (int i = 0; i < b->o.processes; i++) {
		pid_t pid = b->pids[i];
		char path[64];
		struct io_dir dir;
		int64_t tid;
		int n = 0;

		for (int k = 0; k < 3; k++) {
			if (i < b->active)
				add_fd(&b->bare, pid, 0, own[k]);
			add_fd(&b->all, pid, 0, own[k]);
		}
		snprintf(path, sizeof(path), "/proc/%d/task", pid);
		if (io_dir_open(&dir, AT_FDCWD, path) < 0)
			fail(path);
		while ((tid = io_dir_next_number(&dir)) > 0) {
			if (i < b->active)
				add_fd(&b->bare, pid, (pid_t)tid, "schedstat");
			/* Which of them run is not known here; so many do. */
			if (i < b->active && tid != pid && n++ < b->o.running - 1)
				add_fd(&b->bare, pid, (pid_t)tid, "stat");
			add_fd(&b->all, pid, (pid_t)tid, "schedstat");
			add_fd(&b->all, pid, (pid_t)tid, "stat");
		}
		io_dir_close(&dir);
	}
}

void bench_collector(struct bench *b);
void bench_bare(const struct fds *f);

__attribute__((noinline)) void bench_collector(struct bench *b)
{
	proc_collector.read(&b->collect, b->state, &b->frame);
}

static inline void read_files(const struct fds *f)
{
	char buf[1024];

	for (size_t i = 0; i < f->n; i++)
		if (pread(f->v[i], buf, sizeof(buf), 0) < 0)
			fail("pread");
}

__attribute__((noinline)) void bench_bare(const struct fds *f)
{
	read_files(f);
}

static void start_collector(struct bench *b)
{
	struct err e = { 0 };

	if (host_open(&b->host, NULL, &e) < 0)
		fail("host");
	/* The children are the job by the reaper's rule; the root is not among them. */
	b->collect = (struct collect){ .host = &b->host,
				       .job = { .root = getpid(), .reaper = getpid() },
				       .next_id = ID_FIRST_FREE,
				       .thrift = 1 };
	b->state = calloc(1, proc_collector.state_size);
	if (!b->state || proc_collector.open(&b->collect, b->state, &b->frame) < 0)
		fail("collector");
}

static void begin_tick(struct bench *b, bool slow)
{
	int64_t mono, wall;

	host_clock(&b->host, &mono, &wall, &b->collect.boot_ns);
	frame_begin(&b->frame, mono, wall);
	b->collect.slow = slow;
}

static int64_t time_collector(struct bench *b)
{
	int64_t began;

	begin_tick(b, false);
	began = clock_thread_cpu_ns();
	bench_collector(b);
	return clock_thread_cpu_ns() - began;
}

/* Not part of what is measured: warming up, and the rare readings. */
static int64_t time_other_tick(struct bench *b, bool slow)
{
	int64_t began;

	begin_tick(b, slow);
	began = clock_thread_cpu_ns();
	proc_collector.read(&b->collect, b->state, &b->frame);
	return clock_thread_cpu_ns() - began;
}

static int64_t time_bare(const struct bench *b)
{
	int64_t began = clock_thread_cpu_ns();

	bench_bare(&b->bare);
	return clock_thread_cpu_ns() - began;
}

static int64_t time_all(const struct bench *b)
{
	int64_t began = clock_thread_cpu_ns();

	read_files(&b->all);
	return clock_thread_cpu_ns() - began;
}

static int by_size(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static double median_us(int64_t *v, int n)
{
	qsort(v, (size_t)n, sizeof(*v), by_size);
	return (double)v[n / 2] / 1000;
}

/* ---- psutil ---- */

static const char python_text[] =
    "import psutil, sys, time\n"
    "ps = [psutil.Process(int(p)) for p in sys.argv[1:]]\n"
    "def sample():\n"
    "    for p in ps:\n"
    "        with p.oneshot():\n"
    "            p.cpu_times(); p.memory_info(); p.io_counters(); p.num_threads(); p.status()\n"
    "            p.threads()\n"
    "sample()\n"
    "best = []\n"
    "for i in range(9):\n"
    "    t = time.thread_time(); sample(); best.append(time.thread_time() - t)\n"
    "print(sorted(best)[4] * 1e6)\n";

/* CPU time of one sample by psutil in us; 0 when it could not be had. */
static double psutil_us(const struct bench *b)
{
	char **argv = calloc((size_t)b->o.processes + 4, sizeof(*argv));
	char text[64] = "";
	int out[2], status = 1;
	double us = 0;
	pid_t pid;

	if (!argv || pipe(out) < 0)
		fail("psutil");
	argv[0] = (char *)b->o.python;
	argv[1] = (char *)"-c";
	argv[2] = (char *)python_text;
	for (int i = 0; i < b->o.processes; i++)
		if (asprintf(&argv[3 + i], "%d", b->pids[i]) < 0)
			fail("psutil");
	pid = fork();
	if (pid == 0) {
		dup2(out[1], 1);
		execv(b->o.python, argv);
		_exit(127);
	}
	close(out[1]);
	if (read(out[0], text, sizeof(text) - 1) > 0)
		text[strcspn(text, "\n")] = '\0';
	close(out[0]);
	waitpid(pid, &status, 0);
	for (int i = 0; i < b->o.processes; i++)
		free(argv[3 + i]);
	free(argv);
	return status == 0 && num_parse_double(text, &us) ? us : 0;
}

/* ---- */

static void measure(struct bench *b)
{
	int n = b->o.ticks;
	int64_t *col = calloc((size_t)n, sizeof(*col)), *one = calloc((size_t)n, sizeof(*one));
	int64_t *all = calloc((size_t)n, sizeof(*all)), *slow = calloc((size_t)n, sizeof(*slow));
	size_t samples = 0;
	double c, r, a, py;

	if (!col || !one || !all || !slow)
		fail("memory");
	for (int i = 0; i < 12; i++) { /* warm: descriptors, tables, threads that stand still */
		run_round(b);
		time_other_tick(b, i % 4 == 0);
	}
	for (int i = 0; i < n; i++) {
		run_round(b);
		col[i] = time_collector(b);
		samples += b->frame.samples.n;
		one[i] = time_bare(b);
		all[i] = time_all(b);
	}
	for (int i = 0; i < n / 4 + 1; i++) {
		run_round(b);
		slow[i] = time_other_tick(b, true);
	}
	c = median_us(col, n);
	r = median_us(one, n);
	a = median_us(all, n);
	printf("%d processes x %d threads, %d %% active (%d threads of each), %d ticks\n",
	       b->o.processes, b->o.threads, b->o.percent, b->o.running, n);
	printf("  collector   %9.1f us a tick, %.0f values; a slow tick %.1f us\n", c,
	       (double)samples / n, median_us(slow, n / 4 + 1));
	printf("  bare        %9.1f us  (%zu preads)  collector / bare      %.2f\n", r, b->bare.n,
	       c / r);
	printf("  all files   %9.1f us  (%zu preads)  all files / collector %.2f\n", a, b->all.n,
	       a / c);
	py = b->o.python ? psutil_us(b) : 0;
	if (py > 0)
		printf("  psutil      %9.1f us                 psutil / collector    %.1f\n", py,
		       py / c);
	free(col);
	free(one);
	free(all);
	free(slow);
}

static void raise_limit(void)
{
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l) == 0) {
		l.rlim_cur = l.rlim_max;
		setrlimit(RLIMIT_NOFILE, &l);
	}
}

static int number(const char *text, int min, int max)
{
	int64_t v;

	if (!text || !num_parse_i64(text, &v) || v < min || v > max) {
		fprintf(stderr, "sample: a number from %d to %d is wanted\n", min, max);
		exit(2);
	}
	return (int)v;
}

int main(int argc, char **argv)
{
	struct bench b = { .o = { .processes = 200, .threads = 5, .ticks = 41, .percent = 100 } };

	if (argc == 5 && strcmp(argv[1], "--child") == 0)
		return child_main(number(argv[2], 0, INT_MAX), number(argv[3], 1, 10000),
				  number(argv[4], 0, 10000));
	for (int i = 1; i < argc; i += 2) {
		if (strcmp(argv[i], "-p") == 0)
			b.o.processes = number(argv[i + 1], 1, 20000);
		else if (strcmp(argv[i], "-t") == 0)
			b.o.threads = number(argv[i + 1], 1, 10000);
		else if (strcmp(argv[i], "-n") == 0)
			b.o.ticks = number(argv[i + 1], 4, 100000);
		else if (strcmp(argv[i], "-a") == 0)
			b.o.percent = number(argv[i + 1], 0, 100);
		else if (strcmp(argv[i], "-r") == 0)
			b.o.running = number(argv[i + 1], 1, 10000);
		else if (strcmp(argv[i], "--psutil") == 0 && argv[i + 1])
			b.o.python = argv[i + 1];
		else {
			fprintf(stderr, "usage: sample [-p PROCESSES] [-t THREADS] [-n TICKS] "
					"[-a ACTIVE%%] [-r RUNNING] [--psutil PYTHON]\n");
			return 2;
		}
	}
	if (!b.o.running || b.o.running > b.o.threads)
		b.o.running = b.o.threads;
	raise_limit();
	start_children(&b);
	open_files(&b);
	start_collector(&b);
	measure(&b);
	stop_children(&b);
	proc_collector.close(b.state);
	free(b.state);
	frame_done(&b.frame);
	host_close(&b.host);
	return 0;
}

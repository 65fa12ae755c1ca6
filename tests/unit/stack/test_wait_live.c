/* SPDX-License-Identifier: MIT
 *
 * Real threads in known waits. What of each is seen must be right in 98 of 100 looks.
 * A disk that lets one wait is in test_wait_disk.c, the CPU and the GIL in test_wait_cpu.c. Not to be had
 * at will: the driver of a GPU (its files and functions are rows of test_wait_parse.c).
 */
#include "../unit.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "stack/wait/process.h"
#include "waits.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NOBODY 65534
#define LOOKS  200

static unsigned long allocations;

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t m);
void *__real_realloc(void *p, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t m);
void *__wrap_realloc(void *p, size_t n);

void *__wrap_malloc(size_t n)
{
	allocations++;
	return __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t m)
{
	allocations++;
	return __real_calloc(n, m);
}

void *__wrap_realloc(void *p, size_t n)
{
	allocations++;
	return __real_realloc(p, n);
}

static void rest_ms(long ms)
{
	struct timespec t = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&t, NULL);
}

struct watch {
	struct waits *w;
	struct wait_job *job;
	struct wait_process *p;
};

static void watch_open(struct watch *s, size_t descriptors)
{
	pid_t pids[2];

	s->w = waits_start();
	pids[0] = s->w->pid;
	pids[1] = s->w->worker;
	if (wait_job_open(&s->job, descriptors) < 0 || wait_open(&s->p, s->job, s->w->pid) < 0)
		abort();
	wait_job_set(s->job, pids, 2);
}

static void watch_close(struct watch *s)
{
	wait_close(s->p);
	wait_job_close(s->job);
	waits_end(s->w);
}

static bool right(const struct waits *w, const struct known_wait *row, const struct wait_state *s)
{
	if (s->kind != row->kind || s->by != WAIT_BY_SYSCALL)
		return false;
	if (row->kind == WAIT_POLL && s->on != row->on)
		return false;
	return !row->from_worker || (s->peer == w->worker && s->peers == 1);
}

/* How many of the waits were seen rightly in less than 98 of 100 looks; says which. */
static int look_all(struct watch *s, int looks)
{
	unsigned good[WAITS_MAX] = { 0 };
	struct wait_state last[WAITS_MAX];
	int wrong = 0;

	for (int i = 0; i < looks; i++) {
		for (size_t j = 0; j < s->w->n; j++) {
			struct known_wait *row = &s->w->row[j];

			if (row->tid && wait_see(s->p, row->tid, clock_mono_ns(), &last[j]) == 0)
				good[j] += right(s->w, row, &last[j]);
		}
		rest_ms(1);
	}
	for (size_t j = 0; j < s->w->n; j++) {
		if (!s->w->row[j].tid) {
			print_message("not allowed here: %s\n", s->w->row[j].name);
			continue;
		}
		if (good[j] * 100 >= (unsigned)looks * 98)
			continue;
		wrong++;
		print_message("%s: right %u of %d, last %s on %s (%s, by %d, peer %d)\n",
			      s->w->row[j].name, good[j], looks, wait_kind_name(last[j].kind),
			      wait_kind_name(last[j].on), last[j].what, last[j].by, last[j].peer);
	}
	return wrong;
}

static int known_waits(void)
{
	struct watch s;
	unsigned long before;
	int wrong;

	watch_open(&s, 1000);
	wrong = look_all(&s, LOOKS);
	before = allocations;
	wrong += look_all(&s, 20);
	if (allocations != before)
		wrong += 100;
	watch_close(&s);
	return wrong;
}

static void test_known_waits(void **state)
{
	(void)state;
	assert_int_equal(known_waits(), 0);
}

/* Runs in a process of its own, as nobody where we are root: its exit status. */
static int as_nobody(int (*f)(void))
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		if (geteuid() == 0 &&
		    (setgroups(0, NULL) < 0 || setgid(NOBODY) < 0 || setuid(NOBODY) < 0))
			_exit(98);
		prctl(PR_SET_DUMPABLE, 1); /* taken away with the ids */
		_exit(f());
	}
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 99;
}

static void test_known_waits_as_nobody(void **state)
{
	(void)state;
	assert_int_equal(as_nobody(known_waits), 0);
}

static unsigned open_descriptors(void)
{
	struct io_dir d;
	unsigned n = 0;

	assert_int_equal(io_dir_open(&d, AT_FDCWD, "/proc/self/fd"), 0);
	while (io_dir_next(&d))
		n++;
	io_dir_close(&d);
	return n;
}

static void test_few_descriptors_kept(void **state)
{
	struct watch s;
	unsigned before;

	(void)state;
	watch_open(&s, 3);
	before = open_descriptors();
	assert_int_equal(look_all(&s, 50), 0);
	assert_int_equal(open_descriptors(), before + 3);
	wait_sweep(s.p);
	wait_sweep(s.p); /* nobody looked in between: all are dropped */
	assert_int_equal(look_all(&s, 50), 0);
	watch_close(&s);
}

static void test_words(void **state)
{
	struct watch s;
	struct wait_state got;
	char text[64];

	(void)state;
	watch_open(&s, 100);
	for (size_t i = 0; i < s.w->n; i++) {
		const char *name = s.w->row[i].name;

		if (!s.w->row[i].tid)
			continue;
		assert_int_equal(wait_see(s.p, s.w->row[i].tid, clock_mono_ns(), &got), 0);
		assert_true(got.pc && got.sp);
		snprintf(text, sizeof(text), "pipe from pid %d", (int)s.w->worker);
		if (s.w->row[i].from_worker)
			assert_string_equal(got.what, text);
		snprintf(text, sizeof(text), "child %d", (int)s.w->worker);
		if (strcmp(name, "child") == 0)
			assert_string_equal(got.what, text);
		/* Both ends are its own. */
		if (strcmp(name, "pipe that is full") == 0)
			assert_true(strcmp(got.what, "pipe") == 0 && !got.peers && !got.peer);
		if (strcmp(name, "socket") == 0)
			assert_string_equal(got.what, "UNIX-STREAM socket");
		if (strcmp(name, "terminal") == 0)
			assert_memory_equal(got.what, "/dev/pts/", 9);
		if (strcmp(name, "sleep") == 0)
			assert_string_equal(got.call, "clock_nanosleep");
	}
	watch_close(&s);
}

/* Reads one byte each of two FIFOs, a socket and a pipe, all under one number and from one place. */
static void read_in_turn(const int *from, int *turn)
{
	char c;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (int i = 0; i < 4; i++) {
		dup2(from[i], 50);
		__atomic_store_n(turn, i + 1, __ATOMIC_RELEASE);
		(void)!read(50, &c, 1);
	}
	_exit(0);
}

/* Another FIFO under the same number is noticed at once, any other change within a quarter second. */
static void test_number_used_again(void **state)
{
	char folder[] = "/tmp/spotter-waits-XXXXXX", path[2][64];
	int *turn = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	static const enum wait_kind kinds[] = { WAIT_PIPE, WAIT_PIPE, WAIT_SOCKET, WAIT_PIPE };
	static const int64_t looks_ns[] = { NS_PER_S, NS_PER_S + 1, 2 * NS_PER_S, 3 * NS_PER_S };
	int from[4], to[4], pair[2], ends[2];
	struct wait_process *p;
	struct wait_job *job;
	struct wait_state got;
	pid_t pid;

	(void)state;
	assert_true(mkdtemp(folder) && socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	assert_int_equal(pipe(ends), 0);
	for (int i = 0; i < 2; i++) {
		snprintf(path[i], sizeof(path[i]), "%s/%d", folder, i);
		assert_int_equal(mkfifo(path[i], 0600), 0);
		from[i] = to[i] = open(path[i], O_RDWR | O_CLOEXEC);
	}
	from[2] = pair[0];
	to[2] = pair[1];
	from[3] = ends[0];
	to[3] = ends[1];
	pid = fork();
	if (pid == 0)
		read_in_turn(from, turn);
	assert_true(wait_job_open(&job, 9) == 0 && wait_open(&p, job, pid) == 0);
	for (int i = 0; i < 4; i++) {
		while (__atomic_load_n(turn, __ATOMIC_ACQUIRE) != i + 1)
			rest_ms(1);
		rest_ms(20);
		assert_int_equal(wait_see(p, pid, looks_ns[i], &got), 0);
		assert_int_equal(got.kind, kinds[i]);
		assert_int_equal(got.fd, 50);
		if (i < 2)
			assert_string_equal(got.what, path[i]);
		assert_int_equal(write(to[i], "x", 1), 1);
	}
	waitpid(pid, NULL, 0);
	wait_close(p);
	wait_job_close(job);
	for (int i = 0; i < 2; i++)
		unlink(path[i]);
	rmdir(folder);
}

/* What this kernel calls the functions that threads sleep in: our table must know them. A terminal
 * waits in wait_woken(), which TCP does too, so it cannot tell. */
static void test_kernel_functions(void **state)
{
	struct waits *w = waits_start();

	(void)state;
	for (size_t i = 0; i < w->n; i++) {
		enum wait_kind want = w->row[i].kind, kind;
		char path[80], name[64] = "";
		ssize_t n;
		int fd;

		snprintf(path, sizeof(path), "/proc/%d/task/%d/wchan", w->pid, w->row[i].tid);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		n = fd >= 0 ? read(fd, name, sizeof(name) - 1) : 0;
		close(fd);
		if (n < 2 || strcmp(w->row[i].name, "poll of nothing") == 0)
			continue;
		kind = wait_wchan_kind(name, (size_t)n);
		if (kind != want && kind != WAIT_UNKNOWN)
			print_message("%s: %s is %s\n", w->row[i].name, name, wait_kind_name(kind));
		assert_true(kind == want || kind == WAIT_UNKNOWN);
		assert_true(kind != WAIT_UNKNOWN || want == WAIT_TERMINAL || want == WAIT_OTHER);
	}
	waits_end(w);
}

/* As under kernel.yama.ptrace_scope=1: the call is refused, the function it sleeps in is not. */
static void test_without_calls(void **state)
{
	struct watch s;
	struct wait_state got;

	(void)state;
	watch_open(&s, 1000);
	look_all(&s, 1);
	for (size_t i = 0; i < s.p->threads.n; i++)
		s.p->threads.v[i].refused_ns = clock_mono_ns();
	for (size_t i = 0; i < s.w->n; i++) {
		enum wait_kind want = s.w->row[i].kind;

		if (!s.w->row[i].tid || strcmp(s.w->row[i].name, "poll of nothing") == 0)
			continue;
		assert_int_equal(wait_see(s.p, s.w->row[i].tid, clock_mono_ns(), &got), 0);
		assert_int_equal(got.by, WAIT_BY_STATE);
		assert_true(got.nr == -1 && !got.pc && !got.call && got.letter == 'S');
		if (want == WAIT_TERMINAL || want == WAIT_OTHER)
			want = WAIT_UNKNOWN;
		if (got.what[0]) /* the kernel may be built without names */
			assert_int_equal(got.kind, want);
	}
	watch_close(&s);
}

/* Calls that a stop has interrupted go on under another number. */
static void test_stop(void **state)
{
	struct watch s;
	struct wait_state got;

	(void)state;
	watch_open(&s, 1000);
	/* Known to wait, and not to have run since. */
	for (int i = 0; i < 3; i++)
		assert_int_equal(wait_see(s.p, s.w->pid, clock_mono_ns(), &got), 0);
	kill(s.w->pid, SIGSTOP);
	rest_ms(50);
	assert_int_equal(wait_see(s.p, s.w->pid, clock_mono_ns(), &got), 0);
	assert_int_equal(got.kind, WAIT_STOPPED);
	for (size_t i = 0; i < s.w->n; i++) {
		if (!s.w->row[i].tid)
			continue;
		assert_int_equal(wait_see(s.p, s.w->row[i].tid, clock_mono_ns(), &got), 0);
		assert_int_equal(got.kind, WAIT_STOPPED);
	}
	kill(s.w->pid, SIGCONT);
	rest_ms(50);
	assert_int_equal(wait_see(s.p, s.w->pid, clock_mono_ns(), &got), 0);
	assert_int_equal(got.kind, WAIT_OTHER);
	assert_int_equal(look_all(&s, 20), 0);
	watch_close(&s);
}

/* Who waited and has not been on a CPU since is known to wait still; a stop goes over all CPUs. */
static void test_stands(void **state)
{
	struct watch s;
	struct wait_state got;
	int stood = 0, asked = 0, stopped = 0;

	(void)state;
	watch_open(&s, 1000);
	assert_false(wait_stands(s.p, s.w->pid)); /* never seen */
	for (size_t i = 0; i < s.w->n; i++) {
		if (!s.w->row[i].tid)
			continue;
		assert_int_equal(wait_see(s.p, s.w->row[i].tid, clock_mono_ns(), &got), 0);
		asked += got.slices > 0;
		stood += wait_stands(s.p, s.w->row[i].tid);
	}
	assert_true(stood >= asked - 1);
	kill(s.w->pid, SIGSTOP);
	do {
		rest_ms(10);
		assert_int_equal(wait_see(s.p, s.w->pid, clock_mono_ns(), &got), 0);
	} while (got.kind != WAIT_STOPPED);
	for (int tries = 0; tries == 0 || (stopped && tries < 500); tries++) {
		rest_ms(10);
		stopped = 0;
		for (size_t i = 0; i < s.w->n; i++)
			stopped += s.w->row[i].tid && wait_stands(s.p, s.w->row[i].tid);
	}
	assert_int_equal(stopped, 0);
	kill(s.w->pid, SIGCONT);
	watch_close(&s);
}

static void test_end(void **state)
{
	struct watch s;
	struct wait_state got;
	pid_t pid;

	(void)state;
	watch_open(&s, 1000);
	pid = s.w->pid;
	assert_int_equal(wait_see(s.p, pid, clock_mono_ns(), &got), 0);
	assert_int_equal(wait_see(s.p, 1 << 30, clock_mono_ns(), &got), -ESRCH);
	kill(pid, SIGKILL);
	rest_ms(50);
	assert_int_equal(wait_see(s.p, pid, clock_mono_ns(), &got), -ESRCH);
	watch_close(&s);
}

/* A target that may not be looked into. */
static int look_refused(void)
{
	struct wait_process *p = NULL;
	struct wait_job *job = NULL;
	struct wait_state got;
	struct err e = { 0 };
	pid_t pid = fork();
	int bad = 0;

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prctl(PR_SET_DUMPABLE, 0);
		for (;;)
			pause();
	}
	rest_ms(50);
	if (wait_job_open(&job, 10) < 0 || wait_open(&p, job, pid) < 0)
		return 97;
	for (int i = 0; i < 3; i++) {
		bad |= wait_see(p, pid, clock_mono_ns(), &got) != 0;
		bad |= (got.by != WAIT_BY_STATE) << 1 | (got.letter != 'S') << 2;
		bad |= (got.kind != WAIT_UNKNOWN) << 3 | (got.nr != -1 || got.pc) << 4;
	}
	bad |= (wait_refusal(p, &e) != MEM_NOT_DUMPABLE || !e.hint[0]) << 5;
	wait_close(p);
	wait_job_close(job);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return bad;
}

static void test_refused(void **state)
{
	(void)state;
	assert_int_equal(as_nobody(look_refused), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known_waits),
		cmocka_unit_test(test_known_waits_as_nobody),
		cmocka_unit_test(test_few_descriptors_kept),
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_number_used_again),
		cmocka_unit_test(test_kernel_functions),
		cmocka_unit_test(test_without_calls),
		cmocka_unit_test(test_stop),
		cmocka_unit_test(test_stands),
		cmocka_unit_test(test_end),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT
 *
 * Programs that move: threads that come and go, the GIL, forks, execve, code that is thrown away;
 * and that a warm sampler does not allocate.
 */
#include "../unit.h"

#include "base/err.h"
#include "stack/py/py.h"
#include "target.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

static struct pythons pythons;
static size_t allocations;

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

static struct py_process *attach(pid_t pid, const struct py_process *like)
{
	struct py_process *p = NULL;
	struct err e = { 0 };
	int r = -EAGAIN;

	for (int i = 0; i < 50 && r == -EAGAIN; i++) {
		e = (struct err){ 0 };
		r = py_attach(&p, pid, like, &e);
		if (r == -EAGAIN)
			usleep(10000);
	}
	if (r < 0)
		fail_msg("%s", e.text);
	return p;
}

static void begin(struct target *t, const char *python, const char *what, char *line, size_t size)
{
	target_start(t, python, -1, SCRIPTS "/moving.py", what, NULL);
	assert_non_null(fgets(line, (int)size, t->out));
}

static const char *name_of(const struct py_process *p, const struct py_stacks *s, uint32_t frame)
{
	struct py_function f;

	return py_code(p, s->frames.v[frame].code, &f) ? f.name : "?";
}

static bool ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), m = strlen(end);

	return n >= m && strcmp(text + n - m, end) == 0;
}

static void test_threads_come_and_go(void **state)
{
	(void)state;
	for (size_t i = 0; i < pythons.n; i++) {
		struct py_stacks s = { 0 };
		struct py_process *p;
		struct target t;
		char line[200];
		size_t most = 0;

		begin(&t, pythons.path[i], "threads", line, sizeof(line));
		p = attach(t.pid, NULL);
		for (int k = 0; k < 1500; k++) {
			assert_int_equal(py_sample(p, &s), 0);
			most = s.threads.n > most ? s.threads.n : most;
			for (size_t j = 0; j < s.threads.n; j++) {
				const struct py_thread *one = &s.threads.v[j];
				const char *outer;

				if (!one->n)
					continue;
				outer = name_of(p, &s, one->first + one->n - 1);
				assert_true(strcmp(outer, "<module>") == 0 ||
					    ends_with(outer, "_bootstrap"));
			}
			usleep(100);
		}
		assert_true(most > 1);
		target_end(&t);
		py_stacks_done(&s);
		py_detach(p);
	}
}

/* The address a thread's futex call waits on; 0: it is not in one. */
static uint64_t futex_of(pid_t pid, pid_t tid)
{
	char path[64], text[200];
	int fd;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/syscall", (int)pid, (int)tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return 0;
	text[n] = '\0';
	return strncmp(text, "202 ", 4) == 0 ? strtoull(text + 4, NULL, 16) : 0;
}

static void check_gil(const char *python)
{
	struct py_stacks s = { 0 };
	struct py_process *p;
	struct py_range gil;
	struct target t;
	char line[200], *at;
	unsigned held[3] = { 0 }, waited[3] = { 0 };
	pid_t tid[3];

	begin(&t, python, "gil", line, sizeof(line));
	at = line + 5;
	for (int i = 0; i < 3; i++)
		tid[i] = (pid_t)strtol(at, &at, 10);
	p = attach(t.pid, NULL);
	assert_true(py_gil(p, 0, &gil));
	for (int k = 0; k < 400; k++) {
		unsigned holders = 0;

		assert_int_equal(py_sample(p, &s), 0);
		for (size_t j = 0; j < s.threads.n; j++) {
			holders += s.threads.v[j].holds_gil;
			for (int i = 0; i < 3; i++) {
				uint64_t futex = 0;

				if (s.threads.v[j].tid != tid[i])
					continue;
				held[i] += s.threads.v[j].holds_gil;
				if (!s.threads.v[j].holds_gil)
					futex = futex_of(t.pid, tid[i]);
				waited[i] += futex >= gil.start && futex < gil.end;
			}
		}
		assert_true(holders <= 1);
		usleep(500);
	}
	target_end(&t);
	py_stacks_done(&s);
	py_detach(p);
	print_message("%s: held %u %u %u, waited %u %u %u of 400\n", python, held[0], held[1],
		      held[2], waited[0], waited[1], waited[2]);
	assert_true(held[0] > 20 && held[1] > 20 && held[2] == 0);
	assert_true(waited[0] > 20 && waited[1] > 20 && waited[2] == 0);
}

static void test_gil_holder_and_waiters(void **state)
{
	(void)state;
	for (size_t i = 0; i < pythons.n; i++)
		check_gil(pythons.path[i]);
}

static void test_fork_inherits(void **state)
{
	(void)state;
	for (size_t i = 0; i < pythons.n; i++) {
		struct py_process *parent, *child;
		struct py_stacks s = { 0 };
		struct target t;
		char line[200];
		pid_t pid;

		begin(&t, pythons.path[i], "fork", line, sizeof(line));
		pid = (pid_t)strtol(line + 5, NULL, 10);
		parent = attach(t.pid, NULL);
		usleep(50000);
		child = attach(pid, parent);
		assert_int_equal(py_sample(child, &s), 0);
		assert_int_equal(s.threads.n, 1);
		assert_int_equal(s.threads.v[0].tid, pid);
		assert_int_equal(s.threads.v[0].n, 3);
		assert_string_equal(name_of(child, &s, 0), "child_sleeps");
		py_stacks_done(&s);
		py_detach(child);
		py_detach(parent);
		kill(pid, SIGKILL);
		target_end(&t);
	}
}

static void test_execve_is_noticed(void **state)
{
	(void)state;
	for (size_t i = 0; i < pythons.n; i++) {
		struct py_stacks s = { 0 };
		struct py_process *p;
		struct target t;
		char line[200];
		int r;

		begin(&t, pythons.path[i], "exec", line, sizeof(line));
		p = attach(t.pid, NULL);
		assert_int_equal(py_sample(p, &s), 0);
		assert_int_equal(write(t.in, "\n", 1), 1);
		assert_non_null(fgets(line, sizeof(line), t.out));
		r = py_sample(p, &s);
		/* A program at a fixed address that became itself again is as good as before. */
		assert_true(r == -ESTALE || r == -ESRCH || (r == 0 && s.threads.n == 4));
		py_detach(p);
		p = attach(t.pid, NULL);
		assert_int_equal(py_sample(p, &s), 0);
		assert_int_equal(s.threads.n, 4);
		target_end(&t);
		py_stacks_done(&s);
		py_detach(p);
	}
}

/* `made_N` is what <module-level exec> calls; its caller's caller is reuse(). */
static void test_reused_code_is_noticed(void **state)
{
	(void)state;
	for (size_t i = 0; i < pythons.n; i++) {
		struct py_stacks s = { 0 };
		struct py_process *p;
		struct target t;
		char line[200];
		unsigned made = 0;

		begin(&t, pythons.path[i], "reuse", line, sizeof(line));
		p = attach(t.pid, NULL);
		for (int k = 0; k < 1500; k++) {
			assert_int_equal(py_sample(p, &s), 0);
			if (s.threads.n == 1 && s.threads.v[0].n == 4) {
				assert_string_equal(name_of(p, &s, 1), "<module>");
				assert_string_equal(name_of(p, &s, 2), "reuse");
				made += strncmp(name_of(p, &s, 0), "made_", 5) == 0;
			}
			usleep(100);
		}
		assert_true(made > 500);
		print_message("%s: %llu addresses reused\n", pythons.path[i],
			      (unsigned long long)py_counts(p).reused);
		target_end(&t);
		py_stacks_done(&s);
		py_detach(p);
	}
}

static void test_collecting(void **state)
{
	(void)state;
	for (size_t i = 0; i < pythons.n; i++) {
		static const char *const kinds[] = { "gc", "fork" };
		unsigned collecting[2] = { 0 };

		for (int kind = 0; kind < 2; kind++) {
			struct py_stacks s = { 0 };
			struct py_process *p;
			struct target t;
			char line[200];

			begin(&t, pythons.path[i], kinds[kind], line, sizeof(line));
			p = attach(t.pid, NULL);
			for (int k = 0; k < 100; k++) {
				assert_int_equal(py_sample(p, &s), 0);
				collecting[kind] += s.collecting;
				usleep(200);
			}
			if (kind) /* the forked child */
				kill((pid_t)strtol(line + 5, NULL, 10), SIGKILL);
			target_end(&t);
			py_stacks_done(&s);
			py_detach(p);
		}
		assert_true(collecting[0] > 70);
		assert_int_equal(collecting[1], 0);
	}
}

static void test_other_interpreter(void **state)
{
	(void)state;
	for (size_t i = 0; i < pythons.n; i++) {
		struct py_stacks s = { 0 };
		struct py_process *p;
		struct py_range gil;
		struct target t;
		char line[200];
		unsigned met = 0;

		begin(&t, pythons.path[i], "interpreter", line, sizeof(line));
		p = attach(t.pid, NULL);
		assert_int_equal(py_sample(p, &s), 0);
		for (size_t k = 0; k < s.threads.n; k++) {
			const struct py_thread *one = &s.threads.v[k];

			if (!one->n || strcmp(name_of(p, &s, one->first), "inside") != 0)
				continue;
			assert_int_equal(one->n, 2);
			assert_true(py_gil(p, one->interpreter, &gil) && gil.start < gil.end);
			met++;
		}
		assert_int_equal(met, 1);
		assert_true(py_gil(p, 1, &gil) && !py_gil(p, 2, &gil));
		target_end(&t);
		py_stacks_done(&s);
		py_detach(p);
	}
}

/* Ids are ours, whatever the threads take themselves for. */
static void check_namespace(const char *python)
{
	struct py_stacks s = { 0 };
	struct py_process *p;
	struct target t;
	char line[200], path[64];

	begin(&t, python, "gil", line, sizeof(line));
	assert_int_equal(strtol(line + 6, NULL, 10), 2); /* the first after its init */
	p = attach(t.pid, NULL);
	assert_int_equal(py_sample(p, &s), 0);
	assert_int_equal(s.threads.n, 4);
	for (size_t i = 0; i < 4; i++) {
		snprintf(path, sizeof(path), "/proc/%d/task/%d", (int)t.pid,
			 (int)s.threads.v[i].tid);
		assert_int_equal(access(path, F_OK), 0);
		for (size_t k = 0; k < i; k++)
			assert_int_not_equal(s.threads.v[i].tid, s.threads.v[k].tid);
	}
	target_end(&t);
	py_stacks_done(&s);
	py_detach(p);
}

static void test_pid_namespace(void **state)
{
	int own = open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC);

	(void)state;
	for (size_t i = 0; i < pythons.n; i++) {
		if (own < 0 || unshare(CLONE_NEWPID) < 0) {
			print_message("may not make a pid namespace\n");
			skip();
		}
		check_namespace(pythons.path[i]);
		assert_int_equal(setns(own, CLONE_NEWPID), 0);
	}
	close(own);
}

static void test_warm_sampler_does_not_allocate(void **state)
{
	(void)state;
	for (size_t i = 0; i < pythons.n; i++) {
		struct py_stacks s = { 0 };
		struct py_process *p;
		struct target t;
		char line[200];
		size_t before;

		begin(&t, pythons.path[i], "gil", line, sizeof(line));
		p = attach(t.pid, NULL);
		for (int k = 0; k < 300; k++)
			assert_int_equal(py_sample(p, &s), 0);
		before = allocations;
		for (int k = 0; k < 300; k++)
			assert_int_equal(py_sample(p, &s), 0);
		assert_int_equal(allocations, before);
		target_end(&t);
		py_stacks_done(&s);
		py_detach(p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_threads_come_and_go),
		cmocka_unit_test(test_gil_holder_and_waiters),
		cmocka_unit_test(test_fork_inherits),
		cmocka_unit_test(test_execve_is_noticed),
		cmocka_unit_test(test_reused_code_is_noticed),
		cmocka_unit_test(test_collecting),
		cmocka_unit_test(test_other_interpreter),
		cmocka_unit_test(test_pid_namespace),
		cmocka_unit_test(test_warm_sampler_does_not_allocate),
	};

	pythons_find(&pythons);
	if (!pythons.n)
		print_message(
		    "no Python 3.8 or later that this user may run: nothing was tested\n");
	return cmocka_run_group_tests(tests, NULL, NULL);
}

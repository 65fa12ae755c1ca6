/* SPDX-License-Identifier: MIT
 *
 * Reading foreign memory: holes, refusals with their reasons, the way round a seccomp filter, and that
 * a sampler does nothing to its target: one that tries to trace, write or signal dies here.
 */
#include "../unit.h"

#include "base/err.h"
#include "stack/mem.h"
#include "stack/py/py.h"
#include "target.h"

#include <errno.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOBODY   65534
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const char program[] = "import time\n"
			      "def inner():\n"
			      "    print('ready', flush=True)\n"
			      "    time.sleep(1000)\n"
			      "inner()\n";

/* Each of these calls gets `answer` from now on. */
static void filter_calls(const int *calls, size_t n, uint32_t answer)
{
	struct sock_filter code[64];
	struct sock_fprog filter = { .filter = code };
	unsigned short at = 0;

	code[at++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						  offsetof(struct seccomp_data, nr));
	for (size_t i = 0; i < n; i++) {
		code[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
							  (uint32_t)calls[i], 0, 1);
		code[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, answer);
	}
	code[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	filter.len = at;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) < 0)
		_exit(99);
}

/* Runs in a process of its own: its exit status, or 100 + signal. */
static int apart(int (*f)(pid_t), pid_t target, uid_t user)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		if (user && (setgroups(0, NULL) < 0 || setgid(user) < 0 || setuid(user) < 0))
			_exit(98);
		_exit(f(target));
	}
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}

/* Attaches and samples: 0 when it sees inner() under <module>. */
static int look(pid_t target)
{
	struct py_process *p = NULL;
	struct py_stacks s = { 0 };
	struct py_function f = { 0 };
	struct err e = { 0 };

	if (py_attach(&p, target, NULL, &e) < 0)
		return 1;
	for (int i = 0; i < 200; i++)
		if (py_sample(p, &s) < 0)
			return 2;
	if (s.threads.n != 1 || s.threads.v[0].n != 2 || s.threads.v[0].status != PY_COMPLETE)
		return 3;
	if (!py_code(p, s.frames.v[0].code, &f) || strcmp(f.name, "inner") != 0 ||
	    py_line(p, s.frames.v[0].code, s.frames.v[0].offset) != 4)
		return 4;
	py_stacks_done(&s);
	py_detach(p);
	return 0;
}

static const int *harmful(size_t *n)
{
	static const int calls[] = { SYS_ptrace,
				     SYS_process_vm_writev,
				     SYS_kill,
				     SYS_tkill,
				     SYS_tgkill,
				     SYS_rt_sigqueueinfo,
				     SYS_rt_tgsigqueueinfo,
				     SYS_pidfd_send_signal };

	*n = COUNT(calls);
	return calls;
}

static int look_harmless(pid_t target)
{
	size_t n;
	const int *calls = harmful(&n);

	filter_calls(calls, n, SECCOMP_RET_KILL_PROCESS);
	return look(target);
}

static int do_harm(pid_t target)
{
	size_t n;
	const int *calls = harmful(&n);

	filter_calls(calls, n, SECCOMP_RET_KILL_PROCESS);
	return kill(target, 0);
}

static const int readv_call[] = { SYS_process_vm_readv };

static int look_refused(pid_t target)
{
	filter_calls(readv_call, 1, SECCOMP_RET_ERRNO | EPERM);
	return look(target);
}

static int look_unknown_call(pid_t target)
{
	filter_calls(readv_call, 1, SECCOMP_RET_ERRNO | ENOSYS);
	return look(target);
}

static void python_start(struct target *t)
{
	char line[64];

	if (access("/usr/bin/python3", X_OK) < 0) {
		print_message("no /usr/bin/python3 to look at\n");
		skip();
	}
	target_start(t, "/usr/bin/python3", -1, "-c", program, NULL);
	assert_non_null(fgets(line, sizeof(line), t->out));
	usleep(20000);
}

static void test_harmless(void **state)
{
	struct target t;

	(void)state;
	python_start(&t);
	assert_int_equal(apart(look_harmless, t.pid, 0), 0);
	assert_int_equal(apart(do_harm, t.pid, 0), 100 + SIGSYS); /* the filter works */
	target_end(&t);
}

static void test_by_file(void **state)
{
	struct target t;

	(void)state;
	python_start(&t);
	assert_int_equal(apart(look_refused, t.pid, 0), 0);
	assert_int_equal(apart(look_unknown_call, t.pid, 0), 0);
	target_end(&t);
}

static int start_and_look(pid_t none)
{
	struct target t;
	char line[64];
	int r;

	(void)none;
	target_start(&t, "/usr/bin/python3", -1, "-c", program, NULL);
	if (!fgets(line, sizeof(line), t.out))
		return 90;
	usleep(20000);
	r = look(t.pid);
	target_end(&t);
	return r;
}

static void test_ordinary_user(void **state)
{
	(void)state;
	if (access("/usr/bin/python3", X_OK) < 0)
		skip();
	assert_int_equal(apart(start_and_look, 0, geteuid() == 0 ? NOBODY : 0), 0);
}

static int refused_as_other_user(pid_t target)
{
	struct py_process *p = NULL;
	struct err e = { 0 };
	struct mem m;

	mem_open(&m, target);
	if (mem_refusal(&m, NULL) != MEM_OTHER_USER)
		return 1;
	if (py_attach(&p, target, NULL, &e) != -EPERM)
		return 2;
	return strstr(e.text, "belongs to user 0") && e.hint[0] ? 0 : 3;
}

static int refused_as_not_dumpable(pid_t none)
{
	struct mem m;
	struct err e = { 0 };
	pid_t pid = fork();
	int r = 1;

	(void)none;
	if (pid == 0) {
		prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
		pause();
		_exit(0);
	}
	usleep(20000);
	mem_open(&m, pid);
	if (mem_refusal(&m, &e) == MEM_NOT_DUMPABLE && strstr(e.text, "not dumpable"))
		r = 0;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return r;
}

static void test_refusals(void **state)
{
	struct target t;

	(void)state;
	if (geteuid() != 0) {
		print_message("needs root to become somebody else\n");
		skip();
	}
	python_start(&t);
	assert_int_equal(apart(refused_as_other_user, t.pid, NOBODY), 0);
	target_end(&t);
	assert_int_equal(apart(refused_as_not_dumpable, 0, NOBODY), 0);
}

static void read_holes(struct mem *m, const uint8_t *map)
{
	uint8_t a[16], b[16], c[16], d[16];
	uint64_t at = (uint64_t)(uintptr_t)map;
	struct mem_piece pieces[] = {
		{ .at = at, .to = a, .n = 16 },
		{ .at = at + 4096 - 8, .to = b, .n = 16 }, /* half of it */
		{ .at = 1ull << 63, .to = c, .n = 16 },
		{ .at = at + 8192, .to = d, .n = 16 },
	};

	assert_int_equal(mem_read_pieces(m, pieces, 4), 0);
	assert_false(pieces[0].failed);
	assert_true(pieces[1].failed);
	assert_true(pieces[2].failed);
	assert_false(pieces[3].failed);
	assert_memory_equal(a, map, 16);
	assert_memory_equal(d, map + 8192, 16);
	assert_int_equal(mem_read(m, at + 4096, a, 8), -EFAULT);
	assert_int_equal(mem_read(m, at + 16, a, 8), 0);
}

static void test_holes(void **state)
{
	uint8_t *map =
	    mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct mem_piece *many = calloc(3000, sizeof(*many));
	static uint8_t bytes[3000];
	struct mem m;

	(void)state;
	memset(map, 7, 3 * 4096);
	munmap(map + 4096, 4096);
	mem_open(&m, getpid());
	read_holes(&m, map);
	m.calls = 0;
	for (size_t i = 0; i < 3000; i++)
		many[i] = (struct mem_piece){ .at = (uint64_t)(uintptr_t)map + i,
					      .to = &bytes[i],
					      .n = 1 };
	assert_int_equal(mem_read_pieces(&m, many, 3000), 0);
	assert_int_equal(m.calls, 3); /* 1024 a call */
	assert_int_equal(bytes[2999], 7);
	free(many);
	mem_close(&m);
	munmap(map, 4096);
	munmap(map + 8192, 4096);
}

static void test_gone(void **state)
{
	struct err e = { 0 };
	struct mem m;
	uint8_t byte;
	pid_t pid = fork();

	(void)state;
	if (pid == 0)
		_exit(0);
	waitpid(pid, NULL, 0);
	mem_open(&m, pid);
	assert_int_equal(mem_read(&m, 4096, &byte, 1), -ESRCH);
	assert_int_equal(mem_refusal(&m, &e), MEM_GONE);
	assert_int_equal(e.code, -ESRCH);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_holes),         cmocka_unit_test(test_gone),
		cmocka_unit_test(test_harmless),      cmocka_unit_test(test_by_file),
		cmocka_unit_test(test_ordinary_user), cmocka_unit_test(test_refusals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
#include "../unit.h"

#include "base/err.h"
#include "launch/program.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Words that may be written to, as an environment's may. */
#define W(text) ((char[]){ text })

static void test_environment(void **state)
{
	char *const found[] = { W("A=1"),     W("odd"),       W("B="), W("AB=x"),
				W("A=again"), W("=hidden=1"), W(""),   NULL };
	char *const add[] = { W("A=2"), W("C=3"), NULL };
	char *const nothing[] = { NULL };
	char **env;

	(void)state;
	env = program_env(found, NULL);
	for (int i = 0; i < 7; i++)
		assert_ptr_equal(env[i], found[i]); /* the same strings in the same order */
	assert_null(env[7]);
	free(env);

	env = program_env(found, add);
	assert_string_equal(env[0], "odd");
	assert_string_equal(env[1], "B=");
	assert_string_equal(env[2], "AB=x");
	assert_string_equal(env[3], "=hidden=1");
	assert_string_equal(env[4], "");
	assert_string_equal(env[5], "A=2");
	assert_string_equal(env[6], "C=3");
	assert_null(env[7]);
	free(env);

	env = program_env(NULL, nothing);
	assert_null(env[0]);
	free(env);
}

static void put(const char *name, const void *text, size_t n, mode_t mode)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, n), (ssize_t)n);
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

static int enter_folder(void **state)
{
	static char name[] = "/tmp/test_program-XXXXXX";

	if (!mkdtemp(name) || chdir(name) < 0)
		return -1;
	*state = name;
	put("text.sh", "echo\0", 4, 0600);
	put("tool", "#! /bin/sh -e\n", 14, 0700);
	put("lost", "#!/no/such/thing -x\n", 20, 0700);
	put("train.py", "print(1)\n", 9, 0600);
	put("binary", "\177ELF\0\0", 6, 0700);
	put("late", "first line\n\0\0\0", 14, 0700);
	put("sneaky", "#!\033[2J\n", 7, 0700);
	put("empty", "", 0, 0700);
	return mkdir("folder", 0700);
}

static int leave_folder(void **state)
{
	static const char *const names[] = { "text.sh", "tool", "lost",   "train.py",
					     "binary",  "late", "sneaky", "empty" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unlink(names[i]);
	rmdir("folder");
	return chdir("/") < 0 ? -1 : rmdir(*state);
}

static void test_text_or_not(void **state)
{
	(void)state;
	assert_true(program_is_text("text.sh"));
	assert_true(program_is_text("late"));
	assert_true(program_is_text("empty"));
	assert_false(program_is_text("binary"));
	assert_false(program_is_text("no-such"));
	assert_false(program_is_text("folder"));
}

static void expect(const char *name, int error, int code, const char *text, const char *hint)
{
	struct err e = { 0 };

	assert_int_equal(program_failure(name, error, &e), code);
	assert_int_equal(e.code, code);
	assert_string_equal(e.text, text);
	assert_string_equal(e.hint, hint);
	assert_int_equal(program_failure(name, error, NULL), code);
}

static void test_sentences(void **state)
{
	(void)state;
	setenv("PATH", "/usr/bin:/bin", 1);
	expect("nosuch", ENOENT, -ENOENT, "cannot run 'nosuch': no such command", "");
	expect("nosuch", EACCES, -ENOENT, "cannot run 'nosuch': no such command", "");
	expect("./nosuch", ENOENT, -ENOENT, "cannot run './nosuch': no such file", "");
	expect("", ENOENT, -ENOENT, "cannot run '': no such command", "");
	expect("tool", ENOENT, -ENOENT, "cannot run 'tool': no such command",
	       "did you mean './tool'?");
	expect("folder", ENOENT, -ENOENT, "cannot run 'folder': no such command", "");
	expect("./lost", ENOENT, -ENOENT,
	       "cannot run './lost': its interpreter '/no/such/thing' does not exist", "");
	expect("./sneaky", ENOENT, -ENOENT,
	       "cannot run './sneaky': its interpreter '?[2J' does not exist", "");
	expect("./binary", ENOENT, -ENOENT,
	       "cannot run './binary': its program loader does not exist", "");
	expect("./text.sh", EACCES, -EACCES, "cannot run './text.sh': it is not executable",
	       "run 'chmod +x ./text.sh'");
	expect("./folder", EACCES, -EACCES, "cannot run './folder': it is a folder", "");
	expect("./tool", EACCES, -EACCES, "cannot run './tool': permission denied",
	       "its file system may be mounted noexec");
	expect("./binary", ENOEXEC, -ENOEXEC,
	       "cannot run './binary': not a program for this machine", "");
	expect("./tool", ETXTBSY, -EACCES, "cannot run './tool': text file busy", "");
	expect("a b", ENOENT, -ENOENT, "cannot run 'a b': no such command",
	       "leave out the quotes around the command");
	expect("a\033b", ENOENT, -ENOENT, "cannot run 'a?b': no such command", "");
}

static void test_python_is_offered(void **state)
{
	struct err e = { 0 };

	(void)state;
	assert_int_equal(program_failure("train.py", ENOENT, &e), -ENOENT);
	assert_non_null(strstr(e.hint, "did you mean 'python"));
	assert_non_null(strstr(e.hint, " train.py'?"));
	e = (struct err){ 0 };
	assert_int_equal(program_failure("./train.py", EACCES, &e), -EACCES);
	assert_non_null(strstr(e.hint, " ./train.py', or 'chmod +x ./train.py'"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_environment),
		cmocka_unit_test(test_text_or_not),
		cmocka_unit_test(test_sentences),
		cmocka_unit_test(test_python_is_offered),
	};

	return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}

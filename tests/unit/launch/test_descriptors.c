/* SPDX-License-Identifier: MIT */
#include "../unit.h"

#include "base/auto.h"
#include "launch/descriptors.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

/* Runs it in a child, whose descriptors are its own; 0 is well. */
static int in_child(int (*body)(void))
{
	int status = -1;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid == 0)
		_exit(body());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static int plug_fills_holes(void)
{
	close(0);
	close(2);
	if (descriptors_plug() != 0)
		return 1;
	if (!is_open(0) || !is_open(1) || !is_open(2))
		return 2;
	if (!(fcntl(0, F_GETFD) & FD_CLOEXEC) || !(fcntl(2, F_GETFD) & FD_CLOEXEC))
		return 3;
	return fcntl(1, F_GETFD) & FD_CLOEXEC ? 4 : 0; /* was there: not ours to change */
}

static int plug_leaves_no_trace(void)
{
	int before = open("/", O_RDONLY | O_CLOEXEC), after;

	close(before);
	if (descriptors_plug() != 0)
		return 1;
	after = open("/", O_RDONLY | O_CLOEXEC);
	return before == after ? 0 : 2;
}

static int close_keeps_what_it_should(void)
{
	static const int open_ones[] = { 3, 4, 7, 8, 9, 100, 101, 1000 };
	const int keep[] = { 100, -1, 8, 4, 8, 101, 1 };

	for (size_t i = 0; i < ARRAY_LEN(open_ones); i++)
		if (dup2(1, open_ones[i]) < 0)
			return 1;
	descriptors_close_others(keep, ARRAY_LEN(keep));
	for (int fd = 3; fd < 1024; fd++) {
		bool wanted = fd == 4 || fd == 8 || fd == 100 || fd == 101;

		if (is_open(fd) != wanted)
			return 2;
	}
	return is_open(0) && is_open(1) && is_open(2) ? 0 : 3;
}

static int close_all_others(void)
{
	if (dup2(1, 3) < 0 || dup2(1, 500) < 0)
		return 1;
	descriptors_close_others(NULL, 0);
	return is_open(3) || is_open(500) || !is_open(2) ? 2 : 0;
}

static int silence_is_silent(void)
{
	int fds[2];
	char c;

	if (pipe(fds) < 0 || dup2(fds[1], 1) < 0 || dup2(fds[1], 2) < 0)
		return 1;
	close(fds[1]);
	descriptors_silence(true);
	if (write(1, "x", 1) != 1 || write(2, "y", 1) != 1)
		return 2;
	if (read(fds[0], &c, 1) != 1 || c != 'y')
		return 3;
	descriptors_silence(false);
	return read(fds[0], &c, 1) == 0 && read(0, &c, 1) == 0 ? 0 : 4; /* nobody writes any more */
}

static void test_plug(void **state)
{
	(void)state;
	assert_int_equal(in_child(plug_fills_holes), 0);
	assert_int_equal(in_child(plug_leaves_no_trace), 0);
}

static void test_close_others(void **state)
{
	(void)state;
	assert_int_equal(in_child(close_keeps_what_it_should), 0);
	assert_int_equal(in_child(close_all_others), 0);
}

static void test_silence(void **state)
{
	(void)state;
	assert_int_equal(in_child(silence_is_silent), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plug),
		cmocka_unit_test(test_close_others),
		cmocka_unit_test(test_silence),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

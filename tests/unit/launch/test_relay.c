/* SPDX-License-Identifier: MIT */
#include "../unit.h"

#include "base/auto.h"
#include "base/io.h"
#include "launch/relay.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static const char sample[] = "Name:\tlaunch_probe\n"
			     "Umask:\t0022\n"
			     "State:\tS (sleeping)\n"
			     "Tgid:\t71\n"
			     "Threads:\t1\n"
			     "SigQ:\t1/96343\n"
			     "SigPnd:\t0000000000000000\n"
			     "ShdPnd:\t0000000000004000\n"
			     "SigBlk:\tfffffffe7ffbbaff\n";

static void test_parse(void **state)
{
	uint64_t pending = 1;
	char letter = 0;

	(void)state;
	assert_true(relay_parse(sample, sizeof(sample) - 1, &letter, &pending));
	assert_int_equal(letter, 'S');
	assert_true(pending == 1ull << (SIGTERM - 1));
	pending = 77;
	for (size_t n = 0; n < sizeof(sample) - 1; n++) {
		uint64_t bits = 77;

		if (!relay_parse(sample, n, &letter, &bits))
			assert_true(bits == 77); /* untouched unless it is all there */
	}
	assert_false(relay_parse("ShdPnd:\tzz\nState:\tT\n", 22, &letter, &pending));
	assert_false(relay_parse("State:\n", 7, &letter, &pending));
	assert_true(pending == 77);
}

/* The kernel's own text, and what is pending there for real. */
static void test_parse_a_real_one(void **state)
{
	char path[64], text[8192], letter = 0;
	uint64_t pending = 0;
	sigset_t all, old;
	ssize_t n;
	pid_t pid;

	(void)state;
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &old);
	pid = fork();
	if (pid == 0)
		for (;;)
			pause();
	sigprocmask(SIG_SETMASK, &old, NULL);
	assert_int_equal(kill(pid, SIGUSR1), 0);
	assert_int_equal(kill(pid, SIGRTMAX), 0);
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	n = io_read(AT_FDCWD, path, text, sizeof(text));
	assert_true(n > 0);
	assert_true(relay_parse(text, (size_t)n, &letter, &pending));
	assert_true(pending == (1ull << (SIGUSR1 - 1) | 1ull << 63));
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

enum { USER = SI_USER, TTY = SI_KERNEL, R = 71, SHELL = 50 };

static void test_who_gets_what(void **state)
{
	static const struct {
		struct relay_case c;
		bool wanted;
		const char *why;
	} rows[] = {
		{ { SIGTERM, USER, SHELL, R, true, false, RELAY_ALONE }, true, "kill PID" },
		{ { SIGTERM, USER, SHELL, R, true, false, RELAY_GROUP }, false, "kill -- -PGID" },
		{ { SIGTERM, USER, SHELL, R, false, false, RELAY_GROUP },
		  true,
		  "it left the group" },
		{ { SIGTERM, SI_QUEUE, SHELL, R, true, false, RELAY_ALONE }, true, "sigqueue" },
		{ { SIGINT, TTY, 0, R, true, false, RELAY_GROUP }, false, "Ctrl-C" },
		{ { SIGINT, TTY, 0, R, true, false, RELAY_UNKNOWN }, false, "Ctrl-C, R busy" },
		{ { SIGINT, TTY, 0, 0, true, true, RELAY_UNKNOWN }, false, "Ctrl-C, R gone" },
		{ { SIGINT, TTY, 0, R, false, false, RELAY_GROUP }, true, "Ctrl-C, it left" },
		{ { SIGINT, USER, SHELL, 0, true, false, RELAY_UNKNOWN }, true, "kill, R gone" },
		{ { SIGTSTP, TTY, 0, R, true, false, RELAY_GROUP }, false, "Ctrl-Z" },
		{ { SIGWINCH, TTY, 0, 0, true, false, RELAY_UNKNOWN }, false, "window" },
		{ { SIGHUP, TTY, 0, R, true, true, RELAY_ALONE }, true, "hangup, leader" },
		{ { SIGHUP, TTY, 0, R, true, false, RELAY_GROUP }, false, "hangup, group" },
		{ { SIGHUP, TTY, 0, 0, true, true, RELAY_UNKNOWN }, true, "the same, R gone" },
		{ { SIGHUP, TTY, 0, 0, true, false, RELAY_UNKNOWN }, false, "the same, R gone" },
		{ { SIGALRM, TTY, 0, R, true, false, RELAY_ALONE }, true, "alarm" },
		{ { SIGALRM, TTY, 0, 0, true, false, RELAY_UNKNOWN }, true, "alarm, R gone" },
		{ { SIGCONT, USER, R, R, true, false, RELAY_ALONE }, false, "R wakes S" },
		{ { SIGCONT, USER, SHELL, R, true, false, RELAY_GROUP }, false, "fg" },
		{ { SIGCONT, USER, SHELL, R, true, false, RELAY_ALONE }, true, "kill -CONT" },
		{ { SIGCHLD, CLD_EXITED, R, R, true, false, RELAY_ALONE }, false, "child" },
		{ { SIGCHLD, USER, SHELL, R, true, false, RELAY_ALONE }, true, "kill -CHLD" },
		{ { SIGUSR1, USER, 0, 0, true, false, RELAY_UNKNOWN }, true, "nobody to compare" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (relay_wanted(&rows[i].c) != rows[i].wanted)
			fail_msg("row %zu: %s", i, rows[i].why);
}

static void test_clearing_is_noted(void **state)
{
	struct relay r = { .clearing = 1ull << (SIGTERM - 1) | 1ull << 63 };

	(void)state;
	assert_true(relay_is_clearing(&r, SIGTERM));
	assert_true(relay_is_clearing(&r, 64));
	assert_false(relay_is_clearing(&r, SIGINT));
	assert_false(relay_is_clearing(&r, 0));
	assert_false(relay_is_clearing(&r, 65));
	relay_cleared(&r, SIGTERM);
	relay_cleared(&r, -3);
	assert_false(relay_is_clearing(&r, SIGTERM));
	assert_true(relay_is_clearing(&r, 64));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse),
		cmocka_unit_test(test_parse_a_real_one),
		cmocka_unit_test(test_who_gets_what),
		cmocka_unit_test(test_clearing_is_noted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

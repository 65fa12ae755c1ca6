/* SPDX-License-Identifier: MIT */
#include "../unit.h"

#include "launch/channel.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static struct channel_msg m;

static void open_pair(int ends[2])
{
	assert_int_equal(channel_open(ends), 0);
	assert_true(fcntl(ends[0], F_GETFD) & FD_CLOEXEC);
	assert_true(fcntl(ends[1], F_GETFD) & FD_CLOEXEC);
}

static void test_messages_keep_their_bounds(void **state)
{
	int ends[2];

	(void)state;
	open_pair(ends);
	assert_int_equal(channel_recv(ends[0], &m), -EAGAIN);
	assert_int_equal(channel_send(ends[1], CHANNEL_EXITED, 0x8b, -1), 0);
	assert_int_equal(channel_send_words(ends[1], "two words", 9), 0);
	assert_int_equal(channel_send_words(ends[1], "", 0), 0);
	assert_int_equal(channel_send(ends[0], CHANNEL_CLEAR, 15, -1), 0);

	assert_int_equal(channel_recv(ends[0], &m), 1);
	assert_int_equal(m.kind, CHANNEL_EXITED);
	assert_int_equal(m.value, 0x8b);
	assert_int_equal(m.fd, -1);
	assert_int_equal(m.n, 0);
	assert_int_equal(channel_recv(ends[0], &m), 1);
	assert_int_equal(m.kind, CHANNEL_WORDS);
	assert_int_equal(m.n, 9);
	assert_memory_equal(m.text, "two words", 9);
	assert_int_equal(channel_recv(ends[0], &m), 1);
	assert_int_equal(m.n, 0);
	assert_int_equal(channel_recv(ends[0], &m), -EAGAIN);
	assert_int_equal(channel_recv(ends[1], &m), 1);
	assert_int_equal(m.kind, CHANNEL_CLEAR);
	assert_int_equal(m.value, 15);
	close(ends[0]);
	close(ends[1]);
}

static void test_descriptor_passes(void **state)
{
	int ends[2], fds[2];
	char c = 0;

	(void)state;
	open_pair(ends);
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	assert_int_equal(channel_send(ends[1], CHANNEL_STARTED, 4711, fds[1]), 0);
	close(fds[1]);
	assert_int_equal(channel_recv(ends[0], &m), 1);
	assert_int_equal(m.value, 4711);
	assert_true(m.fd >= 0);
	assert_true(fcntl(m.fd, F_GETFD) & FD_CLOEXEC);
	assert_int_equal(write(m.fd, "x", 1), 1);
	assert_int_equal(read(fds[0], &c, 1), 1);
	assert_int_equal(c, 'x');
	close(m.fd);
	close(fds[0]);
	close(ends[0]);
	close(ends[1]);
}

static void test_words_of_the_dead_are_heard(void **state)
{
	int ends[2];
	pid_t pid;

	(void)state;
	open_pair(ends);
	pid = fork();
	if (pid == 0) {
		(void)channel_send(ends[1], CHANNEL_EXITED, 7 << 8, -1);
		_exit(0);
	}
	close(ends[1]);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(channel_recv(ends[0], &m), 1);
	assert_int_equal(m.value, 7 << 8);
	assert_int_equal(channel_recv(ends[0], &m), 0);
	assert_int_equal(channel_recv(ends[0], &m), 0);
	assert_int_equal(channel_send(ends[0], CHANNEL_CLEAR, 1, -1), -EPIPE); /* no SIGPIPE */
	close(ends[0]);
}

/* A reader that went away with messages unread is as good as one that went away. */
static void test_reader_gone_with_mail(void **state)
{
	int ends[2];

	(void)state;
	open_pair(ends);
	assert_int_equal(channel_send(ends[1], CHANNEL_ENDED, 0, -1), 0);
	close(ends[0]);
	assert_int_equal(channel_recv(ends[1], &m), 0);
	assert_int_equal(channel_send(ends[1], CHANNEL_DONE, 0, -1), -EPIPE);
	close(ends[1]);
}

/* Both had written, neither had read: what the one who went had to say is not lost. */
static void test_crossing_mail(void **state)
{
	int ends[2];

	(void)state;
	open_pair(ends);
	assert_int_equal(channel_send(ends[0], CHANNEL_CLEAR, 15, -1), 0);
	assert_int_equal(channel_send(ends[1], CHANNEL_EXITED, 7 << 8, -1), 0);
	assert_int_equal(channel_send(ends[1], CHANNEL_DONE, 0, -1), 0);
	close(ends[1]);
	assert_int_equal(channel_recv(ends[0], &m), 1);
	assert_int_equal(m.value, 7 << 8);
	assert_int_equal(channel_recv(ends[0], &m), 1);
	assert_int_equal(m.kind, CHANNEL_DONE);
	assert_int_equal(channel_recv(ends[0], &m), 0);
	close(ends[0]);
}

static void test_full_channel_does_not_block(void **state)
{
	static char text[CHANNEL_TEXT_MAX + 1];
	int ends[2], sent = 0, error = 0, got = 0;

	(void)state;
	open_pair(ends);
	memset(text, 'w', sizeof(text));
	assert_int_equal(channel_send_words(ends[1], text, CHANNEL_TEXT_MAX + 1), -EMSGSIZE);
	while (sent < 10000 && !(error = channel_send_words(ends[1], text, CHANNEL_TEXT_MAX)))
		sent++;
	assert_int_equal(error, -EAGAIN);
	assert_true(sent >= 16); /* all the words there may be, with nobody reading */
	while (channel_recv(ends[0], &m) == 1) {
		assert_int_equal(m.n, CHANNEL_TEXT_MAX);
		got++;
	}
	assert_int_equal(got, sent);
	close(ends[0]);
	close(ends[1]);
}

static void test_foreign_message_is_refused(void **state)
{
	int ends[2];

	(void)state;
	open_pair(ends);
	assert_int_equal(send(ends[1], "abc", 3, 0), 3);
	assert_int_equal(channel_send(ends[1], CHANNEL_DONE, 1, -1), 0);
	assert_int_equal(channel_recv(ends[0], &m), -EBADMSG);
	assert_int_equal(channel_recv(ends[0], &m), 1);
	assert_int_equal(m.kind, CHANNEL_DONE);
	close(ends[0]);
	close(ends[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_messages_keep_their_bounds),
		cmocka_unit_test(test_descriptor_passes),
		cmocka_unit_test(test_words_of_the_dead_are_heard),
		cmocka_unit_test(test_reader_gone_with_mail),
		cmocka_unit_test(test_crossing_mail),
		cmocka_unit_test(test_full_channel_does_not_block),
		cmocka_unit_test(test_foreign_message_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

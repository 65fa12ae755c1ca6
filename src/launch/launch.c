/* SPDX-License-Identifier: MIT */
#include "launch/launch.h"

#include "base/auto.h"
#include "base/clock.h"
#include "base/err.h"
#include "launch/channel.h"
#include "launch/descriptors.h"
#include "launch/program.h"
#include "launch/recorder.h"
#include "launch/supervise.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

/* A reader that has gone, or that does not read for a second, goes without. */
static void show(const struct buf *words)
{
	size_t at = 0;

	while (at < words->len) {
		ssize_t n = write(STDERR_FILENO, words->data + at, words->len - at);
		struct pollfd p = { .fd = STDERR_FILENO, .events = POLLOUT };

		if (n > 0)
			at += (size_t)n;
		else if (n < 0 && errno == EAGAIN && poll(&p, 1, 1000) > 0)
			continue;
		else if (n < 0 && errno == EINTR)
			continue;
		else
			break;
	}
}

/* Forks R; in S the channel's end to it. */
static int start_recorder(const struct launch *l, const struct program *p, pid_t *ret_pid,
			  int *ret_channel)
{
	pid_t supervisor = getpid();
	int ends[2], error;
	pid_t pid;

	error = descriptors_plug();
	if (error < 0)
		return error;
	error = channel_open(ends);
	if (error < 0)
		return error;
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	fflush(NULL); /* or R and the program would each have a copy of what waits there */
	pid = fork();
	if (pid == 0)
		recorder_main(l, p, supervisor, ends[1]);
	error = -errno;
	close(ends[1]);
	if (pid < 0) {
		close(ends[0]);
		return error;
	}
	*ret_pid = pid;
	*ret_channel = ends[0];
	return 0;
}

static void close_all(struct supervisor *s)
{
	const int fds[] = { s->signals, s->relay.channel, s->relay.pidfd,
			    s->relay.recorder_status };

	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		if (fds[i] >= 0)
			close(fds[i]);
	buf_done(&s->words);
}

static int recorder_end(const struct supervisor *s)
{
	if (s->done)
		return 0;
	return s->relay.recorder ? -ETIMEDOUT : s->recorder_end;
}

int launch(const struct launch *l, int *ret_status, struct err *e)
{
	struct program program;
	struct supervisor s = { .l = l,
				.program = &program,
				.signals = -1,
				.relay = { .pidfd = -1, .recorder_status = -1, .channel = -1 } };
	int error;

	error = program_prepare(&program, l->argv, l->env);
	if (error < 0)
		return supervise_failure(error, e);
	buf_init(&s.words, 2 * LAUNCH_WORDS_MAX);
	error = start_recorder(l, &program, &s.relay.recorder, &s.relay.channel);
	error = error < 0 ? supervise_failure(error, e) : supervise(&s, e);
	if (error == 0) {
		show(&s.words);
		*ret_status = s.status;
		if (l->ret_recorder)
			*l->ret_recorder = recorder_end(&s);
		free(program.env); /* the signals stay blocked: launch_exit() is next */
	} else {
		(void)prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0);
		program_done(&program);
	}
	close_all(&s);
	return error;
}

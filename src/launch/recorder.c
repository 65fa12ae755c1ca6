/* SPDX-License-Identifier: MIT */
#include "launch/recorder.h"

#include "base/auto.h"
#include "base/clock.h"
#include "base/io.h"
#include "launch/channel.h"
#include "launch/descriptors.h"
#include "launch/program.h"
#include "launch/relay.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static int open_signals(struct launch_run *run)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	run->children = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return run->children < 0 ? -errno : witness_open(&run->witness);
}

/* What came to the group before the program existed it has not got: R must not look as if it had,
 * or S would not pass it on. The program has everything blocked and waits, so what it has got is
 * there to be seen. */
static void settle_signals(struct launch_run *run)
{
	char path[64], text[8192], state;
	uint64_t there = 0;
	ssize_t n;

	if (witness_look(&run->witness, clock_mono_ns()) < 0)
		return;
	snprintf(path, sizeof(path), "/proc/%d/status", (int)run->program);
	n = io_read(AT_FDCWD, path, text, sizeof(text));
	if (n < 0 || !relay_parse(text, (size_t)n, &state, &there))
		there = 0;
	for (int sig = 1; sig <= WITNESS_SIGNALS; sig++)
		if (!(there >> (sig - 1) & 1))
			witness_clear(&run->witness, sig);
}

static int start_program(struct launch_run *run, const struct program *p)
{
	int gate[2], error = channel_open(gate);
	pid_t pid;

	if (error < 0)
		return error;
	run->exec_fd = gate[0];
	pid = program_start(p, run->channel, gate);
	close(gate[1]);
	if (pid < 0)
		return pid;
	run->program = pid;
	settle_signals(run);
	(void)send(gate[0], "", 1, MSG_NOSIGNAL);
	return 0;
}

/* Everything of the program's goes, and S's end of the channel: only S itself may hold that. */
static void let_go(const struct launch_run *run)
{
	const int keep[] = { run->channel, run->children, run->witness.fd, run->exec_fd,
			     run->supervisor_fd };
	sigset_t blocked = run->witness.signals;

	descriptors_close_others(keep, ARRAY_LEN(keep));
	descriptors_silence(false);
	sigaddset(&blocked, SIGCHLD);
	(void)sigprocmask(SIG_SETMASK, &blocked, NULL);
}

static int start(struct launch_run *run, const struct program *p)
{
	int error;

	/* Before the program exists: its orphans shall fall to R from the first one on. */
	if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
		return -errno;
	run->supervisor_fd = (int)syscall(SYS_pidfd_open, run->supervisor, 0);
	error = open_signals(run);
	return error < 0 ? error : start_program(run, p);
}

void recorder_speak(struct launch_run *run)
{
	int64_t until = clock_mono_ns() + NS_PER_S;
	size_t at = 0;

	while (at < run->words.len && run->channel >= 0) {
		size_t left = run->words.len - at;
		size_t n = left < CHANNEL_TEXT_MAX ? left : CHANNEL_TEXT_MAX;
		int error = channel_send_words(run->channel, run->words.data + at, n);
		struct pollfd p = { .fd = run->channel, .events = POLLOUT };

		if (error == 0)
			at += n;
		else if (error != -EAGAIN || clock_mono_ns() >= until)
			break;
		else
			(void)poll(&p, 1, 100);
	}
	buf_reset(&run->words);
}

void launch_say(struct launch_run *run, const char *text, size_t n)
{
	size_t room = LAUNCH_WORDS_MAX - run->words.len;

	buf_put(&run->words, text, n < room ? n : room);
	/* Before the program's end they wait here: a channel full of words, with S stopped, would
	 * have no room for the status. */
	if (run->told)
		recorder_speak(run);
}

void recorder_main(const struct launch *l, const struct program *p, pid_t supervisor, int channel)
{
	struct launch_run run = { .l = l,
				  .supervisor = supervisor,
				  .supervisor_fd = -1,
				  .channel = channel,
				  .children = -1,
				  .witness = { .fd = -1 },
				  .exec_fd = -1 };
	struct launch_end end;
	int error;

	buf_init(&run.words, 2 * LAUNCH_WORDS_MAX);
	run.death_signal = p->death_signal;
	error = start(&run, p);
	if (error < 0) {
		(void)channel_send(channel, CHANNEL_BROKEN, -error, -1);
		_exit(1);
	}
	let_go(&run);
	while (run.exec_fd >= 0) {
		recorder_stops(&run);
		recorder_poll(&run, -1);
	}
	if (!run.exec_error && l->record)
		l->record(&run, l->arg);
	while (!launch_wait(&run, -1, &end))
		;
	recorder_speak(&run);
	(void)channel_send(run.channel, CHANNEL_DONE, 0, -1);
	_exit(0); /* without atexit(): what is there is S's */
}
